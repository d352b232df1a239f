//! Reading arguments and naming targets.

use std::sync::Arc;

use schemars::JsonSchema;
use tool_api::{ToolError, ToolInput};

use super::Me;
use crate::TreeError;
use crate::node::Node;

/// The schema of a tool's arguments, from the type that reads them.
pub(super) fn function<T: JsonSchema>() -> ToolInput {
    ToolInput::Function { parameters: tool_api::schema::<T>() }
}

impl Me {
    /// The agent that `target` means to this one.
    pub(super) fn target(&self, target: &str) -> Result<Arc<Node>, ToolError> {
        let path = self.node.address.path.resolve(target).map_err(|error| ToolError::respond(error.to_string()))?;
        self.tree.at(&path).map_err(refuse)
    }
}

/// A refusal of the tree, as a tool says it.
pub(super) fn refuse(error: TreeError) -> ToolError {
    ToolError::respond(error.to_string())
}
