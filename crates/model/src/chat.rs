//! The `OpenAI` Chat Completions wire, as the many servers that speak it really do.
//!
//! A conversation has one system message, at its very beginning: templates of local models refuse a second one, or
//! one later on. What the program says later is a marked text of the user.

use std::sync::Arc;

use crate::body::Body;
use crate::fault::Origin;
use crate::remote::Dialect;
use crate::written::KEEP_FROM;
use crate::{Head, ModelRequest, Provider, ToolWire, Wire, tools};

mod body;
mod calls;
mod details;
mod normal;

/// The wire, as one provider speaks it.
#[derive(Debug)]
pub(crate) struct Chat {
    habits: Habits,
}

/// Where providers differ in what they accept.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    /// The official OpenAI: limits the output by `max_completion_tokens`, which others do not know, and takes a cache
    /// key.
    openai: bool,
    /// DeepSeek: while it thinks, it refuses a message of the model without `reasoning_content`, an empty one excepted.
    deepseek: bool,
    /// Gemini: has refused a request with `parallel_tool_calls`.
    gemini: bool,
}

impl Chat {
    pub(crate) fn new(provider: &Provider) -> Self {
        // A provider may have another name in the user's configuration than its address suggests.
        let is = |name: &str, host: &str| provider.name == name || provider.base_url.contains(host);
        let habits = Habits {
            openai: is("openai", "//api.openai.com/"),
            deepseek: is("deepseek", "//api.deepseek.com"),
            gemini: is("gemini", "//generativelanguage.googleapis.com/"),
        };
        Self { habits }
    }

    /// The body. A conversation of at least `keep_from` items is kept as it was written.
    pub(crate) fn body(&self, origin: &Origin, request: &ModelRequest, keep_from: usize) -> Body {
        body::build(origin, self.habits, request, keep_from)
    }
}

impl Dialect for Chat {
    type Normaliser = normal::Normaliser;

    const WIRE: Wire = Wire::Chat;

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        tools::chat(tools)
    }

    fn prepare(&self, origin: &Origin, request: &ModelRequest) -> (String, normal::Normaliser) {
        (self.body(origin, request, KEEP_FROM).json, normal::Normaliser::default())
    }
}

#[cfg(test)]
mod tests;
