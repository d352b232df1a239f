//! The half of a process that reads its output and waits for its end.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout_at};

use crate::process::Shared;
use crate::{Phase, procfs};

/// How long the end of a process waits for the end of its output: something it started may hold the pipe for ever.
const DRAIN: Duration = Duration::from_millis(100);

/// How often is looked whether processes that a process left behind still run.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// The same while they are being ended and somebody waits for it.
const LOOK_ENDING: Duration = Duration::from_millis(5);

/// Bytes read at once: what a pipe holds.
const READ: usize = 64 * 1024;

/// Runs until its process, and all that this left in its group, have ended. Dropping it before kills the group.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
    pipe: Option<Receiver>,
    shared: Arc<Shared>,
    bytes: Vec<u8>,
    /// Who was seen lingering, so that not all processes are gone through each time.
    lingering: Vec<procfs::Seen>,
}

impl Reaper {
    pub(crate) fn new(child: Child, pipe: Receiver, shared: Arc<Shared>) -> Self {
        Self { child, pipe: Some(pipe), shared, bytes: vec![0; READ], lingering: Vec::new() }
    }

    /// Reads and waits. Returns how the process ended, once everybody is gone.
    pub async fn run(mut self) -> Option<i32> {
        let status = loop {
            tokio::select! {
                read = read(&mut self.pipe, &mut self.bytes) => self.heard(read),
                status = self.child.wait() => break status,
            }
        };
        self.shared.reaped.store(true, Ordering::Release);
        let exit = status.ok().and_then(code);
        let deadline = Instant::now() + DRAIN;
        while self.pipe.is_some() {
            match timeout_at(deadline, read(&mut self.pipe, &mut self.bytes)).await {
                Ok(read) => self.heard(read),
                Err(_) => break,
            }
        }
        // One step for both, so that whoever hears of the end also hears whether something lingers.
        let mut phase = self.phase();
        self.shared.progress.send_modify(|progress| (progress.exit, progress.phase) = (exit, phase));
        while phase != Phase::Gone {
            let look = if self.shared.ending() { LOOK_ENDING } else { LOOK };
            tokio::select! {
                read = read(&mut self.pipe, &mut self.bytes) => {
                    self.heard(read);
                    if self.pipe.is_some() {
                        continue;
                    }
                }
                () = sleep(look) => {}
                () = self.shared.bell.notified() => {}
            }
            phase = self.phase();
        }
        self.shared.progress.send_modify(|progress| progress.phase = phase);
        exit
    }

    fn heard(&mut self, read: usize) {
        if let Some(bytes) = self.bytes.get(..read).filter(|bytes| !bytes.is_empty()) {
            self.shared.buffer(|buffer| buffer.push(bytes));
            self.shared.progress.send_modify(|progress| progress.bytes += read as u64);
        } else {
            self.pipe = None;
        }
    }

    /// How far a process is that has been reaped.
    fn phase(&mut self) -> Phase {
        let held = self.pipe.is_some() && !self.shared.ending();
        if self.group_lives() || held { Phase::Lingering } else { Phase::Gone }
    }

    fn group_lives(&mut self) -> bool {
        let Some(group) = Pid::from_raw(self.shared.pid) else { return false };
        if rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
            return false;
        }
        if !procfs::available() {
            return true;
        }
        // The kernel counts those that have ended and that nobody reaps; we do not.
        let same = |seen: &procfs::Seen| procfs::alive(seen.pid).is_some_and(|now| now.start_time == seen.start_time);
        if !self.lingering.iter().any(same) {
            self.lingering = procfs::group(self.shared.pid);
        }
        !self.lingering.is_empty()
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.shared.signal(Signal::KILL);
        self.shared.progress.send_modify(|progress| progress.phase = Phase::Gone);
    }
}

/// Bytes read into `bytes`; 0 at the end of the output. For ever pending once that was reached.
async fn read(pipe: &mut Option<Receiver>, bytes: &mut [u8]) -> usize {
    match pipe {
        // A pipe that cannot be read is at its end.
        Some(pipe) => pipe.read(bytes).await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

fn code(status: ExitStatus) -> Option<i32> {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}
