//! The tree: spawning, addressing, delivering, waiting, loading and unloading, and bringing a tree back.
//!
//! Read `tree` (what a tree is made of), `post` (how mail gets across), `spawn`, `takeover` (how a tree comes back).
//!
//! It never reads a model's text, and nothing here talks to a provider, a shell or a terminal.

mod bus;
mod close;
mod deadline;
mod desk;
mod error;
mod fork;
mod grant;
mod life;
mod node;
mod options;
mod post;
mod seam;
mod shelf;
mod slots;
mod snapshot;
mod spawn;
mod spend;
mod stall;
mod submit;
mod takeover;
mod tools;
mod tree;
mod wait;
mod watch;

pub use close::{By, NO_REASON};
pub use error::TreeError;
pub use options::Options;
pub use shelf::{Shelved, archive, delete, remnants, unarchive};
pub use snapshot::{Snapshot, TreeHead, TreeRoot, list, roots, snapshot};
pub use submit::{Mode, NotSubmitted, Submitted};
pub use tree::{Answer, Pending, Tree};

#[cfg(test)]
mod checked;
#[cfg(test)]
mod tests;
