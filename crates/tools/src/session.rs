//! One process of an agent, from the line in the ledger that announces it to the one that buries it.

use std::time::Duration;

use exec::{Chunk, Phase, Process, Progress};
use protocol::Token;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tool_api::Pulse;

/// A process that has said something and then nothing for this long has probably said all it has to say for now.
const QUIET: Duration = Duration::from_millis(100);

/// A process of an agent.
#[derive(Debug)]
pub(crate) struct Session {
    /// What the model calls it.
    pub(crate) id: u64,
    pub(crate) token: Token,
    pub(crate) command: String,
    pub(crate) process: Process,
    /// Fires when its end is in the ledger.
    pub(crate) buried: CancellationToken,
}

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// The process has ended.
    Ended,
    /// The process has said something nobody has read, or has got further.
    News,
}

/// How far a process was when the waiting ended.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) progress: Progress,
    pub(crate) chunk: Chunk,
    pub(crate) cancelled: bool,
}

impl Session {
    pub(crate) fn lives(&self) -> bool {
        self.process.progress().phase != Phase::Gone
    }

    /// Waits, at most until `deadline` and not after `cancel` has fired, and takes what the process has said.
    pub(crate) async fn look(
        &self,
        until: Until,
        deadline: Instant,
        cancel: &CancellationToken,
        pulse: &Pulse,
    ) -> Look {
        let cancelled = tokio::select! {
            biased;
            () = self.wait(until) => false,
            () = self.beat(pulse) => false,
            () = cancel.cancelled() => true,
            () = sleep_until(deadline) => false,
        };
        // In this order: a process that is seen as gone has nothing left to say.
        let progress = self.process.progress();
        Look { progress, chunk: self.process.take(), cancelled }
    }

    async fn wait(&self, until: Until) {
        let mut watch = self.process.watch();
        let before = self.process.progress().phase;
        // An error means that nobody reads or reaps any more, so nothing more will happen.
        match until {
            Until::Ended => drop(watch.wait_for(|now| now.phase != Phase::Running).await),
            Until::News => {
                let unread = self.process.unread();
                if before != Phase::Gone && !unread {
                    drop(watch.wait_for(|now| now.phase != before || self.process.unread()).await);
                }
                self.quiet().await;
            }
        }
        if self.process.progress().phase == Phase::Gone {
            self.buried.cancelled().await;
        }
    }

    /// Beats whenever the process says something or gets further; never ends.
    async fn beat(&self, pulse: &Pulse) {
        let mut watch = self.process.watch();
        while watch.changed().await.is_ok() {
            pulse.beat();
        }
        std::future::pending::<()>().await;
    }

    /// Waits until the process ends or says nothing for a while.
    async fn quiet(&self) {
        let mut watch = self.process.watch();
        loop {
            watch.mark_unchanged();
            if watch.borrow().phase != Phase::Running {
                return;
            }
            tokio::select! {
                changed = watch.changed() => if changed.is_err() { return },
                () = sleep(QUIET) => return,
            }
        }
    }
}
