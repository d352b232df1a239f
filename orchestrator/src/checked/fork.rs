//! No child takes over a conversation here.

use rollout::{Record, SessionMeta};

use super::TreeError;
use super::node::Node;
use super::tree::Tree;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    None,
}

#[allow(clippy::unnecessary_wraps, reason = "it has the shape of the real one")]
pub(crate) fn forked(_: &Tree, _: &Node, _: &SessionMeta, Turns::None: Turns) -> Result<Vec<Record>, TreeError> {
    Ok(Vec::new())
}
