//! Mail between agents, and between a client and an agent.

use serde::{Deserialize, Serialize};
use stdx::{AbsPath, Timestamp};

use crate::{AgentPath, MailId, Outcome, RequestId, TaskId, ThreadId, TreeId};

/// One incarnation of a path. Mail is bound to it: an agent that later lives at the same path never gets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// Where the agent lives.
    pub path: AgentPath,
    /// Which agent it is.
    pub thread: ThreadId,
}

/// Who sends mail, and so who gets the result of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Party {
    /// An agent of the tree.
    Agent(Address),
    /// A person or program outside the tree.
    Client {
        /// The request that the mail carries.
        client: RequestId,
    },
}

/// What a mail is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// The first task of a new agent.
    Spawn,
    /// Words; they wake nobody.
    Message,
    /// A further task; wakes.
    Followup,
    /// How a task ended; wakes nobody.
    Result,
    /// A mail that could not be delivered comes back.
    Returned,
    /// A client's words; a task. Whether it wakes is in `trigger_turn`.
    Input,
}

impl MailKind {
    /// Whether whoever takes this mail in owes its sender a result.
    pub fn is_task(self) -> bool {
        matches!(self, Self::Spawn | Self::Followup | Self::Input)
    }

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Message => "message",
            Self::Followup => "followup",
            Self::Result => "result",
            Self::Returned => "returned",
            Self::Input => "input",
        }
    }
}

/// A mail, as it stands in its recipient's rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Its id; the same id twice is the same mail.
    pub id: MailId,
    /// The tree it belongs to.
    pub tree: TreeId,
    /// Who sent it.
    pub from: Party,
    /// For whom.
    pub to: Address,
    /// What it is for.
    pub kind: MailKind,
    /// Whether it wakes an idle recipient.
    pub trigger_turn: bool,
    /// Its place among all mail of this sender to this recipient, from 1.
    pub sequence: u64,
    /// The words, never blank. Cut when they were over the cap; `whole` then has all of them.
    pub body: String,
    /// A file with the whole body, when `body` was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<AbsPath>,
    /// Of a result: the task it answers. Of a returned mail: the mail that comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<MailId>,
    /// Of a result: how the task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The task that was cut off and that this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<TaskId>,
    /// Of a task: when it ends with what there is, at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

impl Party {
    /// The sender's path, or `user`.
    pub fn name(&self) -> &str {
        match self {
            Self::Agent(address) => address.path.as_str(),
            Self::Client { .. } => "user",
        }
    }

    /// The sender's thread, when it is an agent.
    pub fn thread(&self) -> Option<ThreadId> {
        match self {
            Self::Agent(address) => Some(address.thread),
            Self::Client { .. } => None,
        }
    }
}
