//! A disk that fails, or ends the process, at a chosen effect.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rollout::{Disk, DiskFile, Entry, ReadAt, RealDisk};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

use crate::fail::must;
use crate::power::Power;

/// The real disk, with faults where a test wants them. Reading never fails and is not counted.
///
/// Clones share everything. It also keeps account of what has been synced, so that [`FaultDisk::lose_power`] can
/// leave on disk what a power cut would at worst.
#[derive(Clone, Default)]
pub struct FaultDisk(Arc<Inner>);

#[derive(Default)]
struct Inner {
    disk: RealDisk,
    rules: Mutex<Vec<Rule>>,
    effects: Mutex<Vec<Effect>>,
    power: Mutex<Power>,
    /// Held for reading by each effect, so that a power cut falls between two of them.
    running: RwLock<()>,
}

/// What is done to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A file is made.
    Create,
    /// A file is opened for appending.
    Open,
    /// Bytes are appended.
    Write,
    /// Bytes are written over others.
    Overwrite,
    /// A file is made durable.
    Sync,
    /// A file is cut.
    SetLen,
    /// Folders are made.
    CreateDir,
    /// The entries of a folder are made durable.
    SyncDir,
    /// A file is renamed.
    Rename,
    /// A file is removed.
    Remove,
}

/// One effect that took place or was about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What was done.
    pub op: Op,
    /// To which file or folder.
    pub path: PathBuf,
    /// The bytes that were written; empty for anything else.
    pub bytes: Vec<u8>,
}

/// Which effects are meant. Everything that is set has to hold.
#[derive(Clone, Debug, Default)]
pub struct On {
    op: Option<Op>,
    path: Option<String>,
    bytes: Option<String>,
}

/// Where in the effect the act takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing has been done.
    Before,
    /// Half of the bytes are written. Of an effect without bytes: before.
    Middle,
    /// All of it has been done.
    After,
}

/// What takes place.
#[derive(Clone)]
pub enum Act {
    /// The process is killed (SIGKILL): nothing is unwound, nothing flushed.
    Kill,
    /// The power fails: what was not synced is gone, and so is the process.
    PowerLoss,
    /// The disk is full.
    Full,
    /// The device fails.
    Broken,
    /// This is called, and the effect goes on.
    Call(Arc<dyn Fn() + Send + Sync>),
}

struct Rule {
    on: On,
    /// Matching effects still to let pass.
    skip: usize,
    /// Whether it holds for all matching effects from there on, or for one.
    lasting: bool,
    spent: bool,
    when: When,
    act: Act,
}

impl On {
    /// Every effect.
    pub fn any() -> Self {
        Self::default()
    }

    /// Effects of one kind.
    pub fn op(op: Op) -> Self {
        Self { op: Some(op), ..Self::default() }
    }

