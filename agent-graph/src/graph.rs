//! The graph itself: adding, closing, looking up.

use std::collections::HashMap;

use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use protocol::{AgentPath, ThreadId};

use crate::{Edge, GraphError, Node};

/// The agents of one tree. Agents are added and closed, never removed: a closed one keeps its history and its place.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Edges point from parent to child.
    nodes: StableDiGraph<Node, ()>,
    index: HashMap<ThreadId, NodeIndex>,
    /// All incarnations of a path, oldest first.
    paths: HashMap<AgentPath, Vec<ThreadId>>,
    root: Option<ThreadId>,
}

impl Graph {
    /// A tree without agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent. Adding it again is a no-op; if the second one is closed and the first is not, it is closed now,
    /// and never the other way round: what is read late does not reopen an edge.
    ///
    /// # Errors
    /// When the thread is there as another agent, the parent is not, the path does not fit the parent's, or a
    /// reachable agent holds it. A closed agent, or one below a closed agent, needs no free path.
    pub fn insert(&mut self, node: Node) -> Result<(), GraphError> {
        if let Some(known) = self.get(node.thread) {
            if !known.is_same_agent(&node) {
                return Err(GraphError::Different { thread: node.thread, path: known.path.clone() });
            }
            if let Edge::Closed { reason } = node.edge {
                self.close(node.thread, &reason);
            }
            return Ok(());
        }
        let parent = match node.parent {
            None => {
                if let Some(root) = self.root {
                    return Err(GraphError::SecondRoot(root));
                }
                if !node.path.is_root() {
                    return Err(GraphError::Root(node.path));
                }
                None
            }
            Some(parent) => Some(self.place(&node, parent)?),
        };
        let thread = node.thread;
        let path = node.path.clone();
        let rank = (node.incarnation, node.order);
        let at = self.nodes.add_node(node);
        match parent {
            Some(parent) => {
                self.nodes.add_edge(parent, at, ());
            }
            None => self.root = Some(thread),
        }
        self.index.insert(thread, at);
        let (nodes, index) = (&self.nodes, &self.index);
        let incarnations = self.paths.entry(path).or_default();
        let here = incarnations.partition_point(|t| {
            index.get(t).and_then(|i| nodes.node_weight(*i)).is_some_and(|n| (n.incarnation, n.order) <= rank)
        });
        incarnations.insert(here, thread);
        Ok(())
    }

    /// Where a new child of `parent` hangs, when it may.
    fn place(&self, node: &Node, parent: ThreadId) -> Result<NodeIndex, GraphError> {
        if parent == node.thread {
            return Err(GraphError::Cycle(node.path.clone()));
        }
        if node.path.is_root() {
            return Err(GraphError::Root(node.path.clone()));
        }
        let (Some(at), Some(above)) = (self.index.get(&parent), self.get(parent)) else {
            return Err(GraphError::UnknownParent { path: node.path.clone(), parent });
        };
        if node.path.parent().as_ref() != Some(&above.path) {
            return Err(GraphError::NotBelow { path: node.path.clone(), parent: above.path.clone() });
        }
        if node.is_open()
            && self.is_reachable(parent)
            && let Some(holder) = self.resolve(&node.path)
        {
            return Err(GraphError::Taken { path: node.path.clone(), holder });
        }
        Ok(*at)
    }

    /// Closes an agent's own edge and says whether it was open. Edges below stay as they are. Final: closing again
    /// keeps the first reason.
    pub fn close(&mut self, thread: ThreadId, reason: &str) -> bool {
        let Some(node) = self.index.get(&thread).and_then(|at| self.nodes.node_weight_mut(*at)) else { return false };
        let was_open = node.is_open();
        if was_open {
            node.edge = Edge::Closed { reason: reason.to_owned() };
        }
        was_open
    }

    /// The agent of this thread.
    pub fn get(&self, thread: ThreadId) -> Option<&Node> {
        self.index.get(&thread).and_then(|at| self.nodes.node_weight(*at))
    }

    /// The root of the tree.
    pub fn root(&self) -> Option<ThreadId> {
        self.root
    }

    /// Whether an agent's own edge is open.
    pub fn is_open(&self, thread: ThreadId) -> bool {
        self.get(thread).is_some_and(Node::is_open)
    }

    /// Whether every edge from an agent up to the root is open. Only then can it be addressed and hold its path.
    pub fn is_reachable(&self, thread: ThreadId) -> bool {
        self.get(thread).is_some() && self.closed_by(thread).is_none()
    }

    /// The nearest agent at or above `thread` whose edge is closed.
    pub fn closed_by(&self, thread: ThreadId) -> Option<&Node> {
        self.upwards(thread).find(|node| !node.is_open())
    }

    /// The nearest reachable agent at or above `thread`; none when the tree is closed at its root.
    pub fn nearest_reachable(&self, thread: ThreadId) -> Option<ThreadId> {
        // Going up, the agent above the last closed edge is the lowest one that the root reaches.
        let mut nearest = None;
        for node in self.upwards(thread) {
            nearest = if node.is_open() { nearest.or(Some(node.thread)) } else { None };
        }
        nearest
    }

    /// The reachable agent at a path; there is at most one.
    pub fn resolve(&self, path: &AgentPath) -> Option<ThreadId> {
        self.paths.get(path)?.iter().rev().copied().find(|thread| self.is_reachable(*thread))
    }

    /// Every agent that ever lived at a path, newest last.
    pub fn resolve_any(&self, path: &AgentPath) -> Vec<ThreadId> {
        self.paths.get(path).cloned().unwrap_or_default()
    }

    /// The number of the next agent at a path, from 1.
    pub fn next_incarnation(&self, path: &AgentPath) -> u32 {
        let newest = self.paths.get(path).and_then(|all| all.last()).and_then(|thread| self.get(*thread));
        newest.map_or(1, |node| node.incarnation.saturating_add(1))
    }

    /// The agent that spawned this one.
    pub fn parent(&self, thread: ThreadId) -> Option<ThreadId> {
        self.get(thread)?.parent
    }

    /// How many agents there are, the root and closed ones included.
    pub fn len(&self) -> usize {
        self.nodes.node_count()
    }

    /// Whether there is nobody, not even a root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many agents were ever spawned: everybody but the root.
    pub fn spawned_total(&self) -> usize {
        self.len().saturating_sub(1)
    }

    /// The children of an agent in spawn order, closed ones included.
    pub fn children(&self, thread: ThreadId) -> Vec<ThreadId> {
        let Some(at) = self.index.get(&thread) else { return Vec::new() };
        let mut children: Vec<&Node> = self
            .nodes
            .neighbors_directed(*at, Direction::Outgoing)
            .filter_map(|child| self.nodes.node_weight(child))
            .collect();
        children.sort_by_key(|node| (node.order, node.thread));
        children.into_iter().map(|node| node.thread).collect()
    }

    /// The agent itself and everybody above it. Ends because no path is deeper than paths may be.
    pub(crate) fn upwards(&self, thread: ThreadId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.get(thread), |node| node.parent.and_then(|parent| self.get(parent)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
