//! What a tree stands on: locks, tasks, files, and the loops of its agents.
//!
//! The files that say `super::` where others say `crate::` are compiled twice. In `checked.rs` they stand on the locks
//! and tasks of a checker that plays schedules, and on files in memory; they are the same files.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize};
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use mirror::Mirror;
pub(crate) use rollout::{OwnerLock, Store, Writer};
pub(crate) use runtime::{
    Agent, ContextFragment, Environment, Fault, Host, Inbox, Instructions, Setup, Stop, TurnReport,
};
pub(crate) use tokio::sync::Mutex as AsyncMutex;
pub(crate) use tokio::time::sleep;
pub(crate) use tokio_util::task::TaskTracker;
