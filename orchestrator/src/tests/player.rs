//! A model whose replies a test makes from what it is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::{StreamExt as _, stream};
use model::{BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, ToolWire};
use protocol::{Item, Role, ThreadId, Usage};
use rollout::{Record, Store};
use serde_json::Value;
use testkit::Gate;

/// One step of a reply. The end of the reply is added.
pub(super) enum Step {
    Say(String),
    Call(&'static str, Value),
    /// Opens the first gate, then waits for the second.
    Wait(Gate, Gate),
    Fail,
    Panic,
}

pub(super) fn say(text: &str) -> Vec<Step> {
    vec![Step::Say(text.to_owned())]
}

/// What a model is asked.
pub(super) struct Asked {
    pub(super) path: String,
    /// Texts of the items; of a call its tool.
    pub(super) texts: Vec<String>,
    /// How often this agent has asked before.
    pub(super) before: usize,
}

impl Asked {
    /// The last item's text.
    pub(super) fn last(&self) -> &str {
        self.texts.last().map_or("", String::as_str)
    }
}

type Plays = dyn Fn(&Asked) -> Vec<Step> + Send + Sync;

pub(super) struct Player {
    store: Store,
    plays: Box<Plays>,
    sent: Mutex<HashMap<ThreadId, Vec<Vec<String>>>>,
    pub(super) asked: Mutex<Vec<Asked>>,
    pub(super) wrong: Mutex<Vec<String>>,
}

impl Player {
    pub(super) fn new(store: Store, plays: impl Fn(&Asked) -> Vec<Step> + Send + Sync + 'static) -> Arc<Self> {
        let plays = Box::new(plays);
        Arc::new(Self { store, plays, sent: Mutex::default(), asked: Mutex::default(), wrong: Mutex::default() })
    }

    /// Texts of the last request of an agent.
    pub(super) fn last(&self, path: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().rev().find(|asked| asked.path == path).map(|asked| asked.texts.clone()).unwrap_or_default()
    }

    fn inspect(&self, request: &ModelRequest) -> usize {
        let path = request.agent.path.as_str();
        let sent: Vec<String> = request.input.items().iter().map(|item| item.raw().to_owned()).collect();
        let lines = self.store.read(request.agent.thread).unwrap().lines;
        let mut written: Vec<String> = Vec::new();
        let mut write = |item: Item| written.push(item.raw().to_owned());
        for line in lines {
            match line.record {
                Record::Item(record) => write(record.item),
                Record::Forked(fork) => assert_eq!(self.store.taken_over(&fork, &mut write).unwrap(), None),
                _ => {}
            }
        }
        let mut wrong = Vec::new();
        if sent != written {
            wrong.push(format!("{path}: what is sent is not what is written:\n{sent:#?}\n{written:#?}"));
        }
        let mut open = 0_usize;
        for item in request.input.items() {
            if item.call().is_some() {
                open += 1;
            } else if item.answered_call_id().is_some() {
                open = open.saturating_sub(1);
            } else if open > 0 && item.kind() == protocol::ItemKind::Message(Role::User) {
                wrong.push(format!("{path}: {open} calls are open where input begins"));
            }
        }
        if open > 0 {
            wrong.push(format!("{path}: {open} calls are open"));
        }
        let mut all = self.sent.lock().unwrap();
        let earlier = all.entry(request.agent.thread).or_default();
        if earlier.last().is_some_and(|last| !sent.starts_with(last)) {
            wrong.push(format!("{path}: a request does not begin with the one before it"));
        }
        earlier.push(sent);
        self.wrong.lock().unwrap().extend(wrong);
        earlier.len() - 1
    }
}

impl Model for Player {
    fn id(&self) -> &'static str {
        "test/player"
    }

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        Arc::new(Head { tools: "[]".into(), names: tools.iter().map(|tool| tool.name.clone()).collect() })
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        let before = self.inspect(&request);
        let text = |item: &Item| item.call().map_or_else(|| item.text(), |call| call.name);
        let texts = request.input.items().iter().map(text).collect();
        let asked = Asked { path: request.agent.path.to_string(), texts, before };
        let steps = (self.plays)(&asked);
        self.asked.lock().unwrap().push(asked);
        let usage = Usage { input: 1, output: 1, ..Usage::default() };
        let end = stream::iter([Ok(ModelEvent::Done { usage, wants_more: None })]);
        Box::pin(stream::iter(steps).enumerate().then(|(n, step)| play(n, step)).chain(end))
    }
}

async fn play(n: usize, step: Step) -> Result<ModelEvent, ModelError> {
    match step {
        Step::Say(text) => Ok(ModelEvent::Item(Item::message(Role::Assistant, &text))),
        Step::Call(tool, arguments) => {
            Ok(ModelEvent::Item(Item::function_call(&format!("call_{n}"), tool, &arguments.to_string())))
        }
        Step::Wait(reached, open) => {
            reached.open();
            open.opened().await;
            Ok(ModelEvent::Started)
        }
        Step::Fail => {
            let message = "the provider refuses".to_owned();
            Err(ModelError { kind: ErrorKind::Rejected, message, hints: Vec::new() })
        }
        Step::Panic => panic!("the model breaks down"),
    }
}
