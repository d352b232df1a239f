//! Loading and unloading: how an agent gets a session and loses it again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use model::{Head, Model, ToolKind, ToolWire};
use protocol::{Address, EventKind, Status, ThreadId, WaitingOn};
use roles::{Granted, Place as Where, Role};
use rollout::{SessionMeta, Writer};
use runtime::{Agent, ContextFragment as _, Environment, Host, Instructions, Setup, Stop, TurnReport};
use tool_api::{AgentFacts, Hands, Tool, ToolInput};

use crate::node::{Life, Node};
use crate::slots::Place;
use crate::tree::Tree;
use crate::{TreeError, tools};

/// Serialised tools, made once per role and model.
#[derive(Default)]
pub(crate) struct Heads(Mutex<HashMap<(String, String), (Arc<Head>, String)>>);

impl Tree {
    /// Starts a turn of this agent if mail is pending that wakes. An agent that sleeps takes its place in the queue for
    /// a running slot first and is loaded when it has one, so that agents that only queue need no memory.
    pub(crate) async fn wake(&self, node: &Arc<Node>) {
        let waking = node.waking();
        let life = node.life.lock().await;
        if let Life::Resident { agent, .. } = &*life {
            agent.wake().await;
            drop(life);
            drop(waking);
            self.changed();
            return;
        }
        // Whoever is starting it already will find the mail that this wake is about.
        let starts = !std::mem::replace(&mut node.facts().starting, true);
        drop(life);
        if !starts || self.0.cancel.is_cancelled() {
            return;
        }
        let (tree, node) = (self.clone(), Arc::clone(node));
        self.0.tracker.spawn(async move {
            let keeper = Keeper { tree: tree.clone(), node: Arc::clone(&node) };
            let entered = tokio::select! {
                () = node.cancel.cancelled() => false,
                () = keeper.enter() => true,
            };
            if entered {
                let loaded = tree.load(&node).await;
                let life = node.life.lock().await;
                node.facts().starting = false;
                let started = match (&loaded, &*life) {
                    (Ok(()), Life::Resident { agent, .. }) => agent.wake().await,
                    _ => false,
                };
                drop(life);
                if let Err(error) = loaded {
                    tree.cannot_load(&node, &error);
                }
                if !started {
                    keeper.leave();
                    keeper.rest();
                }
            } else {
                node.facts().starting = false;
                keeper.rest();
            }
        });
    }

