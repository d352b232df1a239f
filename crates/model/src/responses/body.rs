//! The body of a request: spliced from bytes that exist already, never serialised anew. Only calls with free text are,
//! where the server knows functions only: a conversation may have begun with a provider that knows more.

use std::borrow::Cow;

use protocol::{Call, Item, ItemKind};

use crate::json::quote;
use crate::{ModelRequest, opaque};

/// What stands in an output of a call with free text.
const CUSTOM_OUTPUT: &str = "\"custom_tool_call_output\"";

/// Builds the body; `custom` says whether the server knows calls with free text. What differs from request to request stands at the end, and `input` last of all, so that the
/// bodies of a conversation share a prefix to the last byte and the provider's cache finds it.
pub(crate) fn build(model: &str, custom: bool, request: &ModelRequest) -> String {
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
    // What another wire has wrapped up is of no use here, and its marks would be refused.
    for (n, item) in items.iter().filter(|item| !opaque::is(item)).enumerate() {
        if n > 0 {
            out.push(',');
        }
        out += &if custom { Cow::Borrowed(item.raw()) } else { plain(item) };
    }
    out += "]}";
    out
}

/// An item as a server reads it that knows functions only.
fn plain(item: &Item) -> Cow<'_, str> {
    match item.kind() {
        ItemKind::CustomCall => {
            let Some(call) = item.call() else { return Cow::Borrowed(item.raw()) };
            // The schema that stands in for free text has one required string of this name.
            let arguments = format!("{{\"input\":{}}}", quote(&call.arguments));
            Cow::Owned(Item::function_call(&call.call_id, &call.name, &arguments).raw().to_owned())
        }
        ItemKind::Output if item.raw().contains(CUSTOM_OUTPUT) => {
            let call = Call {
                call_id: item.answered_call_id().unwrap_or_default(),
                name: String::new(),
                arguments: String::new(),
                custom: false,
            };
            Cow::Owned(Item::output(&call, &item.text()).raw().to_owned())
        }
        _ => Cow::Borrowed(item.raw()),
    }
}
