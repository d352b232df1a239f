//! An agent on a bench: real file, scripted model, noted events.

use std::sync::Arc;

use mailbox::Mailbox;
use model::{Model as _, RetryLimits};
use protocol::{
    Address, AgentPath, Approval, EventKind, Item, Mail, MailId, MailKind, Outcome, Party, RequestId, Role, Sandbox,
    ThreadId, TreeId,
};
use rollout::{EdgeRecord, EdgeStatus, Record, SessionMeta, State, Store, Writer};
use stdx::AbsPath;
use testkit::FaultDisk;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tool_api::Tool;

use super::double::{Keeper, Scripted, Step, items, lock};
use crate::{Agent, ContextFragment as _, Inbox, Instructions, Setup, Stop, TurnAborted, TurnReport};

pub(super) struct Bench {
    folder: tempfile::TempDir,
    pub(super) disk: FaultDisk,
    pub(super) store: Store,
    pub(super) model: Arc<Scripted>,
    pub(super) host: Arc<Keeper>,
    pub(super) agent: Agent,
    pub(super) me: Address,
    inbox: Arc<Inbox>,
    pub(super) writer: Writer,
    cancel: CancellationToken,
    tracker: TaskTracker,
}

impl Bench {
    pub(super) async fn new(replies: Vec<Vec<Step>>, tools: Vec<Arc<dyn Tool>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = FaultDisk::new();
        let store = Store::new(AbsPath::new(folder.path()).unwrap(), Arc::new(disk.clone()));
        let me = Address { path: AgentPath::root(), thread: ThreadId::new() };
        let meta = meta(&me, &store);
        let opened = EdgeRecord { status: EdgeStatus::Open, reason: "test".to_owned(), by: "user".to_owned() };
        let writer = store.create(meta.clone(), vec![Record::Edge(opened)]).await.unwrap();
        let state = State::new(meta);
        let inbox = Arc::new(Inbox::new(Mailbox::default()));
        let model = Arc::new(Scripted::new(store.clone(), replies));
        let host = Arc::new(Keeper::default());
        let setup = Setup {
            tree: TreeId::from(me.thread),
            agent: me.clone(),
            role: "default".to_owned(),
            cwd: store.home().clone(),
            sandbox: Sandbox::ReadOnly,
            approval: Approval::Never,
            head: model.head(&[]),
            model: Arc::<Scripted>::clone(&model),
            effort: None,
            tools_digest: String::new(),
            tools,
            writer: writer.clone(),
            store: store.clone(),
            inbox: Arc::clone(&inbox),
            host: Arc::<Keeper>::clone(&host),
            retry: RetryLimits::default(),
            preamble: vec![Instructions { text: "Be brief.".to_owned() }.item()],
        };
        let (cancel, tracker) = (CancellationToken::new(), TaskTracker::new());
        let agent = Agent::start(Arc::new(setup), state, cancel.clone(), &tracker);
        Self { folder, disk, store, model, host, agent, me, inbox, writer, cancel, tracker }
    }

    /// Accepts mail as a keeper does, and wakes nobody. Its id.
    pub(super) fn post(&self, kind: MailKind, wakes: bool, body: &str) -> MailId {
        let mut inbox = self.inbox.lock();
        let mut mail = mail(&self.me, kind, wakes, 0, body);
        mail.sequence = inbox.next_sequence(&mail.from);
        self.writer.append(&[Record::Mail(Box::new(mail.clone()))]).unwrap();
        let id = mail.id;
        inbox.accept(mail);
        id
    }

    /// Gives a task and wakes the agent.
    pub(super) async fn task(&self, body: &str) -> MailId {
        let id = self.post(MailKind::Input, true, body);
        assert!(self.agent.wake().await);
        id
    }

    /// Gives a task and waits until the agent is at rest; the last report.
    pub(super) async fn run(&self, body: &str) -> TurnReport {
        self.task(body).await;
        self.rest().await;
        self.reports().pop().unwrap()
    }

    pub(super) async fn rest(&self) {
        self.host.until(|host| !*lock(&host.working)).await;
    }

    pub(super) fn reports(&self) -> Vec<TurnReport> {
        lock(&self.host.reports).clone()
    }

