//! Building a graph from what was found on disk.

use std::collections::{BTreeMap, HashMap, VecDeque};

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use protocol::{AgentPath, ThreadId};

use crate::{Graph, GraphError, Node};

/// An agent that was found and could not be loaded; the rest of the tree was. Each is a warning to a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Its parent was not found, or could not be loaded either.
    #[error("{path} ({thread}) is left out: its parent {parent} could not be loaded")]
    Orphan {
        /// The agent.
        thread: ThreadId,
        /// Where it lives.
        path: AgentPath,
        /// Its parent.
        parent: ThreadId,
    },
    /// Agents that name each other as parents.
    #[error("agents are left out because each is an ancestor of the others: {}", list(.0))]
    Cycle(Vec<ThreadId>),
    /// Its data contradict those of an agent that was loaded.
    #[error("{path} ({thread}) is left out: {error}")]
    Refused {
        /// The agent.
        thread: ThreadId,
        /// Where it lives.
        path: AgentPath,
        /// What is wrong with it.
        error: GraphError,
    },
}

fn list(threads: &[ThreadId]) -> String {
    threads.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Graph {
    /// Builds a graph from agents in any order. Whoever hangs on the root by sound data is loaded; everybody else is
    /// a problem. Of two agents that claim the same place the older one (incarnation, order, thread) is loaded.
    pub fn build(nodes: impl IntoIterator<Item = Node>) -> (Self, Vec<Problem>) {
        let mut nodes: Vec<Node> = nodes.into_iter().collect();
        nodes.sort_by_key(|node| (node.incarnation, node.order, node.thread));
        let mut below: HashMap<Option<ThreadId>, Vec<Node>> = HashMap::new();
        for node in nodes {
            below.entry(node.parent).or_default().push(node);
        }
        let mut graph = Self::new();
        let mut problems = Vec::new();
        let mut queue = VecDeque::from([None]);
        while let Some(parent) = queue.pop_front() {
            for node in below.remove(&parent).unwrap_or_default() {
                let (thread, path) = (node.thread, node.path.clone());
                match graph.insert(node) {
                    Ok(()) => queue.push_back(Some(thread)),
                    Err(error) => problems.push(Problem::Refused { thread, path, error }),
                }
            }
        }
        problems.extend(leftovers(below.into_values().flatten().map(|node| (node.thread, node)).collect()));
        (graph, problems)
    }
}

/// What is wrong with agents that no walk from the root meets: cycles first, then those without a loaded parent.
fn leftovers(left: BTreeMap<ThreadId, Node>) -> Vec<Problem> {
    let mut data = DiGraph::new();
    let index: BTreeMap<ThreadId, _> = left.keys().map(|thread| (*thread, data.add_node(*thread))).collect();
    for node in left.values() {
        if let (Some(parent), Some(at)) = (node.parent.and_then(|p| index.get(&p)), index.get(&node.thread)) {
            data.add_edge(*parent, *at, ());
        }
    }
    let mut cycles = Vec::new();
    let mut orphans = Vec::new();
    for group in tarjan_scc(&data) {
        let mut threads: Vec<ThreadId> = group.into_iter().filter_map(|at| data.node_weight(at).copied()).collect();
        threads.sort_unstable();
        let alone = threads.first().and_then(|thread| left.get(thread)).filter(|_| threads.len() == 1);
        match alone {
            Some(Node { thread, path, parent: Some(parent), .. }) if parent != thread => {
                orphans.push(Problem::Orphan { thread: *thread, path: path.clone(), parent: *parent });
            }
            _ => cycles.push(Problem::Cycle(threads)),
        }
    }
    cycles.sort_by_key(|problem| if let Problem::Cycle(threads) = problem { threads.first().copied() } else { None });
    orphans.sort_by_key(|problem| match problem {
        Problem::Orphan { thread, path, .. } => Some((path.depth(), path.clone(), *thread)),
        _ => None,
    });
    cycles.into_iter().chain(orphans).collect()
}

#[cfg(test)]
mod tests;
