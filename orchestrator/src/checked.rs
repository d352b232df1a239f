//! A tree once more, from the very same files, on a checker's locks and tasks.
//!
//! Everything that decides who runs, who is in memory and who gets what mail is as it ships: the tree, its queue for
//! slots, loading and unloading, spawning, mail, closing, budgets, deadlines; and below it the loop of an agent, from the
//! other crate's files. Not as they ship are files (in memory), samples (played), time (it never passes; a test says when
//! a deadline is there), the mirror and forks (none).

#![allow(
    clippy::duplicate_mod,
    dead_code,
    unreachable_pub,
    reason = "the same files on purpose, for what a schedule needs of them"
)]

#[path = "../../runtime/src/checked.rs"]
pub(crate) mod one;
#[path = "bus.rs"]
pub(crate) mod bus;
#[path = "close.rs"]
pub(crate) mod close;
#[path = "deadline.rs"]
pub(crate) mod deadline;
#[path = "error.rs"]
pub(crate) mod error;
#[path = "checked/fork.rs"]
pub(crate) mod fork;
#[path = "grant.rs"]
pub(crate) mod grant;
#[path = "life.rs"]
pub(crate) mod life;
#[path = "node.rs"]
pub(crate) mod node;
#[path = "options.rs"]
pub(crate) mod options;
#[path = "post.rs"]
pub(crate) mod post;
#[path = "checked/seam.rs"]
pub(crate) mod seam;
#[path = "slots.rs"]
pub(crate) mod slots;
#[path = "spawn.rs"]
pub(crate) mod spawn;
#[path = "spend.rs"]
pub(crate) mod spend;
#[path = "stall.rs"]
pub(crate) mod stall;
#[path = "checked/tools.rs"]
pub(crate) mod tools;
#[path = "tree.rs"]
pub(crate) mod tree;
#[path = "wait.rs"]
pub(crate) mod wait;
#[path = "watch.rs"]
pub(crate) mod watch;

pub(crate) use error::TreeError;
pub(crate) use options::Options;
pub(crate) use tree::Answer;
