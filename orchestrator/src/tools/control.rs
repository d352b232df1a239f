//! `interrupt_agent` and `close_agent`.

use futures::future::BoxFuture;
use protocol::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_api::{Invocation, Tool, ToolError, ToolOutput, ToolSpec};

use super::Me;
use super::args::{function, refuse};
use crate::close::By;

pub(super) const INTERRUPT: &str = "interrupt_agent";
pub(super) const CLOSE: &str = "close_agent";

pub(super) struct InterruptAgent(pub(super) Me);
pub(super) struct CloseAgent(pub(super) Me);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The agent: a name below you, or a path such as `/root/worker_a`.
    target: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseArgs {
    /// The agent: a name below you, or a path such as `/root/worker_a`.
    target: String,
    /// Why, in a few words; whoever gave it a task is told.
    #[serde(default)]
    reason: Option<String>,
}

impl Tool for InterruptAgent {
    fn name(&self) -> &str {
        INTERRUPT
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: INTERRUPT.to_owned(),
            description:
                "Stops what an agent is doing and keeps the agent: it still knows everything, its unread mail \
                          stays, and followup_task sets it to work again. Whoever gave it the task gets a result that \
                          says interrupted."
                    .to_owned(),
            input: function::<Args>(),
        }
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = tool_api::parse(&invocation.call)?;
            let target = self.0.target(&args.target)?;
            let by = By::Agent(self.0.node.address.clone());
            let before = self.0.tree.interrupt(&target.address.path, &by).await.map_err(refuse)?;
            Ok(ToolOutput::ok(stood(before)))
        })
    }
}

impl Tool for CloseAgent {
    fn name(&self) -> &str {
        CLOSE
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: CLOSE.to_owned(),
            description: "Ends an agent for good, with everybody below it: turns stop, unread results move up to the \
                          nearest agent above, other unread mail goes back to its senders, processes end. Its name is \
                          free again. Close agents that you do not need any more."
                .to_owned(),
            input: function::<CloseArgs>(),
        }
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: CloseArgs = tool_api::parse(&invocation.call)?;
            let target = self.0.target(&args.target)?;
            let reason = args.reason.unwrap_or_default();
            let reason = if reason.trim().is_empty() { "no longer needed" } else { reason.trim() };
            let writer = self.0.tree.0.options.store.writer(self.0.node.meta.id);
            let writer = writer.map_err(|error| refuse(error.into()))?;
            // The call is on disk before the edge is.
            writer.sync().await.map_err(|error| refuse(error.into()))?;
            let by = By::Agent(self.0.node.address.clone());
            let tree = self.0.tree.clone();
            let path = target.address.path.clone();
            let reason = stdx::one_line(reason, 200);
            // Once the edge is closed the rest is owed, whatever becomes of this call.
            let closing = self.0.tree.0.tracker.spawn(async move { tree.close(&path, &reason, &by).await });
            let before = closing.await.map_err(|error| ToolError::Fatal(error.to_string()))?.map_err(refuse)?;
            Ok(ToolOutput::ok(stood(before)))
        })
    }
}

fn stood(before: Status) -> String {
    serde_json::json!({ "previous_status": before }).to_string()
}
