//! One agent: its loop, its turns, its samples, and the tools that a sample calls.
//!
//! Read `agent` (the loop that owns an agent), then `task`, `turn` and `sampling` (the three loops inside it).
//!
//! It knows no shell, no sandbox and no provider: it sees tools, a model's stream, a rollout's writer and a [`Host`].
//! It never starts another agent, and it never looks into a tool's arguments.

mod agent;
mod calls;
mod core;
mod fragment;
mod host;
mod inbox;
mod limits;
mod recover;
mod sampling;
mod seam;
mod spend;
mod task;
mod turn;

pub use agent::{Agent, Busy, Stop};
pub use core::{EngineError, Setup};
pub use fragment::{BudgetReminder, ContextFragment, Environment, Instructions, MailNote, TurnAborted, task_or_note};
pub use host::{Fault, Host, TurnReport};
pub use inbox::Inbox;
pub use limits::{INTERRUPT_GRACE, MAX_CALLS, MAX_OUTPUT_BYTES, OPS_QUEUE};
pub use recover::{MAY_HAVE_RUN, closing};

#[cfg(test)]
mod checked;
#[cfg(test)]
mod tests;
