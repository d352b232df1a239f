//! `script:FILE`: a model whose replies are written down, as `[[rule]]` tables in TOML; [`file`] has the format.
//!
//! The first rule that matches the conversation gives the reply. Nothing is remembered between requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use protocol::{Item, Role, Usage};
use serde_json::{Value, json};
use stdx::{AbsPath, cut_end, one_line};

use crate::pattern::{Pattern, glob};
use crate::view::{View, words};
use crate::{BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, OpenError, ToolWire, tools};

mod file;
mod fill;

/// Most bytes that one placeholder brings into a reply: what a script quotes should not fill a window.
const MAX_FILL: usize = 4 * 1024;

/// Bytes per token when a rule names no usage: the usual estimate for English and code.
const BYTES_PER_TOKEN: usize = 4;

/// A scripted model.
#[derive(Debug)]
pub(crate) struct Script {
    id: String,
    /// How the script is called in errors.
    label: String,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    agent: Option<String>,
    role: Option<String>,
    last: Option<Pattern>,
    contains: Vec<Pattern>,
    lacks: Vec<Pattern>,
    after: Bounds,
    step: Bounds,
    captures: Vec<Pattern>,
    reply: Vec<Piece>,
    delay: Duration,
    usage: Option<Usage>,
}

/// A number that lies between two others, both included.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: u64,
    max: u64,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Commentary(String),
    Call { name: String, arguments: Arguments },
    Custom { name: String, input: String },
}

#[derive(Debug)]
enum Arguments {
    Object(Value),
    /// Sent as it stands, so that a script can play a model that writes broken JSON.
    Raw(String),
}

impl Script {
    /// Reads and checks a file.
    pub(crate) fn read(path: &AbsPath) -> Result<Self, OpenError> {
        let label = path.to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&format!("script:{label}"), &label, &text),
            Err(error) => Err(OpenError::ScriptUnreadable { file: label, cause: error.to_string() }),
        }
    }

    /// Checks a text.
    pub(crate) fn parse(id: &str, label: &str, text: &str) -> Result<Self, OpenError> {
        Ok(Self { id: id.to_owned(), label: label.to_owned(), rules: file::parse(label, text)? })
    }

    fn reply(&self, request: &ModelRequest) -> Result<(Duration, Vec<ModelEvent>), ModelError> {
        let view = View::new(request);
        for rule in &self.rules {
            if let Some(found) = rule.matches(request, &view) {
                return Ok((rule.delay, rule.play(request, &view, &found)));
            }
        }
        Err(ModelError {
            kind: ErrorKind::Unscripted,
            message: format!(
                "the script {} has no reply for {} (role {}) after {} replies, {} of them since its newest task; \
                 its last item is: {}",
                self.label,
                request.agent.path,
                request.role,
                view.replies,
                view.step,
                one_line(view.last(), 200)
            ),
            hints: vec!["add a [[rule]] that matches this; one without matchers at the end catches all".to_owned()],
        })
    }
}

impl Model for Script {
    fn id(&self) -> &str {
        &self.id
    }

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        tools::responses(tools, true)
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        match self.reply(&request) {
            Err(error) => Box::pin(stream::iter([Err(error)])),
            Ok((delay, events)) => Box::pin(
                stream::once(async move {
                    if !delay.is_zero() {
                        tokio::time::sleep(delay).await;
                    }
                    stream::iter(events.into_iter().map(Ok))
                })
                .flatten(),
            ),
        }
    }
}

impl Bounds {
    const ANY: Self = Self { min: 0, max: u64::MAX };

    fn has(self, number: u64) -> bool {
        (self.min..=self.max).contains(&number)
    }
}

/// What the placeholders of a reply stand for.
type Found = BTreeMap<String, String>;

impl Rule {
    /// What its placeholders stand for, if it matches.
    fn matches(&self, request: &ModelRequest, view: &View) -> Option<Found> {
        let agent = request.agent.path.as_str();
        let fits = self.agent.as_ref().is_none_or(|want| glob(want, agent))
            && self.role.as_ref().is_none_or(|want| glob(want, &request.role))
            && self.after.has(view.replies)
            && self.step.has(view.step)
            && self.last.as_ref().is_none_or(|want| want.matches(view.last()))
            && self.contains.iter().all(|want| view.texts.iter().any(|text| want.matches(text)))
            && !self.lacks.iter().any(|want| view.texts.iter().any(|text| want.matches(text)));
        if !fits {
            return None;
        }
        let mut found: Found = [
            ("prompt", view.prompt.as_str()),
            ("task", &view.task),
            ("last", words(view.last())),
            ("agent", agent),
            ("role", &request.role),
        ]
        .map(|(name, text)| (name.to_owned(), cut_end(text, MAX_FILL).to_owned()))
        .into();
        for capture in &self.captures {
            // The newest item that has it, so that what was said last holds.
            let values = view.texts.iter().rev().find_map(|text| capture.find(text))?;
            found.extend(values.iter().map(|(name, text)| ((*name).to_owned(), cut_end(text, MAX_FILL).to_owned())));
        }
        Some(found)
    }

    fn play(&self, request: &ModelRequest, view: &View, found: &Found) -> Vec<ModelEvent> {
        let mut events = vec![ModelEvent::Started];
        let mut output = 0;
        for (n, piece) in self.reply.iter().enumerate() {
            // Ids tell the calls of one conversation apart and are the same when it is played again.
            let call_id = || format!("call_{}_{n}", view.replies);
            let item = match piece {
                Piece::Text(text) | Piece::Commentary(text) => {
                    let text = fill::fill(text, found);
                    events.push(ModelEvent::TextDelta(text.clone()));
                    match piece {
                        Piece::Commentary(_) => commentary(&text),
                        _ => Item::message(Role::Assistant, &text),
                    }
                }
                Piece::Call { name, arguments } => {
                    let arguments = match arguments {
                        Arguments::Object(value) => fill::fill_value(value, found).to_string(),
                        Arguments::Raw(text) => fill::fill(text, found),
                    };
                    Item::function_call(&call_id(), name, &arguments)
                }
                Piece::Custom { name, input } => Item::custom_call(&call_id(), name, &fill::fill(input, found)),
            };
            output += item.raw().len();
            events.push(ModelEvent::Item(item));
        }
        let usage = self.usage.unwrap_or_else(|| {
            let items: usize = request.input.items().iter().map(|item| item.raw().len()).sum();
            Usage { input: tokens(items + request.head.tools.len()), output: tokens(output), ..Usage::default() }
        });
        events.push(ModelEvent::Done { usage, wants_more: None });
        events
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// A message that is not the answer.
fn commentary(text: &str) -> Item {
    let json = json!({
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [{ "type": "output_text", "text": text }],
    });
    Item::parse(&json.to_string()).unwrap_or_else(|_| Item::message(Role::Assistant, text))
}

#[cfg(test)]
mod tests;
