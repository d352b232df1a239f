//! What several tests build: ids, records, and a disk that fails, loses and stops on command.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use protocol::{
    Address, AgentPath, Approval, Item, Mail, MailId, MailKind, Outcome, Party, Role, Sandbox, TaskEnd, ThreadId,
    TreeId, TurnId,
};
use stdx::{AbsPath, Timestamp};

use crate::{
    Disk, DiskFile, EdgeRecord, EdgeStatus, Entry, EventRecord, ItemRecord, ReadAt, RealDisk, Record, SessionMeta,
    Store, TaskDone, TurnEnd,
};

/// The n-th id of any kind.
pub(crate) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(n: u64) -> T {
    format!("01939d5e-0000-7000-8000-{n:012x}").parse().unwrap()
}

pub(crate) fn time(second: u32) -> Timestamp {
    Timestamp::parse(&format!("2026-11-30T15:13:{second:02}.000Z")).unwrap()
}

pub(crate) fn meta(n: u64) -> SessionMeta {
    let root: ThreadId = id(1);
    SessionMeta {
        id: id(n),
        session_id: TreeId::from(root),
        timestamp: time(2),
        parent_thread_id: None,
        agent_path: AgentPath::root(),
        incarnation: 1,
        agent_role: "default".to_owned(),
        depth: 0,
        agent_nickname: None,
        spawned_by: None,
        cwd: AbsPath::new("/tmp/project").unwrap(),
        model: "test/one".to_owned(),
        effort: None,
        sandbox: Sandbox::WorkspaceWrite,
        approval: Approval::Never,
        originator: "agent".to_owned(),
        cli_version: "0.1.0".to_owned(),
        format: 1,
    }
}

pub(crate) fn address(n: u64) -> Address {
    Address { path: AgentPath::root(), thread: id(n) }
}

/// Mail `n` from agent `from` (0 is a client) to agent 1.
pub(crate) fn mail(n: u64, from: u64, kind: MailKind) -> Mail {
    let root: ThreadId = id(1);
    Mail {
        id: id(n),
        tree: TreeId::from(root),
        from: if from == 0 { Party::Client { client: id(n) } } else { Party::Agent(address(from)) },
        to: address(1),
        kind,
        trigger_turn: kind.is_task(),
        sequence: n,
        body: format!("mail {n}\nwith two lines"),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}

pub(crate) fn end(outcome: Outcome) -> TaskEnd {
    TaskEnd { outcome, text: Some("done".to_owned()), reason: None }
}

pub(crate) fn opened() -> Record {
    Record::Edge(EdgeRecord { status: EdgeStatus::Open, reason: "spawned".to_owned(), by: "user".to_owned() })
}

pub(crate) fn closed() -> Record {
    Record::Edge(EdgeRecord { status: EdgeStatus::Closed, reason: "enough".to_owned(), by: "/root".to_owned() })
}

pub(crate) fn accepted(mail: Mail) -> Record {
    Record::Mail(Box::new(mail))
}

pub(crate) fn item(item: Item) -> Record {
    Record::Item(ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: None })
}

pub(crate) fn words(text: &str) -> Record {
    item(Item::message(Role::Assistant, text))
}

/// The input line that delivers mail.
pub(crate) fn delivers(ids: &[u64]) -> Record {
    Record::Item(ItemRecord {
        item: Item::message(Role::User, "you have mail"),
        effect: None,
        mail: ids.iter().map(|n| id(*n)).collect(),
        turn: None,
        copied_from: None,
    })
}

pub(crate) fn turn(n: u64) -> Record {
    Record::Event(EventRecord::TurnStarted { turn_id: id(n) })
}

pub(crate) fn turn_end(n: u64, outcome: Outcome) -> Record {
    let turn_id: TurnId = id(n);
    Record::TurnEnd(TurnEnd { turn_id, end: end(outcome) })
}

pub(crate) fn task_done(task: u64, giver: Party, outcome: Outcome) -> Record {
    let task: MailId = id(task);
    Record::TaskDone(TaskDone { task, giver, end: end(outcome), continues: None, goes_on: false })
}

/// The rest of a root's first write.
pub(crate) fn birth() -> Vec<Record> {
    vec![opened(), accepted(mail(100, 0, MailKind::Input))]
}

/// Makes a pipe that nobody holds the other end of.
#[cfg(target_os = "linux")]
pub(crate) fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

/// A home in a folder of its own, on the disk of the machine.
pub(crate) struct Home {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(RealDisk))
    }

    pub(crate) fn on(disk: Arc<dyn Disk>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(AbsPath::new(folder.path().join("home")).unwrap(), disk);
        Self { folder, store }
    }

    /// The same home as another process would see it.
    pub(crate) fn again(&self) -> Store {
        Store::new(self.store.home().clone(), Arc::new(RealDisk))
    }
}

/// One effect on the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Create,
    Open,
    Overwrite,
    CreateDir,
    SyncDir,
    Rename,
    Remove,
    Write,
    Sync,
    SetLen,
}

/// How an effect fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Nothing happens.
    Error(io::ErrorKind),
    /// So many bytes are written first.
    Short(usize, io::ErrorKind),
    /// A sync fails, and what was written since this length reads as zeros from now on.
    Loses(u64),
}

#[derive(Default)]
struct Plan {
    seen: Vec<(Op, PathBuf, usize)>,
    /// Files that were opened to be read.
    reads: Vec<PathBuf>,
    faults: VecDeque<(Op, Fault)>,
    /// Effects that still happen; after them the process is gone.
    left: Option<usize>,
    /// Whether files cannot be opened.
    closed: bool,
    /// Whether there is no descriptor left.
    starved: bool,
    /// Whether syncs wait, and how many do.
    shut: bool,
    waiting: usize,
    /// Closes its channel when nobody holds the disk any more.
    alive: Option<std::sync::mpsc::Sender<()>>,
}

