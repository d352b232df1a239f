//! The truth about each agent: one append-only JSONL file, one writer, synced before anything is acknowledged.
//!
//! It writes and reads lines and folds them into a [`State`]; what follows from a state is decided above. It knows
//! nothing of models, tools or other agents, repeats no effect, and never changes a line once it is written. Every
//! effect on the file system goes through [`Disk`], so that a test can stop the process between any two.
//!
//! Descriptors: a file stays open as long as somebody holds its [`Writer`], one descriptor each, so a tree holds as many
//! as it has agents with a session or with mail on its way, and an [`OwnerLock`] holds one. Syncing a folder, reading a
//! file and recovering from a failed sync take one or two more for a moment, reading a forked child one for each parent
//! in a row. The limit of the process has to be above
//! that; where it is not, [`Error::is_shortage`] says so, and no file is taken for damaged or absent.
//!
//! Entry points: [`Store`] finds, makes and opens files; [`Writer`] appends; [`State`] is what a file says, and
//! [`Summary`] what lists keep of it.

mod archive;
mod attach;
mod back;
mod check;
mod checkpoint;
mod delete;
mod disk;
mod error;
mod fork;
mod front;
mod kin;
mod line;
mod lock;
mod log;
mod packed;
mod pieces;
mod read;
mod record;
mod scan;
mod source;
mod state;
mod store;
mod summary;
mod sync;
mod taken;
mod warm;
mod writer;

pub use archive::Moved;
pub use check::{Checker, Finding, Rule, check};
pub use checkpoint::{Checkpoint, Compacted, WorldState};
pub use disk::{Disk, DiskFile, Entry, ReadAt, RealDisk};
pub use error::Error;
pub use fork::{ForkTurns, Forked, Lack};
pub use kin::{Kin, Member};
pub use line::{Line, decode, encode};
pub use lock::{LockError, OwnerHint, OwnerLock};
pub use packed::is_packed;
pub use pieces::{Piece, Pieces};
pub use read::{BadLine, Lines, Loaded, Tally};
pub use record::{
    Budgets, EdgeRecord, EdgeStatus, EventRecord, FORMAT, ItemRecord, Limits, MailReturned, Record, SessionMeta,
    SpawnedBy, TaskDone, TurnContext, TurnEnd, UsageRecord, UsageStage,
};
pub use scan::{FileFacts, Files, Head, Identity, Problem, Scan, Unborn};
pub use state::{Edge, Obligation, OpenCall, State, Task};
pub use store::{Opened, Store};
pub use summary::{FileEnd, Sequence, Summary, checksum};
pub use writer::{Appended, Writer};

#[cfg(test)]
mod fixture;
