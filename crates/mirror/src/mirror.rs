//! The handle, and the thread that writes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use protocol::{ThreadId, TreeId};
use rollout::Summary;
use stdx::AbsPath;
use tokio::sync::oneshot;

use crate::aside::set_aside;
use crate::change::Change;
use crate::database::{Database, Identity};
use crate::fault::Fault;
use crate::queue::Queue;
use crate::rows::{self, Stored, Wanted};
use crate::{Row, Trouble, write};

/// The database's name in the home.
pub(crate) const NAME: &str = "state.sqlite";

/// How often damage is put right within one operation before it is given up.
const MENDS: usize = 3;

/// The mirror of one home, or none. Cheap to clone. When the last clone goes, what waits is written and the thread
/// ends; that may take as long as one operation.
#[derive(Clone)]
pub struct Mirror {
    inner: Result<Arc<Inner>, Trouble>,
}

struct Inner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    home: AbsPath,
    file: AbsPath,
    /// Why it went off, if it did: then it stays off.
    off: OnceLock<Trouble>,
    queue: Queue,
}

impl Mirror {
    /// The mirror of `home`. Never fails: a damaged database is replaced, and where none can be had the mirror is off.
    /// The trouble is what a person should be told. Blocks for a moment; nothing is made in a home that is not there.
    pub fn open(home: &AbsPath) -> (Self, Option<Trouble>) {
        let shared =
            Shared { home: home.clone(), file: home.join(NAME), off: OnceLock::new(), queue: Queue::default() };
        let (mut database, mut trouble) = (None, None);
        if home.is_dir() {
            match shared.open() {
                Ok((open, mended)) => (database, trouble) = (Some(open), mended),
                // Whoever holds it now may let go of it.
                Err(busy @ Trouble::Busy { .. }) => trouble = Some(busy),
                Err(off) => return (Self { inner: Err(off.clone()) }, Some(off)),
            }
        }
        let shared = Arc::new(shared);
        let writer = Arc::clone(&shared);
        match std::thread::Builder::new().name("mirror".to_owned()).spawn(move || writer.work(database)) {
            Ok(thread) => (Self { inner: Ok(Arc::new(Inner { shared, thread: Some(thread) })) }, trouble),
            Err(error) => {
                let off = Trouble::Unusable { file: shared.file.clone(), why: error.to_string() };
                (Self { inner: Err(off.clone()) }, Some(off))
            }
        }
    }

    /// No mirror: nothing is noted, and everything is read from the rollouts.
    pub fn off() -> Self {
        Self { inner: Err(Trouble::Off) }
    }

    /// Why it is off, if it is.
    pub fn trouble(&self) -> Option<Trouble> {
        self.shared().err()
    }

    fn shared(&self) -> Result<&Shared, Trouble> {
        let inner = self.inner.as_ref().map_err(Clone::clone)?;
        inner.shared.off.get().map_or(Ok(&*inner.shared), |off| Err(off.clone()))
    }

    /// Takes down what an agent's file comes to. To be called after the file was synced, so that the mirror is never
    /// ahead of it. Neither waits nor fails: of one agent only the newest summary is kept until it is written, and
    /// what there is no room for is left out, which costs a read of that file later.
    pub fn note(&self, summary: Summary) {
        if let Ok(shared) = self.shared() {
            let thread = summary.meta.id;
            if !shared.queue.push(thread, Change::noted(summary)) {
                tracing::debug!(%thread, "no room for a note; this rollout will be read");
            }
        }
    }

    /// As [`Mirror::note`], by a listing: it may wait for room, and may know that a row is wrong. False when it waited
    /// in vain, so that it does not wait again for every further file.
    pub(crate) fn note_listed(&self, thread: ThreadId, change: Change, patient: bool) -> bool {
        match self.shared() {
            Ok(shared) if patient => shared.queue.push_patiently(thread, change),
            Ok(shared) => shared.queue.push(thread, change),
            Err(_) => false,
        }
    }

    /// Returns when everything noted before this call was written.
    ///
    /// # Errors
    /// When it was not: it is held by somebody else, and tried again later, or the mirror is off.
    pub async fn flush(&self) -> Result<(), Trouble> {
        let shared = self.shared()?;
        let (asker, answer) = oneshot::channel();
        shared.queue.ask(asker);
        let ended = |_| Err(Trouble::Unusable { file: shared.file.clone(), why: "its thread ended".to_owned() });
        answer.await.unwrap_or_else(ended)
    }

    /// Forgets a tree whose rollouts are gone, and returns when that is written. To be called after they went: rows of
    /// files that are there would be made anew by the next listing.
    ///
    /// # Errors
    /// As [`Mirror::flush`]. Then some rows may still be there.
    pub async fn forget(&self, tree: TreeId) -> Result<(), Trouble> {
        // What waits to be written first, so that no row comes after this.
        self.flush().await?;
        let (stored, mended) = self.stored(Wanted::Tree(tree))?;
        for (thread, stored) in stored {
            if let Stored::Row { mark, .. } = stored {
                self.note_listed(thread, Change::listed(Some(mark), None), true);
            }
        }
        mended.map_or(Ok(()), Err)?;
        self.flush().await
    }

