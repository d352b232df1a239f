//! The checker's side of the seam.

use std::future::Future;

pub(crate) use shuttle::future::{JoinError, JoinHandle};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

pub(crate) use super::disk::{Store, Writer};

/// Tasks of the checker.
#[derive(Clone, Debug)]
pub(crate) struct TaskTracker(tokio_util::task::TaskTracker);

impl TaskTracker {
    pub(crate) fn new() -> Self {
        Self(tokio_util::task::TaskTracker::new())
    }

    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        shuttle::future::spawn(self.0.track_future(future))
    }

    pub(crate) fn close(&self) {
        self.0.close();
    }

    pub(crate) async fn wait(&self) {
        self.0.wait().await;
    }
}
