//! Why a request was not done, in a form that crosses a socket.

use serde::{Deserialize, Serialize};

/// Why something was not done: one sentence, what to do, and a word for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// One sentence.
    pub message: String,
    /// What to do.
    #[serde(default)]
    pub hints: Vec<String>,
    /// For programs; decides exit codes.
    #[serde(default)]
    pub code: Code,
}

/// What kind of fault it is. Wire names are frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request cannot be meant: not of this protocol, an unknown operation, a field that is wrong.
    Usage,
    /// There is no open agent at that path.
    NoAgent,
    /// There is no such task.
    NoTask,
    /// Too much at once; later it may work.
    Busy,
    /// A line is longer than [`MAX_LINE`](crate::MAX_LINE).
    TooLong,
    /// The two sides speak different protocols.
    Version,
    /// Another user's process.
    Forbidden,
    /// The owner is letting go of the tree.
    ShuttingDown,
    /// The owner cannot be reached, or went away in the middle.
    Gone,
    /// The provider cannot be reached or refuses the key.
    Provider,
    /// A failure on the owner's side.
    Internal,
    /// A kind this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

impl Fault {
    /// A fault without hints.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code }
    }

    /// With one more thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
