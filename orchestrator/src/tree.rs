//! What a tree is made of, and what a client may do with it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use agent_graph::{Edge, Filter, Graph};
use dashmap::DashMap;
use lru::LruCache;
use model::Model;
use protocol::{
    Address, AgentPath, EventKind, Mail, MailKind, Outcome, Party, RequestId, Status, TaskEnd, TaskId, ThreadId,
    TreeEvent, TreeId, UnreadResult, Usage,
};
use rollout::{EdgeRecord, EdgeStatus, Record, SessionMeta};
use stdx::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::bus::Bus;
use super::node::Node;
use super::post::whole_body;
use super::seam::{AsyncMutex, Fault, Mutex, MutexGuard, OwnerLock, Stop, TaskTracker};
use super::slots::Slots;
use super::{Options, TreeError, life, spend};

/// A tree that this process drives. Cheap to clone; [`Tree::shut_down`] ends it.
#[derive(Clone)]
pub struct Tree(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) id: TreeId,
    pub(crate) options: Options,
    pub(crate) bus: Bus,
    pub(crate) slots: Slots,
    /// A std mutex: asked and changed in memory only. Paths being spawned are reserved in it until their file stands.
    pub(crate) graph: Mutex<Family>,
    /// Short lookups only; no reference into it lives longer than a line.
    pub(crate) nodes: DashMap<ThreadId, Arc<Node>>,
    /// Who was used last. A std mutex: it is never held across I/O.
    pub(crate) residents: Mutex<LruCache<ThreadId, ()>>,
    /// Held while agents are unloaded, so that two who look at once do not unload one too many.
    pub(crate) evicting: AsyncMutex<()>,
    pub(crate) heads: life::Heads,
    /// A std mutex: asked and changed in memory only.
    pub(crate) accounts: Mutex<budget::Accounts>,
    /// Changes when a request is settled; what waits for room looks again.
    pub(crate) settled: watch::Sender<u64>,
    pub(crate) models: Mutex<HashMap<String, Arc<dyn Model>>>,
    /// Clients that wait for the end of their task.
    answers: Mutex<HashMap<TaskId, Vec<oneshot::Sender<Answer>>>>,
    /// Held while tasks that were cut off are given successors.
    pub(crate) continuing: AsyncMutex<()>,
    /// Held while tasks end whose deadline has passed.
    pub(crate) expiring: AsyncMutex<()>,
    /// Held while an edge is closed.
    pub(crate) closing: AsyncMutex<()>,
    /// Changes when somebody has a new task with a deadline.
    pub(crate) deadlines: watch::Sender<u64>,
    /// Changes with every status; what waits for the tree looks again.
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) cancel: CancellationToken,
    pub(crate) tracker: TaskTracker,
    /// Requests of clients that are being taken, and whether any more are.
    pub(crate) door: Mutex<Door>,
    /// Held for as long as the tree is driven.
    lock: OwnerLock,
}

/// The graph, and paths that are about to be in it.
pub(crate) struct Family {
    pub(crate) graph: Graph,
    pub(crate) reserved: Vec<AgentPath>,
}

/// Who comes in from outside.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) shut: bool,
    pub(crate) entering: usize,
    /// Turns are being ended for good: whatever is pending waits for the next owner.
    pub(crate) ending: bool,
}

/// The end of a client's task.
#[derive(Clone, Debug)]
pub struct Answer {
    /// How it ended, with its words.
    pub end: TaskEnd,
    /// The provider's fault that ended it, if one did.
    pub fault: Option<Fault>,
}

/// A task that a client gave.
pub struct Pending {
    /// Its id.
    pub task: TaskId,
    /// Who has it.
    pub agent: AgentPath,
    answer: oneshot::Receiver<Answer>,
}

impl Pending {
    /// Waits for its end.
    pub async fn answer(self) -> Answer {
        self.answer.await.unwrap_or_else(|_| Answer {
            end: TaskEnd {
                outcome: Outcome::Interrupted,
                text: None,
                reason: Some("the tree was shut down before the task ended".to_owned()),
            },
            fault: None,
        })
    }
}

impl Tree {
    /// Makes a new tree and gives its root the first task. Nothing runs before [`Tree::go`].
    ///
    /// # Errors
    /// When the role, the model or the disk refuses.
    pub async fn create(options: Options, prompt: &str) -> Result<(Self, Pending), TreeError> {
        Self::create_until(options, prompt, None).await
    }

