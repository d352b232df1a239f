//! Ctrl-C.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit;

/// Ctrl-C and requests to terminate, from the moment this is made. There is one for a whole command, so that none is
/// missed between two waits: the process does not die of them any more.
pub(super) struct Interrupts {
    signals: Option<(Signal, Signal)>,
}

impl Interrupts {
    pub(super) fn listen() -> Self {
        let signals = signal(SignalKind::interrupt()).and_then(|ctrl_c| Ok((ctrl_c, signal(SignalKind::terminate())?)));
        Self { signals: signals.ok() }
    }

    /// Waits for the next one; for ever where none can be heard.
    pub(super) async fn next(&mut self) {
        match &mut self.signals {
            Some((ctrl_c, terminate)) => tokio::select! {
                _ = ctrl_c.recv() => {}
                _ = terminate.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the second Ctrl-C leaves at once; everything accepted is on disk")]
pub(super) fn exit_now() -> ! {
    std::process::exit(i32::from(exit::INTERRUPTED))
}
