//! What may be asked of a tree.

use protocol::{AgentPath, RequestId, TaskId};
use serde::{Deserialize, Serialize};
use stdx::Timestamp;

/// One thing asked of a tree. Wire names are frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// A client's words to an agent. Answered with [`Reply::Submitted`](crate::Reply::Submitted) as soon as they are
    /// safe on disk.
    Send {
        /// To whom.
        path: AgentPath,
        /// The words.
        body: String,
        /// Whether they wake an idle agent. If not, they lie in its mailbox, and `mode` does not matter.
        #[serde(default = "yes")]
        wake: bool,
        /// Names these words; the task they give has the id that follows from it. Sent twice they are one task.
        request: RequestId,
        /// What they may do to a turn.
        #[serde(default)]
        mode: Mode,
        /// When the task that they give ends with what there is, at the latest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// Waits for the end of a task. Answered with [`Reply::Answered`](crate::Reply::Answered).
    Answer {
        /// The task.
        task: TaskId,
    },
    /// Ends an agent's turn and keeps the agent.
    Interrupt {
        /// Which agent.
        path: AgentPath,
        /// Why, for those who gave it tasks.
        #[serde(default)]
        reason: String,
    },
    /// Closes an agent's edge and ends the work below it.
    Close {
        /// Which agent.
        path: AgentPath,
        /// Why, for those who gave it tasks.
        #[serde(default)]
        reason: String,
    },
    /// The tree as it stands. Answered with [`Reply::Tree`](crate::Reply::Tree).
    Tree,
    /// How each agent stands, in the words of a resume. Starts nothing. Answered with
    /// [`Reply::Report`](crate::Reply::Report).
    Resume,
    /// Wakes what was cut off and starts what is pending. Answered with
    /// [`Reply::Continued`](crate::Reply::Continued).
    Continue,
    /// Events of the tree, from now on on this connection. [`Desk::events`](crate::Desk::events) is its form in
    /// process.
    Subscribe {
        /// Only those after this sequence; without it, those that happen from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
    },
    /// Whether the owner answers.
    Ping,
}

/// What words may do to a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Start a turn, or steer the one that runs.
    #[default]
    StartOrSteer,
    /// Start a turn, and be refused when one runs.
    StartIfIdle,
    /// Steer the turn that runs, and be refused when there is none.
    Steer,
}

fn yes() -> bool {
    true
}

impl Op {
    /// Names of all operations on the wire.
    pub(crate) const NAMES: [&str; 9] =
        ["send", "answer", "interrupt", "close", "tree", "resume", "continue", "subscribe", "ping"];

    /// Whether it only waits. Dropping it then loses nothing.
    pub(crate) fn only_waits(&self) -> bool {
        match self {
            Self::Answer { .. } => true,
            Self::Send { .. }
            | Self::Interrupt { .. }
            | Self::Close { .. }
            | Self::Tree
            | Self::Resume
            | Self::Continue
            | Self::Subscribe { .. }
            | Self::Ping => false,
        }
    }
}
