//! What an agent's loop stands on: locks, tasks, files.
//!
//! The files that say `super::` where others say `crate::` are compiled twice. In `checked.rs` they stand on the locks
//! and tasks of a checker that plays schedules, and on files in memory; they are the same files.

pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use rollout::{Store, Writer};
pub(crate) use tokio::task::{JoinError, JoinHandle};
pub(crate) use tokio_util::task::TaskTracker;
