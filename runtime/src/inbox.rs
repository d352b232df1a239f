//! An agent's mailbox, shared by the agent and its keeper.

use std::sync::PoisonError;

use mailbox::Mailbox;
use tokio::sync::watch;

use super::seam::{Mutex, MutexGuard};

/// The mail of one agent: a cache of what its rollout says is pending, and the phase of its turn.
///
/// A std mutex: it is held for a few moves in memory and one append to the rollout, never across an await. Whoever
/// accepts mail appends the `mail` line while holding it, so the order in memory is the order in the file.
pub struct Inbox {
    mailbox: Mutex<Mailbox>,
    arrivals: watch::Sender<u64>,
}

impl Inbox {
    /// Wraps a mailbox.
    pub fn new(mailbox: Mailbox) -> Self {
        Self { mailbox: Mutex::new(mailbox), arrivals: watch::Sender::new(0) }
    }

    /// The mailbox, locked.
    pub fn lock(&self) -> MutexGuard<'_, Mailbox> {
        // A panic while it was held leaves at worst a mail in memory that is also in the rollout.
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that mail has come in; called after the mailbox was unlocked.
    pub fn notify(&self) {
        self.arrivals.send_modify(|n| *n += 1);
    }

    /// Changes whenever mail comes in.
    pub fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }
}
