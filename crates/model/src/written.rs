//! What of a conversation is written already, for wires of turns: those of its turns that have settled, as the bytes
//! that they are in every request. The next request reads and writes only what came since.
//!
//! It is kept with the conversation ([`Slot`]), so it goes with it, and it is made anew whenever it is not there: what
//! it holds decides how long a request takes to build, never what stands in it.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use protocol::Item;

use crate::body::Body;
use crate::turns::{self, Escaped, Known, Turn};
use crate::{Transcript, Wire};

/// From how many items on a conversation is kept as it was written. What is kept is the history once more in memory;
/// reading fewer items than these again takes less than a tenth of a millisecond, which no request notices.
pub(crate) const KEEP_FROM: usize = 64;

/// Room that is made at once for what will be written, as a part of what is: little, because much of it stays unused.
const ROOM: usize = 16;

/// How a wire writes turns.
pub(crate) trait Hand {
    /// For which wire.
    const WIRE: Wire;

    /// What else decides how turns look.
    fn habit(&self) -> bool;

    /// Writes what the program says at the start, if that is anything.
    fn system(&self, out: &mut String, pen: &mut Pen, texts: &[Escaped<'_>]);

    /// Writes turns on. When they are `noted`, the last is the note that says "go on".
    fn turns(&self, out: &mut Body, pen: &mut Pen, turns: &[Turn<'_>], noted: bool);
}

/// Where the writing stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pen {
    /// Whose message was written last; empty when there is none.
    pub(crate) role: &'static str,
    /// Whether the model works with tools there.
    pub(crate) working: bool,
}

/// A conversation as far as it has settled.
#[derive(Debug)]
pub(crate) struct Written {
    wire: Wire,
    provider: String,
    habit: bool,
    /// How many items that is.
    items: usize,
    known: Known,
    system: String,
    pen: Pen,
    body: Body,
}

/// Where a conversation keeps itself as it was written. It belongs to the list of items that is pushed to, and is
/// seen by the clones of that list, each of which is a beginning of it.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<Box<Written>>>);

impl Slot {
    fn take(&self) -> Option<Box<Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whoever wrote more is right, when two wrote at once.
    fn put(&self, written: Box<Written>) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_none_or(|other| other.items <= written.items) {
            *slot = Some(written);
        }
    }

    /// Lets go of what is kept.
    pub(crate) fn clear(&self) {
        drop(self.take());
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl Written {
    fn new<H: Hand>(hand: &H, provider: &str) -> Self {
        Self {
            wire: H::WIRE,
            provider: provider.to_owned(),
            habit: hand.habit(),
            items: 0,
            known: Known::default(),
            system: String::new(),
            pen: Pen::default(),
            body: Body::default(),
        }
    }

    /// Whether it is how this hand would write `items` items for this provider.
    fn fits<H: Hand>(&self, hand: &H, provider: &str, items: usize) -> bool {
        self.wire == H::WIRE && self.provider == provider && self.habit == hand.habit() && self.items <= items
    }

    /// Takes settled turns in.
    fn settle<H: Hand>(&mut self, hand: &H, items: &[Item], turns: &[Turn<'_>]) {
        let size = size(items) + items.len() * 16;
        if self.body.json.capacity() - self.body.json.len() < size {
            self.body.json.reserve_exact(size + self.body.json.len() / ROOM);
        }
        hand.turns(&mut self.body, &mut self.pen, turns, false);
        self.body.keep();
        self.items += items.len();
    }
}

/// Writes a body: `head` begins it, given what the program says at the start, and is told how many bytes will follow.
/// A conversation of at least `keep_from` items is kept as far as it has settled. Says also where the writing stands
/// at the end, and whether the note that says "go on" is the last turn.
pub(crate) fn write<H: Hand>(
    hand: &H,
    input: &Transcript,
    provider: &str,
    keep_from: usize,
    head: impl FnOnce(&str, usize) -> Body,
) -> (Body, Pen, bool) {
    let items = input.items();
    if items.len() < keep_from {
        let read = turns::read(items, H::WIRE, provider);
        let (mut system, mut pen) = (String::new(), Pen::default());
        hand.system(&mut system, &mut pen, &read.system);
        let mut out = head(&system, size(items));
        hand.turns(&mut out, &mut pen, &read.turns, read.noted);
        return (out, pen, read.noted);
    }
    let kept = input.slot().take().filter(|kept| kept.fits(hand, provider, items.len()));
    let mut written = kept.unwrap_or_else(|| Box::new(Written::new(hand, provider)));
    let new = items.get(written.items..).unwrap_or_default();
    let from_start = written.known.is_nothing();
    let (read, settled) = turns::read_on(new, H::WIRE, provider, &mut written.known);
    if from_start {
        hand.system(&mut written.system, &mut written.pen, &read.system);
        written.system.shrink_to_fit();
    }
    let settled = settled.unwrap_or_default();
    let (done, open) = read.turns.split_at(settled.turns.min(read.turns.len()));
    let (old, rest) = new.split_at(settled.items.min(new.len()));
    if settled.items > 0 {
        written.settle(hand, old, done);
    }
    let mut out = head(&written.system, written.body.json.len() + size(rest));
    if !written.body.json.is_empty() {
        out += &written.body.json;
        out.keep();
    }
    let mut pen = written.pen;
    hand.turns(&mut out, &mut pen, open, read.noted);
    if written.items > 0 {
        input.slot().put(written);
    }
    (out, pen, read.noted)
}

fn size(items: &[Item]) -> usize {
    items.iter().map(|item| item.raw().len()).sum()
}

#[cfg(test)]
mod tests;
