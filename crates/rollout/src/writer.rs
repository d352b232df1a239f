//! Appending to one agent's file.

use std::fmt;
use std::sync::Arc;

use protocol::{Item, ThreadId};
use stdx::{AbsPath, Timestamp};

use crate::log::Log;
use crate::sync::Syncer;
use crate::{Error, Record, Summary};

/// Bytes that may wait for a sync before one is asked for; they are kept in memory until then.
const MAX_UNSYNCED: usize = 4 << 20;

/// The one writer of a file. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Writer {
    pub(crate) log: Arc<Log>,
    pub(crate) syncer: Arc<Syncer>,
}

/// Where records went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Ordinal of the first record.
    pub first: u64,
    /// Ordinal of the last record; one less than `first` when there was none.
    pub last: u64,
    /// The time in their lines.
    pub at: Timestamp,
}

impl Writer {
    /// Whose file it is.
    pub fn thread(&self) -> ThreadId {
        self.log.thread
    }

    /// The file.
    pub fn file(&self) -> &AbsPath {
        &self.log.file
    }

    /// What the file comes to at this moment, without its conversation. Equal to the summary of the file read back.
    /// Some of it may not be on the disk yet.
    pub fn summary(&self) -> Summary {
        self.log.summary()
    }

    /// As [`Writer::summary`], if everything in it is known to be on the disk: then it may be told to others. When
    /// somebody has appended meanwhile there is none, and the sync of those lines is the time to ask again.
    pub fn synced_summary(&self) -> Option<Summary> {
        self.log.synced_summary()
    }

    /// Appends records with one write: either all of them are read back or none. Blocks for that write. They are not
    /// on the disk before a [`Writer::sync`] that begins later has returned.
    ///
    /// # Errors
    /// When the write fails; then the file is as it was. When it could not be put back, every further append tries
    /// that first, and fails as long as it cannot be done.
    pub fn append(&self, records: &[Record]) -> Result<Appended, Error> {
        let (appended, waiting) = self.log.append(records)?;
        self.appended(waiting);
        Ok(appended)
    }

    /// Replaces the conversation by a shorter history, and says once more what the lines so far come to: one write, of
    /// a state that has every line before it. Blocks for that write, and needs a sync as any other.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn compact(&self, message: String, replacement_history: Vec<Item>) -> Result<Appended, Error> {
        let (appended, waiting) = self.log.append_made(|state| state.compaction(message, replacement_history))?;
        self.appended(waiting);
        Ok(appended)
    }

    fn appended(&self, waiting: usize) {
        if waiting > MAX_UNSYNCED {
            // The lines are written; that nobody syncs them now is told to whoever asks for a sync.
            if let Err(error) = self.syncer.hint(Arc::clone(&self.log)) {
                tracing::warn!(%error, "a long unsynced tail stays in memory");
            }
        }
    }

    /// Returns when everything appended before this call is on the disk, the bytes found on opening included.
    /// Callers that wait for the same file share one sync.
    ///
    /// # Errors
    /// When the disk did not take it. Nothing since the last good sync may be acknowledged; a later call tries anew.
    /// [`Error::Removed`] when the file is not in its folder any more; then everything fails.
    pub async fn sync(&self) -> Result<(), Error> {
        if self.log.is_synced() {
            return Ok(());
        }
        self.syncer.sync(Arc::clone(&self.log), Vec::new()).await
    }

    /// [`Writer::append`], then [`Writer::sync`].
    ///
    /// # Errors
    /// As those two. After a failed sync the records are in the file, but must not be acknowledged.
    pub async fn append_synced(&self, records: &[Record]) -> Result<Appended, Error> {
        let appended = self.append(records)?;
        self.sync().await?;
        Ok(appended)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.log.file).finish()
    }
}

#[cfg(test)]
mod tests;
