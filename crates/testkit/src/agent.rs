//! Running the product as a user would: its binary, in a clean environment, with output caught and time bounded.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::fail::{fail, must};
use crate::gate::PATIENCE;
use crate::{Gate, Home};

/// Longest that a run takes before it is killed and the test fails, unless the test says otherwise.
const TIMEOUT: Duration = PATIENCE;

/// How long the output of a process that has ended may stay open. Whoever holds it longer is somebody it left behind.
const DRAIN: Duration = Duration::from_secs(2);

/// Carries a test's word to the process that [`Agent::this_test`] starts.
const CHILD: &str = "TESTKIT_CHILD";

/// A command to run.
#[derive(Clone, Debug)]
pub struct Agent {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
    timeout: Duration,
}

/// How a run ended, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// Its exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Whether somebody still held its output open 2 s after its end: a process that it left behind.
    pub left_behind: bool,
}

/// A process in the background. Dropping it kills it.
pub struct Running {
    child: Child,
    pid: Pid,
    exited: Gate,
    stdout: Arc<Caught>,
    stderr: Arc<Caught>,
    timeout: Duration,
    command: String,
}

/// What this process was started with by [`Agent::this_test`]; `None` in the test's own process.
#[expect(clippy::disallowed_methods, reason = "a test hands a word to its own child process")]
pub fn child_value() -> Option<String> {
    std::env::var(CHILD).ok()
}

impl Agent {
    /// `program` in the folders of `home`. The environment is HOME, PATH, AGENT_HOME and TMPDIR, nothing else; standard
    /// input is empty; the working folder is [`Home::work`].
    pub fn new(program: impl Into<PathBuf>, home: &Home) -> Self {
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("AGENT_HOME".into(), home.path().into()),
            ("HOME".into(), home.user().into()),
            ("TMPDIR".into(), home.temporary().into()),
        ];
        environment.extend(search_path().map(|path| ("PATH".into(), path)));
        let folder = home.work().to_owned();
        Self { program: program.into(), arguments: Vec::new(), environment, folder, timeout: TIMEOUT }
    }

    /// The test called `name` (its whole path, as the runner lists it) once more, in a process of its own, where
    /// [`child_value`] gives `value`: for what ends a process.
    #[track_caller]
    pub fn this_test(name: &str, value: &str, home: &Home) -> Self {
        let program = must("this test does not know its binary", std::env::current_exe());
        Self::new(program, home).args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, value)
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl AsRef<Path>) -> Self {
        folder.as_ref().clone_into(&mut self.folder);
        self
    }

    /// Longest that the process may run; then it is killed and the test fails. 50 s unless set.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(&self) -> Run {
        self.spawn().wait()
    }

    /// Runs it to its end; fails the test, with the output shown, unless it exits with 0.
    #[track_caller]
    pub fn run_ok(&self) -> Run {
        let run = self.run();
        run.assert_code(0);
        run
    }

    /// Starts it.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "a test starts the product")]
    pub fn spawn(&self) -> Running {
        let words = std::iter::once(self.program.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str));
        let command = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        let mut process = Command::new(&self.program);
        process.args(&self.arguments).current_dir(&self.folder).env_clear().envs(self.environment.iter().cloned());
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = must(format_args!("`{command}` does not start"), process.spawn());
        let pid = Pid::from_child(&child);
        let exited = Gate::new();
        let gate = exited.clone();
        // It waits without reaping, so that the pid stays this process's until `wait` has reaped it.
        std::thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
            gate.open();
        });
        let (stdout, stderr) = (Caught::of(child.stdout.take()), Caught::of(child.stderr.take()));
        Running { child, pid, exited, stdout, stderr, timeout: self.timeout, command }
    }
}

/// PATH as this process has it.
#[expect(clippy::disallowed_methods, reason = "commands of a test are found where its own process finds them")]
fn search_path() -> Option<OsString> {
    std::env::var_os("PATH")
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills it as a crash would (SIGKILL).
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// What Ctrl-C does (SIGINT).
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// What the terminal says when it goes away (SIGHUP).
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Holds it: it lives and does nothing (SIGSTOP).
    pub fn hold(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`Running::hold`] (SIGCONT).
    pub fn release(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        // It is not reaped before `wait`, so the pid is still its own; one that has ended takes any signal.
        let _ = kill_process(self.pid, signal);
    }

    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        !self.exited.is_open()
    }

    /// What it has written to standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Blocks until `text` stands in its standard output; fails the test when it ends or time passes without that.
    #[track_caller]
    pub fn until_stdout(&self, text: &str) {
        self.until(&self.stdout, text, "standard output");
    }

    /// As [`Running::until_stdout`], of standard error.
    #[track_caller]
    pub fn until_stderr(&self, text: &str) {
        self.until(&self.stderr, text, "standard error");
    }

    #[track_caller]
    fn until(&self, caught: &Caught, text: &str, what: &str) {
        if !caught.until(self.timeout, |seen| seen.closed || seen.contains(text)) || !caught.lock().contains(text) {
            fail(format_args!("`{text}` did not appear on {what} of {}", self.account()));
        }
    }

    /// Waits for its end. When that does not come in time it is killed and the test fails, with the output shown.
    #[track_caller]
    pub fn wait(mut self) -> Run {
        if !self.exited.wait_for(self.timeout) {
            self.kill();
            fail(format_args!("no end after {:?} of {}", self.timeout, self.account()));
        }
        let status = must("its end cannot be read", self.child.wait());
        let left_behind = [&self.stdout, &self.stderr].iter().any(|caught| !caught.until(DRAIN, |seen| seen.closed));
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1);
        Run { stdout: self.stdout(), stderr: self.stderr(), code, left_behind }
    }

    fn account(&self) -> String {
        let (stdout, stderr) = (self.stdout(), self.stderr());
        format!("`{}`\n--- stdout\n{stdout}\n--- stderr\n{stderr}", self.command)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing to a process that was waited for: the standard library knows that it is reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// Fails the test, with the output shown, unless the exit code is `code`.
    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        if self.code != code {
            let Self { stdout, stderr, code: seen, .. } = self;
            fail(format_args!("exit code {seen}, not {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"));
        }
    }

    /// The lines of standard output as JSON; fails the test when one is not.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| must(format_args!("not JSON: {line}"), serde_json::from_str(line))).collect()
    }
}

/// What a process writes, as it comes.
struct Caught {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    bytes: Vec<u8>,
    closed: bool,
}

impl Seen {
    fn contains(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.bytes).contains(text)
    }
}

impl Caught {
    fn of(source: Option<impl Read + Send + 'static>) -> Arc<Self> {
        let caught = Arc::new(Self { seen: Mutex::default(), changed: Condvar::new() });
        let ours = caught.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            if let Some(mut source) = source {
                while let Ok(n @ 1..) = source.read(&mut piece) {
                    ours.lock().bytes.extend_from_slice(&piece[..n]);
                    ours.changed.notify_all();
                }
            }
            ours.lock().closed = true;
            ours.changed.notify_all();
        });
        caught
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits until `enough`; false when that took too long.
    fn until(&self, limit: Duration, enough: impl Fn(&Seen) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |seen| !enough(seen));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

#[cfg(test)]
mod tests;
