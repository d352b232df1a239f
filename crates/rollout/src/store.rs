//! All rollouts of one home: making, finding, opening and reading them.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use dashmap::{DashMap, DashSet};
use protocol::{MailId, TaskEnd, TaskId, ThreadId, TreeId};
use stdx::AbsPath;

use crate::error::lost;
use crate::log::{Log, as_written};
use crate::packed::{Place, is_packed};
use crate::read::Conversation;
use crate::source::Source;
use crate::sync::Syncer;
use crate::warm::Warm;
use crate::{
    Disk, Error, FORMAT, FileEnd, FileFacts, Files, Head, Identity, Line, Lines, Loaded, LockError, OwnerHint,
    OwnerLock, Record, Scan, SessionMeta, State, Summary, Tally, Writer,
};
use crate::{lock, packed, read, scan};

/// The rollouts under one home. Cheap to clone. Methods that are not `async` block.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    home: AbsPath,
    disk: Arc<dyn Disk>,
    syncer: Arc<Syncer>,
    slots: DashMap<ThreadId, Arc<Slot>>,
    /// Day folders whose own entry, and that of every folder above, this process has synced.
    durable: DashSet<PathBuf>,
    warm: Mutex<Warm>,
}

/// What is known of one thread id.
#[derive(Default)]
struct Slot {
    file: OnceLock<AbsPath>,
    /// The writer, as long as somebody holds it.
    log: Mutex<Weak<Log>>,
}

/// An agent's file, open for writing.
#[derive(Clone, Debug)]
pub struct Opened {
    /// What it says. `loaded.torn` bytes were cut off.
    pub loaded: Loaded,
    /// Its writer.
    pub writer: Writer,
}

impl Store {
    /// The rollouts under `home`. Nothing is touched.
    pub fn new(home: AbsPath, disk: Arc<dyn Disk>) -> Self {
        let syncer = Arc::new(Syncer::new(Arc::clone(&disk)));
        let (slots, durable, warm) = (DashMap::new(), DashSet::new(), Mutex::default());
        Self { inner: Arc::new(Inner { home, disk, syncer, slots, durable, warm }) }
    }

    /// The home.
    pub fn home(&self) -> &AbsPath {
        &self.inner.home
    }