    /// As [`Tree::create`], with a moment at which the task ends with what there is.
    ///
    /// # Errors
    /// As for [`Tree::create`].
    pub async fn create_until(
        mut options: Options,
        prompt: &str,
        deadline: Option<Timestamp>,
    ) -> Result<(Self, Pending), TreeError> {
        let root = ThreadId::new();
        let id = TreeId::from(root);
        // Opened before anything is written, so that a wrong name leaves no tree behind.
        let model = options.catalog.open(options.model.as_deref().unwrap_or_default())?.id().to_owned();
        // It stands in the root's first line now. Left here it would replace what roles and spawns ask for.
        options.model = None;
        let budgets = &options.limits.budgets;
        let in_money = budgets.usd.is_some() || budgets.agent_usd.is_some();
        if in_money && spend::price(&options, &model).is_none() {
            return Err(TreeError::NoPrice { model });
        }
        let lock = options.store.lock(id, &options.owner)?;
        let meta = SessionMeta {
            id: root,
            session_id: id,
            timestamp: stdx::now(),
            parent_thread_id: None,
            agent_path: AgentPath::root(),
            incarnation: 1,
            agent_role: roles::DEFAULT.to_owned(),
            depth: 0,
            agent_nickname: None,
            spawned_by: None,
            cwd: options.cwd.clone(),
            model,
            effort: options.effort.clone(),
            sandbox: options.sandbox,
            approval: options.approval,
            originator: "agent".to_owned(),
            cli_version: options.version.clone(),
            format: 1,
        };
        let request = RequestId::new();
        let address = Address { path: AgentPath::root(), thread: root };
        let party = Party::Client { client: request };
        mailbox::check_new(MailKind::Input, &party, &address, prompt)?;
        let (body, whole) = whole_body(&options.store, id, request.mail(), prompt)?;
        let mail = Mail {
            id: request.mail(),
            tree: id,
            from: party,
            to: address,
            kind: MailKind::Input,
            trigger_turn: true,
            sequence: 1,
            body,
            whole,
            answers: None,
            outcome: None,
            continues: None,
            deadline,
        };
        let opened = EdgeRecord { status: EdgeStatus::Open, reason: "run".to_owned(), by: "user".to_owned() };
        let rest = vec![
            Record::Edge(opened),
            Record::Limits(Box::new(options.limits.clone())),
            Record::Mail(Box::new(mail.clone())),
        ];
        options.store.create(meta.clone(), rest).await?;
        let tree = Self::new(id, options, lock);
        tree.adopt(Node::fresh(meta, mail.clone(), tree.0.cancel.child_token()), 0)?;
        let pending = tree.expect(mail.id, AgentPath::root());
        Ok((tree, pending))
    }

    pub(crate) fn new(id: TreeId, options: Options, lock: OwnerLock) -> Self {
        let tree = Self(Arc::new(Inner {
            id,
            bus: Bus::new(id),
            slots: Slots::new(options.limits.max_running),
            graph: Mutex::new(Family { graph: Graph::new(), reserved: Vec::new() }),
            nodes: DashMap::new(),
            residents: Mutex::new(LruCache::unbounded()),
            evicting: AsyncMutex::default(),
            heads: life::Heads::default(),
            accounts: Mutex::new(budget::Accounts::new(spend::each(&options.limits.budgets))),
            settled: watch::Sender::new(0),
            models: Mutex::default(),
            answers: Mutex::default(),
            continuing: AsyncMutex::default(),
            expiring: AsyncMutex::default(),
            closing: AsyncMutex::default(),
            changes: watch::Sender::new(0),
            deadlines: watch::Sender::new(0),
            cancel: CancellationToken::new(),
            tracker: TaskTracker::new(),
            options,
            door: Mutex::default(),
            lock,
        }));
        tree.watch();
        tree.keep_deadlines();
        tree
    }

    /// Its id.
    pub fn id(&self) -> TreeId {
        self.0.id
    }

    /// All events from now on.
    pub fn events(&self) -> mpsc::UnboundedReceiver<Arc<TreeEvent>> {
        self.0.bus.listen()
    }

    /// Wakes the root, if mail is pending there that wakes.
    pub async fn go(&self) {
        if let Some(root) = self.node(self.0.id.root()) {
            self.wake(&root).await;
        }
    }