    /// What the mirror has of one tree, or of all, in no order. Rows may lag behind their files; those that are not as
    /// they were written are left out. Blocks.
    ///
    /// # Errors
    /// When there is nothing to read from. After damage that is so once: there are no rows yet.
    pub fn rows(&self, tree: Option<TreeId>) -> Result<Vec<Row>, Trouble> {
        let (stored, mended) = self.stored(tree.map_or(Wanted::All, Wanted::Tree))?;
        if let Some(trouble) = mended {
            return Err(trouble);
        }
        let summary = |stored| match stored {
            Stored::Row { summary: Some(summary), .. } => Some(Row { summary: *summary }),
            _ => None,
        };
        Ok(stored.into_values().filter_map(summary).collect())
    }

    /// These rows, and the damage that was put right on the way, if there was any.
    pub(crate) fn stored(&self, wanted: Wanted) -> Result<(HashMap<ThreadId, Stored>, Option<Trouble>), Trouble> {
        let shared = self.shared()?;
        if !shared.home.is_dir() {
            return Ok((HashMap::new(), None));
        }
        let mut database = None;
        shared.with(&mut database, |database| rows::load(&database.connection, wanted))
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        self.inner.as_ref().map_or((0, 0), |inner| inner.shared.queue.size())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the mirror lags and that is all.
            let _ = thread.join();
        }
    }
}

/// However the thread ends, nobody waits for it.
struct Ended<'a>(&'a Queue);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Shared {
    /// Opens the database. Damage is put right and told.
    fn open(&self) -> Result<(Database, Option<Trouble>), Trouble> {
        let mut mended = None;
        for _ in 0..MENDS {
            let before = Identity::of(&self.file);
            match Database::open(&self.file) {
                Ok(database) => return Ok((database, mended)),
                Err(Fault::Damaged(why)) => mended = self.mend(before, &why)?.or(mended),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
        Err(Fault::Damaged("it is damaged again as soon as it is made".to_owned()).trouble(&self.file))
    }

    /// Moves a damaged database aside. Nothing to tell when another process has done so.
    fn mend(&self, damaged: Option<Identity>, why: &str) -> Result<Option<Trouble>, Trouble> {
        let file = &self.file;
        match set_aside(file, damaged) {
            Ok(aside) => Ok(aside.map(|aside| Trouble::Damaged { file: file.clone(), aside, why: why.to_owned() })),
            Err(error) => Err(match Fault::from(error) {
                Fault::Unusable(error) => Fault::Unusable(format!("{why}; it cannot be moved aside: {error}")),
                fault => fault,
            }
            .trouble(file)),
        }
    }

    /// The trouble of a fault. What a newer version made stays off.
    fn failed(&self, fault: Fault) -> Trouble {
        let ours_no_more = matches!(fault, Fault::Future(_));
        let trouble = fault.trouble(&self.file);
        if ours_no_more {
            let _ = self.off.set(trouble.clone());
        }
        trouble
    }

    /// Does something with the database, opened if it is not or if another file stands in its place. When it turns out
    /// to be damaged it is replaced and the thing is done again.
    fn with<T>(
        &self,
        database: &mut Option<Database>,
        mut act: impl FnMut(&mut Database) -> Result<T, Fault>,
    ) -> Result<(T, Option<Trouble>), Trouble> {
        let mut mended = None;
        for _ in 0..MENDS {
            let kept = database.take().filter(|open| open.is_at(&self.file));
            let opened = kept.map_or_else(|| self.open(), |open| Ok((open, None)));
            let (open, trouble) = opened?;
            mended = trouble.or(mended);
            let open = database.insert(open);
            match act(open) {
                Ok(done) => return Ok((done, mended)),
                Err(Fault::Damaged(why)) => {
                    // Closed only after it was moved, so that its place is not mistaken for that of a new one.
                    mended = self.mend(open.identity(), &why)?.or(mended);
                    *database = None;
                }
                Err(fault) => {
                    let trouble = self.failed(fault);
                    if !matches!(trouble, Trouble::Busy { .. }) {
                        *database = None;
                    }
                    return Err(trouble);
                }
            }
        }
        Err(Fault::Damaged("it is damaged again as soon as it is made".to_owned()).trouble(&self.file))
    }

    /// The thread: one batch after the other.
    fn work(&self, mut database: Option<Database>) {
        let _ended = Ended(&self.queue);
        let mut told = None;
        let mut checked = false;
        while let Some(batch) = self.queue.take() {
            let written = if batch.changes.is_empty() {
                Ok(None)
            } else if let Some(off) = self.off.get() {
                Err(off.clone())
            } else {
                let act = |database: &mut Database| {
                    // Damage that gives no error keeps rows from being found however often they are written.
                    if !checked && batch.changes.values().any(|change| change.listed) {
                        checked = true;
                        database.check(&self.file)?;
                    }
                    write::apply(database, &self.home, &batch.changes)
                };
                self.with(&mut database, act).map(|((), mended)| mended)
            };
            let trouble = match &written {
                Ok(mended) => mended.clone(),
                Err(trouble) => Some(trouble.clone()),
            };
            if let Some(trouble) = trouble.as_ref().filter(|trouble| told.as_ref() != Some(*trouble)) {
                tracing::warn!(%trouble, "the mirror lags");
            }
            told = trouble;
            if matches!(written, Err(Trouble::Busy { .. })) {
                self.queue.put_back(batch.changes);
            }
            for asker in batch.askers {
                // Whoever asked may have been cancelled.
                let _ = asker.send(written.clone().map(|_| ()));
            }
        }
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shared() {
            Ok(shared) => f.debug_tuple("Mirror").field(&shared.file).finish(),
            Err(off) => f.debug_tuple("Mirror").field(&off.to_string()).finish(),
        }
    }
}

#[cfg(test)]
mod tests;
