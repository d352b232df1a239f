//! The mirror: one SQLite file that follows the rollouts, so that listing and taking over need not read every file.
//!
//! It is never the truth. A row is believed only while its rollout still ends as the row says; everything else is read
//! from the rollout, so a mirror that lags, is damaged or is gone costs time and nothing more. It decides nothing, it
//! is never waited for by whoever writes rollouts, and it may be deleted at any moment, also while it is in use.
//!
//! Entry points: [`Mirror::open`], which never fails; [`Mirror::note`] after a rollout was synced;
//! [`Mirror::catalogue`] for every agent there is.

mod aside;
mod catalogue;
mod change;
mod database;
mod fault;
mod gone;
mod limits;
mod mirror;
mod queue;
mod rows;
mod schema;
mod side;
mod trouble;
mod write;

pub use catalogue::{Catalogue, Known};
pub use mirror::Mirror;
pub use rows::Row;
pub use trouble::Trouble;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod processes;
