//! Ctrl-C.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::exit;

/// Ctrl-C, requests to terminate, and a terminal that goes away, from the moment this is made. There is one for a whole
/// command, so that none is missed between two waits: the process does not die of them any more.
pub(super) struct Interrupts {
    signals: Option<[Signal; 3]>,
    /// When the last one came.
    last: Option<Instant>,
}

/// From now on a file that may not grow (`ulimit -f`) is an error like a full disk, not the end of the process.
#[must_use]
pub(super) fn minding_size() -> Option<Signal> {
    signal(SignalKind::from_raw(FILE_SIZE)).ok()
}

/// Signals that follow one another faster, in 100 ms, are one: `timeout` sends its own to the process and once more to its
/// group, and nobody presses a key twice in that time.
const ECHO: Duration = Duration::from_millis(100);

/// SIGHUP.
const HANGUP: i32 = 1;

/// SIGXFSZ, which the runtime has no name for.
const FILE_SIZE: i32 = 25;

impl Interrupts {
    pub(super) fn listen() -> Self {
        // Under `nohup` a terminal that goes away is nothing to mind.
        let hangup = if is_ignored(HANGUP) { SignalKind::terminate() } else { SignalKind::hangup() };
        let heard = || {
            let [ctrl_c, terminate] = [SignalKind::interrupt(), SignalKind::terminate()];
            Ok::<_, std::io::Error>([signal(ctrl_c)?, signal(terminate)?, signal(hangup)?])
        };
        Self { signals: heard().ok(), last: None }
    }

    /// Waits for the next one; for ever where none can be heard.
    pub(super) async fn next(&mut self) {
        let Some([ctrl_c, terminate, hangup]) = &mut self.signals else { return std::future::pending().await };
        loop {
            tokio::select! {
                _ = ctrl_c.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let now = Instant::now();
            if self.last.replace(now).is_none_or(|last| now - last > ECHO) {
                return;
            }
        }
    }
}

/// Whether this process was started with a signal ignored. Where nobody can say, it was not.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[expect(clippy::disallowed_methods, reason = "the second Ctrl-C leaves at once; everything accepted is on disk")]
pub(super) fn exit_now() -> ! {
    std::process::exit(i32::from(exit::INTERRUPTED))
}
