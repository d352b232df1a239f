//! What was read of one file stays at hand for whoever opens it next.
//!
//! Resuming a tree lists all trees to find it, lists its agents, opens those that need a hand, and then, most of the time,
//! wakes the root. Of the root's file, often a long one, all of them want the same, so it is read once. One file at a time
//! is kept, and it is given up with the first session that takes it.

use std::sync::{Arc, MutexGuard, PoisonError};

use protocol::ThreadId;
use stdx::AbsPath;

use crate::log::Log;
use crate::scan::ends_as;
use crate::{Error, FileFacts, Lack, Loaded, Opened, Store, Summary};

/// The agent whose file is read once.
#[derive(Default)]
pub(crate) struct Warm {
    /// Whether any root that is listed takes the place of the one before.
    roots: bool,
    thread: Option<ThreadId>,
    /// It as it was read, until it is opened.
    read: Option<Loaded>,
    /// It as it was opened ahead, with its conversation.
    open: Option<(Arc<Log>, u64, Option<Lack>)>,
}

impl Store {
    fn warm(&self) -> MutexGuard<'_, Warm> {
        self.warmth().lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what is read of a root's file to list it stays in memory, until another root is read or
    /// [`Store::open`] takes it: for a command that wakes a root once it knows which.
    pub fn keep_roots(&self) {
        *self.warm() = Warm { roots: true, ..Warm::default() };
    }

    /// Says that this file is a root's, and about to be read to list it.
    pub fn lists_root(&self, thread: ThreadId) {
        let mut warm = self.warm();
        if warm.roots && warm.thread != Some(thread) {
            *warm = Warm { roots: true, thread: Some(thread), ..Warm::default() };
        }
    }

    /// From now on what is read of this agent's file, to list it or to write to it, stays in memory until
    /// [`Store::open`] takes it. Of one agent at a time.
    pub fn keep(&self, thread: ThreadId) {
        let mut warm = self.warm();
        let read = warm.read.take().filter(|loaded| loaded.state.meta.id == thread);
        *warm = Warm { thread: Some(thread), read, ..Warm::default() };
    }