    /// Gives an agent a session, unless it has one.
    pub(crate) async fn load(&self, node: &Arc<Node>) -> Result<(), TreeError> {
        let mut life = node.life.lock().await;
        if matches!(*life, Life::Resident { .. }) {
            self.touch(node.meta.id);
            return Ok(());
        }
        let opened = self.0.options.store.open(node.meta.id)?;
        let state = opened.loaded.state;
        let slept = (state.turns > 0).then_some(state.transcript.len());
        let (setup, hands) = self.setup(node, opened.writer)?;
        let agent = Agent::start(Arc::new(setup), state, node.cancel.clone(), &self.0.tracker);
        *life = Life::Resident { agent, hands };
        drop(life);
        node.facts().resident = true;
        self.touch(node.meta.id);
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
        let hands = options.workshop.hands(&self.agent_facts(meta, &granted));
        let mut all = hands.tools();
        all.extend(tools::of(self, node, &granted));
        let (head, tools_digest) = self.head(meta, &*model, &all);
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
            retry: options.retry.clone(),
            preamble,
        };
        Ok((setup, hands))
    }

    fn head(&self, meta: &SessionMeta, model: &dyn Model, tools: &[Arc<dyn Tool>]) -> (Arc<Head>, String) {
        let mut heads = self.0.heads.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (meta.agent_role.clone(), model.id().to_owned());
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
        let over: Vec<ThreadId> = {
            let residents = self.residents();
            let over = residents.len().saturating_sub(max);
            // Twice as many candidates as needed: some will be busy.
            residents.iter().rev().map(|(thread, ())| *thread).take(if over == 0 { 0 } else { over * 2 + 8 }).collect()
        };
        for thread in over {
            if self.residents().len() <= max {
                return;
            }
            let Some(node) = self.node(thread) else { continue };
            // Somebody who holds this lock is about to use the agent: it is no candidate then.
            let Ok(mut life) = node.life.try_lock() else { continue };
            let Life::Resident { agent, hands } = &*life else { continue };
            if node.is_busy() || !hands.running().is_empty() || agent.unload().await.is_err() {
                continue;
            }
            *life = Life::Asleep;
            drop(life);
            node.facts().resident = false;
            self.residents().pop(&thread);
            self.0.bus.emit(&node.address, EventKind::AgentEvicted);
        }
    }

    fn touch(&self, thread: ThreadId) {
        self.residents().put(thread, ());
    }

    fn residents(&self) -> std::sync::MutexGuard<'_, lru::LruCache<ThreadId, ()>> {
        self.0.residents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent that has work cannot be loaded. Its mail stays on disk; whoever waits is told.
    fn cannot_load(&self, node: &Arc<Node>, error: &TreeError) {
        {
            let mut facts = node.facts();
            facts.status = Status::Errored;
            facts.waiting_on = None;
        }
        self.0.bus.emit(
            &node.address,
            EventKind::Error {
                message: format!("{} cannot be loaded: {error}", node.address.path),
                hints: vec!["its task is kept on disk; mend this and use `agent resume --continue`".to_owned()],
            },
        );
        let reason = format!("the agent could not be loaded: {error}");
        for mail in node.pending().iter().filter(|mail| mail.from.thread().is_none()) {
            let end =
                protocol::TaskEnd { outcome: protocol::Outcome::Errored, text: None, reason: Some(reason.clone()) };
            self.answer(mail.id, crate::Answer { end, fault: None });
        }
        self.changed();
    }

    /// What the context of an agent begins with.
    pub(crate) fn preamble(&self, meta: &SessionMeta, tools: &[&str]) -> Result<Vec<protocol::Item>, TreeError> {
        let role = self.role(meta)?;
        let place = Where { path: &meta.agent_path, sandbox: meta.sandbox, tools };
        let environment = Environment {
            cwd: meta.cwd.clone(),
            sandbox: meta.sandbox,
            approval: meta.approval,
            shell: self.0.options.shell.clone(),
            date: date(),
        };
        Ok(vec![Instructions { text: role.brief(&place) }.item(), environment.item()])
    }

    /// The role that an agent was made with.
    pub(crate) fn role(&self, meta: &SessionMeta) -> Result<&Role, TreeError> {
        let stored = self.0.options.roles.stored(&meta.agent_role);
        stored.ok_or_else(|| TreeError::NoRole { path: meta.agent_path.clone(), role: meta.agent_role.clone() })
    }

    /// What an agent may do: what is granted to the root, narrowed by every role from there down to its own.
    pub(crate) fn granted(&self, meta: &SessionMeta) -> Result<Granted, TreeError> {
        let limits = &self.0.options.limits;
        let mut line = vec![meta.clone()];
        while let Some(above) = line.last().and_then(|meta| meta.parent_thread_id) {
            match self.node(above) {
                Some(node) => line.push(node.meta.clone()),
                None => break,
            }
        }
        let mut granted = Granted {
            sandbox: meta.sandbox,
            tools: None,
            max_depth: limits.max_depth,
            budget_tokens: limits.budgets.tokens,
        };
        for meta in line.iter().rev() {
            granted = roles::narrow(&granted, self.role(meta)?)?;
        }
        Ok(granted)
    }

    /// The facts by which an agent gets its hands.
    pub(crate) fn agent_facts(&self, meta: &SessionMeta, granted: &Granted) -> AgentFacts {
        AgentFacts {
            agent: Address { path: meta.agent_path.clone(), thread: meta.id },
            role: meta.agent_role.clone(),
            cwd: meta.cwd.clone(),
            sandbox: meta.sandbox,
            allowed: granted.tools.clone(),
        }
    }

    /// The model called `name`, opened once a process.
    pub(crate) fn model(&self, name: &str) -> Result<Arc<dyn Model>, TreeError> {
        let mut models = self.0.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = models.get(name) {
            return Ok(Arc::clone(model));
        }
        let model = self.0.options.catalog.open(name)?;
        models.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }
}

/// Ends the processes of an agent and closes its session, at the end of everything.
pub(crate) async fn put_to_rest(tree: &Tree, node: &Arc<Node>) {
    let mut life = node.life.lock().await;
    if let Life::Resident { hands, .. } = std::mem::take(&mut *life) {
        hands.end_processes().await;
        if let Ok(writer) = tree.0.options.store.writer(node.meta.id)
            && let Err(error) = writer.sync().await
        {
            let message = format!("the rollout of {} could not be flushed: {error}", node.address.path);
            tree.0.bus.emit(&node.address, EventKind::Warning { message });
        }
    }
    node.facts().resident = false;
}

/// Stops the turn of an agent, if it has one, and waits for its end.
pub(crate) async fn interrupt(node: &Arc<Node>, stop: Stop) -> bool {
    match &*node.life.lock().await {
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

fn date() -> String {
    stdx::now().to_string().chars().take(10).collect()
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

    /// Takes a slot again, before everybody who queues.
    pub(crate) async fn take_back(&self) {
        self.tree.0.slots.enter(self.node.meta.id, Place::Head, |_| ()).await;
        self.node.facts().slot = true;
    }

    fn show(&self, status: Status, waiting_on: Option<WaitingOn>, position: Option<usize>) {
        {
            let mut facts = self.node.facts();
            if (facts.status, facts.waiting_on) == (status, waiting_on) && position.is_none() {
                return;
            }
            facts.status = status;
            facts.waiting_on = waiting_on;
            facts.last_activity = stdx::now();
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
        self.tree.0.bus.emit(&self.node.address, event);
    }

    fn status(&self, status: Status, waiting_on: Option<WaitingOn>) {
        self.show(status, waiting_on, None);
    }

    fn busy(&self) {
        self.node.facts().busy = true;
    }

    fn rest(&self) {
        self.node.facts().busy = false;
        self.tree.changed();
    }

    fn turn_ended(&self, report: TurnReport) -> BoxFuture<'_, ()> {
        Box::pin(async {
            {
                let mut facts = self.node.facts();
                facts.usage += report.usage;
                facts.last_end = Some(report.end.clone());
            }
            self.show(report.end.outcome.into(), None, None);
            self.tree.settle(&self.node, report).await;
        })
    }
}
