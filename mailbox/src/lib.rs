//! The rules of delivery: what an agent accepts, when mail may enter its running turn, where mail goes that cannot
//! be delivered.
//!
//! [`Mailbox`] is a cache of one agent's rollout: it holds what the rollout says is accepted and not yet in the
//! context. It writes nothing, wakes nobody and knows no clock; the caller holds the agent's lock, writes first and
//! tells the mailbox afterwards. The routing rules take plain values, so they know no graph either.

mod check;
mod letter;
mod limits;
mod mailbox;
mod route;
mod unread;

pub use check::check_new;
pub use letter::{forwarded, result, returned};
pub use limits::{MAX_BATCH_BYTES, MAX_BODY, MAX_PENDING, MAX_PENDING_BYTES, Refused, cut_body};
pub use mailbox::{Mailbox, Offer, Phase, Sender};
pub use route::{Lost, Route, route_result, route_undelivered};
pub use unread::Unread;
