//! A latch: closed, then open for ever. Tests order things with it in place of sleeping.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::fail::fail;

/// Longest that a blocking wait lasts before the test fails. Far over what anything takes on a loaded machine, and
/// under the minute after which test runners give up without saying where it hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

/// A latch shared by its clones. It starts closed; [`Gate::open`] opens it for good.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: Mutex<bool>,
    threads: Condvar,
    tasks: Notify,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        *self.lock() = true;
        self.0.threads.notify_all();
        self.0.tasks.notify_waiters();
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.lock()
    }

    /// Blocks this thread until the gate is open; fails the test after 50 s. Not for async code.
    #[track_caller]
    pub fn wait(&self) {
        if !self.wait_for(PATIENCE) {
            fail("nobody opened the gate that this test waits for");
        }
    }

    /// Blocks this thread until the gate is open, or for this long; whether it is open.
    pub(crate) fn wait_for(&self, limit: Duration) -> bool {
        let waited = self.0.threads.wait_timeout_while(self.lock(), limit, |open| !*open);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until the gate is open, for however long: a runtime with paused time would let any limit pass at once.
    pub async fn opened(&self) {
        loop {
            // Registered before the look, so that an opening in between is not missed.
            let notified = self.0.tasks.notified();
            if self.is_open() {
                return;
            }
            notified.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
