//! The `apply_patch` language: edits to text files described by the lines around them, without line numbers.
//!
//! [`parse`] turns text into a [`Patch`], [`dry_run`] tells whether it fits, [`apply`] carries it out over whatever
//! implements [`Files`]. The crate does no I/O, resolves no path, asks no approval, and never guesses a position:
//! lines are found where they are or the patch is refused with a text that says what differs.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: docs/new.md
//! +# Title
//! *** Delete File: docs/old.md
//! *** Update File: src/main.rs
//! *** Move to: src/bin/main.rs
//! @@ impl Server
//! @@ fn start(&self) {
//!      let port = 80;
//! -    listen(port);
//! +    listen(port)?;
//! *** End Patch
//! ```
//!
//! Rules that the format leaves open, and how they are settled here:
//! - A path is named once a patch, compared as it is spelled. The one exception is Delete followed by Add, which
//!   replaces the whole file and keeps its mode bits.
//! - New files and whole replacements end their lines with `\n`, also when the patch text itself has `\r\n`.
//! - Add refuses a path that exists, unless its content is already what the patch says; then nothing is written.
//! - Delete and Update refuse a path that does not exist; Move refuses a target that does.
//! - The chunks of a file follow the order of the file. Lines that occur more than once mean the first occurrence
//!   that is at or below the anchor and below the previous chunk.
//! - A chunk of `+` lines alone goes right below its anchor, or to the end of the file when it has none.
//! - Context keeps the bytes of the file, also where it matched only loosely. Only `-` and `+` lines change anything.
//! - A new line gets the line ending of the old line before it. Byte order mark and a missing final newline stay;
//!   an empty `+` line at the very end of a file without final newline gives it one.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod language;
mod parse;
mod files;
mod seek;
mod text;
mod edit;
mod summary;
mod error;
mod apply;

pub use apply::{apply, dry_run};
pub use error::{ApplyError, Hint, Mismatch, ParseError, Problem};
pub use files::{Files, FilesError};
pub use language::{Action, Chunk, Line, Patch, Section};
pub use parse::parse;
pub use summary::{Done, Summary};