    /// As [`Store::open`]; what the file says stays in memory for the next call of that, which then reads nothing.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_ahead(&self, thread: ThreadId) -> Result<Opened, Error> {
        let opened = self.open_file(thread)?;
        self.keep(thread);
        self.keep_open(&opened.loaded, &opened.writer.log);
        Ok(opened)
    }

    /// Keeps what a file says that was just opened, if somebody asked for that.
    pub(crate) fn keep_open(&self, loaded: &Loaded, log: &Arc<Log>) {
        let mut warm = self.warm();
        if warm.thread == Some(log.thread) {
            log.remember(loaded);
            (warm.read, warm.open) = (None, Some((Arc::clone(log), loaded.from, loaded.lack.clone())));
        }
    }

    /// Gives up what is kept of this agent.
    pub(crate) fn forget_agent(&self, thread: ThreadId) {
        let mut warm = self.warm();
        if warm.thread == Some(thread) {
            *warm = Warm::default();
        }
    }

    /// Lets go of a file that is open: it may have been another's to write since. What was only read is compared with the
    /// file before it is used.
    pub(crate) fn let_go(&self) {
        self.warm().open = None;
    }

    /// Whether what is read of this agent's file is to be kept.
    pub(crate) fn keeps(&self, thread: ThreadId) -> bool {
        self.warm().thread == Some(thread)
    }

    /// Keeps what was read, if it is still asked for.
    pub(crate) fn keep_read(&self, loaded: Loaded) {
        let mut warm = self.warm();
        if warm.thread == Some(loaded.state.meta.id) {
            warm.read = Some(loaded);
        }
    }

    /// What was read of a file that still is as it was then.
    pub(crate) fn take_read(&self, thread: ThreadId, file: &AbsPath, bytes: u64) -> Option<Loaded> {
        let mut warm = self.warm();
        let loaded = if warm.thread == Some(thread) { warm.read.take()? } else { return None };
        drop(warm);
        let same = loaded.file == *file && loaded.end.bytes + loaded.torn == bytes;
        (same && ends_as(&**self.disk(), file, &loaded.summary())).then_some(loaded)
    }

    /// The summary of a file that was read and still is as it was then.
    pub(crate) fn read_before(&self, facts: &FileFacts) -> Option<Summary> {
        let loaded = self.take_read(facts.thread, &facts.file, facts.bytes)?;
        let summary = loaded.summary();
        self.keep_read(loaded);
        Some(summary)
    }

    /// What an open file says, if it was opened ahead. From then on it has no conversation at hand.
    pub(crate) fn take_open(&self, log: &Arc<Log>) -> Option<Loaded> {
        let (ahead, from, lack) = {
            let mut warm = self.warm();
            warm.open.take_if(|(ahead, ..)| Arc::ptr_eq(ahead, log))?
        };
        ahead.recall(from, lack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{FaultDisk, Home, birth, id, meta, turn, words};

    /// A mail wakes it: its writer reads, its session does not.
    #[tokio::test]
    async fn what_is_written_to_first_is_read_once() {
        let disk = FaultDisk::default();
        let home = Home::on(Arc::new(disk.clone()));
        drop(home.store.create(meta(1), birth()).await.unwrap());
        home.store.keep(id(1));
        home.store.writer(id(1)).unwrap().append(&[words("one")]).unwrap();
        let before = disk.reads();
        let opened = home.store.open(id(1)).unwrap();
        assert_eq!((disk.reads() - before, opened.loaded.state.transcript.len()), (0, 1));
        drop(opened);
        // No more is kept of it than was asked for.
        home.store.writer(id(1)).unwrap().append(&[words("two")]).unwrap();
        let before = disk.reads();
        assert_eq!(home.store.open(id(1)).unwrap().loaded.state.transcript.len(), 2);
        assert_eq!(disk.reads() - before, 1);
    }

    /// Listed, opened ahead, opened: one reading, and the last one has what was appended in between.
    #[tokio::test]
    async fn a_kept_file_is_read_once() {
        let disk = FaultDisk::default();
        let home = Home::on(Arc::new(disk.clone()));
        let writer = home.store.create(meta(1), birth()).await.unwrap();
        writer.append_synced(&[turn(2), words("one")]).await.unwrap();
        drop(writer);
        let facts = home.store.files().unwrap().files.remove(0);
        home.store.keep(id(1));
        home.store.summarise(&facts).unwrap();
        let before = disk.reads();
        let ahead = home.store.open_ahead(id(1)).unwrap();
        assert_eq!(ahead.loaded.state.transcript.len(), 1);
        ahead.writer.append_synced(&[words("two")]).await.unwrap();
        drop(ahead);
        let opened = home.store.open(id(1)).unwrap();
        // Its length and its last line were looked at.
        assert_eq!(disk.reads() - before, 2);
        assert_eq!(opened.loaded.state, home.again().load(id(1)).unwrap().state);
        assert_eq!(opened.loaded.end, home.again().load(id(1)).unwrap().end);
        // It is given up: the next one reads.
        drop(home.store.open(id(1)).unwrap());
        assert_eq!(disk.reads() - before, 3);
    }

    /// Listed among all trees, then with its own.
    #[tokio::test]
    async fn a_root_that_is_listed_twice_is_read_once() {
        let disk = FaultDisk::default();
        let home = Home::on(Arc::new(disk.clone()));
        drop(home.store.create(meta(1), birth()).await.unwrap());
        drop(home.store.create(meta(2), birth()).await.unwrap());
        let files = home.store.files().unwrap().files;
        home.store.keep_roots();
        for facts in files.iter().rev() {
            home.store.lists_root(facts.thread);
            home.store.summarise(facts).unwrap();
        }
        let tree = meta(1).session_id;
        let _lock = home.store.lock(tree, &crate::OwnerHint::default()).unwrap();
        home.store.keep(id(1));
        let before = disk.reads();
        assert_eq!(home.store.summarise(&files[0]).unwrap().meta, meta(1));
        let ahead = home.store.open_ahead(id(1)).unwrap();
        assert_eq!(home.store.open(id(1)).unwrap().loaded.state, ahead.loaded.state);
        // Its last line, its length, its last line again.
        assert_eq!(disk.reads() - before, 3);
    }

    /// An owner that lets go and comes back finds what others wrote meanwhile.
    #[tokio::test]
    async fn nothing_is_kept_from_one_owner_to_the_next() {
        let home = Home::new();
        drop(home.store.create(meta(1), birth()).await.unwrap());
        let tree = meta(1).session_id;
        let lock = home.store.lock(tree, &crate::OwnerHint::default()).unwrap();
        drop(home.store.open_ahead(id(1)).unwrap());
        drop(lock);
        let other = home.again().open(id(1)).unwrap().writer.append_synced(&[words("elsewhere")]).await.unwrap();
        let _lock = home.store.lock(tree, &crate::OwnerHint::default()).unwrap();
        let opened = home.store.open(id(1)).unwrap();
        assert_eq!(opened.loaded.state.transcript.len(), 1);
        assert_eq!(opened.writer.append(&[turn(2)]).unwrap().first, other.last + 1);
    }

    #[tokio::test]
    async fn a_file_that_has_changed_is_read_again() {
        let home = Home::new();
        drop(home.store.create(meta(1), birth()).await.unwrap());
        let facts = home.store.files().unwrap().files.remove(0);
        home.store.keep(id(1));
        home.store.summarise(&facts).unwrap();
        home.again().open(id(1)).unwrap().writer.append_synced(&[words("elsewhere")]).await.unwrap();
        assert_eq!(home.store.open(id(1)).unwrap().loaded.state.transcript.len(), 1);
    }
}
