//! The Anthropic Messages wire.
//!
//! What stands before a piece of signed reasoning may never change: newer models refuse the whole conversation
//! otherwise. So a body only ever grows, and the mark that moves with the end of the conversation (where the server
//! should cache) stands outside of it.

use std::sync::Arc;

use http::Auth;
use stdx::Secret;

use crate::body::Body;
use crate::fault::Origin;
use crate::remote::Dialect;
use crate::written::KEEP_FROM;
use crate::{Head, ModelRequest, Provider, ToolWire, Wire, tools};

mod blocks;
mod body;
mod limits;
mod normal;

/// The version of the protocol that is spoken. The only one there is; every request must name it.
const VERSION: &str = "2023-06-01";

/// The wire, as one provider speaks it.
#[derive(Debug)]
pub(crate) struct Messages {
    /// The official server, which caches by itself when it is told to.
    anthropic: bool,
}

impl Messages {
    pub(crate) fn new(provider: &Provider) -> Self {
        Self { anthropic: provider.name == "anthropic" || provider.base_url.contains("//api.anthropic.com/") }
    }

    /// The body, and whether it ends with the note that says "go on". A conversation of at least `keep_from` items is
    /// kept as it was written.
    pub(crate) fn body(&self, origin: &Origin, request: &ModelRequest, keep_from: usize) -> (Body, bool) {
        body::build(origin, self.anthropic, request, keep_from)
    }
}

impl Dialect for Messages {
    type Normaliser = normal::Normaliser;

    const WIRE: Wire = Wire::Messages;

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        tools::messages(tools)
    }

    fn auth(key: Secret) -> Auth {
        Auth::Header("x-api-key", key)
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("anthropic-version", VERSION.to_owned())]
    }

    fn prepare(&self, origin: &Origin, request: &ModelRequest) -> (String, normal::Normaliser) {
        let (body, noted) = self.body(origin, request, KEEP_FROM);
        (body.json, normal::Normaliser::new(noted))
    }
}

#[cfg(test)]
mod tests;
