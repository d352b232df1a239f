//! What crosses a thread or process boundary: ids, paths, items, mail, outcomes, events.
//!
//! Plain data with frozen wire names. No I/O, no clock, no policy: who may do what is decided elsewhere.

mod event;
mod ids;
mod item;
mod mail;
mod path;
mod permission;
mod process;
mod status;
mod usage;
mod waits;

pub use event::{EventKind, TreeEvent, UnreadResult};
pub use ids::{EffectId, MailId, RequestId, TaskId, ThreadId, Token, TreeId, TurnId, digest};
pub use item::{Call, Item, ItemKind, NotAnItem, Role};
pub use mail::{Address, Mail, MailKind, Party};
pub use path::{AgentName, AgentPath, MAX_DEPTH_HARD, MAX_NAME, PathError};
pub use permission::{Approval, Sandbox};
pub use process::{ProcessEvent, ProcessRecord};
pub use status::{Outcome, Status, TaskEnd, WaitingOn};
pub use usage::Usage;
pub use waits::Waits;
