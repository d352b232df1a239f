//! What waits to be written. One change an agent, whatever happens to it meanwhile.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use protocol::ThreadId;
use tokio::sync::oneshot;

use crate::Trouble;
use crate::change::Change;
use crate::limits::{MAX_HELD, MAX_SUMMARY, MAX_WAITING, PATIENCE, RETRY, WINDOW};

/// Whoever waits for a batch.
pub(crate) type Asker = oneshot::Sender<Result<(), Trouble>>;

/// The changes that wait, between those who note and the one thread that writes.
#[derive(Default)]
pub(crate) struct Queue {
    line: Mutex<Line>,
    /// There is something to do.
    work: Condvar,
    /// A batch was taken.
    room: Condvar,
}

#[derive(Default)]
struct Line {
    waiting: HashMap<ThreadId, Change>,
    /// Their weight.
    held: usize,
    askers: Vec<Asker>,
    closed: bool,
    /// The database was held; not before this.
    not_before: Option<Instant>,
}

/// What is written at once.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) changes: HashMap<ThreadId, Change>,
    pub(crate) askers: Vec<Asker>,
}

impl Queue {
    /// Held for a few steps in memory, by nobody who waits for anything else.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a change if there is room for it. One that is left out costs a read of its rollout some day.
    pub(crate) fn push(&self, thread: ThreadId, change: Change) -> bool {
        let taken = self.line().push(thread, change);
        self.work.notify_one();
        taken
    }

    /// As [`Queue::push`], but waits a while for room.
    pub(crate) fn push_patiently(&self, thread: ThreadId, change: Change) -> bool {
        let full = |line: &mut Line| !line.has_room(thread, &change);
        let (mut line, _) =
            self.room.wait_timeout_while(self.line(), PATIENCE, full).unwrap_or_else(PoisonError::into_inner);
        let taken = line.push(thread, change);
        drop(line);
        self.work.notify_one();
        taken
    }

    /// Tells `asker` when everything that waits now was tried. When nobody is left to try it, `asker` is dropped.
    pub(crate) fn ask(&self, asker: Asker) {
        let mut line = self.line();
        if !line.closed {
            line.askers.push(asker);
            self.work.notify_one();
        }
    }

    /// Nothing more comes. What waits is still handed out.
    pub(crate) fn close(&self) {
        self.line().closed = true;
        self.work.notify_one();
    }

    /// As [`Queue::close`], by whoever took batches and takes no more.
    pub(crate) fn end(&self) {
        let mut line = self.line();
        *line = Line { closed: true, ..Line::default() };
        self.room.notify_all();
    }

    /// The next batch; nothing when the queue is closed and empty. Waits for a first change, then a moment for more.
    pub(crate) fn take(&self) -> Option<Batch> {
        let mut line = self.line();
        let mut window: Option<Instant> = None;
        loop {
            if !line.askers.is_empty() || (line.closed && !line.waiting.is_empty()) {
                break;
            }
            if line.closed {
                return None;
            }
            if line.waiting.is_empty() {
                line = self.work.wait(line).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let ready = *window.get_or_insert_with(|| Instant::now() + WINDOW);
            let ready = line.not_before.map_or(ready, |time| time.max(ready));
            let Some(left) = ready.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
            line = self.work.wait_timeout(line, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        line.held = 0;
        line.not_before = None;
        let batch = Batch { changes: std::mem::take(&mut line.waiting), askers: std::mem::take(&mut line.askers) };
        drop(line);
        self.room.notify_all();
        Some(batch)
    }

    /// Takes back what could not be written now, behind what came meanwhile. When the queue is closed it is given up.
    pub(crate) fn put_back(&self, changes: HashMap<ThreadId, Change>) {
        let mut line = self.line();
        if line.closed {
            return;
        }
        line.not_before = Some(Instant::now() + RETRY);
        for (thread, earlier) in changes {
            match line.waiting.remove(&thread) {
                Some(later) => {
                    line.held = line.held.saturating_sub(later.weight);
                    line.push(thread, earlier.then(later));
                }
                None => {
                    line.push(thread, earlier);
                }
            }
        }
    }

    /// Agents that wait, and the weight of their changes.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let line = self.line();
        (line.waiting.len(), line.held)
    }
}

impl Line {
    fn has_room(&self, thread: ThreadId, change: &Change) -> bool {
        let before = self.waiting.get(&thread).map(|change| change.weight);
        let count = self.waiting.len() + usize::from(before.is_none());
        count <= MAX_WAITING && self.held - before.unwrap_or(0) + change.weight <= MAX_HELD
    }

    fn push(&mut self, thread: ThreadId, change: Change) -> bool {
        if self.closed || change.weight > MAX_SUMMARY || !self.has_room(thread, &change) {
            return false;
        }
        let change = match self.waiting.remove(&thread) {
            Some(before) => {
                self.held -= before.weight;
                before.then(change)
            }
            None => change,
        };
        self.held += change.weight;
        self.waiting.insert(thread, change);
        true
    }
}

#[cfg(test)]
mod tests;
