//! The ways through the graph.

use std::collections::VecDeque;

use protocol::ThreadId;

use crate::{Graph, Node};

/// Which edges a walk takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Every edge.
    All,
    /// Open edges only: nobody below a closed one is met, however open the edges there are.
    Open,
}

impl Graph {
    /// Everybody below an agent, breadth first: by depth, then in spawn order. With [`Filter::Open`] these are the
    /// reachable ones, so below an agent that is itself out of reach there is nobody.
    pub fn descendants(&self, thread: ThreadId, filter: Filter) -> Vec<ThreadId> {
        let takes = |node: ThreadId| filter == Filter::All || self.is_open(node);
        let mut found = Vec::new();
        let mut queue = VecDeque::new();
        if filter == Filter::All || self.is_reachable(thread) {
            queue.push_back(thread);
        }
        while let Some(next) = queue.pop_front() {
            for child in self.children(next).into_iter().filter(|child| takes(*child)) {
                found.push(child);
                queue.push_back(child);
            }
        }
        found
    }

    /// Everybody above an agent, its parent first and the root last.
    pub fn ancestors(&self, thread: ThreadId) -> Vec<ThreadId> {
        self.upwards(thread).skip(1).map(|node| node.thread).collect()
    }

    /// An agent and everybody below it, children before their parents and the agent itself last: the order in which
    /// a subtree is stopped.
    pub fn subtree_post_order(&self, thread: ThreadId) -> Vec<ThreadId> {
        let mut order = Vec::new();
        if self.get(thread).is_none() {
            return order;
        }
        // Parents first with the last child next; turned round, that is children first in spawn order.
        let mut stack = vec![thread];
        while let Some(next) = stack.pop() {
            order.push(next);
            stack.extend(self.children(next));
        }
        order.reverse();
        order
    }

    /// Everybody, breadth first from the root.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        let root = self.root();
        let below = root.map(|root| self.descendants(root, Filter::All)).unwrap_or_default();
        root.into_iter().chain(below).filter_map(|thread| self.get(thread))
    }
}
