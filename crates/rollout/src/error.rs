//! What can go wrong with a rollout. Cloneable, because one failed sync is told to everybody who waited for it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use protocol::ThreadId;

/// Why a rollout could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("cannot {doing} `{}`: {source}; check that the folder exists and belongs to you", .file.display())]
    Io {
        /// What was being done: a verb.
        doing: &'static str,
        /// With which file or folder.
        file: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// There is no room. What was there before is untouched.
    #[error("the disk is full: nothing was added to `{}`; free some space and resume the tree", .file.display())]
    Full {
        /// The file that could not grow.
        file: PathBuf,
    },
    /// A write or a sync failed in a way that could not be put right.
    #[error("`{}` takes no more lines: {why}; check the disk, then resume the tree", .file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// What happened.
        why: String,
    },
    /// A sync failed. Nothing written since the last good one is acknowledged.
    #[error("`{}` may not be on the disk: {source}; nothing is acknowledged until the disk works again", .file.display())]
    Unsynced {
        /// The file or folder.
        file: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// A record has no JSON form.
    #[error("a `{kind}` line has no JSON form: {source}; this is a defect, please report it")]
    Encode {
        /// The type of the line.
        kind: String,
        /// Why.
        source: Arc<serde_json::Error>,
    },
    /// No file carries this id.
    #[error("no agent {thread} has a rollout under `{}`; `agent list` shows the trees there are", .folder.display())]
    Missing {
        /// The id.
        thread: ThreadId,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// The file has no complete first write: this agent never existed.
    #[error("`{}` was cut off while its agent was made, so that agent never existed; resuming its tree sets the file aside", .file.display())]
    Unborn {
        /// The file.
        file: PathBuf,
    },
    /// The first line is there but does not say which agent this is.
    #[error("the first line of `{}` does not say whose rollout it is; `agent rollout check` says more", .file.display())]
    Headless {
        /// The file.
        file: PathBuf,
    },
    /// An agent with this id has a file already.
    #[error("agent {thread} has a rollout already: `{}`; resume it instead", .file.display())]
    Exists {
        /// The id.
        thread: ThreadId,
        /// Its file.
        file: PathBuf,
    },
    /// The thread that syncs could not be started or has ended.
    #[error("the thread that syncs rollouts is not there: {0}; start the command again")]
    NoSync(String),
}

impl Error {
    /// Tells a full disk from everything else.
    pub(crate) fn io(doing: &'static str, file: impl Into<PathBuf>, source: io::Error) -> Self {
        let file = file.into();
        if is_full(&source) { Self::Full { file } } else { Self::Io { doing, file, source: Arc::new(source) } }
    }
}

/// Whether there is no room, on the disk or in the quota.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
