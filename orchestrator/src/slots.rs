//! Running slots: how many turns may work at once, and in what order those beyond wait.

use std::collections::VecDeque;
use std::sync::PoisonError;

use protocol::ThreadId;
use tokio::sync::oneshot;

use super::seam::{Mutex, MutexGuard};

/// A fair queue for a fixed number of slots. Over the limit a turn is queued with a position, never refused.
pub(crate) struct Slots {
    state: Mutex<State>,
}

struct State {
    max: usize,
    taken: usize,
    /// Numbers the waiters, so that each can give up exactly its own place.
    tickets: u64,
    queue: VecDeque<Waiter>,
}

struct Waiter {
    ticket: u64,
    who: ThreadId,
    grant: oneshot::Sender<()>,
}

/// Where a turn queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind everybody else: a turn that starts.
    Back,
    /// Before everybody else: a turn that gave its slot back while it waited, and goes on.
    Head,
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { state: Mutex::new(State { max: max.max(1), taken: 0, tickets: 0, queue: VecDeque::new() }) }
    }

    /// Waits for a slot. `queued` is told the position, from 1, when there is none at once. Dropping the future gives
    /// the place up. Whoever got a slot calls [`Slots::leave`] once.
    pub(crate) async fn enter(&self, who: ThreadId, place: Place, queued: impl FnOnce(usize)) {
        let (mut waiting, position) = {
            let mut state = self.lock();
            if state.taken < state.max && (state.queue.is_empty() || place == Place::Head) {
                state.taken += 1;
                return;
            }
            let (grant, granted) = oneshot::channel();
            state.tickets += 1;
            let ticket = state.tickets;
            let waiter = Waiter { ticket, who, grant };
            match place {
                Place::Back => state.queue.push_back(waiter),
                Place::Head => state.queue.push_front(waiter),
            }
            let position = if place == Place::Head { 1 } else { state.queue.len() };
            (Waiting { slots: self, ticket, granted, done: false }, position)
        };
        queued(position);
        // The sender lives in the queue until it grants, so an error cannot be; were it one, the slot is not ours and
        // waiting for ever would be worse than one turn too many.
        let _ = (&mut waiting.granted).await;
        waiting.done = true;
    }

    /// Gives a slot to the next in the queue, or back.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        while let Some(waiter) = state.queue.pop_front() {
            if waiter.grant.send(()).is_ok() {
                return;
            }
        }
        state.taken = state.taken.saturating_sub(1);
    }

    /// The place of `who` in the queue, from 1.
    pub(crate) fn position(&self, who: ThreadId) -> Option<usize> {
        self.lock().queue.iter().position(|waiter| waiter.who == who).map(|index| index + 1)
    }

    /// Slots that are taken, and turns that queue.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let state = self.lock();
        (state.taken, state.queue.len())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue; given up when dropped, and passed on when the slot had been granted already.
struct Waiting<'a> {
    slots: &'a Slots,
    ticket: u64,
    granted: oneshot::Receiver<()>,
    done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let was_queued = {
            let mut state = self.slots.lock();
            let before = state.queue.len();
            state.queue.retain(|waiter| waiter.ticket != self.ticket);
            state.queue.len() < before
        };
        if !was_queued && self.granted.try_recv().is_ok() {
            self.slots.leave();
        }
    }
}
