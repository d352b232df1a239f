//! Real sockets, a desk that only pretends.

mod serving;
mod reading;
mod rude;
mod reaching;

use std::future::Future;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use protocol::{
    Address, AgentPath, EventKind, Outcome, RequestId, Status, TaskEnd, TaskId, ThreadId, TreeEvent, TreeId, TurnId,
};
use serde_json::Value;
use stdx::{AbsPath, Timestamp};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::limits::{SPARE, STALL};
use crate::serve::{House, serve_with};
use crate::{
    Answer, Client, Code, Cut, Desk, Edge, EventLog, Fault, Found, Given, Listener, Listing, Op, Refusal, Reply,
    Report, Row, Submission, Subscription, Tokens,
};

/// Far more than anything here takes; only a hang gets there.
const HANG: Duration = Duration::from_mins(1);

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, what).await.expect("it hangs")
}

pub(crate) fn tree() -> TreeId {
    TreeId::from(root().thread)
}

fn root() -> Address {
    Address { path: AgentPath::root(), thread: "01939d5e-0000-7000-8000-000000000001".parse::<ThreadId>().unwrap() }
}

pub(crate) fn event(seq: u64, kind: EventKind) -> Arc<TreeEvent> {
    let Address { path, thread } = root();
    Arc::new(TreeEvent { seq, time: Timestamp::EPOCH, tree: tree(), path, thread, kind })
}

pub(crate) fn warning(seq: u64, message: &str) -> Arc<TreeEvent> {
    event(seq, EventKind::Warning { message: message.to_owned() })
}

fn request() -> RequestId {
    "01939d5e-0000-7000-8000-000000000002".parse().unwrap()
}

fn send(body: &str) -> Op {
    Op::Send {
        path: AgentPath::root(),
        body: body.to_owned(),
        wake: true,
        request: request(),
        mode: crate::Mode::default(),
        deadline: None,
    }
}

fn task() -> TaskId {
    request().mail()
}

/// Counts, for tests to wait on.
struct Count(watch::Sender<usize>);

impl Count {
    fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    fn add(&self) {
        self.0.send_modify(|n| *n += 1);
    }

    fn get(&self) -> usize {
        *self.0.borrow()
    }

    async fn reaches(&self, n: usize) {
        within(self.0.subscribe().wait_for(|now| *now >= n)).await.unwrap();
    }
}

/// Counts when it is dropped.
struct Guard(Arc<Fake>, fn(&Fake) -> &Count);

impl Drop for Guard {
    fn drop(&mut self) {
        self.1(&self.0).add();
    }
}

/// A desk that answers everything at once, but for `Answer` and for a body of `slow`.
pub(crate) struct Fake {
    calls: Mutex<Vec<Op>>,
    log: EventLog,
    /// One permit lets one slow `Send` end.
    gate: Semaphore,
    /// The end of every task, once it is there.
    end: watch::Sender<Option<TaskEnd>>,
    begun: Count,
    done: Count,
    waits_begun: Count,
    waits_over: Count,
    readers_begun: Count,
    readers_over: Count,
    me: std::sync::Weak<Fake>,
}

impl Fake {
    fn new() -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            calls: Mutex::default(),
            log: EventLog::new(),
            gate: Semaphore::new(0),
            end: watch::Sender::new(None),
            begun: Count::new(),
            done: Count::new(),
            waits_begun: Count::new(),
            waits_over: Count::new(),
            readers_begun: Count::new(),
            readers_over: Count::new(),
            me: me.clone(),
        })
    }

    fn guard(&self, count: fn(&Fake) -> &Count) -> Guard {
        Guard(self.me.upgrade().unwrap(), count)
    }

    fn calls(&self) -> Vec<Op> {
        self.calls.lock().unwrap().clone()
    }

    fn push(&self, seqs: std::ops::RangeInclusive<u64>) {
        for seq in seqs {
            self.log.push(warning(seq, "careful"));
        }
    }

    async fn answer(&self, op: Op) -> Result<Reply, Fault> {
        Ok(match op {
            Op::Send { body, .. } => match body.as_str() {
                "slow" => {
                    self.begun.add();
                    self.gate.acquire().await.unwrap().forget();
                    self.done.add();
                    Reply::Submitted(Submission::Steered { task: task(), turn: None })
                }
                "panic" => panic!("over this request"),
                " " => Reply::Submitted(Submission::NotSubmitted {
                    reason: Refusal::InvalidRequest,
                    message: "blank".to_owned(),
                }),
                _ => Reply::Submitted(Submission::Started { task: task(), turn: None }),
            },
            Op::Answer { task } => {
                let _guard = self.guard(|fake| &fake.waits_over);
                self.waits_begun.add();
                let mut end = self.end.subscribe();
                let end = end.wait_for(Option::is_some).await.unwrap().clone().unwrap();
                Reply::Answered(Answer { task, agent: AgentPath::root(), end, fault: None, seq: None })
            }
            Op::Interrupt { path, .. } => Reply::Interrupted { agents: vec![path] },
            Op::Close { path, .. } => {
                return Err(Fault::new(Code::NoAgent, format!("there is no open agent at {path}")).hint("look"));
            }
            Op::Tree => Reply::Tree(listing()),
            Op::Resume => Reply::Report(report()),
            Op::Continue => Reply::Continued { tasks: vec![Given { task: task(), agent: AgentPath::root() }] },
            Op::Subscribe { .. } => return Err(Fault::new(Code::Usage, "use events")),
            Op::Ping => Reply::Pong,
        })
    }
}

