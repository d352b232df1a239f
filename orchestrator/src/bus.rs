//! The one stream of events of a tree.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::{Address, EventKind, TreeEvent, TreeId};
use tokio::sync::mpsc;

/// Stamps events with a sequence and hands them to whoever listens. Emitting never blocks a turn.
pub(crate) struct Bus {
    tree: TreeId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seq: u64,
    listeners: Vec<mpsc::UnboundedSender<Arc<TreeEvent>>>,
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

    pub(crate) fn emit(&self, agent: &Address, kind: EventKind) {
        let mut state = self.lock();
        // What nobody hears has no number: whoever listens first hears from 1.
        if state.listeners.is_empty() {
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
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
