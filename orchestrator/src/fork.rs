//! Forking: what a child takes over of its parent's conversation.

use protocol::Item;
use rollout::{ForkTurns, ItemRecord, Record, SessionMeta};

use crate::node::Node;
use crate::tree::Tree;
use crate::{TreeError, tools};

/// How much of the parent's conversation a child begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Nothing.
    None,
    /// So much of it.
    Fork(ForkTurns),
}

/// The lines that a forked child begins with: its own instructions, then where the parent's items stand. None for a child
/// that begins fresh; its first turn writes its instructions. The parent's file has to be synced between this and the
/// making of the child.
pub(crate) fn forked(tree: &Tree, parent: &Node, child: &SessionMeta, turns: Turns) -> Result<Vec<Record>, TreeError> {
    let Turns::Fork(turns) = turns else { return Ok(Vec::new()) };
    let taken = tree.0.options.store.fork(&parent.address, turns)?;
    let own = preamble(tree, child)?.into_iter().map(record);
    Ok(own.chain(taken.map(|taken| Record::Forked(Box::new(taken)))).collect())
}

/// The child's own instructions. Its tools are asked for by name only; it gets its real hands when it is loaded.
fn preamble(tree: &Tree, child: &SessionMeta) -> Result<Vec<Item>, TreeError> {
    let granted = tree.granted(child)?;
    let hands = tree.0.options.workshop.hands(&Tree::agent_facts(child, &granted)).tools();
    let mut names: Vec<&str> = tools::names(&granted).collect();
    names.extend(hands.iter().map(|tool| tool.name()));
    tree.preamble(child, &names)
}

fn record(item: Item) -> Record {
    Record::Item(ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: None })
}