    /// Sends a client's words to an agent, and waits until they are safe. With `wake` they start a turn or steer the
    /// one that runs; without, they lie there.
    ///
    /// # Errors
    /// When there is no such agent, or the mail is refused.
    pub async fn send(&self, path: &AgentPath, body: &str, wake: bool) -> Result<Pending, TreeError> {
        let node = self.at(path)?;
        let request = RequestId::new();
        // Asked for before the mail is out, so that the answer cannot come first.
        let pending = self.expect(request.mail(), path.clone());
        let letter =
            self.letter(request.mail(), Party::Client { client: request }, &node, (MailKind::Input, wake), body)?;
        self.deliver(&node, letter).await?;
        Ok(pending)
    }

    /// Waits for the end of a task that a client gave to `agent`, in this process or an earlier one.
    pub fn expect(&self, task: TaskId, agent: AgentPath) -> Pending {
        let (sender, answer) = oneshot::channel();
        self.answers().entry(task).or_default().push(sender);
        Pending { task, agent, answer }
    }

    /// Whether an agent works, or is about to.
    pub fn is_busy(&self) -> bool {
        self.busy() > 0
    }

    /// How many agents work, or are about to.
    pub fn busy(&self) -> usize {
        self.nodes().iter().filter(|node| node.is_busy()).count()
    }

    /// As [`Tree::busy`], without those whose turn has ended and who only finish putting it away.
    pub fn at_work(&self) -> usize {
        let ending = |node: &Node| {
            let facts = node.facts();
            let ended = !matches!(facts.status, Status::Pending | Status::Queued | Status::Running | Status::Waiting);
            ended && facts.start.is_none()
        };
        self.nodes().iter().filter(|node| node.is_busy() && !ending(node)).count()
    }

