//! Talking to a model: one trait, one normalised stream of events.
//!
//! Providers' wires, the scripted models and the rule that says what is tried again live here. Nothing here knows of
//! turns or tools' meaning; nothing here retries by itself: the sampling loop of `runtime` does, by [`retry`]'s rule.

mod api;

pub use api::{
    BoxStream, ErrorKind, Head, Model, ModelError, ModelEvent, ModelRequest, ToolKind, ToolWire, Transcript,
};
