//! `spawn_agent`.

use futures::future::BoxFuture;
use protocol::AgentName;
use rollout::ForkTurns;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_api::{Invocation, Tool, ToolError, ToolOutput, ToolSpec};

use super::Me;
use super::args::{deadline, function, refuse};
use crate::fork::Turns;
use crate::spawn::Wanted;

pub(super) const NAME: &str = "spawn_agent";

pub(super) struct SpawnAgent(pub(super) Me);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Name of the new agent below you: 1 to 64 of a-z, 0-9 and _. Its path is yours, a slash, and this.
    task_name: String,
    /// Its task, complete in itself: it sees nothing of your conversation unless you fork it.
    message: String,
    /// Its role; see the list in the description. Left out: `default`, or the first one listed.
    #[serde(default)]
    agent_type: Option<String>,
    /// Another model, as PROVIDER/NAME. Left out: yours.
    #[serde(default)]
    model: Option<String>,
    /// Effort of reasoning. Left out: yours.
    #[serde(default)]
    reasoning_effort: Option<String>,
    /// How much of your conversation it begins with: `none` (default), `all`, or a number of last turns.
    #[serde(default)]
    fork_turns: Option<String>,
    /// How long it may take, in milliseconds: then it ends with what it has. Left out: as long as it takes.
    #[serde(default, deserialize_with = "tool_api::whole")]
    deadline_ms: Option<u64>,
}

impl Tool for SpawnAgent {
    fn name(&self) -> &str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        let roles = self.0.tree.0.options.roles.listing();
        ToolSpec {
            name: NAME.to_owned(),
            description: format!(
                "Starts a new agent below you and gives it a task. Returns at once with its path; its result comes to \
                 you as mail when it ends, and wait_agent waits for it. Several calls in one reply start side by \
                 side. Roles (agent_type):\n{}",
                roles.trim_end()
            ),
            input: function::<Args>(),
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = tool_api::parse(&invocation.call)?;
            let wanted = Wanted {
                name: AgentName::new(args.task_name.trim()).map_err(|error| ToolError::respond(error.to_string()))?,
                task: args.message,
                role: some(args.agent_type),
                model: some(args.model),
                effort: some(args.reasoning_effort),
                turns: turns(args.fork_turns.as_deref())?,
                deadline: deadline(args.deadline_ms)?,
            };
            let Me { tree, node } = self.0.clone();
            // Carried through even when the call is dropped: a child that stands on disk must be in the tables too.
            let spawning = tree.0.tracker.clone().spawn(async move { tree.spawn(&node, wanted, &invocation).await });
            let node = spawning.await.map_err(|error| ToolError::Fatal(error.to_string()))?.map_err(refuse)?;
            Ok(ToolOutput::ok(spawned(&node.meta)))
        })
    }
}

/// The output of a spawn that happened; the same after a crash.
pub(crate) fn spawned(meta: &rollout::SessionMeta) -> String {
    serde_json::json!({ "task_name": meta.agent_path, "nickname": meta.agent_nickname }).to_string()
}

/// Models like to fill optional fields with blanks.
fn some(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn turns(text: Option<&str>) -> Result<Turns, ToolError> {
    match text.map(str::trim).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "none" => Ok(Turns::None),
        "all" => Ok(Turns::Fork(ForkTurns::All)),
        number => match number.parse() {
            Ok(count) if count > 0 => Ok(Turns::Fork(ForkTurns::Last(count))),
            _ => Err(ToolError::respond(format!(
                "fork_turns is `none`, `all`, or a positive number such as `3`; `{number}` is none of these"
            ))),
        },
    }
}
