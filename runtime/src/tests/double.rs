//! The doubles: a model that plays steps, a keeper that notes what it hears, a tool that is a closure.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use budget::{Accounts, Refusal, Reservation, Spent, Standing, Usd};
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use model::{BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, ToolWire};
use protocol::{EventKind, Item, Role, Status, Usage, WaitingOn};
use rollout::{Record, Store};
use testkit::Gate;
use tokio::sync::watch;
use tool_api::{Invocation, Tool, ToolError, ToolInput, ToolOutput, ToolSpec};

use crate::{Host, TurnReport};

/// One step of a reply.
pub(super) enum Step {
    Item(Item),
    /// Opens the first gate, then waits for the second.
    Wait(Gate, Gate),
    Fail(ErrorKind),
    Panic,
    Done,
}

pub(super) fn say(text: &str) -> Step {
    Step::Item(Item::message(Role::Assistant, text))
}

pub(super) fn call(id: &str, tool: &str) -> Step {
    Step::Item(Item::function_call(id, tool, "{}"))
}

/// A whole reply that is only words.
pub(super) fn answer(text: &str) -> Vec<Step> {
    vec![say(text), Step::Done]
}

/// Plays its replies in order; after the last one it says `done`.
pub(super) struct Scripted {
    store: Store,
    replies: Mutex<VecDeque<Vec<Step>>>,
    pub(super) requests: Mutex<Vec<Vec<Item>>>,
    /// What was wrong with requests; a bench asserts at its end that there is nothing.
    pub(super) wrong: Mutex<Vec<String>>,
}

impl Scripted {
    pub(super) fn new(store: Store, replies: Vec<Vec<Step>>) -> Self {
        let replies = Mutex::new(replies.into());
        Self { store, replies, requests: Mutex::default(), wrong: Mutex::default() }
    }

    /// Adds a reply behind those that are left.
    pub(super) fn then(&self, reply: Vec<Step>) {
        lock(&self.replies).push_back(reply);
    }

    fn inspect(&self, request: &ModelRequest) {
        let sent: Vec<&str> = request.input.items().iter().map(Item::raw).collect();
        let written: Vec<String> =
            items(&self.store, request.agent.thread).iter().map(|i| i.raw().to_owned()).collect();
        let mut requests = lock(&self.requests);
        let mut wrong = Vec::new();
        if sent != written {
            wrong.push(format!("request {} is not what is written:\n{sent:#?}\n{written:#?}", requests.len()));
        }
        let starts = requests
            .last()
            .is_none_or(|last| last.len() < sent.len() && last.iter().zip(&sent).all(|(old, new)| old.raw() == *new));
        // The same request once more is a retry.
        if !starts && requests.last().is_some_and(|last| last.len() != sent.len()) {
            wrong.push(format!("request {} does not begin with the one before it", requests.len()));
        }
        let mut open = VecDeque::new();
        for item in request.input.items() {
            if let Some(call) = item.call() {
                open.push_back(call.call_id);
            } else if let Some(answered) = item.answered_call_id()
                && open.pop_front().as_ref() != Some(&answered)
            {
                wrong.push(format!("request {}: the output of `{answered}` is out of order", requests.len()));
            }
        }
        if !open.is_empty() {
            wrong.push(format!("request {}: open calls {open:?}", requests.len()));
        }
        requests.push(request.input.items().to_vec());
        lock(&self.wrong).extend(wrong);
    }
}

impl Model for Scripted {
    fn id(&self) -> &'static str {
        "test/scripted"
    }

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        Arc::new(Head { tools: "[]".into(), names: tools.iter().map(|tool| tool.name.clone()).collect() })
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        self.inspect(&request);
        let steps = lock(&self.replies).pop_front().unwrap_or_else(|| answer("done"));
        Box::pin(stream::iter(steps).then(play))
    }
}

async fn play(step: Step) -> Result<ModelEvent, ModelError> {
    match step {
        Step::Item(item) => Ok(ModelEvent::Item(item)),
        Step::Wait(reached, open) => {
            reached.open();
            open.opened().await;
            Ok(ModelEvent::Started)
        }
        Step::Fail(kind) => Err(ModelError { kind, message: format!("{kind:?}"), hints: vec!["a hint".to_owned()] }),
        Step::Panic => panic!("the model breaks down"),
        Step::Done => {
            let usage = Usage { input: 10, output: 1, ..Usage::default() };
            Ok(ModelEvent::Done { usage, wants_more: None })
        }
    }
}

