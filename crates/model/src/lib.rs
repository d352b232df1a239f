//! Talking to a model: one trait, one normalised stream of events.
//!
//! Providers' wires, the scripted models and the rule that says what is tried again live here. Nothing here knows of
//! turns or tools' meaning; nothing here retries by itself: the sampling loop of `runtime` does, by [`Retry`]'s rule.

mod api;
mod error;
mod fault;
mod pattern;
mod provider;
mod rehearsal;
mod responses;
mod retry;
mod script;
mod sse;
mod tools;
mod view;

pub use api::{
    BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, ToolKind, ToolWire, Transcript,
};
pub use error::OpenError;
pub use provider::{Catalog, IDLE_TIMEOUT, Provider, Wire};
pub use responses::{MAX_ERROR_BODY, MAX_REPLY};
pub use retry::{Retry, RetryLimits};
pub use sse::MAX_EVENT;
