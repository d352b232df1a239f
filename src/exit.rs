//! Exit codes, and failures on the way to them.

use config::ConfigError;
use model::{ErrorKind, OpenError};
use orchestrator::{Answer, TreeError};
use protocol::Outcome;
use rollout::LockError;

/// The task is done.
pub(crate) const DONE: u8 = 0;
/// The task ended in error.
pub(crate) const ERRORED: u8 = 1;
/// Wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// The provider cannot be reached, or refuses the key.
pub(crate) const PROVIDER: u8 = 3;
/// Over budget.
pub(crate) const BUDGET: u8 = 4;
/// Another process owns the tree and does not answer.
pub(crate) const OWNED: u8 = 5;
/// Interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why the command ends without an answer: one sentence, then what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into(), hints: Vec::new() }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: ERRORED, message: message.into(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { code: USAGE, message: error.to_string(), hints: error.hints() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let code = if matches!(error, OpenError::NoKey { .. }) { PROVIDER } else { USAGE };
        Self { code, message: error.to_string(), hints: error.hints() }
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        let message = error.to_string();
        match error {
            TreeError::Model(error) => error.into(),
            TreeError::Lock(error @ LockError::Owned(_)) => {
                Self { code: OWNED, message: error.to_string(), hints: Vec::new() }
            }
            TreeError::NoTree(_)
            | TreeError::NoAgent { .. }
            | TreeError::Path(_)
            | TreeError::Mail(_)
            | TreeError::NotAllowed { .. }
            | TreeError::Role(_)
            | TreeError::NoRoles => Self::usage(message),
            TreeError::Rollout(_)
            | TreeError::Lock(_)
            | TreeError::NoRoot(_)
            | TreeError::Graph(_)
            | TreeError::Narrow(_)
            | TreeError::NoRole { .. }
            | TreeError::Unenforced { .. }
            | TreeError::ShuttingDown => Self::internal(message),
        }
    }
}

/// The exit code that an answer stands for.
pub(crate) fn of(answer: &Answer) -> u8 {
    match answer.end.outcome {
        Outcome::Completed => DONE,
        Outcome::OverBudget => BUDGET,
        Outcome::Interrupted | Outcome::Closed => INTERRUPTED,
        Outcome::Errored | Outcome::Lost => match answer.fault.as_ref().map(|fault| fault.kind) {
            Some(ErrorKind::Unreachable | ErrorKind::Refused) => PROVIDER,
            _ => ERRORED,
        },
    }
}
