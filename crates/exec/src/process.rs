//! One running process: what it was started with, how it is spoken to, how it is ended.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::Token;
use rustix::process::{Pid, Signal};
use stdx::AbsPath;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::output::Buffer;
use crate::{Chunk, Environment, Error, Reaper, TOKEN_VARIABLE, mark, procfs};

/// What a process gets between the request to end and its end.
pub const GRACE: Duration = Duration::from_millis(200);

/// How long a killed process may take to disappear before we go on without it: it hangs in the kernel.
const DISAPPEAR: Duration = Duration::from_secs(1);

/// How long a write waits for a process that does not read.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The program, as an absolute path.
    pub program: PathBuf,
    /// Its arguments, without the program itself.
    pub arguments: Vec<OsString>,
    /// Where it starts.
    pub cwd: AbsPath,
    /// What it sees of the world.
    pub environment: &'a Environment,
    /// Its mark.
    pub token: Token,
    /// What it reads.
    pub stdin: Stdin,
}

/// What a process reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: it is at the end from the start.
    Null,
    /// What is written to it.
    Piped,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    #[default]
    Running,
    /// It has ended, but processes it started run on.
    Lingering,
    /// It and all it started in its group have ended.
    Gone,
}

/// How far a process is, and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes it has said since it started.
    pub bytes: u64,
    /// How it ended: its exit code, or 128 + the number of the signal that ended it. `None` while it runs, or when
    /// nobody could tell.
    pub exit: Option<i32>,
    /// How far it is.
    pub phase: Phase,
}

/// A process to speak with. Dropping it kills its whole group.
#[derive(Debug)]
pub struct Process {
    shared: Arc<Shared>,
    progress: watch::Receiver<Progress>,
    stdin: tokio::sync::Mutex<Option<ChildStdin>>,
    piped: bool,
}

/// What the two halves of a process share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) pid: i32,
    start_time: u64,
    output: Mutex<Buffer>,
    pub(crate) progress: watch::Sender<Progress>,
    /// Set when its number may be given to another process, unless others of its group still use it.
    pub(crate) reaped: AtomicBool,
    /// Set when it is being ended: whoever still holds its output from outside the group is not waited for.
    ending: AtomicBool,
    /// Rung when `ending` is set.
    pub(crate) bell: Notify,
}

/// Starts a process in a group of its own. Its stdout and stderr are one pipe, so that they keep their order.
///
/// Nothing is read and nobody is reaped until the [`Reaper`] runs. Must be called inside a tokio runtime.
///
/// # Errors
/// When it could not be started; then nothing runs.
#[expect(clippy::disallowed_methods, reason = "this is the place that starts processes")]
pub fn spawn(plan: Plan<'_>) -> Result<(Process, Reaper), Error> {
    let refused = |source: io::Error| refusal(&plan.program, &plan.cwd, source);
    let (reader, writer) = io::pipe().map_err(refused)?;
    let second = writer.try_clone().map_err(refused)?;
    let mut command = Command::new(&plan.program);
    command
        .args(&plan.arguments)
        .current_dir(&plan.cwd)
        .env_clear()
        .envs(plan.environment.iter())
        .env(TOKEN_VARIABLE, plan.token.to_string())
        .env("PWD", plan.cwd.as_path())
        .stdin(if plan.stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() })
        .stdout(writer)
        .stderr(second)
        .process_group(0);
    let pipe = Receiver::from_owned_fd(reader.into()).map_err(refused)?;
    let mut child = mark::starting(plan.token, || command.spawn()).map_err(refused)?;
    // The command holds the writing ends; the pipe would never end with them open.
    drop(command);
    // Not reaped yet, so the number is certainly its own.
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
    let shared = Arc::new(Shared {
        pid,
        start_time: procfs::start_time(pid).unwrap_or_default(),
        output: Mutex::default(),
        progress: watch::Sender::default(),
        reaped: AtomicBool::new(false),
        ending: AtomicBool::new(false),
        bell: Notify::new(),
    });
    let stdin = child.stdin.take();
    let process = Process {
        progress: shared.progress.subscribe(),
        shared: Arc::clone(&shared),
        piped: stdin.is_some(),
        stdin: tokio::sync::Mutex::new(stdin),
    };
    Ok((process, Reaper::new(child, pipe, shared)))
}

