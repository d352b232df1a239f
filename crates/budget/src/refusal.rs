//! Why a request is not sent.

use std::fmt;

use protocol::AgentPath;

use crate::{MIN_OUTPUT, Usd};

/// Whose budget it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The whole tree's.
    Tree,
    /// That of one agent and everybody below it.
    Below(AgentPath),
    /// One agent's alone.
    Agent(AgentPath),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree => f.write_str("the tree"),
            Self::Below(path) => write!(f, "{path} and everybody below it"),
            Self::Agent(path) => write!(f, "{path} alone"),
        }
    }
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What is left does not pay for a request, whatever becomes of those under way.
    #[error(
        "the budget of {scope} is used up: {} of {} tokens are used, and the next request needs about {}",
        grouped(*.used), grouped(*.limit), grouped(.input + MIN_OUTPUT)
    )]
    Tokens {
        /// Whose budget.
        scope: Scope,
        /// Tokens used.
        used: u64,
        /// Tokens allowed.
        limit: u64,
        /// Tokens that the request would send.
        input: u64,
    },
    /// The same of money.
    #[error("the budget of {scope} is used up: {used} of {limit} are used, and the next request needs about {needs}")]
    Money {
        /// Whose budget.
        scope: Scope,
        /// Used.
        used: Usd,
        /// Allowed.
        limit: Usd,
        /// What the smallest request would cost.
        needs: Usd,
    },
    /// There may be room when the requests under way are settled.
    #[error("the rest of the budget is reserved for requests under way")]
    Busy,
    /// There is a limit of money, and nobody knows what the model costs.
    #[error("the budget of {scope} is in dollars, and the model has no price")]
    NoPrice {
        /// Whose budget.
        scope: Scope,
    },
}

/// A number with its thousands set apart.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
