//! The tools of the tree: how agents spawn, write to, wait for and see each other.

mod args;
mod control;
mod list;
mod send;
mod spawn;
mod wait;

use std::sync::Arc;

use roles::Granted;
use tool_api::Tool;

use crate::node::Node;
use crate::tree::Tree;

use control::{CloseAgent, InterruptAgent};
use list::ListAgents;
use send::{FollowupTask, SendMessage};
use spawn::SpawnAgent;
use wait::WaitAgent;

pub(crate) use send::sent;
pub(crate) use spawn::spawned;

/// What a call is answered that had not done anything when its process ended.
pub(crate) const NOT_DONE: &str = "not done: the process ended first";

/// Their names, in the order in which a model sees them.
const NAMES: [&str; 7] =
    [spawn::NAME, send::MESSAGE, send::FOLLOWUP, wait::NAME, list::NAME, control::INTERRUPT, control::CLOSE];

/// The names of those that are granted.
pub(crate) fn names(granted: &Granted) -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|name| allows(granted, name))
}

/// Those that are granted, for one agent.
pub(crate) fn of(tree: &Tree, node: &Arc<Node>, granted: &Granted) -> Vec<Arc<dyn Tool>> {
    let me = Me { tree: tree.clone(), node: Arc::clone(node) };
    let all: [Arc<dyn Tool>; 7] = [
        Arc::new(SpawnAgent(me.clone())),
        Arc::new(SendMessage(me.clone())),
        Arc::new(FollowupTask(me.clone())),
        Arc::new(WaitAgent(me.clone())),
        Arc::new(ListAgents(me.clone())),
        Arc::new(InterruptAgent(me.clone())),
        Arc::new(CloseAgent(me)),
    ];
    all.into_iter().filter(|tool| allows(granted, tool.name())).collect()
}

fn allows(granted: &Granted, name: &str) -> bool {
    granted.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name))
}

/// The agent that a tool belongs to.
#[derive(Clone)]
struct Me {
    tree: Tree,
    node: Arc<Node>,
}
