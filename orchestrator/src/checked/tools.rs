//! An agent has the tool that its hands have, and no other.

use std::sync::Arc;

use roles::Granted;
use tool_api::Tool;

use super::node::Node;
use super::tree::Tree;

pub(crate) fn of(_: &Tree, _: &Arc<Node>, _: &Granted) -> Vec<Arc<dyn Tool>> {
    Vec::new()
}
