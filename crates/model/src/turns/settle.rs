//! Where a conversation that is still growing has settled: up to which item its turns are final, whatever follows.
//!
//! Only the last turn ever grows. So a place between two items settles what stands before it when nothing is open there
//! (no call without an answer, nothing that waits) and the last turn is complete: because it holds the answers to all
//! calls, or because the next thing that happens begins another turn. Who reads on from such a place needs to know the
//! ids that are taken and who spoke last, and comes to the same turns as who reads everything.

use super::Turn;

/// Who a turn is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
    Results,
}

impl Turn<'_> {
    pub(super) fn speaker(&self) -> Speaker {
        match self {
            Turn::User(_) => Speaker::User,
            Turn::Assistant(_) => Speaker::Assistant,
            Turn::Results(_) => Speaker::Results,
        }
    }

    /// How many things it holds. It only ever gets more.
    fn size(&self) -> usize {
        match self {
            Turn::User(texts) => texts.len(),
            Turn::Assistant(parts) => parts.len(),
            Turn::Results(answers) => answers.len(),
        }
    }
}

/// A place between two items, counted from where the reading began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Items before it.
    pub(crate) items: usize,
    /// Turns before it.
    pub(crate) turns: usize,
    /// Changes of the ids before it.
    pub(super) ids: usize,
}

/// Looks for the last place that settles what stands before it.
#[derive(Debug, Default)]
pub(super) struct Settling {
    settled: Option<Place>,
    /// A place where nothing was open, and how much its last turn held there.
    candidate: Option<(Place, usize)>,
}

impl Settling {
    /// Looks at the place behind an item; `open` says whether anything is open there, `last` who spoke last.
    pub(super) fn look(&mut self, place: Place, turns: &[Turn<'_>], open: bool, last: Option<Speaker>) {
        if let Some((candidate, size)) = self.candidate
            && turns.len() > candidate.turns
        {
            // Another turn has begun. Had the last one grown before that, the place would be in the middle of it.
            if turns.get(candidate.turns - 1).is_some_and(|turn| turn.size() == size) {
                self.settled = Some(candidate);
            }
            self.candidate = None;
        }
        if open {
            return;
        }
        if last == Some(Speaker::Results) {
            self.settled = Some(place);
        }
        self.candidate = turns.last().map(|turn| (place, turn.size()));
    }

    pub(super) fn settled(&self) -> Option<Place> {
        self.settled
    }
}
