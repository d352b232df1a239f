//! Forks: a child that begins with its parent's conversation says where that stands, and holds no copy of it.
//!
//! One line of the child, `forked`, names a stretch of the parent's rollout. A rollout is only ever appended to, so the
//! same stretch gives the same items for ever, whatever the parent does afterwards. Nothing of it counts but items: no
//! mail, turn, effect, usage or debt of the parent. What may be asked of a reference is in `taken.rs`.

use std::collections::VecDeque;
use std::fmt;

use protocol::{Address, Call, EffectId, Item, ItemKind, Role, TurnId};
use serde::{Deserialize, Serialize};

use crate::{ItemRecord, Line, Record};

/// What an open call of the parent is answered with in the child.
pub(crate) const BELONGS_TO_PARENT: &str = "this call belongs to the parent; its output is not part of the fork";

/// How much of a parent's conversation a child begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkTurns {
    /// All of it.
    All,
    /// The last turns, the running one included.
    Last(usize),
}

/// `forked`: the child's context goes on with items that stand in the parent's rollout. From line `first` to line
/// `through` these are the parent's items without the instructions that its context begins with, and then an output for
/// each call that is open there, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Whose conversation it is.
    pub parent: Address,
    /// The first line of the parent that counts. Of a compaction its history counts when it is this line, and never else.
    pub first: u64,
    /// Where that line begins in the parent's rollout, in bytes. Its ordinal says whether it is the one; where it is not,
    /// the line is looked for from the beginning.
    pub at: u64,
    /// The last line of the parent that counts. It and all before it were on the disk before the child was.
    pub through: u64,
    /// How many items the child takes over, outputs for open calls included.
    pub items: u64,
    /// [`crate::checksum`] of their bytes, each followed by a line break, in 16 hexadecimal digits.
    pub checksum: String,
}

/// What of a parent's conversation is not there any more for a child that takes it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The parent.
    pub parent: Address,
    /// How many items the child began with.
    pub items: u64,
    /// How many there are now.
    pub found: u64,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parent, items, found, why } = self;
        let path = &parent.path;
        match items.checked_sub(*found) {
            Some(0) => {
                write!(f, "of the {items} items that it takes over from {path} some are not as they were: {why}")
            }
            Some(lost) => write!(f, "{lost} of the {items} items that it takes over from {path} are lost: {why}"),
            None => write!(f, "it takes over {items} items from {path} and there are {found} now: {why}"),
        }
    }
}

/// Which items of a stretch are taken over, one after another.
pub(crate) struct Selector {
    at_start: bool,
    open: Vec<(Option<EffectId>, Call)>,
}

impl Selector {
    pub(crate) fn new() -> Self {
        Self { at_start: true, open: Vec::new() }
    }

    /// Whether this item is taken over. `kept` are those that a compaction has put in the place of earlier turns.
    pub(crate) fn takes(&mut self, record: &ItemRecord, kept: bool) -> bool {
        let item = &record.item;
        // A context begins with instructions and environment; the child has its own.
        let context = self.at_start && !kept && record.mail.is_empty() && record.copied_from.is_none();
        if context && matches!(item.kind(), ItemKind::Message(Role::Developer | Role::User)) {
            return false;
        }
        self.at_start = kept;
        if let Some(call) = item.call() {
            self.open.push((record.effect, call));
        } else if item.kind() == ItemKind::Output {
            let answered = item.answered_call_id().unwrap_or_default();
            if let Some(at) = self.open.iter().position(|(effect, call)| match record.effect {
                Some(_) => *effect == record.effect,
                None => call.call_id == answered,
            }) {
                self.open.remove(at);
            }
        }
        true
    }

    /// An output for every call that is open at the end.
    pub(crate) fn answers(self) -> impl Iterator<Item = Item> {
        self.open.into_iter().map(|(_, call)| Item::output(&call, BELONGS_TO_PARENT))
    }
}

/// Finds the line at which what a fork takes over begins, by the lines of a window one after another. Turns that a
/// compaction has shortened come with all that it kept; items of no turn, such as those of an earlier fork, end a search
/// for turns.
pub(crate) struct Beginning {
    most: Option<usize>,
    /// Where it begins if there are no more turns than wanted; none for the next item.
    floor: Option<u64>,
    /// The last turns since, each with its first line.
    turns: VecDeque<(TurnId, u64)>,
    /// Whether there were more.
    more: bool,
}

impl Beginning {
    pub(crate) fn new(turns: ForkTurns) -> Self {
        let most = if let ForkTurns::Last(most) = turns { Some(most) } else { None };
        Self { most, floor: None, turns: VecDeque::new(), more: false }
    }

    pub(crate) fn line(&mut self, line: &Line) {
        let turn = match &line.record {
            Record::Compacted(compacted) if compacted.replacement_history.is_some() => {
                self.restart(Some(line.ordinal));
                return;
            }
            Record::Item(item) => item.turn,
            Record::Forked(_) => None,
            _ => return,
        };
        match (self.most, turn) {
            (None, _) => self.floor = self.floor.or(Some(line.ordinal)),
            (Some(_), None) => self.restart(None),
            (Some(most), Some(turn)) => {
                if self.turns.back().is_none_or(|(last, _)| *last != turn) {
                    self.turns.push_back((turn, line.ordinal));
                    if self.turns.len() > most {
                        self.turns.pop_front();
                        self.more = true;
                    }
                }
            }
        }
    }

    fn restart(&mut self, floor: Option<u64>) {
        self.floor = floor;
        self.turns.clear();
        self.more = false;
    }

    /// The line; none when nothing is taken over.
    pub(crate) fn first(&self) -> Option<u64> {
        let turn = self.turns.front().map(|(_, line)| *line);
        if self.more { turn } else { self.floor.or(turn) }
    }
}

#[cfg(test)]
mod tests;
