//! The thread that syncs. Whoever waits for the same file, or for the same folder, shares one sync.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::log::Log;
use crate::{Disk, Error};

/// One request: sync a file, then folders, then tell whoever waits.
struct Job {
    log: Arc<Log>,
    folders: Vec<PathBuf>,
    done: Option<oneshot::Sender<Result<(), Error>>>,
}

/// Hands requests to the thread. It starts with the first request and ends when this is dropped.
pub(crate) struct Syncer {
    disk: Arc<dyn Disk>,
    queue: Mutex<Option<Sender<Job>>>,
}

impl Syncer {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, queue: Mutex::new(None) }
    }

    /// Waits until a sync that began after this call has covered the file, then the folders in their order.
    pub(crate) async fn sync(&self, log: Arc<Log>, folders: Vec<PathBuf>) -> Result<(), Error> {
        let (done, wait) = oneshot::channel();
        self.send(Job { log, folders, done: Some(done) })?;
        wait.await.unwrap_or_else(|_| Err(Error::NoSync("it ended".to_owned())))
    }

    /// Asks for a sync that nobody waits for.
    pub(crate) fn hint(&self, log: Arc<Log>) -> Result<(), Error> {
        self.send(Job { log, folders: Vec::new(), done: None })
    }

    fn send(&self, job: Job) -> Result<(), Error> {
        // Held for a moment, by nobody who waits for anything.
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.is_none() {
            let (sender, receiver) = channel();
            let disk = Arc::clone(&self.disk);
            std::thread::Builder::new()
                .name("rollout-sync".to_owned())
                .spawn(move || work(&*disk, &receiver))
                .map_err(|error| Error::NoSync(error.to_string()))?;
            *queue = Some(sender);
        }
        let sent = queue.as_ref().is_some_and(|sender| sender.send(job).is_ok());
        if sent { Ok(()) } else { Err(Error::NoSync("it ended".to_owned())) }
    }
}

fn work(disk: &dyn Disk, queue: &Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut files: HashMap<*const Log, Vec<Job>> = HashMap::new();
        let mut order = Vec::new();
        // A request in hand was made before any sync below begins: that is what makes sharing honest.
        for job in std::iter::once(first).chain(queue.try_iter()) {
            let key = Arc::as_ptr(&job.log);
            order.extend((!files.contains_key(&key)).then_some(key));
            files.entry(key).or_default().push(job);
        }
        let mut waiting = Vec::new();
        for key in order {
            let jobs = files.remove(&key).unwrap_or_default();
            let Some(log) = jobs.first().map(|job| Arc::clone(&job.log)) else { continue };
            let result = log.sync();
            drop(log);
            for job in jobs {
                if result.is_ok() && !job.folders.is_empty() {
                    waiting.push(job);
                } else {
                    job.tell(result.clone());
                }
            }
        }
        let mut folders: HashMap<PathBuf, Result<(), Error>> = HashMap::new();
        for mut job in waiting {
            let mut result = Ok(());
            for folder in std::mem::take(&mut job.folders) {
                let synced = folders.entry(folder).or_insert_with_key(|folder| sync_folder(disk, folder));
                if synced.is_err() {
                    result.clone_from(synced);
                    break;
                }
            }
            job.tell(result);
        }
    }
}

fn sync_folder(disk: &dyn Disk, folder: &Path) -> Result<(), Error> {
    disk.sync_dir(folder).map_err(|source| Error::Unsynced { file: folder.to_path_buf(), source: Arc::new(source) })
}

impl Job {
    fn tell(self, result: Result<(), Error>) {
        let Self { log, done, .. } = self;
        // First, so that a file whose last writer goes on this word is closed and can be opened afresh.
        drop(log);
        match done {
            // Whoever waited may have been cancelled; the file is synced all the same.
            Some(done) => drop(done.send(result)),
            None => {
                if let Err(error) = result {
                    tracing::warn!(%error, "a rollout could not be synced");
                }
            }
        }
    }
}