    /// The file system it works on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.inner.disk
    }

    pub(crate) fn warmth(&self) -> &Mutex<Warm> {
        &self.inner.warm
    }

    /// Where the rollouts in use are.
    pub(crate) fn sessions(&self) -> Place {
        Place { folder: self.inner.home.join("sessions"), packed: false }
    }

    fn slot(&self, thread: ThreadId) -> Arc<Slot> {
        // The guard of the map lives for this line only; I/O is done under the slot's own lock.
        Arc::clone(self.inner.slots.entry(thread).or_default().value())
    }

    /// Makes an agent's file: its meta and `rest` are one write, on the disk with its folders when this returns.
    /// Without that complete write the agent never existed.
    ///
    /// # Errors
    /// When the agent has a file already, or the disk did not take it. Then nothing is left behind, or the error says so.
    pub async fn create(&self, meta: SessionMeta, rest: Vec<Record>) -> Result<Writer, Error> {
        let day = self.day_folder(&meta);
        let log = self.make(&day, meta, rest)?;
        let folders = if self.inner.durable.contains(day.as_path()) {
            vec![day.to_path_buf()]
        } else {
            day.ancestors().take_while(|folder| folder.starts_with(&*self.inner.home)).map(Path::to_path_buf).collect()
        };
        if let Err(error) = self.inner.syncer.sync(Arc::clone(&log), folders).await {
            self.unmake(&log)?;
            return Err(error);
        }
        self.inner.durable.insert(day.to_path_buf());
        Ok(Writer { log, syncer: Arc::clone(&self.inner.syncer) })
    }

    fn day_folder(&self, meta: &SessionMeta) -> AbsPath {
        let (year, month, day) = meta.timestamp.date();
        self.sessions().folder.join(format!("{year:04}")).join(format!("{month:02}")).join(format!("{day:02}"))
    }

    fn make(&self, day: &AbsPath, mut meta: SessionMeta, rest: Vec<Record>) -> Result<Arc<Log>, Error> {
        let disk = &self.inner.disk;
        let thread = meta.id;
        let file = day.join(format!("rollout-{}-{thread}.jsonl", meta.timestamp.for_file_name()));
        let slot = self.slot(thread);
        let mut live = slot.lock();
        if let Some(file) = slot.file.get() {
            return Err(Error::Exists { thread, file: file.to_path_buf() });
        }
        if !disk.exists(day) {
            // It may have been there before and have been removed.
            self.inner.durable.remove(day.as_path());
            disk.create_dir_all(day).map_err(|error| Error::io("make", &**day, error))?;
            // The entry of the home itself; its parent may belong to somebody else and be unreadable.
            if let Some(above) = self.inner.home.parent()
                && let Err(error) = disk.sync_dir(&above)
            {
                tracing::debug!(folder = %above, %error, "the folder above the home was not synced");
            }
        }
        let handle = disk.create_new(&file).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists { thread, file: file.to_path_buf() },
            _ => Error::io("make", &*file, error),
        })?;
        meta.timestamp = as_written(meta.timestamp);
        if rest.iter().any(|record| matches!(record, Record::Forked(_))) {
            meta.format = meta.format.max(FORMAT);
        }
        let state = State::new(meta.clone()).without_transcript();
        let log = Arc::new(Log::new(thread, Arc::clone(disk), handle, FileEnd::empty(file.clone()), state));
        let mut records = vec![Record::SessionMeta(Box::new(meta))];
        records.extend(rest);
        if let Err(error) = log.append(&records) {
            remove(&**disk, &file)?;
            return Err(error);
        }
        let _ = slot.file.set(file);
        *live = Arc::downgrade(&log);
        Ok(log)
    }

    /// Takes back a file whose making was not acknowledged.
    fn unmake(&self, log: &Log) -> Result<(), Error> {
        self.inner.slots.remove(&log.thread);
        remove(&*self.inner.disk, &log.file)
    }

    /// The writer of an agent's file: the one that somebody holds, or a new one. Opening cuts off an unfinished write.
    ///
    /// # Errors
    /// When there is no such agent, or its file cannot be read or opened.
    pub fn writer(&self, thread: ThreadId) -> Result<Writer, Error> {
        let slot = self.slot(thread);
        let mut live = slot.lock();
        let log = if let Some(log) = live.upgrade().filter(|log| !log.is_lost()) {
            log
        } else {
            // A conversation that nobody asked for is not read from where it was forked.
            let conversation = if self.keeps(thread) { Conversation::Kept } else { Conversation::LeftOut };
            let (loaded, log) = self.open_log(thread, &slot, &mut live, conversation)?;
            self.keep_open(&loaded, &log);
            log
        };
        Ok(Writer { log, syncer: Arc::clone(&self.inner.syncer) })
    }

    /// Repairs, reads and opens an agent's file in one pass. What was found may not be on the disk yet: sync the
    /// writer before anything that follows from it is written elsewhere.
    ///
    /// # Errors
    /// As [`Store::writer`].
    pub fn open(&self, thread: ThreadId) -> Result<Opened, Error> {
        let opened = self.open_file(thread)?;
        self.forget_agent(thread);
        Ok(opened)
    }

    pub(crate) fn open_file(&self, thread: ThreadId) -> Result<Opened, Error> {
        let slot = self.slot(thread);
        let mut live = slot.lock();
        let (loaded, log) = match live.upgrade().filter(|log| !log.is_lost()) {
            Some(log) => match self.take_open(&log) {
                Some(loaded) => (loaded, log),
                None => (log.still(|| self.load_file(&log.file))?, log),
            },
            None => self.open_log(thread, &slot, &mut live, Conversation::Kept)?,
        };
        Ok(Opened { loaded, writer: Writer { log, syncer: Arc::clone(&self.inner.syncer) } })
    }

    /// Makes an agent that was opened durable: what its file said, the entry of the file, and the folders above.
    /// Whoever made it may have been killed before any of that. Callers that wait together share the syncs.
    ///
    /// # Errors
    /// When the disk did not take it. Nothing that follows from what was read may be written then.
    pub async fn hold(&self, writer: &Writer) -> Result<(), Error> {
        let folders = writer.log.file.ancestors().skip(1).take_while(|folder| folder.starts_with(&*self.inner.home));
        self.inner.syncer.sync(Arc::clone(&writer.log), folders.map(Path::to_path_buf).collect()).await
    }

    fn open_log(
        &self,
        thread: ThreadId,
        slot: &Slot,
        live: &mut MutexGuard<'_, Weak<Log>>,
        conversation: Conversation,
    ) -> Result<(Loaded, Arc<Log>), Error> {
        let disk = &self.inner.disk;
        let file = self.file_of(thread, slot)?;
        if is_packed(&file) {
            return Err(Error::Archived { file: file.to_path_buf() });
        }
        let source = self.source(&file)?;
        let mut loaded = match self.take_read(thread, &file, source.len()) {
            Some(loaded) => loaded,
            None => self.fold(&file, &source, conversation)?,
        };
        drop(source);
        let handle = disk.open_append(&file).map_err(|error| lost("open", &file, error))?;
        if loaded.torn > 0 {
            handle.set_len(loaded.end.bytes).map_err(|error| Error::io("repair", &*file, error))?;
            tracing::warn!(%file, bytes = loaded.torn, "cut off an unfinished write");
        }
        let state = loaded.state.without_transcript();
        let log = Arc::new(Log::new(thread, Arc::clone(disk), handle, loaded.end.clone(), state));
        **live = Arc::downgrade(&log);
        Ok((loaded, log))
    }

    /// Reads an agent's file and folds it. Writes nothing, also when the file ends in an unfinished write.
    ///
    /// # Errors
    /// When there is no such agent, its first write is not complete, or the file cannot be read.
    pub fn load(&self, thread: ThreadId) -> Result<Loaded, Error> {
        self.load_file(&self.file(thread)?)
    }

    fn load_file(&self, file: &AbsPath) -> Result<Loaded, Error> {
        self.fold(file, &self.source(file)?, Conversation::Kept)
    }

    fn fold(&self, file: &AbsPath, source: &Source, conversation: Conversation) -> Result<Loaded, Error> {
        read::fold(file, source, conversation, &|fork, each| self.taken_over(fork, each))
    }

    /// Feeds the lines of a file's whole writes to `each`, in order, until it has seen enough. Any file will do, wherever
    /// it is and whatever it is called; `from` is where one of its writes begins: 0, or the good end of an earlier walk.
    /// In memory is a line at a time, and the lines of a write that is not complete yet. Writes nothing.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn walk(&self, file: &AbsPath, from: u64, each: impl FnMut(Line) -> ControlFlow<()>) -> Result<Tally, Error> {
        read::read(&self.source(file)?, from, read::all, each).map_err(|error| lost("read", file, error))
    }

    /// All lines of an agent's file, in memory: of a long one use [`Store::walk`]. Writes nothing.
    ///
    /// # Errors
    /// When there is no such agent or the file cannot be read.
    pub fn read(&self, thread: ThreadId) -> Result<Lines, Error> {
        let file = self.present(&self.file(thread)?);
        let source = self.source(&file)?;
        read::lines(thread, file.clone(), &source).map_err(|error| lost("read", &file, error))
    }

    /// Every mail that an agent ever accepted. Nothing else is parsed, and no more is read than it takes.
    ///
    /// # Errors
    /// When there is no such agent or the file cannot be read.
    pub fn known(&self, thread: ThreadId) -> Result<HashSet<MailId>, Error> {
        let file = self.present(&self.file(thread)?);
        let source = self.source(&file)?;
        read::known(&source).map_err(|error| lost("read", &file, error))
    }

    /// How a task of an agent ended, however long ago. Nothing when it has not, or was never its task.
    ///
    /// # Errors
    /// When there is no such agent or the file cannot be read.
    pub fn ended(&self, thread: ThreadId, task: TaskId) -> Result<Option<TaskEnd>, Error> {
        let file = self.present(&self.file(thread)?);
        let source = self.source(&file)?;
        read::ended(&source, task).map_err(|error| lost("read", &file, error))
    }

    pub(crate) fn source(&self, file: &AbsPath) -> Result<Source, Error> {
        Source::open(&*self.inner.disk, file).map_err(|error| lost("read", file, error))
    }

    /// Where an agent's file is.
    ///
    /// # Errors
    /// When there is no such agent.
    pub fn file(&self, thread: ThreadId) -> Result<AbsPath, Error> {
        // Looked up first, so that ids nobody has leave nothing behind.
        let known = self.inner.slots.get(&thread).and_then(|slot| slot.file.get().cloned());
        match known {
            Some(file) => Ok(file),
            None => self.find(thread),
        }
    }

    fn file_of(&self, thread: ThreadId, slot: &Slot) -> Result<AbsPath, Error> {
        if let Some(file) = slot.file.get() {
            return Ok(file.clone());
        }
        let file = self.find(thread)?;
        // A packed one is on its way to another name as soon as its tree is wanted.
        if !is_packed(&file) {
            let _ = slot.file.set(file.clone());
        }
        Ok(file)
    }

    fn find(&self, thread: ThreadId) -> Result<AbsPath, Error> {
        let missing = || Error::Missing { thread, folder: self.sessions().folder.to_path_buf() };
        self.find_anywhere(thread)?.ok_or_else(missing)
    }

    /// The first lines of every rollout. Files that cannot be read are listed, never fatal.
    ///
    /// # Errors
    /// When the folder of the sessions exists and cannot be listed, or there is no descriptor to read with.
    pub fn scan(&self) -> Result<Scan, Error> {
        let scan = self.scan_anywhere()?;
        for head in scan.heads.iter().filter(|head| !is_packed(&head.file)) {
            let _ = self.slot(head.meta.id).file.set(head.file.clone());
        }
        Ok(scan)
    }

    /// Every rollout by name and length, those of archived trees included; of a file that is in both places the one that
    /// is in use. Nothing is opened, so some may turn out not to be an agent's.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub fn files(&self) -> Result<Files, Error> {
        self.files_anywhere()
    }

    /// Whose file this is, by its first write. What cannot be read, does not begin as a rollout, or is named after
    /// another agent is [`Identity::Odd`].
    ///
    /// # Errors
    /// When there is no descriptor to read it with, so that nothing can be said about it.
    pub fn identify(&self, facts: &FileFacts) -> Result<Identity, Error> {
        scan::identify(&*self.inner.disk, &self.present_facts(facts))
    }

    /// What lists need of a file that was listed. The conversation is left out as it is read, unless [`Store::keep`]
    /// asked for it.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn summarise(&self, facts: &FileFacts) -> Result<Summary, Error> {
        if let Some(summary) = self.read_before(facts) {
            return Ok(summary);
        }
        let keeps = self.keeps(facts.thread);
        let conversation = if keeps { Conversation::Kept } else { Conversation::LeftOut };
        let file = self.present(&facts.file);
        let loaded = self.fold(&file, &self.source(&file)?, conversation)?;
        let summary = loaded.summary();
        if keeps {
            self.keep_read(loaded);
        }
        Ok(summary)
    }

    /// Whether a file is still as a summary has it: the same length, and the same last line at its end. One read of
    /// that line. Nothing before it is looked at: a file is only ever appended to.
    pub fn tail_matches(&self, facts: &FileFacts, summary: &Summary) -> bool {
        summary.version == Summary::VERSION
            && summary.meta.id == facts.thread
            && if is_packed(&facts.file) {
                packed::ends_as(&*self.inner.disk, facts, summary)
            } else {
                summary.bytes == facts.bytes && scan::ends_as(&*self.inner.disk, &facts.file, summary)
            }
    }

    /// Tells where an agent's file is, so that nobody has to look for it. A file whose name does not carry the id is
    /// not believed, and what is known already stays.
    pub fn learn(&self, thread: ThreadId, file: AbsPath) {
        if scan::thread_of(&file) == Some(thread) && !is_packed(&file) {
            let _ = self.slot(thread).file.set(file);
        }
    }

    /// The agents of one tree, parents before children: by depth, then in the order in which they were spawned.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub fn tree(&self, tree: TreeId) -> Result<Vec<Head>, Error> {
        Ok(self.scan()?.tree(tree))
    }

    /// Renames a file whose agent never existed to `….unborn`. Only the owner of its tree may do so: to anybody else
    /// a file that is just being made looks the same.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn set_aside(&self, file: &AbsPath) -> Result<AbsPath, Error> {
        let mut name = file.as_os_str().to_owned();
        name.push(".unborn");
        let aside = file.join(&name);
        self.inner.disk.rename(file, &aside).map_err(|error| Error::io("set aside", &**file, error))?;
        if let Some(folder) = file.parent() {
            self.inner.disk.sync_dir(&folder).map_err(|error| Error::io("sync", &*folder, error))?;
        }
        self.inner.slots.retain(|_, slot| slot.file.get() != Some(file));
        Ok(aside)
    }

    /// Day folders that need no sync but their own.
    pub(crate) fn durable(&self) -> &DashSet<PathBuf> {
        &self.inner.durable
    }

    /// Forgets where an agent's file was. Nobody may hold its writer.
    pub(crate) fn forget_writer(&self, thread: ThreadId) {
        self.inner.slots.remove(&thread);
    }

    /// Becomes the owner of a tree until the lock is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// When somebody else owns it, with what they said about themselves; or the lock cannot be made.
    pub fn lock(&self, tree: TreeId, hint: &OwnerHint) -> Result<OwnerLock, LockError> {
        let lock = lock::lock(&self.tree_folder(tree), hint)?;
        self.let_go();
        Ok(lock)
    }

    /// What the present or last owner of a tree said about itself. It may have ended since.
    pub fn owner(&self, tree: TreeId) -> Option<OwnerHint> {
        lock::hint(&self.tree_folder(tree))
    }

    /// The folder of one tree's lock and socket; it may not exist yet.
    pub fn tree_folder(&self, tree: TreeId) -> AbsPath {
        self.inner.home.join("trees").join(tree.to_string())
    }
}

/// Removes a file that nobody was told about, and its entry for good: an agent whose spawn was reported as failed
/// must not be there after a loss of power. Somebody else may have removed it already, and its folder as well.
fn remove(disk: &dyn Disk, file: &AbsPath) -> Result<(), Error> {
    let gone = |done: io::Result<()>| match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    };
    gone(disk.remove(file))
        .and_then(|()| file.parent().map_or(Ok(()), |folder| gone(disk.sync_dir(&folder))))
        .map_err(|error| Error::io("take back", &**file, error))
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Weak<Log>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.home).finish()
    }
}

#[cfg(test)]
mod tests;
