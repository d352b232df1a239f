//! From the wire's events to ours.
//!
//! This wire says that a reply is complete, but not that a part of it is: everything is put together first and given
//! out at the end, in the order of the canonical form (reasoning, text, calls). So a reply that breaks off has given
//! nothing, and is asked for again from the beginning.

use std::borrow::Cow;
use std::collections::BTreeMap;

use protocol::{Item, Role, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::calls::{Calls, Function, Piece};
use super::details::Details;
use crate::fault::{Fault, Origin};
use crate::json;
use crate::opaque::Opaque;
use crate::remote::{Events, Normalise, nonsense};
use crate::sse::Event;
use crate::{ErrorKind, ModelError, ModelEvent, Wire};

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
}

/// A part of a text that comes as a list.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
    prompt_cache_hit_tokens: Option<u64>,
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

/// Puts one reply together. Texts are kept escaped: a piece may end within a character.
#[derive(Debug, Default)]
pub(crate) struct Normaliser {
    started: bool,
    text: String,
    refusal: String,
    reasoning: String,
    /// The field that reasoning came in.
    field: Option<&'static str>,
    details: Details,
    calls: Calls,
    /// Why the reply ended, once that was said.
    finish: Option<String>,
    /// Counts came in an event of their own, as they do after the end.
    counted_last: bool,
    usage: Usage,
}

impl Normalise for Normaliser {
    fn understood(&self) -> bool {
        self.started
    }

    fn may_end(&self) -> bool {
        self.finish.is_some() || (self.counted_last && !(self.text.is_empty() && self.calls.is_empty()))
    }

    fn take(&mut self, origin: &Origin, event: &Event, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(None);
        }
        if data == b"[DONE]" {
            return if self.started { self.end(origin, out) } else { Ok(None) };
        }
        let chunk: Chunk<'_> = serde_json::from_slice(data).map_err(|_| nonsense(origin, data))?;
        if given(chunk.error) || event.name == "error" {
            return Err(Fault::in_stream(origin, &String::from_utf8_lossy(data)));
        }
        let Some(choices) = chunk.choices else {
            if !self.started && Fault::parse(&String::from_utf8_lossy(data)).is_some() {
                return Err(Fault::in_stream(origin, &String::from_utf8_lossy(data)));
            }
            self.count(chunk.usage);
            return Ok(None);
        };
        if !std::mem::replace(&mut self.started, true) {
            out.push_back(Ok(ModelEvent::Started));
        }
        let counted = self.count(chunk.usage);
        self.counted_last = counted && choices.is_empty();
        for choice in choices {
            self.choice(origin, choice, out)?;
        }
        Ok(None)
    }

    fn end(&mut self, origin: &Origin, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        self.judge(origin)?;
        let calls = std::mem::take(&mut self.calls).finish();
        let extra: BTreeMap<String, Box<RawValue>> =
            calls.iter().filter_map(|call| Some((call.id.clone(), call.extra.clone()?))).collect();
        let details = self.details.whole();
        if !self.reasoning.is_empty() || details.is_some() || !extra.is_empty() {
            let text = serde_json::value::to_raw_value(&json::decode(&self.reasoning)).ok();
            let opaque = Opaque {
                field: self.field.map(Cow::Borrowed),
                text: text.as_deref().filter(|_| self.field.is_some()),
                details: details.as_deref(),
                extra,
                ..Opaque::default()
            };
            out.extend(opaque.item(Wire::Chat, &origin.provider).map(|item| Ok(ModelEvent::Item(item))));
        }
        for text in [&self.text, &self.refusal] {
            if !json::blank(text) {
                out.push_back(Ok(ModelEvent::Item(Item::message(Role::Assistant, &json::decode(text)))));
            }
        }
        for call in calls {
            out.push_back(Ok(ModelEvent::Item(Item::function_call(&call.id, &call.name, &call.arguments))));
        }
        Ok(Some(ModelEvent::Done { usage: self.usage, wants_more: None }))
    }

    fn whole(&mut self, origin: &Origin, body: &[u8], out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let Ok(json) = std::str::from_utf8(body) else { return Ok(None) };
        let chunk: Chunk<'_> = serde_json::from_str(json).unwrap_or_default();
        let choices = chunk.choices.unwrap_or_default();
        if choices.is_empty() {
            return if Fault::parse(json).is_some() { Err(Fault::in_stream(origin, json)) } else { Ok(None) };
        }
        self.started = true;
        out.push_back(Ok(ModelEvent::Started));
        self.count(chunk.usage);
        for choice in choices {
            self.choice(origin, choice, out)?;
        }
        // The whole is at hand: what would be shown piece by piece says nothing more.
        let piece = |event: &ModelEvent| {
            matches!(event, ModelEvent::TextDelta(_) | ModelEvent::ReasoningDelta(_) | ModelEvent::Piece)
        };
        out.retain(|event| !event.as_ref().is_ok_and(piece));
        self.end(origin, out)
    }
}

