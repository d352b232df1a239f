//! Rollouts in memory. A sync gives others their turn.

#![allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "they have the shape of the real ones")]

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use protocol::{MailId, ThreadId, TreeId};
use rollout::{Appended, Error, LockError, OwnerHint, Record, SessionMeta, State, Summary};
use shuttle::future::yield_now;
use shuttle::sync::Mutex;
use stdx::AbsPath;

/// The rollouts of a tree.
#[derive(Clone, Default)]
pub struct Store {
    files: Arc<Mutex<HashMap<ThreadId, Writer>>>,
}

/// The one writer of a rollout; also what there is to read.
#[derive(Clone)]
pub struct Writer(Arc<File>);

struct File {
    meta: SessionMeta,
    records: Mutex<Vec<Record>>,
    /// Appends that are refused from now on.
    refused: Mutex<usize>,
}

/// Nobody else is there to be kept out.
pub(crate) struct OwnerLock;

impl OwnerLock {
    pub(crate) fn say(&self, _: &OwnerHint) -> Result<(), LockError> {
        Ok(())
    }
}

/// What opening a rollout gives.
pub(crate) struct Opened {
    pub(crate) loaded: Loaded,
    pub(crate) writer: Writer,
}

/// What reading a rollout gives.
pub(crate) struct Loaded {
    pub(crate) state: State,
    /// Nobody forks here.
    pub(crate) lack: Option<rollout::Lack>,
}

impl Store {
    /// No body is too long for its line here.
    pub(crate) fn whole(&self, mail: &protocol::Mail) -> Option<AbsPath> {
        mail.whole.clone()
    }

    /// A new rollout, at once.
    pub(crate) fn make(&self, meta: SessionMeta, rest: Vec<Record>) -> Writer {
        let thread = meta.id;
        let file = File { meta, records: Mutex::new(rest), refused: Mutex::default() };
        let writer = Writer(Arc::new(file));
        self.files.lock().unwrap().insert(thread, writer.clone());
        writer
    }

    pub(crate) async fn create(&self, meta: SessionMeta, rest: Vec<Record>) -> Result<Writer, Error> {
        yield_now().await;
        Ok(self.make(meta, rest))
    }

    pub(crate) fn lock(&self, _: TreeId, _: &OwnerHint) -> Result<OwnerLock, LockError> {
        Ok(OwnerLock)
    }

    pub(crate) fn attach(&self, _: TreeId, _: MailId, _: &str) -> Result<AbsPath, Error> {
        Err(Error::Refused { file: PathBuf::from("mail"), why: "there are no long mails here".to_owned() })
    }

    /// All rollouts.
    pub(crate) fn all(&self) -> Vec<Writer> {
        self.files.lock().unwrap().values().cloned().collect()
    }

    pub(crate) fn writer(&self, thread: ThreadId) -> Result<Writer, Error> {
        Ok(self.files.lock().unwrap()[&thread].clone())
    }

    pub(crate) fn known(&self, thread: ThreadId) -> Result<HashSet<MailId>, Error> {
        Ok(self.writer(thread)?.state().known)
    }

    pub(crate) fn load(&self, thread: ThreadId) -> Result<Loaded, Error> {
        Ok(Loaded { state: self.writer(thread)?.state(), lack: None })
    }

    pub(crate) fn open(&self, thread: ThreadId) -> Result<Opened, Error> {
        let writer = self.writer(thread)?;
        Ok(Opened { loaded: Loaded { state: writer.state(), lack: None }, writer })
    }
}

impl Writer {
    pub(crate) fn append(&self, records: &[Record]) -> Result<Appended, Error> {
        let mut refused = self.0.refused.lock().unwrap();
        if *refused > 0 {
            *refused -= 1;
            return Err(Error::Refused { file: PathBuf::from("rollout"), why: "a test says so".to_owned() });
        }
        drop(refused);
        let mut all = self.0.records.lock().unwrap();
        let first = all.len() as u64 + 1;
        all.extend_from_slice(records);
        Ok(Appended { first, last: all.len() as u64, at: self.0.meta.timestamp })
    }

    pub(crate) async fn sync(&self) -> Result<(), Error> {
        yield_now().await;
        Ok(())
    }

    pub(crate) async fn append_synced(&self, records: &[Record]) -> Result<Appended, Error> {
        let appended = self.append(records)?;
        self.sync().await?;
        Ok(appended)
    }

    /// Nothing follows these files.
    pub(crate) fn synced_summary(&self) -> Option<Summary> {
        None
    }

    /// All lines but the first.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.0.records.lock().unwrap().clone()
    }

    /// Refuses the next append.
    pub(crate) fn refuse(&self) {
        *self.0.refused.lock().unwrap() += 1;
    }

    /// What the lines come to.
    pub(crate) fn state(&self) -> State {
        let mut state = State::new(self.0.meta.clone());
        for (ordinal, record) in (1..).zip(self.0.records.lock().unwrap().iter()) {
            state.apply_record(self.0.meta.timestamp, ordinal, record);
        }
        state
    }

    /// The mail that entered the context, in order, as often as it did.
    pub(crate) fn delivered(&self) -> Vec<MailId> {
        let records = self.0.records.lock().unwrap();
        let items = records.iter().filter_map(|record| if let Record::Item(item) = record { Some(item) } else { None });
        items.flat_map(|item| item.mail.clone()).collect()
    }

    /// The tasks that have an end, in order, as often as they have one.
    pub(crate) fn done(&self) -> Vec<MailId> {
        let records = self.0.records.lock().unwrap();
        let done = |record: &Record| if let Record::TaskDone(done) = record { Some(done.task) } else { None };
        records.iter().filter_map(done).collect()
    }
}
