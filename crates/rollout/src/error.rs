//! What can go wrong with a rollout. Cloneable, because one failed sync is told to everybody who waited for it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use protocol::ThreadId;

/// Why a rollout could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The system refused something.
    #[error("cannot {doing} `{}`: {}", .file.display(), told(.source))]
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
    #[error("`{}` may not be on the disk, and nothing is acknowledged until it is: {}", .file.display(), told(.source))]
    Unsynced {
        /// The file or folder.
        file: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The file is not in its folder any more. What is written to it would go when this process ends.
    #[error(
        "`{}` was removed while it was in use, so what its agent does can no longer be kept; put the file back from a \
         copy and resume the tree, or give the task to a new agent", .file.display()
    )]
    Removed {
        /// Where it was.
        file: PathBuf,
    },
    /// A line would be longer than any reader takes.
    #[error(
        "a `{kind}` line of {bytes} bytes is longer than the {max} that a line of a rollout may have: nothing was added to `{}`; \
         give the agent less at once", .file.display()
    )]
    LongLine {
        /// The type of the line.
        kind: String,
        /// How long it would be.
        bytes: usize,
        /// How long it may be.
        max: usize,
        /// The file.
        file: PathBuf,
    },
    /// The file is packed: its tree is archived. It takes no lines.
    #[error("`{}` is archived and takes no lines; bring its tree back with `agent unarchive`", .file.display())]
    Archived {
        /// The file.
        file: PathBuf,
    },
    /// A packed file cannot be unpacked.
    #[error("`{}` is damaged ({why}); put it back from a copy", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A rollout is there in use and packed, and the one in use does not go on where the packed one ends.
    #[error(
        "`{}` does not begin as its archived copy `{}` does; one of the two is damaged: keep the one that is whole and \
         move the other away", .file.display(), .packed.display()
    )]
    Differs {
        /// The one in use.
        file: PathBuf,
        /// The packed one.
        packed: PathBuf,
    },
    /// A file could not be archived, brought back or removed. It is still where it was.
    #[error("cannot {doing} `{}`, which stays as it is: {}", .file.display(), told(.source))]
    Kept {
        /// What was being done: a verb.
        doing: &'static str,
        /// With which file.
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
    /// There are lines, but the first one does not say which agent this is.
    #[error("`{}` does not say whose rollout it is: {why}", .file.display())]
    Headless {
        /// The file.
        file: PathBuf,
        /// What is wrong with its first line, and what to do.
        why: String,
    },
    /// The file is of a later version of the format.
    #[error("`{}` cannot be read: {why}", .file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// Which, and what to do.
        why: String,
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
        if is_full(&source) {
            Self::Full { file }
        } else if is_removed(&source) {
            Self::Removed { file }
        } else {
            Self::Io { doing, file, source: Arc::new(source) }
        }
    }

    /// Whether what lacks is room: on the disk, or a descriptor. That passes when somebody makes some, and says nothing
    /// about the file.
    pub fn is_want(&self) -> bool {
        self.is_shortage() || matches!(self, Self::Full { .. })
    }

    /// Whether the process or the machine has no descriptor left. That passes and says nothing about the file, which
    /// must not be taken for damaged or absent.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::Io { source, .. } | Self::Unsynced { source, .. } | Self::Kept { source, .. } if is_shortage(source))
    }
}

/// The error of a file that was found before: if it is not there now, it was removed since.
pub(crate) fn lost(doing: &'static str, file: &std::path::Path, error: io::Error) -> Error {
    match (error.kind(), crate::packed::damage(file, &error)) {
        (io::ErrorKind::NotFound, _) => Error::Removed { file: file.to_path_buf() },
        (_, Some(why)) => Error::Damaged { file: file.to_path_buf(), why },
        _ => Error::io(doing, file, error),
    }
}

/// What the system said and what to do about it.
pub(crate) fn told(error: &io::Error) -> String {
    if is_shortage(error) {
        "too many open files; raise the limit with `ulimit -n`, or lower max_resident or max_running".to_owned()
    } else if is_full(error) {
        "the disk is full; free some space".to_owned()
    } else if error.kind() == io::ErrorKind::ReadOnlyFilesystem {
        "the file system is read-only; mount it for writing, or set AGENT_HOME to a folder on another".to_owned()
    } else if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) {
        format!("{error}; check that the folder exists and belongs to you")
    } else {
        format!("{error}; check the disk and the folder")
    }
}

/// Whether there is no descriptor left, for this process or for the machine.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|short| error.raw_os_error() == Some(short.raw_os_error()))
}

/// What a sync says of a file that is in no folder any more.
#[derive(Debug, thiserror::Error)]
#[error("the file was removed while it was in use")]
struct Unlinked;

/// The error of a file that was removed while it was open.
pub(crate) fn unlinked() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, Unlinked)
}

/// Whether this is [`unlinked`].
pub(crate) fn is_removed(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Unlinked>()).is_some()
}

/// Whether there is no room, on the disk or in the quota.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests;
