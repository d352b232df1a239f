//! What a role is: the built-in ones, reading a role file, merging layers, narrowing what a parent grants.
//!
//! Text in, values out: nothing here reads a folder, decides whether a project is trusted, or enforces a permission.
//! A role takes away and never adds; who asks, who reviews and where an agent works are not a role's business.

mod brief;
mod builtin;
mod narrow;
mod nickname;
mod parse;
mod problem;
mod registry;
mod role;

pub use brief::Place;
pub use builtin::{DEFAULT, EXPLORER, WORKER};
pub use narrow::{Granted, NoToolsLeft, narrow};
pub use nickname::{NICKNAMES, nickname};
pub use parse::{MAX_DESCRIPTION, MAX_FILE, MAX_INSTRUCTIONS, MAX_NICKNAME, parse};
pub use problem::{Problem, UnknownRole};
pub use registry::{MAX_ROLES, Roles};
pub use role::{Layer, Limits, Origin, Parsed, Role, Workspace};
