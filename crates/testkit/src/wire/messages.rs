//! A reply as the events of the Anthropic Messages wire.
//!
//! A raw item is a content block that comes whole, as it stands. Reasoning is a block of thinking that is signed with
//! the given bytes. Commentary has no mark of its own here.

use serde_json::{Value, json};

use super::{Event, call_id, counts, function, pieces};
use crate::Request;
use crate::reply::{Finish, Part, Reply};

/// What a block of thinking says: what matters about it is its signature.
const THOUGHT: &str = "Let me think: \"first\" things first…";

/// The events of `reply`.
pub(super) fn events(request: &Request, reply: &Reply) -> Vec<Event> {
    let mut out = vec![event("message_start", &[("message", message(request, reply, "[]", None))])];
    if let Some(bytes) = reply.shape.huge {
        out.push(event("padding", &[("padding", json!("x".repeat(bytes)).to_string())]));
    }
    for (index, part) in reply.parts.iter().enumerate() {
        block(&mut out, request, reply, index, part);
    }
    let reason = match &reply.finish {
        Finish::Completed => completed(reply),
        Finish::Incomplete(reason) => incomplete(reason),
        Finish::Failed { code, message } => {
            out.push(event("error", &[("error", json!({"type": code, "message": message}).to_string())]));
            return out;
        }
        Finish::Nothing => return out,
    };
    let mut fields = vec![("delta", json!({"stop_reason": reason, "stop_sequence": null}).to_string())];
    if let Some([.., output]) = counts(request, reply) {
        fields.push(("usage", json!({ "output_tokens": output }).to_string()));
    }
    out.push(event("message_delta", &fields));
    out.push(event("message_stop", &[]));
    out
}

/// The whole reply as one object.
pub(super) fn whole(request: &Request, reply: &Reply) -> String {
    let blocks: Vec<String> = (0..reply.parts.len()).map(|index| finished(request, reply, index)).collect();
    message(request, reply, &format!("[{}]", blocks.join(",")), Some(completed(reply)))
}

/// The events of the block at `index`.
fn block(out: &mut Vec<Event>, request: &Request, reply: &Reply, index: usize, part: &Part) {
    let at = ("index", index.to_string());
    let mut begun: Value = serde_json::from_str(&finished(request, reply, index)).unwrap_or_default();
    let mut deltas = Vec::new();
    match part {
        Part::Text { text, .. } => {
            begun["text"] = "".into();
            deltas.extend(pieces(text).iter().map(|piece| json!({"type": "text_delta", "text": piece})));
        }
        Part::Reasoning(signature) => {
            begun["thinking"] = "".into();
            begun["signature"] = "".into();
            deltas.extend(pieces(THOUGHT).iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})));
            deltas.push(json!({"type": "signature_delta", "signature": signature}));
        }
        Part::Call { .. } | Part::Custom { .. } => {
            begun["input"] = json!({});
            let arguments = function(part).map(|(_, arguments)| arguments).unwrap_or_default();
            let piece = |piece: &&str| json!({"type": "input_json_delta", "partial_json": piece});
            deltas.extend(pieces(&arguments).iter().map(piece));
        }
        Part::Raw(_) => {}
    }
    let begun = if let Part::Raw(raw) = part { raw.clone() } else { begun.to_string() };
    out.push(event("content_block_start", &[at.clone(), ("content_block", begun)]));
    out.extend(deltas.iter().map(|delta| event("content_block_delta", &[at.clone(), ("delta", delta.to_string())])));
    out.push(event("content_block_stop", &[at]));
}

/// The block at `index` with all that is in it.
fn finished(request: &Request, reply: &Reply, index: usize) -> String {
    let part = &reply.parts[index];
    let value = match part {
        Part::Raw(raw) => return raw.clone(),
        Part::Text { text, .. } => json!({"type": "text", "text": text}),
        Part::Reasoning(signature) => json!({"type": "thinking", "thinking": THOUGHT, "signature": signature}),
        Part::Call { .. } | Part::Custom { .. } => {
            let (name, arguments) = function(part).unwrap_or_default();
            // What is not JSON can only be streamed.
            let input: Value = serde_json::from_str(&arguments).unwrap_or_default();
            let mut block = json!({"type": "tool_use", "name": name, "input": input});
            if let Some(id) = call_id(request, reply, index) {
                block["id"] = id.into();
            }
            block
        }
    };
    value.to_string()
}

/// The reply as an object. The content is JSON text.
fn message(request: &Request, reply: &Reply, content: &str, reason: Option<&str>) -> String {
    let (count, model, reason) = (request.items().len(), &request.json()["model"], json!(reason));
    let mut object = format!(
        r#"{{"id":"msg_{count}","type":"message","role":"assistant","model":{model},"content":{content},"stop_reason":{reason}"#
    );
    if let Some([input, cached, output]) = counts(request, reply) {
        // At the start there is no output yet; input that was cached is counted apart.
        let output = if reason.is_null() { 1 } else { output };
        let usage = json!({
            "input_tokens": input.saturating_sub(cached),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": output,
        });
        object += &format!(r#","usage":{usage}"#);
    }
    object + "}"
}

fn completed(reply: &Reply) -> &'static str {
    if reply.has_calls() { "tool_use" } else { "end_turn" }
}

fn incomplete(reason: &str) -> &str {
    match reason {
        "max_output_tokens" => "max_tokens",
        "content_filter" => "refusal",
        other => other,
    }
}

/// An event. The values are JSON text.
fn event(name: &'static str, fields: &[(&str, String)]) -> Event {
    let mut data = format!(r#"{{"type":"{name}""#);
    for (name, value) in fields {
        data += &format!(r#","{name}":{value}"#);
    }
    Event { name, data: data + "}" }
}
