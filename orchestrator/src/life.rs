//! Loading and unloading: how an agent gets a session and loses it again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::{Head, Model, RetryLimits, ToolKind, ToolWire};
use protocol::{EventKind, MailKind, Outcome, Status, TaskEnd, ThreadId, Usage, WaitingOn, Waits};
use tokio::time::Instant;
use tool_api::{Hands, Tool, ToolInput};

use super::node::{Life, Node, Start};
use super::seam::{Agent, Host, Mutex, MutexGuard, Setup, Stop, TurnReport, Writer};
use super::slots::Place;
use super::tree::Tree;
use super::{TreeError, stall, tools};

/// Serialised tools, made once per set of tools and model.
#[derive(Default)]
pub(crate) struct Heads(Mutex<HashMap<ToolsAndModel, (Arc<Head>, String)>>);

/// The names of the tools and the model: agents of one role may have been narrowed differently.
type ToolsAndModel = (String, String);

impl Tree {
    /// Starts a turn of this agent if mail is pending that wakes. An agent that sleeps takes its place in the queue for
    /// a running slot first and is loaded when it has one, so that agents that only queue need no memory.
    pub(crate) async fn wake(&self, node: &Arc<Node>) {
        if Self::is_overdue(node) {
            // Nobody begins what is over already.
            Box::pin(self.expire(node)).await;
        }
        let waking = node.waking();
        node.facts().kept.clear();
        let life = node.life.lock().await;
        // Asked under the agent's lock, which whoever ends the turns takes after saying so.
        let ending = self.door().ending;
        // Whoever is starting it already will find the mail that this wake is about.
        let starting = !ending && node.facts().start.as_mut().map(|start| start.again = true).is_some();
        if ending {
            tracing::trace!(path = %node.address.path, "stays as it is: the turns are being ended");
        } else if starting {
            tracing::trace!(path = %node.address.path, "is being started already");
        } else if let Life::Resident { agent, .. } = &*life {
            self.touch(node.meta.id);
            agent.wake().await;
        } else if !node.cancel.is_cancelled() {
            node.facts().start = Some(Start::default());
            let keeper = Keeper { tree: self.clone(), node: Arc::clone(node) };
            let mut starting = Box::pin(async move { while !keeper.start().await {} });
            // Polled once here, so that it stands in the queue before anybody who is woken later.
            if (&mut starting).now_or_never().is_none() {
                self.0.tracker.spawn(starting);
            }
        }
        drop(life);
        drop(waking);
        self.changed();
    }

    /// Gives an agent a session, unless it has one or is closed.
    pub(crate) async fn load(&self, node: &Arc<Node>) -> Result<(), TreeError> {
        let mut life = node.life.lock().await;
        if matches!(*life, Life::Resident { .. }) {
            self.touch(node.meta.id);
            return Ok(());
        }
        // Whoever closes it fires this and takes the lock then: a session made now would never be taken away.
        if node.cancel.is_cancelled() {
            return Ok(());
        }
        let opened = self.0.options.store.open(node.meta.id)?;
        if let Some(lack) = opened.loaded.lack {
            let message = format!("{}: {lack}", node.address.path);
            self.0.bus.emit(&node.address, EventKind::Warning { message });
        }
        let state = opened.loaded.state;
        let slept = (state.turns > 0).then_some(state.transcript.len());
        let (setup, hands) = self.setup(node, opened.writer)?;
        let agent = Agent::start(Arc::new(setup), state, node.cancel.clone(), &self.0.tracker);
        *life = Life::Resident { agent, hands };
        // Under the agent's lock, so that an eviction that comes next finds it in the table.
        {
            let mut facts = node.facts();
            facts.resident = true;
            facts.trouble = None;
        }
        self.touch(node.meta.id);
        drop(life);
        if let Some(items) = slept {
            self.0.bus.emit(&node.address, EventKind::AgentRehydrated { items });
        }
        self.evict().await;
        Ok(())
    }

    fn setup(&self, node: &Arc<Node>, writer: Writer) -> Result<(Setup, Arc<dyn Hands>), TreeError> {
        let meta = &node.meta;
        let options = &self.0.options;
        let granted = self.granted(meta)?;
        let model = self.model(&self.model_of(meta))?;
        let unreachable_for = model.unreachable_for().unwrap_or(options.retry.unreachable_for);
        let hands = options.workshop.hands(&Self::agent_facts(meta, &granted));
        let mut all = hands.tools();
        all.extend(tools::of(self, node, &granted));
        let (head, tools_digest) = self.head(&*model, &all);
        let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
        let preamble = self.preamble(meta, &names)?;
        let setup = Setup {
            tree: self.0.id,
            agent: node.address.clone(),
            role: meta.agent_role.clone(),
            cwd: meta.cwd.clone(),
            sandbox: meta.sandbox,
            approval: meta.approval,
            model,
            effort: meta.effort.clone(),
            head,
            tools_digest,
            tools: all,
            writer,
            store: options.store.clone(),
            inbox: Arc::clone(&node.inbox),
            host: Arc::new(Keeper { tree: self.clone(), node: Arc::clone(node) }),
            retry: RetryLimits { unreachable_for, ..options.retry.clone() },
            preamble,
        };
        Ok((setup, hands))
    }

