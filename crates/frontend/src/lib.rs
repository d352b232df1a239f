//! All that a face or another process may see of a tree, in process and over the control socket alike.
//!
//! A [`Desk`] is what the owner of a tree offers: operations and events. [`serve`] puts one on a socket, and a
//! [`Client`] is one again on the other side, so whoever shows a tree need not know where it runs. The crate names no
//! type of what drives a tree, decides nothing about it, and neither prints nor starts anything. Unix only.

mod limits;
mod fault;
mod op;
mod reply;
mod listing;
mod desk;
mod events;
mod wire;
mod line;
mod place;
mod listener;
mod guests;
mod serve;
mod connection;
mod connect;
mod client;

pub use client::{Client, RequestError};
pub use connect::ConnectError;
pub use desk::{Delivery, Desk, Gap, Lagged, Subscription};
pub use events::EventLog;
pub use fault::{Code, Fault};
pub use limits::{CONNECT_PATIENCE, MAX_AT_ONCE, MAX_CONNECTIONS, MAX_EVENT_BYTES, MAX_EVENTS, MAX_LINE, MAX_WAITS};
pub use listener::{BindError, Listener};
pub use listing::{Cut, Edge, Found, Listing, Report, Row, Spending, Tokens, Use};
pub use op::{Mode, Op};
pub use place::socket_path;
pub use reply::{Answer, Given, Refusal, Reply, Submission, UnreadWords};
pub use serve::serve;
pub use wire::{Hello, Notice, PROTOCOL, Request, Response, Settled};

#[cfg(test)]
mod tests;
