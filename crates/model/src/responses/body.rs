//! The body of a request: spliced from bytes that exist already, never serialised anew.

use serde_json::Value;

use crate::ModelRequest;

/// Builds the body. What differs from request to request stands at the end, and `input` last of all, so that the
/// bodies of a conversation share a prefix to the last byte and the provider's cache finds it.
pub(crate) fn build(model: &str, request: &ModelRequest) -> String {
    let head = &request.head;
    let items = request.input.items();
    let size: usize = items.iter().map(|item| item.raw().len() + 1).sum();
    let mut out = String::with_capacity(size + head.tools.len() + 512);
    out += "{\"model\":";
    out += &quote(model);
    out += ",\"stream\":true,\"store\":false";
    if !head.names.is_empty() {
        out += ",\"tools\":";
        out += &head.tools;
        out += ",\"tool_choice\":\"auto\",\"parallel_tool_calls\":true";
    }
    out += ",\"include\":[\"reasoning.encrypted_content\"]";
    if let Some(effort) = &request.effort {
        out += ",\"reasoning\":{\"effort\":";
        out += &quote(effort);
        out.push('}');
    }
    out += ",\"prompt_cache_key\":\"";
    out += &request.tree.to_string();
    out.push('"');
    if let Some(most) = request.max_output {
        out += ",\"max_output_tokens\":";
        out += &most.to_string();
    }
    out += ",\"input\":[";
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        out += item.raw();
    }
    out += "]}";
    out
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