/// What is in the file as items, in order.
pub(super) fn items(store: &Store, thread: protocol::ThreadId) -> Vec<Item> {
    let lines = store.read(thread).unwrap().lines;
    lines
        .into_iter()
        .filter_map(|line| if let Record::Item(item) = line.record { Some(item.item) } else { None })
        .collect()
}

/// Notes what it hears.
#[derive(Default)]
pub(super) struct Keeper {
    /// When set, a slot is only to be had once this is open.
    pub(super) slots: Mutex<Option<Gate>>,
    pub(super) events: Mutex<Vec<EventKind>>,
    pub(super) reports: Mutex<Vec<TurnReport>>,
    pub(super) held: Mutex<i64>,
    pub(super) working: Mutex<bool>,
    /// Whose accounts these are; nobody's until a test opens them.
    pub(super) accounts: Mutex<Accounts>,
    pub(super) payer: OnceLock<protocol::ThreadId>,
    changes: watch::Sender<()>,
}

impl Keeper {
    /// Waits until this holds.
    pub(super) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changes = self.changes.subscribe();
        while !holds(self) {
            changes.changed().await.unwrap();
        }
    }
}

impl Host for Keeper {
    fn enter(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let gate = lock(&self.slots).clone();
            if let Some(gate) = gate {
                gate.opened().await;
            }
            *lock(&self.held) += 1;
        })
    }

    fn leave(&self) {
        *lock(&self.held) -= 1;
    }

    fn emit(&self, event: EventKind) {
        lock(&self.events).push(event);
        self.changes.send_replace(());
    }

    fn status(&self, _: Status, _: Option<WaitingOn>) {}

    fn reserve(&self, input: u64) -> BoxFuture<'_, Result<Reservation, Refusal>> {
        let payer = *self.payer.get_or_init(protocol::ThreadId::new);
        let reserved = lock(&self.accounts).reserve(payer, input, None);
        Box::pin(async { reserved })
    }

    fn settle(&self, reservation: &Reservation, usage: Usage, _: bool) -> Option<Usd> {
        lock(&self.accounts).settle(reservation, Spent { tokens: usage.total(), usd: Usd::default() });
        None
    }

    fn standing(&self) -> Option<Standing> {
        lock(&self.accounts).standing(*self.payer.get()?)
    }

    fn busy(&self) {
        *lock(&self.working) = true;
    }

    fn rest(&self) {
        *lock(&self.working) = false;
        self.changes.send_replace(());
    }

    fn turn_ended(&self, report: TurnReport) -> BoxFuture<'_, ()> {
        lock(&self.reports).push(report);
        self.changes.send_replace(());
        Box::pin(async {})
    }
}

type Act = Box<dyn Fn(Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// A tool that does what a test says.
pub(super) struct Fake {
    name: &'static str,
    parallel: bool,
    act: Act,
}

impl Fake {
    /// A tool that runs alone.
    pub(super) fn alone<F>(name: &'static str, act: impl Fn(Invocation) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Arc::new(Self { name, parallel: false, act: Box::new(move |invocation| Box::pin(act(invocation))) })
    }

    /// A tool that runs beside others.
    pub(super) fn beside<F>(name: &'static str, act: impl Fn(Invocation) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Arc::new(Self { name, parallel: true, act: Box::new(move |invocation| Box::pin(act(invocation))) })
    }

    /// A tool that says its name.
    pub(super) fn quick(name: &'static str) -> Arc<dyn Tool> {
        Self::beside(name, move |_| async move { Ok(ToolOutput::ok(name)) })
    }
}

impl Tool for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn spec(&self) -> ToolSpec {
        let input = ToolInput::Function { parameters: serde_json::json!({}) };
        ToolSpec { name: self.name.to_owned(), description: String::new(), input }
    }

    fn parallel(&self) -> bool {
        self.parallel
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        (self.act)(invocation)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
