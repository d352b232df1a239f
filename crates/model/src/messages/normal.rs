//! From the wire's events to ours.

use std::borrow::Cow;

use protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{Block, Finished, Piece, Shown, carry};
use crate::fault::{Fault, Origin};
use crate::remote::{Events, Normalise, nonsense};
use crate::sse::Event;
use crate::{ErrorKind, ModelError, ModelEvent};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Reply<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply<'a> {
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// Turns one reply's events into ours.
#[derive(Debug)]
pub(crate) struct Normaliser {
    started: bool,
    /// The request ended with the note that says "go on".
    noted: bool,
    /// Open blocks, in their order.
    open: Vec<Block>,
    /// Finished blocks that wait for the item after them: alone they would be refused, so a reply that breaks off
    /// after them has not given them.
    waiting: Vec<Box<RawValue>>,
    /// Whether an item was given out.
    gave: bool,
    stop: Option<String>,
    counts: Counts,
}

impl Normaliser {
    pub(crate) fn new(noted: bool) -> Self {
        Self {
            started: false,
            noted,
            open: Vec::new(),
            waiting: Vec::new(),
            gave: false,
            stop: None,
            counts: Counts::default(),
        }
    }

    fn start(&mut self, out: &mut Events) {
        if !std::mem::replace(&mut self.started, true) {
            out.push_back(Ok(ModelEvent::Started));
        }
    }

    fn opened(&mut self, index: Option<u64>, raw: &RawValue, out: &mut Events) {
        let block = Block::open(index, raw);
        show(block.shown(), out);
        self.open.push(block);
    }

    fn piece(&mut self, index: Option<u64>, raw: &RawValue, out: &mut Events) {
        let piece: Piece<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let at = match index {
            Some(_) => self.open.iter().position(|block| block.index == index),
            None => self.open.len().checked_sub(1),
        };
        let at = at.or_else(|| {
            self.open.push(Block::guess(index, &piece)?);
            self.open.len().checked_sub(1)
        });
        let block = at.and_then(|at| self.open.get_mut(at));
        show(block.and_then(|block| block.take(&piece)), out);
    }

    fn closed(&mut self, origin: &Origin, index: Option<u64>, out: &mut Events) {
        let at = match index {
            Some(_) => self.open.iter().position(|block| block.index == index),
            None => self.open.len().checked_sub(1),
        };
        if let Some(at) = at {
            let block = self.open.remove(at);
            self.finished(origin, block, out);
        }
    }

    fn finished(&mut self, origin: &Origin, block: Block, out: &mut Events) {
        match block.finish() {
            Finished::Empty => {}
            Finished::Opaque(raw) => self.waiting.push(raw),
            Finished::Item(item) => {
                // Only what opens a reply can stand directly after the note.
                let after_note = self.noted && !std::mem::replace(&mut self.gave, true);
                let carried = self.waiting.drain(..).filter_map(|raw| carry(&raw, after_note, origin));
                out.extend(carried.chain([item]).map(|item| Ok(ModelEvent::Item(item))));
            }
        }
    }

    fn count(&mut self, raw: Option<&RawValue>) {
        let Some(new) = raw.and_then(|raw| serde_json::from_str::<Counts>(raw.get()).ok()) else { return };
        // Said at the start, and again with what was added; some servers know nothing at the start and say nought.
        let counts = &mut self.counts;
        counts.input_tokens = counts.input_tokens.max(new.input_tokens);
        counts.cache_creation_input_tokens = counts.cache_creation_input_tokens.max(new.cache_creation_input_tokens);
        counts.cache_read_input_tokens = counts.cache_read_input_tokens.max(new.cache_read_input_tokens);
        counts.output_tokens = counts.output_tokens.max(new.output_tokens);
    }