impl Desk for Fake {
    fn call(&self, op: Op) -> BoxFuture<'_, Result<Reply, Fault>> {
        self.calls.lock().unwrap().push(op.clone());
        Box::pin(self.answer(op))
    }

    fn events(&self, after: Option<u64>) -> Subscription {
        self.readers_begun.add();
        let guard = self.guard(|fake| &fake.readers_over);
        Subscription::new(self.log.subscribe(after).inspect(move |_| {
            let _ = &guard;
        }))
    }
}

pub(crate) fn listing() -> Listing {
    let row = Row {
        path: AgentPath::root(),
        thread_id: root().thread,
        parent: None,
        role: "default".to_owned(),
        nickname: None,
        edge: Edge::Open,
        status: Status::Queued,
        outcome: None,
        waiting_on: None,
        position: Some(3),
        waits: Some(protocol::Waits::Slot { position: 3 }),
        since: Some(Timestamp::EPOCH),
        stalled_ms: None,
        resident: true,
        unread: 1,
        skipped: 0,
        tokens: Tokens { input: 5, cached_input: 4, output: 3 },
        estimated: Tokens::default(),
        cost_usd: Some(0.25),
        task: "look".to_owned(),
        opened_at: Timestamp::EPOCH,
        closed_at: None,
        last_activity: Timestamp::EPOCH,
    };
    Listing { tree: tree(), root: root().thread, budget: None, agents: vec![row] }
}

pub(crate) fn report() -> Report {
    let found = Found {
        path: AgentPath::root(),
        role: "default".to_owned(),
        status: Status::Lost,
        last: Some(Outcome::Lost),
        cut: Cut { in_turn: true, calls: 1, torn: 7, skipped: 0, file: None, paid: 0 },
        unread: 2,
        unread_results: 1,
        swept: vec!["sleep 9".to_owned()],
        survive: Vec::new(),
    };
    Report { tree: tree(), agents: vec![found], unborn: Vec::new(), problems: vec!["odd".to_owned()] }
}

pub(crate) fn every_reply() -> Vec<Reply> {
    let task = task();
    let turn = Some(TurnId::from(root().thread.uuid()));
    let end = TaskEnd { outcome: Outcome::Completed, text: Some("done".to_owned()), reason: None };
    let fault = Some(Fault::new(Code::Provider, "no key").hint("set one"));
    vec![
        Reply::Submitted(Submission::Started { task, turn }),
        Reply::Submitted(Submission::Started { task, turn: None }),
        Reply::Submitted(Submission::Steered { task, turn }),
        Reply::Submitted(Submission::Queued { task, position: Some(2) }),
        Reply::Submitted(Submission::NotSubmitted {
            reason: Refusal::NoActiveTurn,
            message: "nothing runs".to_owned(),
        }),
        Reply::Answered(Answer { task, agent: AgentPath::root(), end, fault, seq: None }),
        Reply::Interrupted { agents: vec![AgentPath::root()] },
        Reply::Closed { agents: Vec::new(), unread: Vec::new() },
        Reply::Tree(listing()),
        Reply::Report(report()),
        Reply::Continued { tasks: vec![Given { task, agent: AgentPath::root() }] },
        Reply::Subscribed,
        Reply::Pong,
    ]
}

/// An owner with a socket.
struct Scene {
    path: AbsPath,
    desk: Arc<Fake>,
    cancel: CancellationToken,
    server: JoinHandle<()>,
    _folder: TempDir,
}

impl Scene {
    async fn new() -> Self {
        Self::with(House { stall: STALL, spare: SPARE, admits: |_| true }).await
    }

    async fn with(house: House) -> Self {
        let (folder, path) = place();
        let desk = Fake::new();
        let cancel = CancellationToken::new();
        let listener = Listener::bind(&path, tree()).await.unwrap();
        let served: Arc<dyn Desk> = Arc::clone(&desk) as _;
        let server = tokio::spawn(serve_with(listener, served, cancel.clone(), house));
        Self { path, desk, cancel, server, _folder: folder }
    }

    async fn client(&self) -> Client {
        within(Client::connect(&self.path, || true)).await.unwrap()
    }

    /// A client that has said hello.
    async fn raw(&self) -> Raw {
        let mut raw = Raw::connect(&self.path).await;
        raw.say(r#"{"hello":{"protocol":1}}"#).await;
        raw
    }

    /// Stops the owner, and waits until every task of it has ended.
    async fn stop(self) -> Arc<Fake> {
        self.cancel.cancel();
        within(self.server).await.unwrap();
        self.desk
    }
}

/// A private folder and a path in it.
pub(crate) fn place() -> (TempDir, AbsPath) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = AbsPath::new(folder.path().join("control.sock")).unwrap();
    (folder, path)
}

/// A client that sees bytes and forgives nothing.
struct Raw {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Raw {
    /// Connects and takes the owner's hello.
    async fn connect(path: &AbsPath) -> Self {
        let mut raw = Self::new(UnixStream::connect(path).await.unwrap());
        let hello = raw.hear().await.unwrap();
        assert_eq!(hello["hello"]["protocol"], 1, "{hello}");
        assert_eq!(hello["hello"]["tree"], tree().to_string());
        raw
    }

    fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self { read: BufReader::new(read), write }
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line; none at the end.
    async fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match within(self.read.read_line(&mut line)).await {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap()),
            // The other side closed while something from us was on its way.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }
}
