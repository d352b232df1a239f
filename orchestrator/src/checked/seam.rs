//! The checker's side of the seam.

#![allow(clippy::unused_self, reason = "they have the shape of the real ones")]

use std::convert::Infallible;
use std::time::Duration;

use rollout::Summary;

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

pub(crate) use super::one::agent::{Agent, Stop};
pub(crate) use super::one::core::Setup;
pub(crate) use super::one::disk::{OwnerLock, Store, Writer};
pub(crate) use super::one::fragment::{ContextFragment, Environment, Instructions};
pub(crate) use super::one::host::{Fault, Host, TurnReport};
pub(crate) use super::one::inbox::Inbox;
pub(crate) use super::one::seam::TaskTracker;

/// A lock that is waited for without holding the thread up; whoever wants it lets others go first.
#[derive(Debug, Default)]
pub(crate) struct AsyncMutex<T>(tokio::sync::Mutex<T>);

impl<T> AsyncMutex<T> {
    pub(crate) async fn lock(&self) -> tokio::sync::MutexGuard<'_, T> {
        shuttle::future::yield_now().await;
        self.0.lock().await
    }

    pub(crate) fn try_lock(&self) -> Result<tokio::sync::MutexGuard<'_, T>, tokio::sync::TryLockError> {
        shuttle::thread::yield_now();
        self.0.try_lock()
    }
}

/// No time passes.
pub(crate) async fn sleep(_: Duration) {
    std::future::pending::<()>().await;
}

/// Nothing follows the rollouts.
#[derive(Clone, Debug)]
pub struct Mirror;

impl Mirror {
    pub(crate) fn note(&self, _: Summary) {}

    pub(crate) async fn flush(&self) -> Result<(), Infallible> {
        shuttle::future::yield_now().await;
        Ok(())
    }
}
