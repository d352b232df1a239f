//! Why an agent cannot be in the graph.

use protocol::{AgentPath, PathError, ThreadId};

/// Why an agent cannot be added or spawned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Nobody in this tree has that thread.
    #[error("no agent {0} in this tree; list_agents shows who is there")]
    Unknown(ThreadId),
    /// The same thread was added before, as another agent.
    #[error("agent {thread} is already in the tree as {path} with another parent, path, incarnation or order")]
    Different {
        /// The thread.
        thread: ThreadId,
        /// Where the first one lives.
        path: AgentPath,
    },
    /// The parent is not in the graph.
    #[error("{path} names a parent {parent} that is not in the tree; add parents before their children")]
    UnknownParent {
        /// The agent.
        path: AgentPath,
        /// Its parent.
        parent: ThreadId,
    },
    /// The path is not the parent's path and one name.
    #[error("{path} is not a child path of {parent}: it must be that path and one name")]
    NotBelow {
        /// The agent's path.
        path: AgentPath,
        /// The parent's path.
        parent: AgentPath,
    },
    /// An agent without a parent that does not live at `/root`, or one at `/root` with a parent.
    #[error("{0} does not fit its parent: the root has none and lives at /root, everybody else has one")]
    Root(AgentPath),
    /// There is a root already.
    #[error("the tree has a root already: {0}")]
    SecondRoot(ThreadId),
    /// An agent would be its own ancestor.
    #[error("{0} would be its own ancestor")]
    Cycle(AgentPath),
    /// A reachable agent holds the path.
    #[error("{path} is taken by an open agent: choose another name, or close that one first")]
    Taken {
        /// The path.
        path: AgentPath,
        /// Who holds it.
        holder: ThreadId,
    },
    /// The parent is closed, or somebody above it is.
    #[error("{path} cannot have children: {closed} is closed ({reason})")]
    Closed {
        /// The parent.
        path: AgentPath,
        /// The nearest closed agent at or above it.
        closed: AgentPath,
        /// Why that one was closed.
        reason: String,
    },
    /// The depth limit.
    #[error(
        "{path} would be {depth} levels below /root and the limit is {max} (max_depth in the configuration): do the work yourself, or give it to an agent higher up"
    )]
    TooDeep {
        /// The path that was asked for.
        path: AgentPath,
        /// Its depth.
        depth: usize,
        /// The limit.
        max: usize,
    },
    /// The limit on agents of a tree.
    #[error(
        "this tree has spawned {spawned} agents and the limit is {max} (max_agents in the configuration): give a follow-up task to an agent that is there"
    )]
    TooMany {
        /// Agents ever spawned.
        spawned: usize,
        /// The limit.
        max: usize,
    },
    /// The path would be longer than any path may be.
    #[error(transparent)]
    Path(#[from] PathError),
}