    pub(super) async fn interrupt(&self) -> bool {
        let stop =
            Stop { outcome: Outcome::Interrupted, reason: "enough".to_owned(), goes_on: false, only: Vec::new() };
        self.agent.interrupt(stop).await
    }

    /// The ends of all tasks in the file, in order.
    pub(super) fn done(&self) -> Vec<(MailId, Outcome)> {
        self.records()
            .iter()
            .filter_map(|r| if let Record::TaskDone(d) = r { Some((d.task, d.end.outcome)) } else { None })
            .collect()
    }

    pub(super) fn lines(&self) -> Vec<rollout::Line> {
        self.store.read(self.me.thread).unwrap().lines
    }

    pub(super) fn records(&self) -> Vec<Record> {
        self.lines().into_iter().map(|line| line.record).collect()
    }

    /// Types of all lines, in order.
    pub(super) fn kinds(&self) -> Vec<String> {
        self.records().iter().map(|record| record.kind().to_owned()).collect()
    }

    /// Texts of all items after the instructions; of a call its id in brackets.
    pub(super) fn texts(&self) -> Vec<String> {
        let all = items(&self.store, self.me.thread);
        let aborted = TurnAborted.item();
        let show = |item: &Item| match item.call() {
            Some(call) => format!("[{}]", call.call_id),
            None if item.raw() == aborted.raw() => "<aborted>".to_owned(),
            None => item.text(),
        };
        all.iter().filter(|item| item.kind() != protocol::ItemKind::Message(Role::Developer)).map(show).collect()
    }

    pub(super) fn pending(&self) -> usize {
        self.inbox.lock().pending().count()
    }

    pub(super) fn requests(&self) -> usize {
        lock(&self.model.requests).len()
    }

    /// Texts of the warnings and errors.
    pub(super) fn said(&self) -> Vec<String> {
        let said = |event: &EventKind| match event {
            EventKind::Warning { message } | EventKind::Error { message, .. } => Some(message.clone()),
            _ => None,
        };
        lock(&self.host.events).iter().filter_map(said).collect()
    }

    pub(super) fn started(&self) -> usize {
        lock(&self.host.events).iter().filter(|event| matches!(event, EventKind::TurnStarted { .. })).count()
    }

    /// Ends the agent's node of the tree, and waits until nothing of it runs.
    pub(super) async fn end(&self) {
        self.cancel.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Ends the agent and checks what must hold whatever the test did.
    pub(super) async fn finish(self) {
        self.rest().await;
        self.end().await;
        assert_eq!(*lock(&self.model.wrong), [""; 0]);
        assert_eq!(*lock(&self.host.held), 0, "slots");
        let lines = self.store.read(self.me.thread).unwrap().lines;
        let findings: Vec<String> = rollout::check(&lines).iter().map(ToString::to_string).collect();
        assert_eq!(findings, [""; 0]);
        drop(self.folder);
    }
}

fn meta(me: &Address, store: &Store) -> SessionMeta {
    SessionMeta {
        id: me.thread,
        session_id: TreeId::from(me.thread),
        timestamp: stdx::now(),
        parent_thread_id: None,
        agent_path: me.path.clone(),
        incarnation: 1,
        agent_role: "default".to_owned(),
        depth: 0,
        agent_nickname: None,
        spawned_by: None,
        cwd: store.home().clone(),
        model: "test/scripted".to_owned(),
        effort: None,
        sandbox: Sandbox::ReadOnly,
        approval: Approval::Never,
        originator: "test".to_owned(),
        cli_version: "0".to_owned(),
        format: 1,
    }
}

fn mail(to: &Address, kind: MailKind, wakes: bool, sequence: u64, body: &str) -> Mail {
    let from = match kind {
        MailKind::Input => Party::Client { client: RequestId::new() },
        _ => Party::Agent(Address { path: AgentPath::root(), thread: ThreadId::new() }),
    };
    Mail {
        id: MailId::new(),
        tree: TreeId::from(to.thread),
        from,
        to: to.clone(),
        kind,
        trigger_turn: wakes,
        sequence,
        body: body.to_owned(),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}