    /// What was left open is closed, and the reply with it.
    fn done(&mut self, origin: &Origin, out: &mut Events) -> Result<ModelEvent, ModelError> {
        for block in std::mem::take(&mut self.open) {
            self.finished(origin, block, out);
        }
        let reason = self.stop.as_deref().unwrap_or_default();
        match reason {
            "refusal" => {
                return Err(ModelError {
                    kind: ErrorKind::Rejected,
                    message: format!("the model of {} declined to answer", origin.provider),
                    hints: vec!["word the task differently, or use another model".to_owned()],
                });
            }
            "max_tokens" | "model_context_window_exceeded" => {
                tracing::warn!(provider = origin.provider, reason, "the reply is incomplete");
            }
            _ => {}
        }
        let cached = self.counts.cache_read_input_tokens.unwrap_or(0);
        let written = self.counts.cache_creation_input_tokens.unwrap_or(0);
        let usage = Usage {
            // The wire counts apart what it had cached and what it will have.
            input: self.counts.input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(written),
            cached_input: cached,
            output: self.counts.output_tokens.unwrap_or(0),
            reasoning: 0,
        };
        Ok(ModelEvent::Done { usage, wants_more: (reason == "pause_turn").then_some(true) })
    }
}

impl Normalise for Normaliser {
    fn understood(&self) -> bool {
        self.started
    }

    fn may_end(&self) -> bool {
        self.stop.is_some()
    }

    fn take(&mut self, origin: &Origin, event: &Event, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(None);
        }
        let envelope: Envelope<'_> = serde_json::from_slice(data).map_err(|_| nonsense(origin, data))?;
        let kind = envelope.kind.as_deref().unwrap_or(&event.name);
        let fault = envelope.error.is_some_and(|error| error.get() != "null");
        if kind == "error" || fault {
            return Err(Fault::in_stream(origin, &String::from_utf8_lossy(data)));
        }
        match kind {
            "message_start" => {
                self.start(out);
                self.count(envelope.message.and_then(|message| message.usage));
            }
            "content_block_start" => {
                self.start(out);
                if let Some(raw) = envelope.content_block {
                    self.opened(envelope.index, raw, out);
                }
            }
            "content_block_delta" => {
                self.start(out);
                if let Some(raw) = envelope.delta {
                    self.piece(envelope.index, raw, out);
                }
            }
            "content_block_stop" => self.closed(origin, envelope.index, out),
            "message_delta" => {
                self.start(out);
                self.count(envelope.usage);
                let reply: Reply<'_> =
                    envelope.delta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
                if let Some(reason) = reply.stop_reason.filter(|reason| !reason.is_empty()) {
                    self.stop = Some(reason.into_owned());
                }
            }
            "message_stop" => {
                self.start(out);
                return self.done(origin, out).map(Some);
            }
            // `ping`, and whatever comes to be.
            _ => {}
        }
        Ok(None)
    }

    fn end(&mut self, origin: &Origin, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        self.done(origin, out).map(Some)
    }

    fn whole(&mut self, origin: &Origin, body: &[u8], out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let Ok(json) = std::str::from_utf8(body) else { return Ok(None) };
        let reply: Reply<'_> = serde_json::from_str(json).unwrap_or_default();
        let Some(content) = reply.content else {
            return if Fault::parse(json).is_some() { Err(Fault::in_stream(origin, json)) } else { Ok(None) };
        };
        self.start(out);
        for raw in content {
            self.finished(origin, Block::open(None, raw), out);
        }
        self.count(reply.usage);
        self.stop = reply.stop_reason.map(Cow::into_owned);
        self.done(origin, out).map(Some)
    }
}

fn show(shown: Option<Shown>, out: &mut Events) {
    out.extend(shown.map(|shown| {
        Ok(match shown {
            Shown::Text(text) => ModelEvent::TextDelta(text),
            Shown::Reasoning(text) => ModelEvent::ReasoningDelta(text),
            Shown::Hidden => ModelEvent::Piece,
        })
    }));
}