    fn head(&self, model: &dyn Model, tools: &[Arc<dyn Tool>]) -> (Arc<Head>, String) {
        let mut heads = self.0.heads.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let key = (names.join(" "), model.id().to_owned());
        heads
            .entry(key)
            .or_insert_with(|| {
                let wires: Vec<ToolWire> = tools.iter().map(|tool| wire(&**tool)).collect();
                let head = model.head(&wires);
                let digest = digest(&head.tools);
                (head, digest)
            })
            .clone()
    }

    /// Unloads the least recently used idle agents while more are resident than may be. An agent that works, or whose
    /// processes run, stays.
    async fn evict(&self) {
        let max = self.0.options.limits.max_resident;
        let _one = self.0.evicting.lock().await;
        let candidates: Vec<ThreadId> = {
            let residents = self.residents();
            // All of them: however many work or wait for others, an idle one behind them is found.
            let all = if residents.len() > max { residents.len() } else { 0 };
            residents.iter().rev().map(|(thread, ())| *thread).take(all).collect()
        };
        for thread in candidates {
            if self.residents().len() <= max {
                return;
            }
            let Some(node) = self.node(thread) else { continue };
            // Somebody who holds this lock is about to use the agent: it is no candidate then.
            let Ok(mut life) = node.life.try_lock() else { continue };
            let Life::Resident { agent, hands } = &*life else { continue };
            // Taken before it is unloaded, while the file is still open.
            let writer = self.0.options.store.writer(thread);
            if node.is_busy() || !hands.running().is_empty() || agent.unload().await.is_err() {
                continue;
            }
            if let Ok(writer) = writer {
                self.note(&writer);
            }
            *life = Life::Asleep;
            // Before the lock is free: whoever loads it next puts it back.
            node.facts().resident = false;
            self.residents().pop(&thread);
            drop(life);
            self.0.bus.emit(&node.address, EventKind::AgentEvicted);
            self.changed();
        }
    }

    /// Unloads in the background what is over the limit now that an agent rests.
    fn trim(&self) {
        if self.residents().len() > self.0.options.limits.max_resident && !self.0.cancel.is_cancelled() {
            let tree = self.clone();
            self.0.tracker.spawn(async move { tree.evict().await });
        }
    }

    fn touch(&self, thread: ThreadId) {
        self.residents().put(thread, ());
    }

    /// Takes an agent that has lost its session out of the table.
    pub(crate) fn forget(&self, thread: ThreadId) {
        self.residents().pop(&thread);
    }

    fn residents(&self) -> MutexGuard<'_, lru::LruCache<ThreadId, ()>> {
        self.0.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent that has work cannot be loaded. Its mail stays on disk; whoever waits is told, and whoever gave a task.
    async fn cannot_load(&self, node: &Arc<Node>, error: &TreeError) {
        {
            let mut facts = node.facts();
            facts.status = Status::Errored;
            facts.waiting_on = None;
            facts.watch.counts(false, Instant::now());
            facts.trouble = Some(error.to_string());
        }
        self.0.bus.emit(
            &node.address,
            EventKind::Error {
                message: format!("{} cannot be loaded: {error}", node.address.path),
                hints: vec!["its task is kept on disk; mend this and use `agent resume --continue`".to_owned()],
            },
        );
        self.not_started(node, &format!("the agent could not be loaded: {error}"));
        self.changed();
        // What lacks may be there in a moment, and then nobody needs to know.
        if !matches!(error, TreeError::Rollout(error) if error.is_shortage()) {
            self.tell_givers(node, error).await;
        }
    }

