//! Ctrl-C.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit;

/// Ctrl-C, requests to terminate, and a terminal that goes away, from the moment this is made. There is one for a whole command, so that none is
/// missed between two waits: the process does not die of them any more.
pub(super) struct Interrupts {
    signals: Option<[Signal; 3]>,
    /// A file that may not grow is an error like a full disk, not the end of the process.
    _size: Option<Signal>,
}

/// SIGXFSZ, which the runtime has no name for.
const FILE_SIZE: i32 = 25;

impl Interrupts {
    pub(super) fn listen() -> Self {
        let heard = || {
            let [ctrl_c, terminate, hangup] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            Ok::<_, std::io::Error>([signal(ctrl_c)?, signal(terminate)?, signal(hangup)?])
        };
        Self { signals: heard().ok(), _size: signal(SignalKind::from_raw(FILE_SIZE)).ok() }
    }

    /// Waits for the next one; for ever where none can be heard.
    pub(super) async fn next(&mut self) {
        match &mut self.signals {
            Some([ctrl_c, terminate, hangup]) => tokio::select! {
                _ = ctrl_c.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the second Ctrl-C leaves at once; everything accepted is on disk")]
pub(super) fn exit_now() -> ! {
    std::process::exit(i32::from(exit::INTERRUPTED))
}