/// What it means that a start failed. The folder is looked at only now, so that calls that succeed do not pay for it.
fn refusal(program: &Path, cwd: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound if !cwd.exists() => Error::NoFolder(cwd.to_path_buf()),
        io::ErrorKind::NotFound => Error::NoProgram(program.to_path_buf()),
        io::ErrorKind::NotADirectory => Error::NotAFolder(cwd.to_path_buf()),
        io::ErrorKind::InvalidInput => Error::Nul,
        io::ErrorKind::ArgumentListTooLong => Error::TooLong,
        _ => Error::Spawn { program: program.to_path_buf(), source },
    }
}

impl Process {
    /// Its process id; also the id of its group.
    pub fn pid(&self) -> i32 {
        self.shared.pid
    }

    /// When the kernel started it, in clock ticks since boot; 0 where the system does not tell.
    pub fn start_time(&self) -> u64 {
        self.shared.start_time
    }

    /// How far it is now.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// How far it is, to be waited on.
    pub fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// What it said and nobody has taken yet. Each byte is handed out once.
    pub fn take(&self) -> Chunk {
        // Asked before the buffer is, so that what a process says last is never held back.
        let more = self.progress().phase == Phase::Running;
        self.shared.buffer(|buffer| buffer.take(more))
    }

    /// Whether it said something that nobody has taken yet.
    pub fn unread(&self) -> bool {
        self.shared.buffer(|buffer| !buffer.is_empty())
    }

    /// Writes to its stdin.
    ///
    /// # Errors
    /// When it has none, has closed it, or does not read it; the last says how much was taken.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        if !self.piped {
            return Err(Error::NoStdin);
        }
        let deadline = Instant::now() + WRITE_WAIT;
        let full = |written| Error::StdinFull { written, len: bytes.len() };
        let mut guard = timeout_at(deadline, self.stdin.lock()).await.map_err(|_| full(0))?;
        let stdin = guard.as_mut().ok_or(Error::StdinClosed)?;
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match timeout_at(deadline, stdin.write(rest)).await {
                Err(_) => return Err(full(written)),
                Ok(Err(_) | Ok(0)) => return Err(Error::StdinClosed),
                Ok(Ok(n)) => written += n,
            }
        }
        Ok(())
    }

    /// Ends its stdin, as Ctrl-D does.
    ///
    /// # Errors
    /// When it was started without one.
    pub async fn close_stdin(&self) -> Result<(), Error> {
        if !self.piped {
            return Err(Error::NoStdin);
        }
        self.stdin.lock().await.take();
        Ok(())
    }

    /// Asks its group to stop what it is doing, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.shared.signal(Signal::INT);
    }

    /// Ends its whole group: a request, [`GRACE`], then by force. Returns when it is gone. Repeating it does no harm.
    pub async fn kill(&self) {
        if self.progress().phase == Phase::Gone {
            return;
        }
        self.shared.signal(Signal::TERM);
        self.shared.end();
        if timeout(GRACE, self.gone()).await.is_err() {
            self.shared.signal(Signal::KILL);
            // What hangs in the kernel stays listed as running; that is the truth.
            let _hangs = timeout(DISAPPEAR, self.gone()).await;
        }
    }

    async fn gone(&self) {
        // An error means that nobody reaps any more: there is nothing left to wait for.
        let mut progress = self.watch();
        let _unreaped = progress.wait_for(|progress| progress.phase == Phase::Gone).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.shared.signal(Signal::KILL);
        self.shared.end();
    }
}

impl Shared {
    pub(crate) fn buffer<T>(&self, with: impl FnOnce(&mut Buffer) -> T) -> T {
        with(&mut self.output.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    /// Sends a signal to the group, if it is still ours.
    ///
    /// Until the process is reaped it is. While others of its group linger the number cannot be
    /// given to anybody else, and the reaper looks every [`crate::reaper::LOOK`] whether they do; a process that now
    /// has the number itself shows that they do not.
    pub(crate) fn signal(&self, signal: Signal) {
        let phase = self.progress.borrow().phase;
        let ours = match phase {
            Phase::Gone => false,
            _ if self.reaped.load(Ordering::Acquire) => procfs::start_time(self.pid).is_none(),
            _ => true,
        };
        // 0 and 1 would be our own group and everybody.
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| ours && self.pid > 1) {
            // An error means that nobody is left to hear it.
            let _nobody = rustix::process::kill_process_group(pid, signal);
        }
    }
}
