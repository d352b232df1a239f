//! `write_stdin`: speaks with a command that runs on.

use std::sync::Arc;
use std::time::Duration;

use exec::Phase;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use protocol::Call;
use schemars::JsonSchema;
use serde::Deserialize;
use stdx::one_line;
use tokio::time::Instant;
use tool_api::{Invocation, Tool, ToolError, ToolInput, ToolOutput, ToolSpec, parse, schema, whole};

use crate::command::LABEL;
use crate::report::report;
use crate::session::{Session, Until};
use crate::table::Table;
use crate::truncate;

const NAME: &str = "write_stdin";

const DESCRIPTION: &str = "Writes to a command that still runs and returns what it has said since the last call. Without chars it only waits for news.";

/// How long a call waits for news, in milliseconds, when the model does not say.
const DEFAULT_YIELD_MS: u64 = 10_000;

/// A shorter wait would return before most commands have answered.
const MIN_YIELD_MS: u64 = 250;

/// Waiting for a long build costs nothing, asking again and again does.
const MAX_YIELD_MS: u64 = 300_000;

/// Ctrl-C: asks the command to stop.
const INTERRUPT: &str = "\u{3}";

/// Ctrl-D: ends its stdin.
const END_OF_INPUT: char = '\u{4}';

/// Ctrl-\: ends the command and all it started.
const QUIT: &str = "\u{1c}";

/// Arguments of `write_stdin`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The session ID that exec_command returned.
    #[serde(deserialize_with = "number")]
    session_id: u64,
    /// What to write; nothing only waits. "\u0003" alone interrupts the command, "\u001c" alone ends it and all it started, "\u0004" at the end closes its stdin.
    #[serde(default)]
    chars: Option<String>,
    /// How long to wait for news. Default: 10000, from 250 to 300000.
    #[serde(default, deserialize_with = "whole")]
    yield_time_ms: Option<u64>,
    /// How much of the output to return, in tokens of 4 bytes; of longer output the middle is left out. Default: 2500, at most 10000.
    #[serde(default, deserialize_with = "whole")]
    max_output_tokens: Option<u64>,
}

fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    whole(from)?.ok_or_else(|| serde::de::Error::custom("`session_id` is the number that exec_command returned"))
}

/// The tool.
pub(crate) struct WriteStdin {
    pub(crate) table: Arc<Table>,
}

impl Tool for WriteStdin {
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
        let session = parse::<Input>(call).ok().and_then(|input| self.table.get(input.session_id).ok());
        session.map_or_else(
            || NAME.to_owned(),
            |session| format!("$ {} (session {})", one_line(&session.command, LABEL), session.id),
        )
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.run(invocation).boxed()
    }
}

impl WriteStdin {
    async fn run(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let begun = Instant::now();
        let input: Input = parse(&invocation.call)?;
        let session = self.table.get(input.session_id)?;
        write(&session, input.chars.as_deref().unwrap_or_default()).await?;
        let wait = input.yield_time_ms.unwrap_or(DEFAULT_YIELD_MS).clamp(MIN_YIELD_MS, MAX_YIELD_MS);
        let deadline = begun + Duration::from_millis(wait);
        let look = session.look(Until::News, deadline, &invocation.cancel, &invocation.pulse).await;
        if look.progress.phase == Phase::Gone {
            self.table.forget(session.id);
        }
        let max = truncate::budget(input.max_output_tokens);
        Ok(report(invocation.effect, begun.elapsed(), &session, &look, max))
    }
}

async fn write(session: &Session, chars: &str) -> Result<(), ToolError> {
    let process = &session.process;
    match (chars, process.progress().phase) {
        // What has ended is only read out, whatever was to be written to it: the report says that it has ended.
        ("", _) | (_, Phase::Gone) => return Ok(()),
        // Background jobs of a shell are deaf to Ctrl-C, and nothing else is left here.
        (INTERRUPT, Phase::Lingering) | (QUIT, _) => process.kill().await,
        (INTERRUPT, _) => process.interrupt(),
        _ => {
            let text = chars.trim_end_matches(END_OF_INPUT);
            let refused = |error: exec::Error| ToolError::respond(format!("session {}: {error}", session.id));
            if !text.is_empty() {
                process.write(text.as_bytes()).await.map_err(refused)?;
            }
            if text.len() < chars.len() {
                process.close_stdin().await.map_err(refused)?;
            }
        }
    }
    Ok(())
}
