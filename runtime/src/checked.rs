//! An agent's loop once more, from the very same files, on a checker's locks and tasks.
//!
//! Everything between the mailbox and the file is as it ships: the inbox, the loop, the task, the passes of a turn, the
//! one way into a context, what a request asks of the accounts. Not as they ship are the file, which is in memory, and a
//! sample, which says a word or makes a call and waits in between.

#![allow(
    clippy::duplicate_mod,
    dead_code,
    unreachable_pub,
    reason = "the same files on purpose, for what a schedule needs of them"
)]

#[path = "agent.rs"]
pub(crate) mod agent;
#[path = "core.rs"]
pub(crate) mod core;
#[path = "checked/disk.rs"]
pub(crate) mod disk;
#[path = "fragment.rs"]
pub(crate) mod fragment;
#[path = "host.rs"]
pub(crate) mod host;
#[path = "inbox.rs"]
pub(crate) mod inbox;
#[path = "limits.rs"]
pub(crate) mod limits;
#[path = "checked/play.rs"]
pub(crate) mod play;
#[path = "recover.rs"]
pub(crate) mod recover;
#[path = "checked/sampling.rs"]
pub(crate) mod sampling;
#[path = "checked/seam.rs"]
pub(crate) mod seam;
#[path = "checked/setup.rs"]
pub(crate) mod setup;
#[path = "spend.rs"]
pub(crate) mod spend;
#[path = "task.rs"]
pub(crate) mod task;
#[path = "turn.rs"]
pub(crate) mod turn;

pub(crate) use fragment::task_or_note;
pub(crate) use host::Host;
pub(crate) use inbox::Inbox;
