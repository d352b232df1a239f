//! One open file: where its good part ends, and how much of that is known to be on the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::ThreadId;
use stdx::{AbsPath, Timestamp};

use crate::disk::{Disk, DiskFile};
use crate::error::is_removed;
use crate::line::encode;
use crate::source::MAX_LINE;
use crate::{Appended, Error, FileEnd, Lack, Loaded, Record, State, Summary};

/// Bytes kept in memory for a disk that does not take them, 64 MiB; then nothing more is taken either.
const MAX_HELD: usize = 64 << 20;

/// Bytes of room that an open file keeps for its next write. What a longer one or a longer wait for a sync has needed is
/// given back: most agents of a large tree rest most of the time, each with its file open.
const ROOM: usize = 1 << 10;

/// One file of one agent. There is one of these a thread id, whoever holds it.
pub(crate) struct Log {
    pub(crate) thread: ThreadId,
    pub(crate) file: AbsPath,
    disk: Arc<dyn Disk>,
    tail: Mutex<Tail>,
}

struct Tail {
    handle: Arc<dyn DiskFile>,
    /// Where its whole writes end.
    end: FileEnd,
    /// Bytes that a sync has covered.
    synced: u64,
    /// What was written from `synced` on. Kept because after a failed sync neither the disk nor the system's cache
    /// can be asked for it.
    unsynced: Vec<u8>,
    /// Whether bytes before `synced` were found here and no sync of ours has covered them yet.
    found: bool,
    /// A sync failed; the handle may have swallowed the error and is not to be synced again.
    suspect: bool,
    /// A failed write left bytes behind `end` that could not be cut off yet.
    spoilt: Option<String>,
    /// Nothing more can be promised about this file.
    lost: Option<Error>,
    buffer: Vec<u8>,
    /// What its lines come to, the transcript left out.
    state: State,
}

impl Log {
    /// A file and its good end, with what its lines come to. A crash may have left those lines unsynced.
    pub(crate) fn new(
        thread: ThreadId,
        disk: Arc<dyn Disk>,
        handle: Arc<dyn DiskFile>,
        end: FileEnd,
        state: State,
    ) -> Self {
        let tail = Tail {
            handle,
            synced: end.bytes,
            unsynced: Vec::new(),
            found: end.bytes > 0,
            suspect: false,
            spoilt: None,
            lost: None,
            buffer: Vec::new(),
            state,
            end: end.clone(),
        };
        Self { thread, file: end.file, disk, tail: Mutex::new(tail) }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self, why: &str) -> Error {
        Error::Refused { file: self.file.to_path_buf(), why: why.to_owned() }
    }

    /// The file is not in its folder any more: nothing can be kept in it.
    fn removed(&self, tail: &mut Tail) -> Error {
        tail.lose(Error::Removed { file: self.file.to_path_buf() })
    }

    /// One write for all records. Returns their place, and how many bytes now wait for a sync.
    pub(crate) fn append(&self, records: &[Record]) -> Result<(Appended, usize), Error> {
        // Held across one write, so that lines stand in the order of their ordinals; nobody awaits inside.
        self.append_to(&mut self.tail(), records)
    }

    /// As [`Log::append`], with records that are made of what stands there already.
    pub(crate) fn append_made(&self, make: impl FnOnce(&State) -> Vec<Record>) -> Result<(Appended, usize), Error> {
        let mut tail = self.tail();
        let records = make(&tail.state);
        self.append_to(&mut tail, &records)
    }

    fn append_to(&self, tail: &mut Tail, records: &[Record]) -> Result<(Appended, usize), Error> {
        if let Some(error) = &tail.lost {
            return Err(error.clone());
        }
        tail.cut_back();
        if let Some(why) = &tail.spoilt {
            return Err(self.refused(why));
        }
        if tail.unsynced.len() > MAX_HELD {
            return Err(self.refused("too much waits for a disk that does not take it"));
        }
        let at = as_written(stdx::now());
        let first = tail.end.ordinal + 1;
        if records.is_empty() {
            return Ok((Appended { first, last: tail.end.ordinal, at }, tail.unsynced.len()));
        }
        let count = u32::try_from(records.len()).map_err(|_| self.refused("more than 4 billion lines in one write"))?;
        tail.buffer.clear();
        let mut last_line = 0;
        for (record, index) in records.iter().zip(1..=count) {
            last_line = tail.buffer.len();
            let part = (count > 1).then_some([index, count]);
            encode(&mut tail.buffer, at, tail.end.ordinal + u64::from(index), part, record)?;
            let bytes = tail.buffer.len() - last_line;
            if bytes > MAX_LINE {
                let (kind, file) = (record.kind().to_owned(), self.file.to_path_buf());
                return Err(Error::LongLine { kind, bytes, max: MAX_LINE, file });
            }
        }
        if let Err(error) = tail.handle.write_all(&tail.buffer) {
            if let Err(cut) = tail.handle.set_len(tail.end.bytes) {
                tail.spoilt = Some(format!("a write failed ({error}) and what it left could not be cut off ({cut})"));
            }
            return Err(Error::io("write", &*self.file, error));
        }
        tail.end.append(records, tail.buffer.len() as u64, &tail.buffer[last_line..]);
        let Tail { unsynced, buffer, .. } = &mut *tail;
        unsynced.append(buffer);
        buffer.shrink_to(ROOM);
        for (record, ordinal) in records.iter().zip(first..) {
            tail.state.apply_record(at, ordinal, record);
        }
        Ok((Appended { first, last: tail.end.ordinal, at }, tail.unsynced.len()))
    }

