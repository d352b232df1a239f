//! One agent of the graph.

use protocol::{AgentPath, ThreadId};

/// One agent: who it is, who spawned it, and whether the edge to it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The agent.
    pub thread: ThreadId,
    /// The agent that spawned it; none for the root.
    pub parent: Option<ThreadId>,
    /// Where it lives.
    pub path: AgentPath,
    /// 1 + earlier agents at this path.
    pub incarnation: u32,
    /// Its place among its siblings, in the order in which they were spawned.
    pub order: u64,
    /// The edge from its parent; of the root, the tree itself.
    pub edge: Edge,
}

/// Whether an agent belongs to the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It does, as far as this edge goes.
    Open,
    /// Somebody closed it; final.
    Closed {
        /// Why.
        reason: String,
    },
}

impl Node {
    /// Whether its own edge is open. It may be out of reach all the same, by an edge above.
    pub fn is_open(&self) -> bool {
        self.edge == Edge::Open
    }

    /// Whether `other` is the same agent. The edge does not count: it changes.
    pub(crate) fn is_same_agent(&self, other: &Self) -> bool {
        (self.thread, self.parent, self.incarnation, self.order)
            == (other.thread, other.parent, other.incarnation, other.order)
            && self.path == other.path
    }
}
