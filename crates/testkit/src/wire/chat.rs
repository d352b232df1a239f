//! A reply as the events of the Chat Completions wire.
//!
//! A raw item is a `delta`, as it stands. Commentary has no mark of its own here.

use serde_json::{Value, json};

use super::{Event, call_id, counts, function, pieces};
use crate::Request;
use crate::reply::{Finish, Part, Reply};

/// The events of `reply`.
pub(super) fn events(request: &Request, reply: &Reply) -> Vec<Event> {
    let mut out = vec![choice(request, r#"{"role":"assistant","content":""}"#, None)];
    if let Some(bytes) = reply.shape.huge {
        out.push(chunk(request, "[]", &[("padding", json!("x".repeat(bytes)))]));
    }
    let mut calls = 0;
    for (index, part) in reply.parts.iter().enumerate() {
        let mut delta = |delta: Value| out.push(choice(request, &delta.to_string(), None));
        match part {
            Part::Text { text, .. } => pieces(text).iter().for_each(|piece| delta(json!({ "content": piece }))),
            Part::Reasoning(text) => pieces(text).iter().for_each(|piece| delta(json!({ "reasoning_content": piece }))),
            Part::Raw(raw) => out.push(choice(request, raw, None)),
            Part::Call { .. } | Part::Custom { .. } => {
                for piece in call(request, reply, index, calls) {
                    delta(json!({ "tool_calls": [piece] }));
                }
                calls += 1;
            }
        }
    }
    let reason = match &reply.finish {
        Finish::Completed if calls > 0 => "tool_calls",
        Finish::Completed => "stop",
        Finish::Incomplete(reason) => incomplete(reason),
        Finish::Failed { code, message } => {
            out.push(Event { name: "", data: json!({"error": {"code": code, "message": message}}).to_string() });
            return out;
        }
        Finish::Nothing => return out,
    };
    out.push(choice(request, "{}", Some(reason)));
    if let Some(usage) = usage(request, reply) {
        out.push(chunk(request, "[]", &[("usage", usage)]));
    }
    out.push(Event::done());
    out
}

/// The whole reply as one object: its texts and calls.
pub(super) fn whole(request: &Request, reply: &Reply) -> String {
    let texts: Vec<&str> = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> = (0..reply.parts.len()).filter_map(|index| made(request, reply, index)).collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({"role": "assistant", "content": texts.concat()});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choices = json!([{"index": 0, "message": message, "finish_reason": reason}]);
    let mut object = json!({"id": id(request), "object": "chat.completion", "created": 0, "choices": choices});
    object["model"] = request.json()["model"].clone();
    if let Some(usage) = usage(request, reply) {
        object["usage"] = usage;
    }
    object.to_string()
}

/// The pieces of the call at `index`, which is the reply's call number `at`.
fn call(request: &Request, reply: &Reply, index: usize, at: usize) -> Vec<Value> {
    let Some(mut whole) = made(request, reply, index) else { return Vec::new() };
    whole["index"] = at.into();
    let mut rest = Vec::new();
    if let Value::String(arguments) = &mut whole["function"]["arguments"] {
        let arguments = std::mem::take(arguments);
        let piece = |piece: &&str| json!({"index": at, "function": {"arguments": piece}});
        rest.extend(pieces(&arguments).iter().map(piece));
    }
    std::iter::once(whole).chain(rest).collect()
}

/// The call at `index` in one piece.
fn made(request: &Request, reply: &Reply, index: usize) -> Option<Value> {
    let (name, arguments) = function(&reply.parts[index])?;
    let arguments = match serde_json::from_str(&arguments) {
        Ok(object @ Value::Object(_)) if reply.shape.object_arguments => object,
        _ => Value::from(arguments),
    };
    let mut call = json!({"type": "function", "function": {"name": name, "arguments": arguments}});
    if let Some(id) = call_id(request, reply, index) {
        call["id"] = id.into();
    }
    Some(call)
}

fn usage(request: &Request, reply: &Reply) -> Option<Value> {
    counts(request, reply).map(|[input, cached, output]| {
        json!({
            "prompt_tokens": input,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": output,
            "total_tokens": input + output,
        })
    })
}

fn incomplete(reason: &str) -> &str {
    if reason == "max_output_tokens" { "length" } else { reason }
}

/// A chunk with one choice. The delta is JSON text.
fn choice(request: &Request, delta: &str, reason: Option<&str>) -> Event {
    let reason = json!(reason);
    chunk(request, &format!(r#"[{{"index":0,"delta":{delta},"finish_reason":{reason}}}]"#), &[])
}

fn chunk(request: &Request, choices: &str, extra: &[(&str, Value)]) -> Event {
    let (id, model) = (id(request), &request.json()["model"]);
    let mut data =
        format!(r#"{{"id":"{id}","object":"chat.completion.chunk","created":0,"model":{model},"choices":{choices}"#);
    for (name, value) in extra {
        data += &format!(r#","{name}":{value}"#);
    }
    Event { name: "", data: data + "}" }
}

fn id(request: &Request) -> String {
    format!("chatcmpl_{}", request.items().len())
}
