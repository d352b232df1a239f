//! How a tool is described to a model.

use serde_json::Value;

/// The description of one tool. Its text is part of every request: keep it short and stable.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// `[A-Za-z0-9_]`, at most 64 bytes, unique within an agent.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// What it takes.
    pub input: ToolInput,
}

/// What a tool takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// A JSON object of this schema.
    Function {
        /// JSON Schema of the arguments. Unknown properties are refused by the tool, by name.
        parameters: Value,
    },
    /// Free text of this grammar. On a wire without free text the tool is offered as a function that takes one
    /// string, and its call arrives with that string as JSON arguments; the tool copes with both.
    Freeform {
        /// The grammar.
        grammar: Grammar,
        /// The schema offered where the wire has no free text: an object with one required string.
        fallback: Value,
    },
}

/// A grammar that the provider holds the model to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// `lark` or `regex`.
    pub syntax: &'static str,
    /// The grammar itself.
    pub definition: &'static str,
}
