//! Starts processes, reads what they say, and ends them with everything they started. The only crate that may.
//!
//! It keeps no table, writes no ledger and decides nothing: `tools` does. It never reads the environment it runs in;
//! whoever calls hands one over. A process is handed out in two halves: a [`Process`] to speak with, and a
//! [`Reaper`] that somebody has to run, so that no task is started behind anybody's back.

mod environment;
mod error;
mod mark;
mod output;
mod process;
mod procfs;
mod reaper;
mod shell;
mod sweep;

pub use environment::{Environment, TOKEN_VARIABLE};
pub use error::Error;
pub use output::{Chunk, RETAINED};
pub use process::{GRACE, Phase, Plan, Process, Progress, Stdin, spawn};
pub use procfs::{boot_id, lives, start_time};
pub use reaper::Reaper;
pub use shell::Shell;
pub use sweep::{Fate, Leftover, end_marked, left_behind, sweep};

#[cfg(test)]
mod tests;
