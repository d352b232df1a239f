//! Talking to a model: one trait, one normalised stream of events.
//!
//! Providers' wires, the scripted models and the rule that says what is tried again live here. Nothing here knows of
//! turns or tools' meaning; nothing here retries by itself: the sampling loop of `runtime` does, by [`Retry`]'s rule.

mod api;
mod error;
mod provider;
mod local;
mod remote;
mod responses;
mod chat;
mod messages;
mod turns;
mod written;
mod opaque;
mod body;
mod json;
mod tools;
mod fault;
mod sse;
mod retry;
mod script;
mod rehearsal;
mod pattern;
mod view;
#[cfg(test)]
mod lab;

pub use api::{
    BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, ToolKind, ToolWire, Transcript,
};
pub use error::OpenError;
pub use local::LOCAL_TIMEOUT;
pub use provider::{Catalog, IDLE_TIMEOUT, PROGRESS_TIMEOUT, Provider, UNREACHABLE_FOR, Wire, is_played};
pub use remote::{MAX_ERROR_BODY, MAX_REPLY};
pub use retry::{Retry, RetryLimits};
pub use sse::MAX_EVENT;
