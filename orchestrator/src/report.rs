//! What taking a tree over found.

use protocol::{AgentPath, Outcome, Status, TreeId};

/// What taking a tree over found and did.
#[derive(Clone, Debug)]
pub struct TakeoverReport {
    /// The tree.
    pub tree: TreeId,
    /// Its open agents, root first, then by depth and spawn order.
    pub agents: Vec<AgentReport>,
    /// Files whose agent never existed; they were set aside.
    pub unborn: Vec<String>,
    /// Files and agents that could not be read, and what was odd about the rest. One sentence each.
    pub problems: Vec<String>,
}

/// One agent of a tree that was taken over.
#[derive(Clone, Debug)]
pub struct AgentReport {
    /// Where it lives.
    pub path: AgentPath,
    /// Its role.
    pub role: String,
    /// How it stands.
    pub status: Status,
    /// How its last task ended.
    pub last: Option<Outcome>,
    /// What broke off.
    pub cut: Cut,
    /// Mail it has not read.
    pub unread: usize,
    /// Results among them.
    pub unread_results: usize,
    /// Processes that its crash left running and that were ended.
    pub swept: Vec<String>,
    /// Processes that its crash left running and that still run.
    pub survive: Vec<String>,
}

/// What broke off in an agent's rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Its turn was cut off by the end of its process, now or at an earlier time, and nothing goes on with it yet.
    pub in_turn: bool,
    /// Calls that had no output.
    pub calls: usize,
    /// Bytes of an unfinished write that were cut off.
    pub torn: u64,
    /// Lines that could not be read.
    pub skipped: usize,
    /// Results that were still owed and have been sent now.
    pub paid: usize,
}
