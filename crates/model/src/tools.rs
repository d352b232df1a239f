//! Tools as each wire wants them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::{Head, ToolKind, ToolWire};

/// Of the Responses wire.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Entry<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        // Said, because a server that takes silence for `true` would rewrite schemas with optional properties.
        strict: bool,
    },
    Custom {
        name: &'a str,
        description: &'a str,
        format: Format<'a>,
    },
}

#[derive(Serialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    syntax: &'a str,
    definition: &'a str,
}

/// Of the Chat wire.
#[derive(Serialize)]
struct Wrapped<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// Of the Messages wire.
#[derive(Serialize)]
struct Plain<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

/// For the Responses wire. Where the server takes no free text (`custom` is false), functions stand in.
pub(crate) fn responses(tools: &[ToolWire], custom: bool) -> Arc<Head> {
    head(tools, |tool| {
        let (name, description) = (tool.name.as_str(), tool.description.as_str());
        match &tool.kind {
            ToolKind::Freeform { syntax, definition, .. } if custom => {
                Entry::Custom { name, description, format: Format { kind: "grammar", syntax, definition } }
            }
            _ => Entry::Function { name, description, parameters: schema(tool), strict: false },
        }
    })
}

/// For the Chat wire.
pub(crate) fn chat(tools: &[ToolWire]) -> Arc<Head> {
    head(tools, |tool| Wrapped {
        kind: "function",
        function: Function { name: &tool.name, description: &tool.description, parameters: schema(tool) },
    })
}

/// For the Messages wire.
pub(crate) fn messages(tools: &[ToolWire]) -> Arc<Head> {
    head(tools, |tool| Plain { name: &tool.name, description: &tool.description, input_schema: schema(tool) })
}

fn head<'a, T: Serialize>(tools: &'a [ToolWire], entry: impl Fn(&'a ToolWire) -> T) -> Arc<Head> {
    let entries: Vec<T> = tools.iter().map(entry).collect();
    // Strings and values always serialise; an empty list would only mean a model without tools.
    let json = serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned());
    Arc::new(Head { tools: json.into(), names: tools.iter().map(|tool| tool.name.clone()).collect() })
}

/// The schema of a function that is the tool, or stands in for it.
fn schema(tool: &ToolWire) -> &Value {
    match &tool.kind {
        ToolKind::Function(schema) | ToolKind::Freeform { fallback: schema, .. } => schema,
    }
}