    /// Waits until no agent works, none is about to, and no client is coming in; then refuses clients.
    pub async fn over(&self) {
        let mut changes = self.0.changes.subscribe();
        while !self.shut_door() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until no agent works and none is about to.
    pub async fn quiet(&self) {
        let mut changes = self.0.changes.subscribe();
        while self.is_busy() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Refuses clients from now on, unless one is coming in or an agent works: then it stays open and the answer is
    /// false. After a true answer nothing that was accepted is left undone.
    pub fn shut_door(&self) -> bool {
        let mut door = self.door();
        door.shut = door.ending || door.entering == 0;
        if door.shut && !door.ending && self.is_busy() {
            door.shut = false;
        }
        door.shut
    }

    pub(crate) fn door(&self) -> MutexGuard<'_, Door> {
        self.0.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where other processes reach this tree from now on.
    ///
    /// # Errors
    /// When the hint cannot be written; the tree is owned all the same.
    pub fn listens_on(&self, socket: &stdx::AbsPath) -> Result<(), TreeError> {
        let hint = rollout::OwnerHint { socket: Some(socket.clone()), ..self.0.options.owner.clone() };
        Ok(self.0.lock.say(&hint)?)
    }

    /// Interrupts every turn, ends every process, flushes, and lets go of the tree. Every edge stays as it is.
    pub async fn shut_down(&self) {
        self.0.cancel.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
        self.0.options.workshop.end_all().await;
        let nodes = self.nodes();
        futures::future::join_all(nodes.iter().map(|node| life::put_to_rest(self, node))).await;
        if let Err(trouble) = self.0.options.mirror.flush().await {
            tracing::info!(%trouble, "the mirror lags");
        }
    }

    /// As [`Tree::interrupt_all`], for good: nobody comes in any more, and no turn starts. What is pending and what broke
    /// off is for the next owner.
    pub async fn end_turns(&self, reason: &str) {
        {
            let mut door = self.door();
            door.shut = true;
            door.ending = true;
        }
        self.interrupt_all(reason).await;
    }

    /// Interrupts every turn and waits until they have ended. The tree can go on afterwards, and a resume can go on with
    /// what broke off.
    pub async fn interrupt_all(&self, reason: &str) {
        let stop = Stop { outcome: Outcome::Interrupted, reason: reason.to_owned(), goes_on: true, only: Vec::new() };
        let nodes = self.nodes();
        let all = nodes.iter().map(|node| life::interrupt(node, stop.clone()));
        futures::future::join_all(all).await;
    }

    /// Results that lie unread in the root's mailbox.
    pub fn unread_results(&self) -> Vec<UnreadResult> {
        let Some(root) = self.node(self.0.id.root()) else { return Vec::new() };
        root.pending()
            .into_iter()
            .filter(|mail| mail.kind == MailKind::Result)
            .map(|mail| UnreadResult { from: mail.from.name().to_owned(), outcome: mail.outcome, text: mail.body })
            .collect()
    }

    /// Tokens of the whole tree, over its life.
    pub fn usage(&self) -> Usage {
        self.nodes().iter().map(|node| node.facts().usage).sum()
    }

    /// Says that the command is over; the last event.
    pub fn finished(&self, answer: &Answer) {
        let event = EventKind::TreeFinished {
            outcome: answer.end.outcome,
            answer: answer.end.text.clone(),
            usage: self.usage(),
            unread_results: self.unread_results(),
        };
        self.emit_root(event);
    }

    /// Says which tree this is; the first event.
    pub fn started(&self, resumed: bool) {
        let Some(root) = self.node(self.0.id.root()) else { return };
        self.emit_root(EventKind::TreeStarted {
            cwd: root.meta.cwd.clone(),
            model: self.model_of(&root.meta),
            sandbox: root.meta.sandbox,
            approval: root.meta.approval,
            resumed,
        });
    }

    /// The model that an agent talks to in this process.
    pub(crate) fn model_of(&self, meta: &SessionMeta) -> String {
        self.0.options.model.clone().unwrap_or_else(|| meta.model.clone())
    }

    fn emit_root(&self, event: EventKind) {
        self.0.bus.emit(&Address { path: AgentPath::root(), thread: self.0.id.root() }, event);
    }

    /// A client's task has ended.
    pub(crate) fn answer(&self, task: TaskId, answer: Answer) {
        let waiting = self.answers().remove(&task);
        for waiting in waiting.into_iter().flatten() {
            // A client that has gone finds the answer in the rollout.
            let _ = waiting.send(answer.clone());
        }
    }

    /// Takes an agent into the tables.
    pub(crate) fn adopt(&self, node: Node, order: u64) -> Result<Arc<Node>, TreeError> {
        let entry = agent_graph::Node {
            thread: node.meta.id,
            parent: node.meta.parent_thread_id,
            path: node.meta.agent_path.clone(),
            incarnation: node.meta.incarnation,
            order,
            edge: Edge::Open,
        };
        let node = Arc::new(node);
        // Whoever closes an agent above finds it in both tables or in neither.
        let mut family = self.family();
        family.graph.insert(entry)?;
        self.open_account(&node.meta, budget::Spent::default());
        self.0.nodes.insert(node.meta.id, Arc::clone(&node));
        drop(family);
        self.deadlines_changed();
        Ok(node)
    }

    pub(crate) fn family(&self) -> MutexGuard<'_, Family> {
        self.0.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<oneshot::Sender<Answer>>>> {
        self.0.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn node(&self, thread: ThreadId) -> Option<Arc<Node>> {
        self.0.nodes.get(&thread).map(|node| Arc::clone(&node))
    }

    /// All agents, root first, then by depth and spawn order.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        let root = self.0.id.root();
        let below = self.family().graph.descendants(root, Filter::All);
        std::iter::once(root).chain(below).filter_map(|thread| self.node(thread)).collect()
    }

    /// The reachable agent at `path`.
    pub(crate) fn at(&self, path: &AgentPath) -> Result<Arc<Node>, TreeError> {
        let thread = self.family().graph.resolve(path);
        thread.and_then(|thread| self.node(thread)).ok_or_else(|| TreeError::NoAgent {
            path: path.clone(),
            known: self.reachable().iter().map(|node| node.meta.agent_path.clone()).collect(),
        })
    }

    /// The agents that can be reached.
    pub(crate) fn reachable(&self) -> Vec<Arc<Node>> {
        let root = self.0.id.root();
        let threads = {
            let family = self.family();
            if family.graph.is_reachable(root) {
                family.graph.descendants(root, Filter::Open)
            } else {
                return Vec::new();
            }
        };
        std::iter::once(root).chain(threads).filter_map(|thread| self.node(thread)).collect()
    }

    /// Something about an agent has changed.
    pub(crate) fn changed(&self) {
        self.0.changes.send_modify(|n| *n += 1);
    }
}