    /// Writes once to each agent whose task lies there, or to the nearest above it that can be reached. The task has no
    /// end by that: it is begun when the agent can be loaded.
    async fn tell_givers(&self, node: &Arc<Node>, error: &TreeError) {
        for mail in node.pending().iter().filter(|mail| mail.kind.is_task()) {
            let near = mail.from.thread().and_then(|giver| self.nearest(giver));
            let Some(giver) = near.and_then(|near| self.node(near.thread)) else { continue };
            let words = format!(
                "The task that you gave me is not begun, because I cannot be loaded: {error}. The task is kept: a followup_task \
                 tries again, close_agent gives it up."
            );
            let told = async {
                // An earlier owner may have told it, or whoever is closed by now.
                giver.make_whole(&self.0.options.store)?;
                let id = mail.id.not_begun();
                if self.arrived(mail.from.thread(), &giver.address, &[id])?.is_some() {
                    return Ok(());
                }
                let letter = self.letter(id, node.party(), &giver, (MailKind::Message, false), &words)?;
                self.deliver_quietly(&giver, letter).await.map(drop)
            };
            let told: Result<(), TreeError> = told.await;
            if let Err(error) = told {
                let message = format!("{} was not told: {error}", giver.address.path);
                self.0.bus.emit(&node.address, EventKind::Warning { message });
            }
        }
    }

    /// Tells clients that wait for tasks which lie in this agent's mailbox that nobody starts them.
    fn not_started(&self, node: &Node, reason: &str) {
        for mail in node.pending().iter().filter(|mail| mail.from.thread().is_none()) {
            self.unanswered(mail.id, reason);
        }
    }

    /// Tells a client, if one waits, that its task has no end on disk and why.
    fn unanswered(&self, task: protocol::TaskId, reason: &str) {
        let end = TaskEnd { outcome: Outcome::Errored, text: None, reason: Some(reason.to_owned()) };
        self.answer(task, super::Answer { end, fault: None });
    }

    /// Names the processes that were to be ended and run on all the same. They stay in the ledger, so whoever takes the
    /// tree over tries again and says so.
    pub(crate) fn tell_survivors(&self, node: &Node, hands: &dyn Hands) {
        for left in hands.running() {
            let message = format!(
                "a process of {} could not be ended and runs on: {} (process {})",
                node.address.path, left.command, left.pid
            );
            self.0.bus.emit(&node.address, EventKind::Warning { message });
        }
    }
}

/// Closes the session of an agent at the end of everything, when its processes have ended.
pub(crate) async fn put_to_rest(tree: &Tree, node: &Arc<Node>) {
    let mut life = node.life.lock().await;
    if let Life::Resident { hands, .. } = std::mem::take(&mut *life) {
        tree.tell_survivors(node, &*hands);
        if let Ok(writer) = tree.0.options.store.writer(node.meta.id) {
            match writer.sync().await {
                Ok(()) => tree.note(&writer),
                Err(error) => {
                    let message = format!("the rollout of {} could not be flushed: {error}", node.address.path);
                    tree.0.bus.emit(&node.address, EventKind::Warning { message });
                }
            }
        }
    }
    node.facts().resident = false;
}

/// Stops the turn of an agent, if it has one, and waits for its end. One that queues to be loaded gives up its place.
pub(crate) async fn interrupt(node: &Arc<Node>, stop: Stop) -> bool {
    let life = node.life.lock().await;
    if let Some(start) = &mut node.facts().start {
        start.again = false;
        start.called_off.cancel();
    }
    match &*life {
        Life::Resident { agent, .. } => agent.interrupt(stop).await,
        Life::Asleep => false,
    }
}

/// A tool as a wire describes it.
fn wire(tool: &dyn Tool) -> ToolWire {
    let spec = tool.spec();
    let kind = match spec.input {
        ToolInput::Function { parameters } => ToolKind::Function(parameters),
        ToolInput::Freeform { grammar, fallback } => ToolKind::Freeform {
            syntax: grammar.syntax.to_owned(),
            definition: grammar.definition.to_owned(),
            fallback,
        },
    };
    ToolWire { name: spec.name, description: spec.description, kind }
}

/// Tells one set of tools from another.
fn digest(tools: &str) -> String {
    protocol::digest(tools).to_string()
}

/// Keeps one agent: its slot, its status, its debts.
pub(crate) struct Keeper {
    pub(crate) tree: Tree,
    pub(crate) node: Arc<Node>,
}

impl Keeper {
    /// Gives the slot back while the turn waits for others; false when it held none.
    pub(crate) fn give_back(&self) -> bool {
        let held = std::mem::take(&mut self.node.facts().slot);
        if held {
            self.tree.0.slots.leave();
        }
        held
    }