    /// Whether everything written so far is known to be on the disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.tail().is_synced()
    }

    /// What is written so far comes to.
    pub(crate) fn summary(&self) -> Summary {
        let tail = self.tail();
        tail.state.summary(&tail.end)
    }

    /// As [`Log::summary`], if all of it is known to be on the disk.
    pub(crate) fn synced_summary(&self) -> Option<Summary> {
        let tail = self.tail();
        tail.is_synced().then(|| tail.state.summary(&tail.end))
    }

    /// Whether this refuses everything, for good. Then another may take its place.
    pub(crate) fn is_lost(&self) -> bool {
        self.tail().lost.is_some()
    }

    /// Keeps the conversation of a file that was just opened, and what is appended to it.
    pub(crate) fn remember(&self, loaded: &Loaded) {
        let mut tail = self.tail();
        // Unless somebody has appended meanwhile.
        if tail.end.bytes == loaded.end.bytes {
            tail.state = loaded.state.clone();
        }
    }

    /// What the file says, of one that [`Log::remember`]s; then the conversation is forgotten.
    pub(crate) fn recall(&self, from: u64, lack: Option<Lack>) -> Option<Loaded> {
        let mut tail = self.tail();
        if !tail.state.transcript_complete {
            return None;
        }
        let bare = tail.state.without_transcript();
        let state = std::mem::replace(&mut tail.state, bare);
        let FileEnd { skipped, unknown, .. } = tail.end;
        Some(Loaded { state, file: self.file.clone(), skipped, unknown, torn: 0, from, end: tail.end.clone(), lack })
    }

    /// Calls `look` while nobody can append.
    pub(crate) fn still<T>(&self, look: impl FnOnce() -> T) -> T {
        let _tail = self.tail();
        look()
    }

    /// One sync, for everything that was written before it began. Appends go on meanwhile.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let (handle, mark) = {
            let mut tail = self.tail();
            if let Some(error) = &tail.lost {
                return Err(error.clone());
            }
            if tail.suspect {
                drop(tail);
                return self.recover();
            }
            // Whole lines are made durable whether or not what follows them can be cut off.
            tail.cut_back();
            (Arc::clone(&tail.handle), tail.end.bytes)
        };
        match handle.sync_data() {
            Ok(()) => {
                self.tail().settle(mark);
                Ok(())
            }
            Err(error) if is_removed(&error) => Err(self.removed(&mut self.tail())),
            Err(error) => {
                tracing::warn!(file = %self.file, %error, "a sync failed; opening the file again");
                self.tail().suspect = true;
                self.recover()
            }
        }
    }

    /// After a failed sync: the system may have dropped the pages and forgotten the error, so a second sync of the
    /// same descriptor proves nothing. The file is opened again, what no good sync covers is written over itself
    /// (never cut off first: a crash in between must not lose lines), synced, and read back.
    fn recover(&self) -> Result<(), Error> {
        let mut tail = self.tail();
        let tail = &mut *tail;
        let path: &Path = &self.file;
        if tail.found {
            let why = "it could not be synced after it was opened, so what was read from it may not be on the disk";
            return Err(tail.lose(self.refused(why)));
        }
        let unsynced = |source| Error::Unsynced { file: path.to_path_buf(), source: Arc::new(source) };
        let fresh = match self.disk.open_append(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.removed(tail)),
            opened => opened.map_err(unsynced)?,
        };
        let seen = fresh.len().map_err(unsynced)?;
        if seen < tail.synced || (seen > tail.end.bytes && tail.spoilt.is_none()) {
            let why = format!("it should have {} bytes and has {seen}: somebody else changed it", tail.end.bytes);
            return Err(tail.lose(self.refused(&why)));
        }
        self.disk.overwrite(path, tail.synced, &tail.unsynced).map_err(unsynced)?;
        if seen > tail.end.bytes {
            fresh.set_len(tail.end.bytes).map_err(unsynced)?;
        }
        fresh.sync_data().map_err(unsynced)?;
        if self.disk.read_from(path, tail.synced).map_err(unsynced)? != tail.unsynced {
            return Err(unsynced(std::io::Error::other("it does not read back as it was written")));
        }
        tail.handle = fresh;
        tail.suspect = false;
        tail.spoilt = None;
        tail.settle(tail.end.bytes);
        Ok(())
    }
}

/// `time` as its line has it, in milliseconds, so that a live fold equals what is read back.
pub(crate) fn as_written(time: Timestamp) -> Timestamp {
    Timestamp::parse(&time.to_string()).unwrap_or(time)
}

impl Tail {
    /// Cuts off what a failed write left, if something is left of it.
    fn cut_back(&mut self) {
        if self.spoilt.is_some() && self.handle.set_len(self.end.bytes).is_ok() {
            self.spoilt = None;
        }
    }

    /// From now on everything is refused with `error`.
    fn lose(&mut self, error: Error) -> Error {
        self.lost = Some(error.clone());
        error
    }

    fn is_synced(&self) -> bool {
        !self.found && !self.suspect && self.unsynced.is_empty()
    }

    /// Everything up to `mark` is on the disk.
    fn settle(&mut self, mark: u64) {
        let covered = usize::try_from(mark.saturating_sub(self.synced)).unwrap_or(usize::MAX);
        self.unsynced.drain(..covered.min(self.unsynced.len()));
        if self.unsynced.len() < ROOM {
            self.unsynced.shrink_to(ROOM);
        }
        self.synced = self.synced.max(mark);
        self.found = false;
    }
}
