//! Exit codes, and failures on the way to them.

use config::ConfigError;
use frontend::{Code, Fault};
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

    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { code: INTERRUPTED, message: message.into(), hints: Vec::new() }
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

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let code = match fault.code {
            Code::Usage | Code::NoAgent | Code::NoTask | Code::TooLong => USAGE,
            Code::Provider => PROVIDER,
            Code::Busy | Code::Gone | Code::ShuttingDown | Code::Forbidden | Code::Version => OWNED,
            Code::Internal | Code::Other => ERRORED,
        };
        Self { code, message: fault.message, hints: fault.hints }
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        let message = error.to_string();
        match error {
            TreeError::Model(error) => error.into(),
            TreeError::Lock(LockError::Owned(owner)) => {
                let meanwhile = "`agent tree` and `agent log` show what it does".to_owned();
                let end = match owner.pid {
                    0 => "wait for it to end, then give this command again".to_owned(),
                    pid => format!("wait for it to end, or end it with `kill {pid}`, then give this command again"),
                };
                Self { code: OWNED, message, hints: vec![end, meanwhile] }
            }
            TreeError::Archived(tree) => Self::usage(message)
                .hint(format!("`agent unarchive {tree}` brings it back"))
                .hint("`agent tree` and `agent log` show it as it is"),
            TreeError::Deleting(tree) => Self::usage(message).hint(format!("`agent delete {tree}` finishes it")),
            TreeError::NoTree(_)
            | TreeError::NoAgent { .. }
            | TreeError::Path(_)
            | TreeError::Mail(_)
            | TreeError::NotAllowed { .. }
            | TreeError::NoTask(_)
            | TreeError::Role(_)
            | TreeError::NoPrice { .. }
            | TreeError::NoRoles => Self::usage(message),
            TreeError::Rollout(_)
            | TreeError::Lock(_)
            | TreeError::NoRoot(_)
            | TreeError::Graph(_)
            | TreeError::Narrow(_)
            | TreeError::NoRole { .. }
            | TreeError::Unenforced { .. }
            | TreeError::Survives { .. }
            | TreeError::Remembered { .. }
            | TreeError::ShuttingDown => Self::internal(message),
        }
    }
}

/// The exit code that an answer stands for.
pub(crate) fn of(answer: &Answer) -> u8 {
    match answer.end.outcome {
        Outcome::Completed => DONE,
        Outcome::OverBudget => BUDGET,
        // It was not somebody who stopped it.
        Outcome::Interrupted if answer.end.is_expired() => ERRORED,
        Outcome::Interrupted | Outcome::Closed => INTERRUPTED,
        Outcome::Errored | Outcome::Lost => match answer.fault.as_ref().map(|fault| fault.kind) {
            Some(ErrorKind::Unreachable | ErrorKind::Refused) => PROVIDER,
            _ => ERRORED,
        },
    }
}

#[cfg(test)]
mod tests {
    use protocol::TaskEnd;
    use runtime::Fault;

    use super::*;

    #[test]
    fn how_a_task_ends_decides_the_code() {
        let code = |outcome: Outcome, fault: Option<ErrorKind>| {
            let fault = fault.map(|kind| Fault { kind, hints: Vec::new() });
            of(&Answer { end: TaskEnd { outcome, text: None, reason: None }, fault })
        };
        assert_eq!(code(Outcome::Completed, None), 0);
        for kind in [ErrorKind::Rejected, ErrorKind::Quota, ErrorKind::WindowExceeded, ErrorKind::Interrupted] {
            assert_eq!(code(Outcome::Errored, Some(kind)), 1);
        }
        assert_eq!(code(Outcome::Errored, Some(ErrorKind::Unreachable)), 3);
        assert_eq!(code(Outcome::Errored, Some(ErrorKind::Refused)), 3);
        assert_eq!(code(Outcome::OverBudget, None), 4);
        assert_eq!(code(Outcome::Interrupted, None), 130);
        let late = TaskEnd::expired(stdx::now(), None);
        assert_eq!(of(&Answer { end: late, fault: None }), 1);
    }
}
