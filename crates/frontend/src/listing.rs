//! A tree as it stands, in the form of `agent tree --format json`; and as taking it over found it.

use protocol::{AgentPath, Outcome, Status, ThreadId, TreeId, WaitingOn, Waits};
use serde::{Deserialize, Serialize};
use stdx::{AbsPath, Timestamp};

/// A tree as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listing {
    /// The tree.
    pub tree: TreeId,
    /// The root's thread.
    pub root: ThreadId,
    /// What it has spent of its budget; none when it has no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Spending>,
    /// Its agents, breadth first, closed ones included.
    pub agents: Vec<Row>,
}

/// How a tree stands with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Tokens, input and output together; none when they are not bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Use<u64>>,
    /// US dollars; none when they are not bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Use<f64>>,
}

/// How much of something is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Use<T> {
    /// What there is.
    pub limit: T,
    /// What is settled, estimates included.
    pub used: T,
    /// What is reserved for requests under way.
    pub reserved: T,
}

/// One agent of a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Where it lives.
    pub path: AgentPath,
    /// Which agent it is.
    pub thread_id: ThreadId,
    /// Its parent's path.
    pub parent: Option<AgentPath>,
    /// Its role.
    pub role: String,
    /// Its name for people.
    pub nickname: Option<String>,
    /// Its own edge.
    pub edge: Edge,
    /// How it stands.
    pub status: Status,
    /// How its last task ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What it waits for.
    pub waiting_on: Option<WaitingOn>,
    /// Its place in the queue for a running slot, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// What it waits for, in detail; none when it rests, or nobody drives the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// Since when it stands so; none when nobody drives the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// For how long nothing has come of its work, in milliseconds, when that is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_ms: Option<u64>,
    /// Whether its owner has it in memory.
    #[serde(default)]
    pub resident: bool,
    /// Mail it has not read.
    #[serde(default)]
    pub unread: usize,
    /// Lines of its rollout that could not be read when it was last read.
    #[serde(default)]
    pub skipped: usize,
    /// Tokens over its life.
    #[serde(default)]
    pub tokens: Tokens,
    /// Tokens of requests that nobody counted, because they broke off or their server gives no numbers. They are not in
    /// `tokens`, and count against budgets like those.
    #[serde(default, skip_serializing_if = "Tokens::is_none")]
    pub estimated: Tokens,
    /// Money over its life; none when its model has no price.
    pub cost_usd: Option<f64>,
    /// Its first task, on one line.
    #[serde(default)]
    pub task: String,
    /// When it was spawned.
    pub opened_at: Timestamp,
    /// When its edge was closed.
    pub closed_at: Option<Timestamp>,
    /// When its rollout last grew.
    pub last_activity: Timestamp,
}

/// An agent's own edge, whatever those above it are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Edge {
    /// Nobody has closed it.
    Open,
    /// Somebody has.
    Closed,
}

/// Tokens of one agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Cached input tokens.
    pub cached_input: u64,
    /// Output tokens.
    pub output: u64,
}

impl Tokens {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What taking a tree over found and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The tree.
    pub tree: TreeId,
    /// Its open agents, root first, then by depth and spawn order.
    pub agents: Vec<Found>,
    /// Files whose agent never existed; they were set aside.
    #[serde(default)]
    pub unborn: Vec<String>,
    /// What could not be read, and what was odd about the rest. One sentence each.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// One agent of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where it lives.
    pub path: AgentPath,
    /// Its role.
    pub role: String,
    /// How it stands.
    pub status: Status,
    /// How its last task ended.
    #[serde(default)]
    pub last: Option<Outcome>,
    /// What broke off.
    #[serde(default)]
    pub cut: Cut,
    /// Mail it has not read.
    #[serde(default)]
    pub unread: usize,
    /// Results among them.
    #[serde(default)]
    pub unread_results: usize,
    /// Processes that a crash left running and that were ended.
    #[serde(default)]
    pub swept: Vec<String>,
    /// Processes that a crash left running and that still run.
    #[serde(default)]
    pub survive: Vec<String>,
}

/// What broke off in an agent's rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cut {
    /// Its turn was cut off by the end of its process, and nothing goes on with it yet.
    pub in_turn: bool,
    /// Calls that had no output.
    pub calls: usize,
    /// Bytes of an unfinished write that were cut off.
    pub torn: u64,
    /// Lines that could not be read.
    pub skipped: usize,
    /// The rollout, when any of it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<AbsPath>,
    /// Results that were still owed and have been sent.
    pub paid: usize,
}
