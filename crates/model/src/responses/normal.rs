//! From the wire's events to ours.

use std::borrow::Cow;

use protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::output::Outputs;
use crate::fault::{Fault, Origin};
use crate::remote::{Events, Normalise, nonsense};
use crate::sse::Event;
use crate::{ErrorKind, ModelError, ModelEvent};

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_index: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply<'a> {
    #[serde(borrow)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    end_turn: Option<bool>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// Turns one reply's events into ours.
#[derive(Debug, Default)]
pub(crate) struct Normaliser {
    started: bool,
    outputs: Outputs,
}

impl Normalise for Normaliser {
    fn understood(&self) -> bool {
        self.started
    }

    fn take(&mut self, origin: &Origin, event: &Event, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(None);
        }
        let envelope: Envelope<'_> = serde_json::from_slice(data).map_err(|_| nonsense(origin, data))?;
        let kind = envelope.kind.as_deref().unwrap_or(&event.name);
        if kind.starts_with("response.") && !std::mem::replace(&mut self.started, true) {
            out.push_back(Ok(ModelEvent::Started));
        }
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                out.extend(text(envelope.delta).map(|text| Ok(ModelEvent::TextDelta(text))));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.extend(text(envelope.delta).map(|text| Ok(ModelEvent::ReasoningDelta(text))));
            }
            // Arguments of a call, mostly: the whole of them comes with the item.
            kind if kind.rsplit('.').next() == Some("delta") && text(envelope.delta).is_some() => {
                out.push_back(Ok(ModelEvent::Piece));
            }
            "response.output_item.done" => {
                let item = envelope.item.ok_or_else(|| nonsense(origin, data))?;
                let index = envelope.output_index.and_then(|index| index.get().parse().ok());
                let item = self.outputs.announced(item, index).map_err(|_| nonsense(origin, data))?;
                out.extend(item.map(|item| Ok(ModelEvent::Item(item))));
            }
            "response.completed" | "response.done" | "response.incomplete" => {
                let json = envelope.response.map_or("{}", RawValue::get);
                return self.finished(origin, json, out).map(Some);
            }
            "response.failed" => {
                let json = envelope.response.map_or("{}", RawValue::get);
                return Err(Fault::in_stream(origin, json));
            }
            "error" => return Err(Fault::in_stream(origin, &String::from_utf8_lossy(data))),
            // Some servers send a bare error object in the middle of a stream.
            "" if Fault::parse(&String::from_utf8_lossy(data)).is_some() => {
                return Err(Fault::in_stream(origin, &String::from_utf8_lossy(data)));
            }
            _ => {}
        }
        Ok(None)
    }

    fn whole(&mut self, origin: &Origin, body: &[u8], out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let Ok(json) = std::str::from_utf8(body) else { return Ok(None) };
        let Ok(reply) = serde_json::from_str::<Reply<'_>>(json) else { return Ok(None) };
        if reply.status.as_deref() == Some("failed") || (reply.output.is_none() && Fault::parse(json).is_some()) {
            return Err(Fault::in_stream(origin, json));
        }
        if reply.output.is_none() {
            return Ok(None);
        }
        out.push_back(Ok(ModelEvent::Started));
        self.finished(origin, json, out).map(Some)
    }
}

impl Normaliser {
    fn finished(&mut self, origin: &Origin, json: &str, out: &mut Events) -> Result<ModelEvent, ModelError> {
        let reply: Reply<'_> = serde_json::from_str(json).map_err(|_| nonsense(origin, json.as_bytes()))?;
        match reply.incomplete_details.and_then(|details| details.reason).as_deref() {
            Some("content_filter") => {
                return Err(ModelError {
                    kind: ErrorKind::Rejected,
                    message: format!("{} cut the reply off: its content filter stepped in", origin.provider),
                    hints: vec!["word the task differently, or use another model".to_owned()],
                });
            }
            Some(reason) => {
                tracing::warn!(provider = origin.provider, reason, "the reply is incomplete");
            }
            None => {}
        }
        let output: Vec<&RawValue> =
            reply.output.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let missing = self.outputs.missing(&output).map_err(|_| nonsense(origin, json.as_bytes()))?;
        out.extend(missing.into_iter().map(|item| Ok(ModelEvent::Item(item))));
        Ok(ModelEvent::Done { usage: usage(reply.usage), wants_more: reply.end_turn.map(|end| !end) })
    }
}

fn usage(raw: Option<&RawValue>) -> Usage {
    let counts: Counts = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    Usage {
        input: counts.input_tokens.unwrap_or(0),
        cached_input: counts.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
        output: counts.output_tokens.unwrap_or(0),
        reasoning: counts.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
    }
}

fn text(delta: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(delta?.get()).ok().filter(|text: &String| !text.is_empty())
}
