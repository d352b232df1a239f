//! The processes of one agent.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use exec::{Phase, Plan, Shell, Stdin};
use futures::future::join_all;
use protocol::{ProcessEvent, ProcessRecord, Token};
use stdx::AbsPath;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool_api::{Ledger, Running, ToolError};

use crate::session::Session;
use crate::strays::Strays;
use crate::workbench::Bench;

/// Sessions of one agent, those included that have ended and were not read. More are a mistake of the model, and
/// each may hold a megabyte of output.
pub(crate) const MAX_SESSIONS: usize = 64;

/// How long the end of an agent waits for the last lines of its ledger.
const BURIAL: Duration = Duration::from_secs(1);

/// Characters of a command line that are shown to people.
const SHOWN: usize = 200;

/// The processes of one agent. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) bench: Arc<Bench>,
    /// Patches of one agent that come through commands, which may run side by side, take turns.
    pub(crate) patching: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
    strays: Arc<Strays>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The oldest first.
    sessions: Vec<Arc<Session>>,
    /// Places taken by sessions that are being started.
    starting: usize,
    /// The marks of all processes ever started here: what they started may have left their groups.
    marks: HashSet<Token>,
}

/// A command line to be run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) command: String,
    pub(crate) shell: Shell,
    pub(crate) login: bool,
    pub(crate) cwd: AbsPath,
    pub(crate) stdin: Stdin,
}

/// A place that is given back unless a session took it.
struct Place<'a>(&'a Table);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.with(|inner| inner.starting -= 1);
    }
}

impl Table {
    pub(crate) fn new(bench: Arc<Bench>) -> Self {
        Self { bench, patching: tokio::sync::Mutex::default(), inner: Mutex::default(), strays: Arc::default() }
    }

