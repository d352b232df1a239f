//! What a tree answers.

use protocol::{AgentPath, TaskEnd, TaskId, TurnId};
use serde::{Deserialize, Serialize};

use crate::{Fault, Listing, Report};

/// The answer to an [`Op`](crate::Op). Wire names are frozen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// What became of a client's words.
    Submitted(Submission),
    /// A task has ended.
    Answered(Answer),
    /// Turns were ended.
    Interrupted {
        /// Whose; none when nothing ran there.
        agents: Vec<AgentPath>,
    },
    /// An edge was closed.
    Closed {
        /// The agent and those below it whose work ended with it.
        agents: Vec<AgentPath>,
        /// Words of people that they had not read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unread: Vec<UnreadWords>,
    },
    /// The tree as it stands.
    Tree(Listing),
    /// How each agent stands.
    Report(Report),
    /// What was cut off goes on, what was pending has begun.
    Continued {
        /// The client's tasks among them, the root's first. Each can be waited for.
        tasks: Vec<Given>,
    },
    /// Events follow.
    Subscribed,
    /// The owner answers.
    Pong,
}

/// Words of a person that nobody reads any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadWords {
    /// For whom they were.
    pub path: AgentPath,
    /// The words, on one line.
    pub line: String,
}

/// What became of a client's words; known at once, unlike their answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Submission {
    /// They start a turn.
    Started {
        /// The task they gave.
        task: TaskId,
        /// The turn; unknown as long as it has not begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    },
    /// They go to the turn that runs.
    Steered {
        /// The task they gave.
        task: TaskId,
        /// The turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
    },
    /// They are accepted and wait: for a turn that something else starts, or for a running slot.
    Queued {
        /// The task they gave.
        task: TaskId,
        /// The agent's place in the queue for a running slot, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<usize>,
    },
    /// They were refused and nothing has changed.
    NotSubmitted {
        /// Why, for programs.
        reason: Refusal,
        /// Why, in a sentence that says what to do.
        message: String,
    },
}

/// Why words were not submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// They were to steer, and there is no turn.
    NoActiveTurn,
    /// The turn that runs takes nothing in.
    NotSteerable,
    /// They were to start a turn, and one runs.
    Busy,
    /// They are blank or otherwise not to be accepted.
    InvalidRequest,
    /// The owner is letting go of the tree.
    ShuttingDown,
    /// The agent's mailbox is full.
    QueueFull,
    /// A reason this version does not know.
    #[serde(other)]
    Other,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The task.
    pub task: TaskId,
    /// Who had it.
    pub agent: AgentPath,
    /// How it ended, with its words.
    pub end: TaskEnd,
    /// What was at fault, when something outside the agent was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The newest event of the tree when this was said: those that tell of the task are not after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// A task, and who has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The task.
    pub task: TaskId,
    /// Who has it.
    pub agent: AgentPath,
}

impl Submission {
    /// The task, when the words were accepted.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Started { task, .. } | Self::Steered { task, .. } | Self::Queued { task, .. } => Some(*task),
            Self::NotSubmitted { .. } => None,
        }
    }
}
