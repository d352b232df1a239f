//! One agent from its loop down: a model that steps event by event, real files, and a keeper that writes down what it
//! is told.
//!
//! [`double`] checks at every request of every test that what is sent is what is written, that it begins with the
//! request before it, and that no call is open.

mod bench;
mod double;
mod faults;
mod panics;
mod retries;
mod schedules;
mod stops;
mod stream;
mod turns;
