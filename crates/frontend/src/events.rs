//! The newest events of a tree, kept for whoever reads them.
//!
//! Readers pull: a subscription is a place in the one ring, not a queue of its own. Pushing never waits for a reader,
//! and a reader that the ring has overtaken is told so and cut off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream;
use protocol::{EventKind, TreeEvent};
use tokio::sync::watch;

use crate::{Delivery, Gap, Lagged, MAX_EVENT_BYTES, MAX_EVENTS, Subscription};

/// A ring of the newest [`MAX_EVENTS`] events or [`MAX_EVENT_BYTES`], whatever is less; the newest event is always in
/// it. Subscriptions end when the log is dropped, after they have delivered what is in it.
#[derive(Debug)]
pub struct EventLog {
    ring: Arc<Mutex<Ring>>,
    /// The newest sequence; changes when there is something to read.
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    /// In the order of their sequences, each with its estimated size.
    events: VecDeque<(Arc<TreeEvent>, usize)>,
    bytes: usize,
    /// The newest sequence ever pushed.
    last: u64,
    /// The newest sequence that has left the ring.
    dropped: u64,
}

impl EventLog {
    /// An empty log.
    pub fn new() -> Self {
        Self { ring: Arc::default(), newest: watch::Sender::new(0) }
    }

    /// Adds the newest event. The caller pushes in the order of the sequences, and so under the lock that gives them
    /// out; an event that is not newer than the last one is not taken.
    pub fn push(&self, event: Arc<TreeEvent>) {
        let seq = event.seq;
        {
            let mut ring = lock(&self.ring);
            if seq <= ring.last {
                tracing::error!(seq, last = ring.last, "an event came out of order and is not kept");
                return;
            }
            ring.push(event);
        }
        self.newest.send_replace(seq);
    }

    /// The events after a sequence; none when it is the newest.
    ///
    /// # Errors
    /// When some of them are not there any more, or the sequence is not of this log.
    pub fn since(&self, after: u64) -> Result<Vec<Arc<TreeEvent>>, Gap> {
        let ring = lock(&self.ring);
        match ring.gap(after) {
            Some(gap) => Err(gap),
            None => Ok(ring.events.range(ring.place(after)..).map(|(event, _)| Arc::clone(event)).collect()),
        }
    }

    /// Events after a sequence, or from now on. A gap is told first, and then what is there follows.
    pub fn subscribe(&self, after: Option<u64>) -> Subscription {
        let live = self.newest.subscribe();
        let ring = lock(&self.ring);
        let gap = after.and_then(|after| ring.gap(after));
        let after = match (gap, after) {
            (Some(_), _) => ring.dropped,
            (None, after) => after.unwrap_or(ring.last),
        };
        let reader = Reader { ring: Arc::clone(&self.ring), live, after, gap, over: false };
        drop(ring);
        Subscription::new(stream::unfold(reader, |mut reader| async move {
            let delivery = reader.next().await?;
            Some((delivery, reader))
        }))
    }
}

impl Default for EventLog {
    fn default() -> Self {
        Self::new()
    }
}

impl Ring {
    fn push(&mut self, event: Arc<TreeEvent>) {
        self.last = event.seq;
        let size = estimate(&event);
        self.bytes += size;
        self.events.push_back((event, size));
        while self.events.len() > 1 && (self.events.len() > MAX_EVENTS || self.bytes > MAX_EVENT_BYTES) {
            if let Some((event, size)) = self.events.pop_front() {
                self.bytes -= size;
                self.dropped = event.seq;
            }
        }
    }

    /// Whether events after `after` are missing.
    fn gap(&self, after: u64) -> Option<Gap> {
        let missing = after < self.dropped || after > self.last;
        missing.then(|| Gap { after, first: self.events.front().map_or(self.last + 1, |(event, _)| event.seq) })
    }

    /// Where the first event after `after` is, or would be.
    fn place(&self, after: u64) -> usize {
        self.events.partition_point(|(event, _)| event.seq <= after)
    }
}

/// One subscription's place.
struct Reader {
    ring: Arc<Mutex<Ring>>,
    live: watch::Receiver<u64>,
    after: u64,
    gap: Option<Gap>,
    over: bool,
}

impl Reader {
    async fn next(&mut self) -> Option<Delivery> {
        if let Some(gap) = self.gap.take() {
            return Some(Delivery::Gap(gap));
        }
        while !self.over {
            // Before the look into the ring, so that what is pushed after the look is a change.
            self.live.mark_unchanged();
            if let Some(delivery) = self.look() {
                return Some(delivery);
            }
            if self.live.changed().await.is_err() {
                return None;
            }
        }
        None
    }

    fn look(&mut self) -> Option<Delivery> {
        let ring = lock(&self.ring);
        if self.after < ring.dropped {
            self.over = true;
            return Some(Delivery::Lagged(Lagged { resume_after: self.after }));
        }
        let (event, _) = ring.events.get(ring.place(self.after))?;
        self.after = event.seq;
        Some(Delivery::Event(Arc::clone(event)))
    }
}

fn lock(ring: &Mutex<Ring>) -> MutexGuard<'_, Ring> {
    ring.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of an event: its words, and a round number for everything else.
fn estimate(event: &TreeEvent) -> usize {
    const REST: usize = 512;
    let opt = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let words = match &event.kind {
        EventKind::ItemCompleted { item, .. } => item.raw().len(),
        EventKind::TurnCompleted { text, reason, .. } => opt(text) + opt(reason),
        EventKind::TreeFinished { answer, unread_results, .. } => {
            opt(answer) + unread_results.iter().map(|result| result.text.len()).sum::<usize>()
        }
        EventKind::Warning { message } => message.len(),
        EventKind::Error { message, hints } => message.len() + hints.iter().map(String::len).sum::<usize>(),
        EventKind::AgentClosed { reason } | EventKind::MailReturned { reason, .. } => reason.len(),
        EventKind::AgentSpawned { task, .. } => task.len(),
        EventKind::MailAccepted { preview, .. } => preview.len(),
        EventKind::TreeStarted { .. }
        | EventKind::AgentStatus { .. }
        | EventKind::AgentStalled { .. }
        | EventKind::AgentEvicted
        | EventKind::AgentRehydrated { .. }
        | EventKind::TurnStarted { .. }
        | EventKind::MailDelivered { .. } => 0,
    };
    REST + words
}

#[cfg(test)]
mod tests;
