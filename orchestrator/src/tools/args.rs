//! Reading arguments and naming targets.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use stdx::Timestamp;
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

/// The shortest and the longest time that a task may be given: below, a model has not answered once; above, nobody
/// waits.
const DEADLINE: std::ops::RangeInclusive<u64> = 1_000..=604_800_000;

/// The moment at which a task ends that may take so many milliseconds.
pub(super) fn deadline(millis: Option<u64>) -> Result<Option<Timestamp>, ToolError> {
    let Some(millis) = millis else { return Ok(None) };
    if !DEADLINE.contains(&millis) {
        let (least, most) = (DEADLINE.start(), DEADLINE.end());
        return Err(ToolError::respond(format!("deadline_ms is from {least} to {most}, and {millis} is not")));
    }
    Ok(Some(stdx::now().after(Duration::from_millis(millis))))
}

/// A refusal of the tree, as a tool says it.
pub(super) fn refuse(error: TreeError) -> ToolError {
    ToolError::respond(error.to_string())
}
