//! The `OpenAI` Responses wire. Items are already in its form: they are spliced in as they are.

use std::sync::Arc;

use crate::fault::Origin;
use crate::remote::Dialect;
use crate::{Head, ModelRequest, Provider, ToolWire, Wire, tools};

mod body;
mod normal;
mod output;

/// The wire, as one provider speaks it.
#[derive(Debug)]
pub(crate) struct Responses {
    custom_tools: bool,
}

impl Responses {
    pub(crate) fn new(provider: &Provider) -> Self {
        Self { custom_tools: provider.custom_tools }
    }
}

impl Dialect for Responses {
    type Normaliser = normal::Normaliser;

    const WIRE: Wire = Wire::Responses;

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        tools::responses(tools, self.custom_tools)
    }

    fn prepare(&self, origin: &Origin, request: &ModelRequest) -> (String, normal::Normaliser) {
        (body::build(&origin.model, self.custom_tools, request), normal::Normaliser::default())
    }
}

#[cfg(test)]
mod tests;
