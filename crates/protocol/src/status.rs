//! How an agent stands, and how a task ends.

use std::fmt;

use serde::{Deserialize, Serialize};
use stdx::Timestamp;

/// Where an agent stands; derived from its rollout and, while it is resident, from its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has a task that no turn has taken in yet, and nobody is starting it.
    Pending,
    /// It waits for a running slot.
    Queued,
    /// Its turn works.
    Running,
    /// Its turn waits; see [`WaitingOn`].
    Waiting,
    /// Its last turn ended well.
    Completed,
    /// Its last turn ended in an error.
    Errored,
    /// Its last turn was interrupted.
    Interrupted,
    /// Its process ended in the middle of a turn.
    Lost,
}

/// What a waiting turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingOn {
    /// The model's reply, or the time the provider asked for.
    Model,
    /// A tool.
    Tool,
    /// A person's decision.
    Approval,
    /// Other agents.
    Agent,
    /// Room in the budget, which requests under way have reserved.
    Budget,
}

/// How a turn, and each task it took in, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model ended its turn.
    Completed,
    /// An error ended it.
    Errored,
    /// Somebody interrupted it.
    Interrupted,
    /// The agent was closed.
    Closed,
    /// The budget ended it.
    OverBudget,
    /// The process ended in the middle of it.
    Lost,
}

impl Outcome {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Errored => "errored",
            Self::Interrupted => "interrupted",
            Self::Closed => "closed",
            Self::OverBudget => "over_budget",
            Self::Lost => "lost",
        }
    }

    /// The outcome and why, without saying one word twice.
    pub fn because(self, reason: &str) -> String {
        if reason.starts_with(self.as_str()) { reason.to_owned() } else { format!("{}: {reason}", self.as_str()) }
    }
}

impl Status {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Errored => "errored",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }

    /// Whether a turn is under way or about to be.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Errored | Outcome::OverBudget => Self::Errored,
            Outcome::Interrupted | Outcome::Closed => Self::Interrupted,
            Outcome::Lost => Self::Lost,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a task ended, with its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The agent's last words, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why it ended so, or why there are no words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How the reason of a task begins that its deadline ended. A client tells it from an interrupt by this.
const EXPIRED: &str = "its deadline passed";

impl TaskEnd {
    /// The end of a task whose deadline passed: it was interrupted, with whatever words there are.
    pub fn expired(deadline: Timestamp, text: Option<String>) -> Self {
        Self { outcome: Outcome::Interrupted, text, reason: Some(format!("{EXPIRED} ({deadline})")) }
    }

    /// As [`TaskEnd::expired`], for a task that no turn had taken in.
    pub fn expired_unbegun(deadline: Timestamp) -> Self {
        let reason = format!("{EXPIRED} ({deadline}) before it was begun");
        Self { outcome: Outcome::Interrupted, text: None, reason: Some(reason) }
    }

    /// Whether a deadline ended it, and not somebody.
    pub fn is_expired(&self) -> bool {
        self.outcome == Outcome::Interrupted && self.reason.as_ref().is_some_and(|reason| reason.starts_with(EXPIRED))
    }

    /// The end as one text that is never blank.
    pub fn words(&self) -> String {
        match (&self.text, &self.reason) {
            (Some(text), None) => text.clone(),
            (Some(text), Some(reason)) => format!("{text}\n\n({})", self.outcome.because(reason)),
            (None, Some(reason)) => format!("({})", self.outcome.because(reason)),
            (None, None) => format!("({}, no text)", self.outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_told_from_an_interrupt() {
        let at = Timestamp::EPOCH;
        let end = TaskEnd::expired(at, Some("half".to_owned()));
        assert_eq!(end.words(), "half\n\n(interrupted: its deadline passed (1970-01-01T00:00:00.000Z))");
        assert!(end.is_expired() && TaskEnd::expired_unbegun(at).is_expired());
        let by_hand = TaskEnd { reason: Some("interrupted by user".to_owned()), ..end.clone() };
        assert!(!by_hand.is_expired());
        assert!(!TaskEnd { outcome: Outcome::Errored, ..end }.is_expired());
    }
}
