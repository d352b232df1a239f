//! What a tree may spend: tokens and money are reserved before a request and settled after it.
//!
//! [`Accounts`] holds what every agent and everybody below it has spent and reserved. It answers whether the next
//! request may be sent, and with how much output. It decides; it writes nothing, reads no clock and knows no model.

mod accounts;
mod money;
mod refusal;
mod remind;

pub use accounts::{Accounts, Limit, MIN_OUTPUT, OUTPUT, Pot, Reservation, Spent};
pub use money::{Price, Usd};
pub use refusal::{Refusal, Scope};
pub use remind::{LEVELS, Standing, remind};

#[cfg(test)]
mod tests;