    fn with<T>(&self, with: impl FnOnce(&mut Inner) -> T) -> T {
        with(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts a process and registers it. There is no await in here: whoever is interrupted later finds it registered.
    pub(crate) fn start(&self, job: Job, ledger: &Arc<dyn Ledger>) -> Result<Arc<Session>, ToolError> {
        let place = self.place()?;
        let token = Token::new();
        let record = |event| ledger.record(&ProcessRecord { token, event });
        let starting = ProcessEvent::Starting { command: job.command.clone(), boot_id: exec::boot_id().to_owned() };
        record(starting).map_err(|error| ToolError::respond(format!("{error}; nothing was started")))?;
        let started = exec::spawn(Plan {
            program: job.shell.program().to_path_buf(),
            arguments: job.shell.arguments(&job.command, job.login),
            cwd: job.cwd,
            environment: &self.bench.environment,
            token,
            stdin: job.stdin,
        });
        let (process, reaper) = started.map_err(|error| {
            // A later sweep finds nothing with this mark, so a line that is missing here does no harm.
            if let Err(unwritten) = record(ProcessEvent::Ended { exit_code: None }) {
                tracing::warn!(%token, %unwritten, "a process that did not start");
            }
            ToolError::respond(error.to_string())
        })?;
        let (pid, start_time) = (process.pid(), process.start_time());
        // Dropping both halves ends what was just started.
        record(ProcessEvent::Started { pid, start_time })
            .map_err(|error| ToolError::respond(format!("{error}; it was ended again at once")))?;
        let buried = CancellationToken::new();
        let (ledger, bell) = (Arc::clone(ledger), buried.clone().drop_guard());
        let (strays, command) = (Arc::clone(&self.strays), stdx::one_line(&job.command, SHOWN));
        self.bench.tasks.spawn(async move {
            let exit_code = reaper.run().await;
            let mut bell = Some(bell);
            // Its line stays open for as long as anything runs that it started: a later owner has to find that.
            if let Some(left) = exec::left_behind(token, pid).await {
                strays.list(Running { token, pid: left, command });
                bell = None;
                strays.watch(token, pid).await;
            }
            // A later sweep finds it gone, so again no harm.
            if let Err(unwritten) = ledger.record(&ProcessRecord { token, event: ProcessEvent::Ended { exit_code } }) {
                tracing::warn!(%token, %unwritten, "a process that ended");
            }
            strays.buried(token);
            drop(bell);
        });
        let session = self.with(|inner| {
            let session = Arc::new(Session { id: inner.fresh(token), token, command: job.command, process, buried });
            inner.sessions.push(Arc::clone(&session));
            inner.marks.insert(token);
            session
        });
        drop(place);
        Ok(session)
    }

    /// Takes a place, if need be that of the oldest session that has ended.
    fn place(&self) -> Result<Place<'_>, ToolError> {
        self.with(|inner| {
            if inner.sessions.len() + inner.starting >= MAX_SESSIONS {
                let Some(oldest) = inner.sessions.iter().position(|session| !session.lives()) else {
                    let oldest: Vec<String> = inner.sessions.iter().take(5).map(|s| s.id.to_string()).collect();
                    return Err(ToolError::respond(format!(
                        "{MAX_SESSIONS} processes of this agent still run, which is the most; end one first with write_stdin and chars \"\\u001c\" (the oldest sessions are {}), then try again",
                        oldest.join(", ")
                    )));
                };
                inner.sessions.remove(oldest);
            }
            inner.starting += 1;
            Ok(Place(self))
        })
    }

    /// The session of this number, or what to say to a model that asks for one that is not there.
    pub(crate) fn get(&self, id: u64) -> Result<Arc<Session>, ToolError> {
        self.with(|inner| {
            if let Some(session) = inner.sessions.iter().find(|session| session.id == id) {
                return Ok(Arc::clone(session));
            }
            let known: Vec<String> = inner.sessions.iter().map(|session| session.id.to_string()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(ToolError::respond(format!(
                "there is no session {id}: its process has ended and its output was read, or the program was restarted; open sessions: {known}"
            )))
        })
    }

    /// Forgets a session of which everything has been said.
    pub(crate) fn forget(&self, id: u64) {
        self.with(|inner| inner.sessions.retain(|session| session.id != id));
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        self.with(|inner| inner.sessions.clone())
    }

    /// Whether it has to be kept although nobody uses it now.
    pub(crate) fn needed(&self) -> bool {
        self.with(|inner| inner.starting > 0 || !inner.marks.is_empty())
    }

    pub(crate) fn running(&self) -> Vec<Running> {
        let sessions = self.sessions().into_iter().filter(|session| session.lives());
        let sessions = sessions.map(|session| Running {
            token: session.token,
            pid: session.process.pid(),
            command: stdx::one_line(&session.command, SHOWN),
        });
        sessions.chain(self.strays.running()).collect()
    }

    /// Ends everything: the groups first, then whatever left them and still carries a mark.
    pub(crate) async fn end(&self) {
        let marks = self.end_groups().await;
        let survivors = exec::end_marked(marks).await;
        self.bury(&survivors).await;
    }

    /// Ends the process groups, and gives the marks by which what left them is found.
    pub(crate) async fn end_groups(&self) -> HashSet<Token> {
        join_all(self.sessions().iter().map(|session| session.process.kill())).await;
        self.with(|inner| inner.marks.clone())
    }

    /// Waits until the ends are written down, and forgets the marks of what is gone.
    pub(crate) async fn bury(&self, survivors: &HashSet<Token>) {
        let sessions = self.sessions();
        for session in &sessions {
            if session.process.progress().phase == Phase::Gone
                && timeout(BURIAL, session.buried.cancelled()).await.is_err()
            {
                tracing::warn!(token = %session.token, "the ledger does not take the end of a process");
            }
        }
        self.strays.settle(survivors).await;
        // Sessions stay until they are read: an agent that lives on may ask what became of them.
        self.with(|inner| {
            let alive: HashSet<Token> = inner.sessions.iter().filter(|s| s.lives()).map(|s| s.token).collect();
            inner.marks.retain(|mark| survivors.contains(mark) || alive.contains(mark));
        });
    }
}

impl Inner {
    /// A number for a session. Not counted from one: after a restart a number that a model remembers must not name
    /// another process.
    fn fresh(&self, token: Token) -> u64 {
        let mut number = token.uuid().as_u64_pair().1;
        loop {
            let id = 10_000 + number % 90_000;
            if self.sessions.iter().all(|session| session.id != id) {
                return id;
            }
            number = number.wrapping_add(1);
        }
    }
}
