//! A reply as the events of the OpenAI Responses wire.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Event, call_id, counts, pieces};
use crate::Request;
use crate::reply::{Finish, Part, Reply};

/// The events of `reply`. Item bytes are spliced in and never written anew.
pub(super) fn events(request: &Request, reply: &Reply) -> Vec<Event> {
    let mut out = Stream::default();
    let base = base(request);
    out.push("response.created", vec![("response", response(&base, "in_progress", &[], &[]))]);
    if let Some(bytes) = reply.shape.huge {
        out.push("response.padding", vec![("padding", Value::from("x".repeat(bytes)).to_string())]);
    }
    let items: Vec<String> = (0..reply.parts.len()).map(|index| item(request, reply, index)).collect();
    if !reply.shape.unannounced {
        for (index, (part, item)) in reply.parts.iter().zip(&items).enumerate() {
            announce(&mut out, request, index, part, item);
        }
    }
    let usage = usage(request, reply);
    match &reply.finish {
        Finish::Completed => {
            out.push("response.completed", vec![("response", response(&base, "completed", &items, &usage))]);
        }
        Finish::Incomplete(reason) => {
            let mut extra = vec![("incomplete_details", json!({ "reason": reason }).to_string())];
            extra.extend(usage);
            out.push("response.incomplete", vec![("response", response(&base, "incomplete", &items, &extra))]);
        }
        Finish::Failed { code, message } => {
            let extra = [("error", json!({ "code": code, "message": message }).to_string())];
            out.push("response.failed", vec![("response", response(&base, "failed", &[], &extra))]);
        }
        Finish::Nothing => {}
    }
    if reply.shape.done_line {
        out.0.push(Event::done());
    }
    out.0
}

/// The whole reply as the one object that a server gives which does not stream.
pub(super) fn whole(request: &Request, reply: &Reply) -> String {
    let items: Vec<String> = (0..reply.parts.len()).map(|index| item(request, reply, index)).collect();
    response(&base(request), "completed", &items, &usage(request, reply))
}

#[derive(Default)]
struct Stream(Vec<Event>);

impl Stream {
    /// Adds an event. The values are JSON text.
    fn push(&mut self, name: &'static str, fields: Vec<(&str, String)>) {
        let mut data = format!(r#"{{"type":"{name}","sequence_number":{}"#, self.0.len());
        append(&mut data, &fields);
        data.push('}');
        self.0.push(Event { name, data });
    }
}

fn append(object: &mut String, fields: &[(&str, String)]) {
    for (name, value) in fields {
        let _ = write!(object, r#","{name}":{value}"#);
    }
}

/// Ids follow from the conversation alone: the same request gets the same reply, to the byte.
fn base(request: &Request) -> String {
    let model = &request.json()["model"];
    format!(r#""id":"resp_{}","object":"response","created_at":0,"model":{model}"#, request.items().len())
}

fn response(base: &str, status: &str, items: &[String], extra: &[(&str, String)]) -> String {
    let mut object = format!(r#"{{{base},"status":"{status}","output":[{}]"#, items.join(","));
    append(&mut object, extra);
    object.push('}');
    object
}

/// The field with what was counted, unless the server keeps silent about it.
fn usage(request: &Request, reply: &Reply) -> Vec<(&'static str, String)> {
    let usage = counts(request, reply).map(|[input, cached, output]| {
        json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output,
        })
    });
    usage.map(|usage| ("usage", usage.to_string())).into_iter().collect()
}

fn item_id(request: &Request, index: usize) -> String {
    format!("item_{}_{index}", request.items().len())
}

/// The finished item at `index`.
fn item(request: &Request, reply: &Reply, index: usize) -> String {
    let id = item_id(request, index);
    let mut value = match &reply.parts[index] {
        Part::Raw(json) => return json.clone(),
        Part::Text { text, commentary } => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            let mut item =
                json!({"type": "message", "id": id, "status": "completed", "role": "assistant", "content": content});
            if *commentary {
                item["phase"] = "commentary".into();
            }
            return item.to_string();
        }
        Part::Reasoning(opaque) => {
            return json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": opaque}).to_string();
        }
        Part::Call { name, arguments } => {
            json!({"type": "function_call", "id": id, "status": "completed", "name": name, "arguments": arguments})
        }
        Part::Custom { name, input } => {
            json!({"type": "custom_tool_call", "id": id, "status": "completed", "name": name, "input": input})
        }
    };
    if let Some(id) = call_id(request, reply, index) {
        value["call_id"] = id.into();
    }
    value.to_string()
}

/// The events that lead up to a finished item, and the one that says that it is finished.
fn announce(out: &mut Stream, request: &Request, index: usize, part: &Part, item: &str) {
    let id = Value::from(item_id(request, index)).to_string();
    let at = |rest: Vec<(&'static str, String)>| {
        let mut fields = vec![("item_id", id.clone()), ("output_index", index.to_string())];
        fields.extend(rest);
        fields
    };
    let quote = |text: &str| Value::from(text).to_string();
    let begun = match part {
        Part::Raw(json) => json.clone(),
        _ => begun(item),
    };
    out.push("response.output_item.added", vec![("output_index", index.to_string()), ("item", begun)]);
    match part {
        Part::Text { text, .. } => {
            let content = |text: &str| json!({"type": "output_text", "text": text, "annotations": []}).to_string();
            let zero = ("content_index", "0".to_owned());
            out.push("response.content_part.added", at(vec![zero.clone(), ("part", content(""))]));
            for piece in pieces(text) {
                out.push("response.output_text.delta", at(vec![zero.clone(), ("delta", quote(piece))]));
            }
            out.push("response.output_text.done", at(vec![zero.clone(), ("text", quote(text))]));
            out.push("response.content_part.done", at(vec![zero, ("part", content(text))]));
        }
        Part::Call { arguments, .. } => {
            for piece in pieces(arguments) {
                out.push("response.function_call_arguments.delta", at(vec![("delta", quote(piece))]));
            }
            out.push("response.function_call_arguments.done", at(vec![("arguments", quote(arguments))]));
        }
        Part::Custom { input, .. } => {
            for piece in pieces(input) {
                out.push("response.custom_tool_call_input.delta", at(vec![("delta", quote(piece))]));
            }
            out.push("response.custom_tool_call_input.done", at(vec![("input", quote(input))]));
        }
        Part::Reasoning(_) | Part::Raw(_) => {}
    }
    out.push("response.output_item.done", vec![("output_index", index.to_string()), ("item", item.to_owned())]);
}

/// The item as it is announced: under way, with nothing in it.
fn begun(item: &str) -> String {
    let mut value: Value = serde_json::from_str(item).unwrap_or_default();
    let empty =
        [("content", json!([])), ("arguments", "".into()), ("input", "".into()), ("status", "in_progress".into())];
    for (key, empty) in empty {
        if let Some(field) = value.get_mut(key) {
            *field = empty;
        }
    }
    value.to_string()
}
