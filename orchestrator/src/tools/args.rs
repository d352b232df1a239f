//! Reading arguments and naming targets.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tool_api::{Invocation, ToolError, ToolInput};

use super::Me;
use crate::TreeError;
use crate::node::Node;

/// The schema of a tool's arguments, from the type that reads them.
pub(super) fn function<T: JsonSchema>() -> ToolInput {
    let mut parameters = schemars::schema_for!(T).to_value();
    if let Some(object) = parameters.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
        object.remove("description");
    }
    ToolInput::Function { parameters }
}

/// The arguments of a call. An unknown field is refused by name.
pub(super) fn read<T: DeserializeOwned>(invocation: &Invocation) -> Result<T, ToolError> {
    let text = invocation.call.arguments.trim();
    let text = if text.is_empty() { "{}" } else { text };
    serde_json::from_str(text)
        .map_err(|error| ToolError::respond(format!("the arguments of `{}` do not fit: {error}", invocation.call.name)))
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
