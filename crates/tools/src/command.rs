//! `exec_command`: runs a command line.

use std::sync::Arc;
use std::time::Duration;

use exec::{Phase, Shell, Stdin};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use protocol::Call;
use schemars::JsonSchema;
use serde::Deserialize;
use stdx::one_line;
use tokio::time::Instant;
use tool_api::{Invocation, Tool, ToolError, ToolInput, ToolOutput, ToolSpec, parse, schema, whole};

use crate::intercept::intercept;
use crate::report::report;
use crate::session::Until;
use crate::table::{Job, Table};
use crate::{edit, truncate};

const NAME: &str = "exec_command";

const DESCRIPTION: &str = "Runs a command line in a shell and returns its output, stdout and stderr together. A command that does not end within yield_time_ms runs on; its session ID is returned, for write_stdin.";

/// How long a call waits for the end of its command, in milliseconds, when the model does not say.
const DEFAULT_YIELD_MS: u64 = 10_000;

/// A shorter wait would return before most commands have said anything.
const MIN_YIELD_MS: u64 = 250;

/// Characters of a command that are shown to whoever wonders what its agent waits for.
pub(crate) const LABEL: usize = 60;

/// A longer wait would keep the agent from hearing its mail.
const MAX_YIELD_MS: u64 = 30_000;

/// Arguments of `exec_command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The command line.
    cmd: String,
    /// Folder to run it in, relative to the working folder, which is the default.
    #[serde(default)]
    workdir: Option<String>,
    /// Shell to run it with: a name or an absolute path. Default: bash.
    #[serde(default)]
    shell: Option<String>,
    /// Whether the shell reads the user's login profile; slow. Default: false.
    #[serde(default)]
    login: Option<bool>,
    /// Must be false: there is no terminal.
    #[serde(default)]
    tty: Option<bool>,
    /// Whether the command can be written to with write_stdin. Default: false, it reads from /dev/null.
    #[serde(default)]
    stdin: Option<bool>,
    /// How long to wait for the command to end. Default: 10000, from 250 to 30000.
    #[serde(default, deserialize_with = "whole")]
    yield_time_ms: Option<u64>,
    /// How much of the output to return, in tokens of 4 bytes; of longer output the middle is left out. Default: 2500, at most 10000.
    #[serde(default, deserialize_with = "whole")]
    max_output_tokens: Option<u64>,
}

/// The tool.
pub(crate) struct ExecCommand {
    pub(crate) table: Arc<Table>,
    /// Whether the agent may patch files. A patch in a command line is one, too.
    pub(crate) patches: bool,
}

impl Tool for ExecCommand {
    fn name(&self) -> &str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: DESCRIPTION.to_owned(),
            input: ToolInput::Function { parameters: schema::<Input>() },
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn label(&self, call: &Call) -> String {
        let command = parse::<Input>(call).map(|input| input.cmd).unwrap_or_default();
        format!("$ {}", one_line(&command, LABEL))
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.run(invocation).boxed()
    }
}

impl ExecCommand {
    async fn run(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let begun = Instant::now();
        let input: Input = parse(&invocation.call)?;
        if input.cmd.trim().is_empty() {
            return Err(ToolError::respond("`cmd` is empty; give a command line"));
        }
        if input.tty == Some(true) {
            return Err(ToolError::respond(
                "there is no terminal to run this in; leave `tty` out, and set `stdin` to true if the command is to be written to",
            ));
        }
        if invocation.cancel.is_cancelled() {
            return Err(ToolError::respond("interrupted before the command was started"));
        }
        let cwd = input.workdir.map_or_else(|| invocation.cwd.clone(), |folder| invocation.cwd.join(folder));
        if let Some(found) = intercept(&input.cmd) {
            if !self.patches {
                return Err(ToolError::respond(
                    "apply_patch is not among the tools of this agent; it cannot edit files",
                ));
            }
            let cwd = found.folder.map_or_else(|| cwd.clone(), |folder| cwd.join(folder));
            return edit::apply(&self.table, cwd, found.patch).await;
        }
        let shell = match &input.shell {
            Some(name) => Shell::named(name, &self.table.bench.environment)
                .map_err(|error| ToolError::respond(error.to_string()))?,
            None => self.table.bench.shell.clone(),
        };
        let session = self.table.start(
            Job {
                command: input.cmd,
                shell,
                login: input.login.unwrap_or_default(),
                cwd,
                stdin: if input.stdin == Some(true) { Stdin::Piped } else { Stdin::Null },
            },
            &invocation.ledger,
        )?;
        let wait = input.yield_time_ms.unwrap_or(DEFAULT_YIELD_MS).clamp(MIN_YIELD_MS, MAX_YIELD_MS);
        let deadline = begun + Duration::from_millis(wait);
        let look = session.look(Until::Ended, deadline, &invocation.cancel, &invocation.pulse).await;
        if look.progress.phase == Phase::Gone {
            self.table.forget(session.id);
        }
        let max = truncate::budget(input.max_output_tokens);
        Ok(report(invocation.effect, begun.elapsed(), &session, &look, max))
    }
}
