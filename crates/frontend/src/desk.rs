//! What the owner of a tree offers, and what a face sees of it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt as _};
use protocol::TreeEvent;
use serde::{Deserialize, Serialize};

use crate::{Fault, Op, Reply};

/// A tree that can be spoken to: its owner's own in process, a [`Client`](crate::Client) everywhere else.
pub trait Desk: Send + Sync {
    /// Does one thing. [`Op::Subscribe`] is refused here: that is [`Desk::events`].
    ///
    /// Dropping the future of [`Op::Answer`] ends the wait and nothing else. Those of other operations should be
    /// polled to their end.
    fn call(&self, op: Op) -> BoxFuture<'_, Result<Reply, Fault>>;

    /// The tree's events after a sequence, or from now on.
    fn events(&self, after: Option<u64>) -> Subscription;
}

/// What a reader of events gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// An event. Sequences grow; there is no gap that is not told.
    Event(Arc<TreeEvent>),
    /// Events that were asked for are not there any more. Reading goes on behind the gap.
    Gap(Gap),
    /// The reader was too slow and gets nothing more. It may subscribe again.
    Lagged(Lagged),
    /// The owner cannot be reached, or went away without ending the stream. Nothing more comes.
    Broken(Fault),
}

/// Events that were asked for and are not there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("events after {after} are not kept any more; what is there begins at {first}")]
pub struct Gap {
    /// Events after this one were asked for.
    pub after: u64,
    /// The first that is there, or the next that will be made. Not behind `after` when that sequence belongs to
    /// another owner of the tree.
    pub first: u64,
}

/// Where a reader that was cut off can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lagged {
    /// The last event it got, or the one it subscribed after.
    pub resume_after: u64,
}

/// A stream of events. It holds no events of its own, so a slow reader costs nothing; the stream ends after
/// [`Delivery::Lagged`] and [`Delivery::Broken`], and when the owner ends it.
pub struct Subscription {
    stream: BoxStream<'static, Delivery>,
    skipped: Arc<AtomicU64>,
}

impl Subscription {
    /// A subscription to any stream. [`EventLog::subscribe`](crate::EventLog::subscribe) is the usual one.
    pub fn new(stream: impl Stream<Item = Delivery> + Send + 'static) -> Self {
        Self::counting(stream, Arc::default())
    }

    pub(crate) fn counting(stream: impl Stream<Item = Delivery> + Send + 'static, skipped: Arc<AtomicU64>) -> Self {
        // Fused: who asks again after the end gets the end again.
        Self { stream: stream.fuse().boxed(), skipped }
    }

    /// The next delivery. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.stream.next().await
    }

    /// Events so far that this version does not know and passed over; zero in process.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.stream.as_mut().poll_next(cx)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("skipped", &self.skipped).finish_non_exhaustive()
    }
}
