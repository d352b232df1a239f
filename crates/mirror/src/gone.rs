//! Rollouts that the mirror knew and that are not there any more: what a person is told of them.

use std::collections::BTreeMap;

use protocol::TreeId;
use rollout::{Problem, Summary};
use stdx::AbsPath;

use crate::mirror::NAME;

/// How many trees are told of; of the others only the number. They are told of at every listing.
const MAX_TREES: usize = 8;

/// How many agents of a tree are named.
const MAX_NAMES: usize = 3;

/// One sentence a tree: which of its agents have no rollout any more.
pub(crate) fn gone(home: &AbsPath, missing: Vec<Summary>) -> Vec<Problem> {
    let mut trees: BTreeMap<TreeId, Vec<Summary>> = BTreeMap::new();
    for summary in missing {
        trees.entry(summary.meta.session_id).or_default().push(summary);
    }
    let more = trees.len().saturating_sub(MAX_TREES);
    let forget = format!("delete `{}`, which is made anew from the rollouts, to forget", home.join(NAME));
    let mut problems = Vec::new();
    for (tree, mut agents) in trees.into_iter().take(MAX_TREES) {
        agents.sort_by_cached_key(|summary| summary.meta.rank());
        let names: Vec<String> =
            agents.iter().take(MAX_NAMES).map(|summary| summary.meta.agent_path.to_string()).collect();
        let names = names.join(", ");
        let file = agents.swap_remove(0).file;
        let why = match agents.len() {
            0 => {
                format!("the rollout of {names} in the tree {tree} was there and is gone; put it back, or {forget} it")
            }
            others => {
                let rest = match (others + 1).saturating_sub(MAX_NAMES) {
                    0 => String::new(),
                    rest => format!(" and {rest} more"),
                };
                format!(
                    "the rollouts of {names}{rest} in the tree {tree} were there and are gone; put them back, or \
                     {forget} them"
                )
            }
        };
        problems.push(Problem { file, why, tree: None });
    }
    if more > 0 {
        let why = format!("rollouts of {more} more trees were there and are gone");
        problems.push(Problem { file: home.join("sessions"), why, tree: None });
    }
    problems
}
