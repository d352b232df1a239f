//! Small things that every other crate may use: absolute paths, secrets, the clock, cutting text.
//!
//! It knows nothing of agents, does no I/O beyond reading the clock, and depends on no crate of this workspace.

mod abspath;
mod clock;
mod secret;
mod text;

pub use abspath::{AbsPath, NotAbsolute};
pub use clock::{Timestamp, now};
pub use secret::Secret;
pub use text::{Cut, cut_end, cut_middle, floor_boundary, nearest, one_line};
