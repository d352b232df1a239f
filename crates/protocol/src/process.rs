//! What a rollout says about a process that an agent started, so that a later owner can end it.

use serde::{Deserialize, Serialize};

use crate::Token;

/// One line of the process ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Names the process in all its lines; also in its environment as `AGENT_PROCESS_TOKEN`. Its last 61 bits are the
    /// number that the process and all its descendants have as a limit of real time.
    pub token: Token,
    /// What happened.
    #[serde(flatten)]
    pub event: ProcessEvent,
}

/// What happened to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ProcessEvent {
    /// Written before the fork.
    Starting {
        /// The command line as given.
        command: String,
        /// The boot of the machine it runs in, so that a pid of an earlier boot is never taken for it.
        boot_id: String,
    },
    /// It runs.
    Started {
        /// Process id; also the id of its process group and session.
        pid: i32,
        /// When the kernel started it, in clock ticks since boot.
        start_time: u64,
    },
    /// It could not be started, or it is gone with everything that it started.
    Ended {
        /// Exit code; 128 + signal number for a process that a signal ended; `None` when not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
}
