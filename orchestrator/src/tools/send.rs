//! `send_message` and `followup_task`.

use futures::future::BoxFuture;
use protocol::MailKind;
use schemars::JsonSchema;
use serde::Deserialize;
use tool_api::{Invocation, Tool, ToolError, ToolOutput, ToolSpec};

use super::Me;
use super::args::{deadline, function, refuse};
use crate::deadline::earlier;

pub(super) const MESSAGE: &str = "send_message";
pub(super) const FOLLOWUP: &str = "followup_task";

pub(super) struct SendMessage(pub(super) Me);
pub(super) struct FollowupTask(pub(super) Me);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The agent: a name below you, or a path such as `/root/worker_a`. Siblings need their path.
    target: String,
    /// What to say. Not blank.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskArgs {
    /// The agent: a name below you, or a path such as `/root/worker_a`. Siblings need their path.
    target: String,
    /// What is to be done. Not blank.
    message: String,
    /// How long it may take, in milliseconds: then it ends with what it has. Left out: as long as it takes.
    #[serde(default, deserialize_with = "tool_api::whole")]
    deadline_ms: Option<u64>,
}

impl Tool for SendMessage {
    fn name(&self) -> &str {
        MESSAGE
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: MESSAGE.to_owned(),
            description: "Leaves a message for another agent. A working agent reads it before its next step; an idle \
                          one reads it when it gets its next task. It wakes nobody."
                .to_owned(),
            input: function::<Args>(),
        }
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Args { target, message } = tool_api::parse(&invocation.call)?;
            self.0.send(MailKind::Message, TaskArgs { target, message, deadline_ms: None }, invocation).await
        })
    }
}

impl Tool for FollowupTask {
    fn name(&self) -> &str {
        FOLLOWUP
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: FOLLOWUP.to_owned(),
            description:
                "Gives a further task to an agent that exists. It knows all that it did before. An idle agent \
                          is woken; a working one takes it in before it ends its turn or starts a new one for it. Its \
                          result comes to you as mail."
                    .to_owned(),
            input: function::<TaskArgs>(),
        }
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args = tool_api::parse(&invocation.call)?;
            self.0.send(MailKind::Followup, args, invocation).await
        })
    }
}

impl Me {
    async fn send(&self, kind: MailKind, args: TaskArgs, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let to = self.target(&args.target)?;
        let id = invocation.effect.mail();
        let wakes = kind == MailKind::Followup;
        let from = self.node.party();
        let tree = &self.tree;
        let mut mail = tree.letter(id, from, &to, (kind, wakes), &args.message).map_err(refuse)?;
        mail.deadline = deadline(args.deadline_ms)?;
        if kind.is_task() {
            mail.deadline = earlier(mail.deadline, self.node.facts().tasks.bound());
        }
        // The call is on disk before its mail is.
        let writer = tree.0.options.store.writer(self.node.meta.id).map_err(|error| refuse(error.into()))?;
        writer.sync().await.map_err(|error| refuse(error.into()))?;
        let path = to.address.path.clone();
        let tree = tree.clone();
        // Carried through even when the call is dropped: mail that stands on disk must wake whom it wakes.
        let delivering = self.tree.0.tracker.spawn(async move { tree.deliver(&to, mail).await });
        delivering.await.map_err(|error| ToolError::Fatal(error.to_string()))?.map_err(refuse)?;
        Ok(ToolOutput::ok(sent(id, path.as_str())))
    }
}

/// The output of mail that was accepted; the same after a crash.
pub(crate) fn sent(id: protocol::MailId, to: &str) -> String {
    serde_json::json!({ "accepted": true, "mail": id, "to": to }).to_string()
}
