//! The tools as an agent uses them: real processes, real files. What a test starts, it ends.

mod commands;
mod patches;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exec::Environment;
use protocol::{Address, AgentPath, Call, EffectId, ProcessEvent, ProcessRecord, Sandbox, ThreadId, TurnId};
use serde_json::{Value, json};
use stdx::AbsPath;
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tool_api::{
    Activity, AgentFacts, Hands, Invocation, Ledger, LedgerError, ToolError, ToolInput, ToolOutput, Workshop,
};

use crate::Workbench;

/// A ledger in memory that can refuse a kind of line.
#[derive(Default)]
struct Book {
    lines: Mutex<Vec<ProcessRecord>>,
    refuses: Mutex<Option<&'static str>>,
    written: Notify,
}

impl Ledger for Book {
    fn record(&self, record: &ProcessRecord) -> Result<(), LedgerError> {
        if *self.refuses.lock().unwrap() == Some(kind(&record.event)) {
            return Err(LedgerError("the disk is full".into()));
        }
        self.lines.lock().unwrap().push(record.clone());
        self.written.notify_one();
        Ok(())
    }
}

fn kind(event: &ProcessEvent) -> &'static str {
    match event {
        ProcessEvent::Starting { .. } => "starting",
        ProcessEvent::Started { .. } => "started",
        ProcessEvent::Ended { .. } => "ended",
    }
}

impl Book {
    fn lines(&self) -> Vec<ProcessRecord> {
        self.lines.lock().unwrap().clone()
    }

    fn kinds(&self) -> Vec<&'static str> {
        self.lines().iter().map(|line| kind(&line.event)).collect()
    }

    async fn has(&self, count: usize) {
        while self.lines.lock().unwrap().len() < count {
            self.written.notified().await;
        }
    }
}

/// One agent at work in a folder of its own.
struct Desk {
    folder: TempDir,
    bench: Workbench,
    facts: AgentFacts,
    hands: Arc<dyn Hands>,
    book: Arc<Book>,
    cancel: CancellationToken,
}

impl Desk {
    fn new() -> Self {
        let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/")];
        let environment = Environment::new(variables.map(|(name, value)| (name.into(), value.into())));
        let bench = Workbench::new(environment).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let facts = AgentFacts {
            agent: Address { path: AgentPath::root(), thread: ThreadId::new() },
            role: "default".into(),
            cwd: AbsPath::new(folder.path()).unwrap(),
            sandbox: Sandbox::DangerFullAccess,
            allowed: None,
        };
        let hands = bench.hands(&facts);
        Self { folder, bench, facts, hands, book: Arc::default(), cancel: CancellationToken::new() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap()
    }

    fn write(&self, file: &str, content: &str) {
        fs::write(self.path().join(file), content).unwrap();
    }

    async fn call_raw(&self, name: &str, arguments: String, custom: bool) -> Result<ToolOutput, ToolError> {
        let tool = self.hands.tools().into_iter().find(|tool| tool.name() == name).unwrap();
        tool.call(Invocation {
            call: Call { call_id: "call_0".into(), name: name.into(), arguments, custom },
            effect: EffectId::new(),
            ordinal: 1,
            turn: TurnId::new(),
            agent: self.facts.agent.clone(),
            cwd: self.facts.cwd.clone(),
            cancel: self.cancel.clone(),
            ledger: Arc::clone(&self.book) as Arc<dyn Ledger>,
            activity: watch::channel(Activity::default()).1,
            pulse: tool_api::Pulse::default(),
        })
        .await
    }

    async fn call(&self, name: &str, arguments: Value) -> String {
        let output = self.call_raw(name, arguments.to_string(), false).await.unwrap();
        assert!(output.success, "whatever became of the command, the call was made");
        output.text
    }

    async fn refused(&self, name: &str, arguments: Value) -> String {
        match self.call_raw(name, arguments.to_string(), false).await.unwrap_err() {
            ToolError::RespondToModel(text) => text,
            ToolError::Fatal(text) => panic!("{text}"),
        }
    }

    async fn exec(&self, cmd: &str) -> String {
        self.call("exec_command", json!({ "cmd": cmd })).await
    }

    /// Starts a command that runs on, waits for the first line if it has something to echo, and returns its session.
    async fn background(&self, cmd: &str, stdin: bool) -> (u64, String) {
        let text = self.call("exec_command", json!({ "cmd": cmd, "yield_time_ms": 0, "stdin": stdin })).await;
        let (id, mut said) = (session(&text), body(&text).to_owned());
        while cmd.contains("echo") && !said.contains('\n') {
            said += body(&self.poll(id).await);
        }
        (id, said)
    }

    async fn poll(&self, session_id: u64) -> String {
        self.call("write_stdin", json!({ "session_id": session_id })).await
    }

    async fn say(&self, session_id: u64, chars: &str) -> String {
        self.call("write_stdin", json!({ "session_id": session_id, "chars": chars })).await
    }
}

/// The report without what differs from call to call.
fn steady(text: &str) -> String {
    let mut lines = text.lines();
    let chunk = lines.next().unwrap().strip_prefix("Chunk ID: ").unwrap();
    assert!(chunk.len() == 6 && chunk.chars().all(|c| c.is_ascii_hexdigit()), "{chunk}");
    let wall = lines.next().unwrap().strip_prefix("Wall time: ").unwrap().strip_suffix(" seconds").unwrap();
    assert_eq!(wall.split_once('.').unwrap().1.len(), 4);
    text.splitn(3, '\n').nth(2).unwrap().to_owned()
}

fn body(text: &str) -> &str {
    text.split_once("\nOutput:\n").unwrap().1
}

fn session(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.split_once("session ID ")).unwrap_or_else(|| panic!("{text}"));
    line.1.parse().unwrap()
}

/// Whether a process runs; one that waits to be reaped does not.
fn runs(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

/// Waits for something that nobody tells. Fails the test after 50 s.
async fn until(mut is: impl FnMut() -> bool) {
    let came = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), came).await.expect("what the test waits for did not come");
}
