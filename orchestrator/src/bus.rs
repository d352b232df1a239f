//! The one stream of events of a tree.

use std::sync::{Arc, PoisonError};

use frontend::{EventLog, Subscription};
use protocol::{Address, EventKind, TreeEvent, TreeId};
use tokio::sync::mpsc;

use super::seam::{Mutex, MutexGuard};

/// Stamps events with a sequence and hands them to whoever listens. Emitting never blocks a turn.
pub(crate) struct Bus {
    tree: TreeId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seq: u64,
    listeners: Vec<mpsc::UnboundedSender<Arc<TreeEvent>>>,
    /// What other processes read; kept from the first time that somebody asks.
    log: Option<EventLog>,
}

impl Bus {
    pub(crate) fn new(tree: TreeId) -> Self {
        Self { tree, state: Mutex::default() }
    }

    /// All events from now on.
    pub(crate) fn listen(&self) -> mpsc::UnboundedReceiver<Arc<TreeEvent>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        receiver
    }

    /// A reader of its own pace, of events after a sequence or from now on.
    pub(crate) fn subscribe(&self, after: Option<u64>) -> Subscription {
        let mut state = self.lock();
        let log = state.log.get_or_insert_with(EventLog::new);
        log.subscribe(after)
    }

    /// The newest sequence.
    pub(crate) fn newest(&self) -> u64 {
        self.lock().seq
    }

    pub(crate) fn emit(&self, agent: &Address, kind: EventKind) {
        let mut state = self.lock();
        // What nobody hears has no number: whoever listens first hears from 1.
        if state.listeners.is_empty() && state.log.is_none() {
            return;
        }
        state.seq += 1;
        let event = Arc::new(TreeEvent {
            seq: state.seq,
            time: stdx::now(),
            tree: self.tree,
            path: agent.path.clone(),
            thread: agent.thread,
            kind,
        });
        state.listeners.retain(|listener| listener.send(Arc::clone(&event)).is_ok());
        if let Some(log) = &state.log {
            // Under the lock that numbers the events, so that they stand in the log in their order.
            log.push(event);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