/// The machine's disk, with faults put in. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct FaultDisk {
    plan: Arc<(Mutex<Plan>, Condvar)>,
    handles: Arc<AtomicUsize>,
}

struct FaultFile {
    disk: FaultDisk,
    file: Arc<dyn DiskFile>,
    handle: usize,
}

impl FaultDisk {
    /// The next `op` fails.
    pub(crate) fn fail(&self, op: Op, fault: Fault) {
        self.plan.0.lock().unwrap().faults.push_back((op, fault));
    }

    /// After `n` more effects nothing happens any more.
    pub(crate) fn stop_after(&self, n: usize) {
        self.plan.0.lock().unwrap().left = Some(n);
    }

    /// From now on no file can be opened.
    pub(crate) fn stop_opening(&self) {
        self.plan.0.lock().unwrap().closed = true;
    }

    pub(crate) fn open_again(&self) {
        self.plan.0.lock().unwrap().closed = false;
    }

    /// From now on, or no more, there is no descriptor to open, list or read anything with.
    pub(crate) fn starve(&self, starved: bool) {
        self.plan.0.lock().unwrap().starved = starved;
    }

    fn fed(&self) -> io::Result<()> {
        let starved = self.plan.0.lock().unwrap().starved;
        if starved { Err(rustix::io::Errno::MFILE.into()) } else { Ok(()) }
    }

    /// A channel that closes when nobody holds this disk any more.
    pub(crate) fn until_dropped(&self) -> std::sync::mpsc::Receiver<()> {
        let (alive, gone) = std::sync::mpsc::channel();
        self.plan.0.lock().unwrap().alive = Some(alive);
        gone
    }

    /// Handles (0 for none) that saw `op`, in order.
    pub(crate) fn handles(&self, op: Op) -> Vec<usize> {
        self.plan.0.lock().unwrap().seen.iter().filter(|(o, ..)| *o == op).map(|(_, _, handle)| *handle).collect()
    }

    pub(crate) fn count(&self, op: Op) -> usize {
        self.handles(op).len()
    }

    /// How often files were opened to be read.
    pub(crate) fn reads(&self) -> usize {
        self.plan.0.lock().unwrap().reads.len()
    }

    pub(crate) fn total(&self) -> usize {
        self.plan.0.lock().unwrap().seen.len()
    }

    /// Syncs of files wait until [`FaultDisk::release`].
    pub(crate) fn hold(&self) {
        self.plan.0.lock().unwrap().shut = true;
    }

    pub(crate) fn release(&self) {
        self.plan.0.lock().unwrap().shut = false;
        self.plan.1.notify_all();
    }

    /// Returns when a sync waits.
    pub(crate) fn await_held(&self) {
        let plan = self.plan.0.lock().unwrap();
        drop(self.plan.1.wait_while(plan, |plan| plan.waiting == 0).unwrap());
    }

    fn note(&self, op: Op, path: &Path, handle: usize) -> io::Result<Option<Fault>> {
        let mut plan = self.plan.0.lock().unwrap();
        if plan.left == Some(0) {
            return Err(io::Error::other("the process is gone"));
        }
        if plan.closed && op == Op::Open {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        plan.left = plan.left.map(|left| left - 1);
        plan.seen.push((op, path.to_path_buf(), handle));
        if op == Op::Sync && plan.shut {
            plan.waiting += 1;
            self.plan.1.notify_all();
            plan = self.plan.1.wait_while(plan, |plan| plan.shut).unwrap();
            plan.waiting -= 1;
        }
        let fault = plan.faults.iter().position(|(o, _)| *o == op).and_then(|at| plan.faults.remove(at));
        match fault {
            Some((_, Fault::Error(kind))) => Err(kind.into()),
            other => Ok(other.map(|(_, fault)| fault)),
        }
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(FaultFile { disk: self.clone(), file, handle })
    }
}

impl Disk for FaultDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.note(Op::Create, path, 0)?;
        RealDisk.create_new(path).map(|file| self.wrap(file))
    }
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.fed()?;
        self.note(Op::Open, path, 0)?;
        RealDisk.open_append(path).map(|file| self.wrap(file))
    }
    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.note(Op::Overwrite, path, 0)?;
        RealDisk.overwrite(path, offset, bytes)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note(Op::CreateDir, path, 0)?;
        RealDisk.create_dir_all(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.note(Op::SyncDir, path, 0)?;
        RealDisk.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(Op::Rename, from, 0)?;
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.note(Op::Remove, path, 0)?;
        RealDisk.remove(path)
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        self.fed()?;
        self.plan.0.lock().unwrap().reads.push(path.to_path_buf());
        RealDisk.open_read(path)
    }
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        RealDisk.read_from(path, offset)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.fed()?;
        RealDisk.list(path)
    }
    fn exists(&self, path: &Path) -> bool {
        RealDisk.exists(path)
    }
}

impl DiskFile for FaultFile {
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self.disk.note(Op::Write, self.path(), self.handle)? {
            Some(Fault::Short(len, kind)) => {
                self.file.write_all(&bytes[..len])?;
                Err(kind.into())
            }
            _ => self.file.write_all(bytes),
        }
    }
    fn sync_data(&self) -> io::Result<()> {
        match self.disk.note(Op::Sync, self.path(), self.handle)? {
            Some(Fault::Loses(from)) => {
                let zeros = vec![0; usize::try_from(self.file.len()? - from).unwrap()];
                RealDisk.overwrite(self.path(), from, &zeros)?;
                Err(io::Error::other("input/output error"))
            }
            _ => self.file.sync_data(),
        }
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.note(Op::SetLen, self.path(), self.handle)?;
        self.file.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}
