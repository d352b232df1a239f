//! Money, and what tokens cost.

use std::fmt;
use std::ops::AddAssign;

use protocol::Usage;

/// Billionths of a dollar in one dollar.
const NANO: f64 = 1e9;

/// Tokens that a price is given for.
const PRICED: f64 = 1e6;

/// US dollars, in billionths: sums of it come out the same in whatever order they are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    /// Rounded up to a billionth. Nothing for what is no number or below zero; the most there is for what is too much.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
    pub fn new(dollars: f64) -> Self {
        Self((dollars * NANO).ceil() as u64)
    }

    /// As a number of dollars.
    #[expect(clippy::cast_precision_loss, reason = "what a person pays has fewer digits than a double holds")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / NANO
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// How many tokens at `price` dollars a million it pays for; `None` when they cost nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
    pub(crate) fn buys(self, price: f64) -> Option<u64> {
        (price > 0.0).then(|| (self.dollars() / price * PRICED).floor() as u64)
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl fmt::Display for Usd {
    /// With cents, and with more digits where cents would say nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        if self.0 > 0 && dollars < 1.0 { write!(f, "${dollars:.4}") } else { write!(f, "${dollars:.2}") }
    }
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Input that the server had cached.
    pub cached_input: f64,
    /// Output, reasoning included.
    pub output: f64,
}

impl Price {
    /// What these tokens cost.
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below what a double holds exactly")]
    pub fn of(&self, usage: &Usage) -> Usd {
        let cached = usage.cached_input.min(usage.input);
        let cost = (usage.input - cached) as f64 * self.input
            + cached as f64 * self.cached_input
            + usage.output as f64 * self.output;
        Usd::new(cost / PRICED)
    }
}