impl Normaliser {
    fn choice(&mut self, origin: &Origin, choice: Choice<'_>, out: &mut Events) -> Result<(), ModelError> {
        if choice.index.is_some_and(|index| !matches!(index.get(), "0" | "null")) {
            // One reply was asked for.
            return Ok(());
        }
        if let Some(error) = choice.error.filter(|error| given(Some(error))) {
            return Err(Fault::in_stream(origin, &format!("{{\"error\":{}}}", error.get())));
        }
        self.count(choice.usage);
        // Some servers repeat the whole as a message after its pieces.
        let fresh = self.text.is_empty() && self.calls.is_empty();
        if let Some(delta) = choice.delta.or(choice.message.filter(|_| fresh)) {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason.into_owned());
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Events) {
        for (field, raw) in [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)] {
            let Some(text) = raw.and_then(json::inner).filter(|text| !text.is_empty()) else { continue };
            // Servers that send both send the same in both.
            if *self.field.get_or_insert(field) == field {
                self.think(text, out);
            }
        }
        if let Some(raw) = delta.reasoning_details {
            self.details.take(raw);
            if !matches!(raw.get(), "null" | "[]") {
                out.push_back(Ok(ModelEvent::Piece));
            }
        }
        if let Some(raw) = delta.content {
            match json::inner(raw) {
                Some(text) => self.speak(text, out),
                None => self.parts(raw, out),
            }
        }
        if let Some(text) = delta.refusal.and_then(json::inner) {
            self.refusal.push_str(text);
            show(text, ModelEvent::TextDelta, out);
        }
        let pieces: Vec<Piece<'_>> =
            delta.tool_calls.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let pieces = pieces.into_iter().chain(delta.function_call.map(Piece::old));
        for piece in pieces {
            if self.calls.take(&piece) {
                out.push_back(Ok(ModelEvent::Piece));
            }
        }
    }

    /// A text that comes as a list of parts.
    fn parts(&mut self, raw: &RawValue, out: &mut Events) {
        let parts: Vec<Part<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
        for part in parts {
            if let Some(thinking) = part.thinking {
                let inside: Vec<Part<'_>> = serde_json::from_str(thinking.get()).unwrap_or_default();
                for text in inside.iter().filter_map(|part| json::inner(part.text?)) {
                    self.think(text, out);
                }
            } else if let Some(text) = part.text.and_then(json::inner)
                && part.kind.as_deref().is_none_or(|kind| kind.ends_with("text"))
            {
                self.speak(text, out);
            }
        }
    }

    fn speak(&mut self, escaped: &str, out: &mut Events) {
        self.text.push_str(escaped);
        show(escaped, ModelEvent::TextDelta, out);
    }

    fn think(&mut self, escaped: &str, out: &mut Events) {
        self.reasoning.push_str(escaped);
        show(escaped, ModelEvent::ReasoningDelta, out);
    }

    /// Reads counts, wherever they stand and however often: they only grow. Says whether there were any.
    fn count(&mut self, raw: Option<&RawValue>) -> bool {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return false };
        let Ok(counts) = serde_json::from_str::<Counts>(raw.get()) else { return false };
        let input = counts.prompt_tokens.unwrap_or(0);
        let cached = counts.prompt_tokens_details.and_then(|details| details.cached_tokens);
        // Some count reasoning only in the total.
        let rest = counts.total_tokens.unwrap_or(0).saturating_sub(input);
        let reasoning = counts.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let usage = &mut self.usage;
        usage.input = usage.input.max(input);
        usage.cached_input = usage.cached_input.max(cached.or(counts.prompt_cache_hit_tokens).unwrap_or(0));
        usage.output = usage.output.max(counts.completion_tokens.unwrap_or(0)).max(rest);
        usage.reasoning = usage.reasoning.max(reasoning.unwrap_or(0));
        true
    }

    /// Ends that are no success.
    fn judge(&self, origin: &Origin) -> Result<(), ModelError> {
        let provider = &origin.provider;
        let reason = self.finish.as_deref().unwrap_or_default();
        let (kind, message) = match reason {
            "content_filter" => {
                return Err(ModelError {
                    kind: ErrorKind::Rejected,
                    message: format!("{provider} cut the reply off: its content filter stepped in"),
                    hints: vec!["word the task differently, or use another model".to_owned()],
                });
            }
            "error" | "insufficient_system_resource" => {
                (ErrorKind::Server { after: None }, format!("{provider} ended its reply with an error: {reason}"))
            }
            "abort" => (ErrorKind::Interrupted, format!("{provider} broke off its reply")),
            // Gemini's word for a call that it could not read itself.
            reason if reason.contains("MALFORMED") || reason.contains("malformed") => {
                let reason = stdx::one_line(reason, crate::fault::MAX_QUOTE);
                (ErrorKind::Interrupted, format!("{provider} gave up its reply: {reason}"))
            }
            "length" => {
                tracing::warn!(provider, reason, "the reply is incomplete");
                return Ok(());
            }
            // `stop`, `tool_calls` and `function_call` are mixed up by many; what the reply holds says more.
            _ => return Ok(()),
        };
        Err(ModelError { kind, message, hints: Vec::new() })
    }
}

fn given(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

fn show(escaped: &str, event: fn(String) -> ModelEvent, out: &mut Events) {
    if !escaped.is_empty() {
        out.push_back(Ok(event(json::decode(escaped))));
    }
}