    /// Writes that hold a line of this type.
    pub fn line(kind: &str) -> Self {
        Self { bytes: Some(format!(r#""type":"{kind}""#)), ..Self::op(Op::Write) }
    }

    /// Only on paths that contain `part`.
    #[must_use]
    pub fn path(mut self, part: impl Into<String>) -> Self {
        self.path = Some(part.into());
        self
    }

    /// Only of bytes that contain `part`.
    #[must_use]
    pub fn bytes(mut self, part: impl Into<String>) -> Self {
        self.bytes = Some(part.into());
        self
    }

    fn holds(&self, effect: &Effect) -> bool {
        let contains = |part: &String| {
            let part = part.as_bytes();
            part.is_empty() || effect.bytes.windows(part.len()).any(|window| window == part)
        };
        self.op.is_none_or(|op| op == effect.op)
            && self.path.as_ref().is_none_or(|part| effect.path.to_string_lossy().contains(part.as_str()))
            && self.bytes.as_ref().is_none_or(contains)
    }
}

impl FaultDisk {
    /// A disk without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Plans one fault: at the `n`-th effect (from 1) that `on` means, counted from now.
    pub fn at(&self, on: On, n: usize, when: When, act: Act) {
        self.plan(Rule { on, skip: n.saturating_sub(1), lasting: false, spent: false, when, act });
    }

    /// Plans a lasting fault: at the `n`-th effect (from 1) that `on` means, and at all after it.
    pub fn from(&self, on: On, n: usize, when: When, act: Act) {
        self.plan(Rule { on, skip: n.saturating_sub(1), lasting: true, spent: false, when, act });
    }

    fn plan(&self, rule: Rule) {
        lock(&self.0.rules).push(rule);
    }

    /// Takes back all faults that were planned.
    pub fn heal(&self) {
        lock(&self.0.rules).clear();
    }

    /// The effects so far, in their order; one that failed or was never finished too.
    pub fn effects(&self) -> Vec<Effect> {
        lock(&self.0.effects).clone()
    }

    /// How many effects there were of those that `on` means.
    pub fn count(&self, on: &On) -> usize {
        lock(&self.0.effects).iter().filter(|effect| on.holds(effect)).count()
    }

    /// Leaves on disk what was synced, as a power cut would at worst: bytes after the last sync are gone, and so are
    /// files and folders whose entry was not synced. Whoever wrote them must have stopped. A rename, a removal and bytes
    /// written over others count as durable at once.
    #[track_caller]
    pub fn lose_power(&self) {
        let _stopped = self.0.running.write().unwrap_or_else(PoisonError::into_inner);
        must("the disk cannot be put back to what was synced", lock(&self.0.power).lose());
    }
}

impl Inner {
    /// Carries an effect out, or what is planned in its place. `run` does the part of the bytes that it is given.
    fn effect<T>(
        &self,
        op: Op,
        path: &Path,
        bytes: &[u8],
        run: impl Fn(Range<usize>) -> io::Result<T>,
    ) -> io::Result<T> {
        let planned = self.planned(Effect { op, path: path.to_owned(), bytes: bytes.to_vec() });
        let all = 0..bytes.len();
        let run = |part: Range<usize>| {
            let _running = self.running.read().unwrap_or_else(PoisonError::into_inner);
            run(part)
        };
        match planned {
            None => run(all),
            Some((When::After, act)) => {
                let done = run(all)?;
                self.perform(&act)?;
                Ok(done)
            }
            Some((When::Middle, act)) if bytes.len() > 1 => {
                let half = bytes.len() / 2;
                run(0..half)?;
                self.perform(&act)?;
                run(half..bytes.len())
            }
            Some((When::Before | When::Middle, act)) => {
                self.perform(&act)?;
                run(all)
            }
        }
    }

    /// The first plan that this effect sets off. Each plan counts the effects that it means, whoever goes first.
    fn planned(&self, effect: Effect) -> Option<(When, Act)> {
        let mut found = None;
        for rule in lock(&self.rules).iter_mut().filter(|rule| !rule.spent && rule.on.holds(&effect)) {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if found.is_none() {
                rule.spent = !rule.lasting;
                found = Some((rule.when, rule.act.clone()));
            }
        }
        lock(&self.effects).push(effect);
        found
    }

    fn perform(&self, act: &Act) -> io::Result<()> {
        match act {
            Act::Kill => end_process(),
            Act::PowerLoss => {
                // Held to the end, so that no other thread writes after the cut.
                let _stopped = self.running.write().unwrap_or_else(PoisonError::into_inner);
                lock(&self.power).lose()?;
                end_process()
            }
            Act::Full => Err(Errno::NOSPC.into()),
            Act::Broken => Err(Errno::IO.into()),
            Act::Call(call) => {
                call();
                Ok(())
            }
        }
    }
}

/// Ends this process as a crash would.
fn end_process() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    // The signal is on its way to all threads; this one does nothing more.
    loop {
        std::thread::park();
    }
}

impl Disk for FaultDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.effect(Op::Create, path, &[], |_| {
            let file = self.0.disk.create_new(path)?;
            lock(&self.0.power).created(path);
            Ok(file)
        })?;
        Ok(Arc::new(FaultFile { inner: self.0.clone(), file }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.effect(Op::Open, path, &[], |_| {
            let file = self.0.disk.open_append(path)?;
            lock(&self.0.power).opened(path, file.len()?);
            Ok(file)
        })?;
        Ok(Arc::new(FaultFile { inner: self.0.clone(), file }))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.effect(Op::Overwrite, path, bytes, |part| {
            self.0.disk.overwrite(path, offset + part.start as u64, &bytes[part])
        })
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.effect(Op::CreateDir, path, &[], |_| {
            let missing = Power::missing(path);
            self.0.disk.create_dir_all(path)?;
            lock(&self.0.power).made(missing);
            Ok(())
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.effect(Op::SyncDir, path, &[], |_| {
            self.0.disk.sync_dir(path)?;
            lock(&self.0.power).synced_folder(path);
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.effect(Op::Rename, from, &[], |_| {
            self.0.disk.rename(from, to)?;
            lock(&self.0.power).renamed(from, to);
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.effect(Op::Remove, path, &[], |_| {
            self.0.disk.remove(path)?;
            lock(&self.0.power).removed(path);
            Ok(())
        })
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        self.0.disk.open_read(path)
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        self.0.disk.read_from(path, offset)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.0.disk.list(path)
    }

    fn exists(&self, path: &Path) -> bool {
        self.0.disk.exists(path)
    }
}

struct FaultFile {
    inner: Arc<Inner>,
    file: Arc<dyn DiskFile>,
}

impl DiskFile for FaultFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.inner.effect(Op::Write, self.path(), bytes, |part| self.file.write_all(&bytes[part]))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.effect(Op::Sync, self.path(), &[], |_| {
            // The length before: what is written meanwhile may or may not be in this sync.
            let len = self.file.len()?;
            self.file.sync_data()?;
            lock(&self.inner.power).synced(self.path(), len);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.effect(Op::SetLen, self.path(), &[], |_| {
            self.file.set_len(len)?;
            lock(&self.inner.power).cut(self.path(), len);
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
