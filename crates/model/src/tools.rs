//! Tools as the Responses wire wants them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::{Head, ToolKind, ToolWire};

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

/// Serialises the tools. Where the server takes no free text (`custom` is false), functions stand in.
pub(crate) fn head(tools: &[ToolWire], custom: bool) -> Arc<Head> {
    let entries: Vec<Entry<'_>> = tools.iter().map(|tool| entry(tool, custom)).collect();
    // Strings and values always serialise; an empty list would only mean a model without tools.
    let json = serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned());
    Arc::new(Head { tools: json.into(), names: tools.iter().map(|tool| tool.name.clone()).collect() })
}

fn entry(tool: &ToolWire, custom: bool) -> Entry<'_> {
    let (name, description) = (&tool.name, &tool.description);
    match &tool.kind {
        ToolKind::Freeform { syntax, definition, .. } if custom => {
            Entry::Custom { name, description, format: Format { kind: "grammar", syntax, definition } }
        }
        ToolKind::Function(parameters) | ToolKind::Freeform { fallback: parameters, .. } => {
            Entry::Function { name, description, parameters, strict: false }
        }
    }
}