    /// Tries to load the agent with a running slot and to start its turn. False when that was called off and somebody
    /// has woken the agent since.
    async fn start(&self) -> bool {
        let Self { tree, node } = self;
        let called_off = node.facts().start.clone().unwrap_or_default().called_off;
        let entered = tokio::select! {
            biased;
            () = called_off.cancelled() => false,
            () = node.cancel.cancelled() => false,
            () = self.enter() => true,
        };
        let loaded = if entered { tree.load(node).await } else { Ok(()) };
        let life = node.life.lock().await;
        let off = !entered || called_off.is_cancelled();
        if off && node.facts().start.as_ref().is_some_and(|start| start.again) {
            node.facts().start = Some(Start::default());
            return false;
        }
        let started = match (&loaded, &*life) {
            (Ok(()), Life::Resident { agent, .. }) if !off => agent.wake().await,
            _ => false,
        };
        if !started {
            self.rest();
        }
        // Last of all under the lock: until then nobody takes the agent for quiet.
        node.facts().start = None;
        drop(life);
        if let Err(error) = loaded {
            tree.cannot_load(node, &error).await;
        }
        tree.changed();
        true
    }

    /// Takes a slot again, before everybody who queues.
    pub(crate) async fn take_back(&self) {
        let queued = |position| self.show(Status::Queued, None, Some(position));
        self.tree.0.slots.enter(self.node.meta.id, Place::Head, queued).await;
        self.node.facts().slot = true;
        // From now on it works again, whatever it did before.
        self.show(Status::Waiting, Some(WaitingOn::Tool), None);
    }

    pub(crate) fn show(&self, status: Status, waiting_on: Option<WaitingOn>, position: Option<usize>) {
        {
            let mut facts = self.node.facts();
            if (facts.status, facts.waiting_on) == (status, waiting_on) && position.is_none() {
                return;
            }
            facts.status = status;
            facts.waiting_on = waiting_on;
            facts.detail = None;
            facts.last_activity = stdx::now();
            facts.since = facts.last_activity;
            facts.watch.counts(stall::counts(status, waiting_on), Instant::now());
        }
        self.tree.0.bus.emit(&self.node.address, EventKind::AgentStatus { status, waiting_on, position });
        self.tree.changed();
    }
}

impl Host for Keeper {
    fn enter(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.node.facts().busy = true;
            if self.node.facts().slot {
                return;
            }
            let queued = |position| self.show(Status::Queued, None, Some(position));
            self.tree.0.slots.enter(self.node.meta.id, Place::Back, queued).await;
            self.node.facts().slot = true;
        })
    }

    fn leave(&self) {
        self.give_back();
    }

    fn emit(&self, event: EventKind) {
        if stall::is_progress(&event) {
            self.progress();
        }
        self.tree.0.bus.emit(&self.node.address, event);
    }

    fn status(&self, status: Status, waiting_on: Option<WaitingOn>) {
        self.show(status, waiting_on, None);
    }

    fn waits(&self, waits: Waits) {
        self.node.facts().detail = Some(waits);
    }

    fn progress(&self) {
        self.node.facts().watch.progress(Instant::now());
    }

    fn busy(&self) {
        self.node.facts().busy = true;
    }

    fn rest(&self) {
        // A turn that was called off between its slot and its first step holds it still.
        self.give_back();
        // And one that was called off in the queue stands as before, not as queued.
        let wakes = self.node.inbox.lock().wakes();
        let stands = {
            let facts = self.node.facts();
            let last = facts.last_end.as_ref().map(|end| end.outcome.into());
            facts.status.is_active().then(|| last.filter(|_| !wakes).unwrap_or(Status::Pending))
        };
        if let Some(status) = stands {
            self.show(status, None, None);
        }
        self.node.facts().busy = false;
        self.tree.changed();
        self.tree.trim();
    }

    fn reserve(&self, input: u64) -> BoxFuture<'_, Result<budget::Reservation, budget::Refusal>> {
        Box::pin(self.make_room(input))
    }

    fn settle(&self, reservation: &budget::Reservation, usage: Usage, estimated: bool) -> Option<budget::Usd> {
        self.book(reservation, usage, estimated)
    }

    fn standing(&self) -> Option<budget::Standing> {
        self.budget_left()
    }

    fn turn_ended(&self, report: TurnReport) -> BoxFuture<'_, ()> {
        Box::pin(async {
            {
                let mut facts = self.node.facts();
                facts.last_end = Some(report.end.clone());
                report.tasks.iter().chain(&report.unwritten).for_each(|done| facts.tasks.ended(done.task));
            }
            self.show(report.end.outcome.into(), None, None);
            if report.broken {
                let reason = report.end.reason.as_deref().unwrap_or("the turn broke down");
                report.unwritten.iter().for_each(|done| self.tree.unanswered(done.task, reason));
                self.tree.not_started(&self.node, reason);
            }
            self.tree.settle(&self.node, report).await;
        })
    }
}
