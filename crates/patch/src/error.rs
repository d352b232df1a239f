//! Why a patch is not one, and why it does not fit. The texts go to the author of the patch, so each says what to do.

use std::fmt::{self, Write as _};

use crate::{FilesError, Summary};

/// Most bytes of one line that an error shows. Beyond it a line is data, and nobody compares it by eye.
const MAX_SHOWN_LINE: usize = 200;

/// Most expected lines that an error shows: the author has the patch at hand, so the first ones tell which chunk it is.
const MAX_SHOWN_LINES: usize = 40;

/// Why a text is not a patch. Line numbers count the lines of the patch text from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line is not what has to stand there.
    #[error("line {line} of the patch: found `{}`, expected {expected}", shown(found))]
    Unexpected {
        /// Where.
        line: usize,
        /// The line as it is.
        found: String,
        /// What is possible there.
        expected: &'static str,
    },
    /// The text ends too early.
    #[error("the patch ends after line {line}, expected {expected}; send the whole patch again")]
    Ended {
        /// The last line that there is; 0 for an empty text.
        line: usize,
        /// What is missing.
        expected: &'static str,
    },
    /// A header without a usable path.
    #[error(
        "line {line} of the patch: `{}` needs a path without NUL, for example `*** Update File: src/main.rs`",
        shown(found)
    )]
    Path {
        /// Where.
        line: usize,
        /// The header as it is.
        found: String,
    },
    /// A `@@` line in the manner of a unified diff.
    #[error(
        "line {line} of the patch: `{}` has line numbers; write `@@` alone, or `@@ ` and a whole line of the file that stands above the change",
        shown(found)
    )]
    LineNumbers {
        /// Where.
        line: usize,
        /// The line as it is.
        found: String,
    },
    /// Two sections name one file.
    #[error(
        "line {line} of the patch: `{path}` is already named in line {first}; put all changes of a file into one section"
    )]
    Twice {
        /// Where it is named again.
        line: usize,
        /// Where it is named first.
        first: usize,
        /// The path.
        path: String,
    },
}

/// Why a patch was not carried out, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}\n{}", AlreadyDone(done))]
pub struct ApplyError {
    /// What stopped it.
    pub problem: Problem,
    /// What had been done to other files by then. It stays done.
    pub done: Summary,
}

/// What stops a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Add over a file with other content.
    #[error(
        "`{0}` already exists; change it with `*** Update File:`, or put `*** Delete File:` for it before the `*** Add File:` to replace all of it"
    )]
    Exists(String),
    /// Update or Delete of what is not there.
    #[error("`{0}` does not exist; check the path, or make the file with `*** Add File:`")]
    Missing(String),
    /// The target of a move is taken.
    #[error("`{to}` already exists, so `{from}` cannot move there; choose another target or delete that file first")]
    Occupied {
        /// The file that was to move.
        from: String,
        /// Where it was to go.
        to: String,
    },
    /// A file in an encoding whose lines are not bytes followed by `\n`.
    #[error("`{0}` is UTF-16; convert it to UTF-8 first, or edit it with a command")]
    Utf16(String),
    /// Lines of the patch are not in the file.
    #[error("{0}")]
    Mismatch(Box<Mismatch>),
    /// The file system said no.
    #[error("cannot {doing} `{path}`: {error}")]
    Files {
        /// `read`, `write` or `remove`.
        doing: &'static str,
        /// The file.
        path: String,
        /// What it said.
        error: FilesError,
    },
}

/// Lines of a patch that are not in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The file.
    pub path: String,
    /// Line of the chunk in the patch text, counted from 1.
    pub patch_line: usize,
    /// The lines that were looked for: an anchor, or the old lines of a chunk.
    pub expected: Vec<String>,
    /// Whether they are an anchor.
    pub is_anchor: bool,
    /// What may help, when there is something.
    pub hint: Option<Hint>,
}

/// Something about a file that explains a mismatch. Line numbers count the lines of the file from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// The lines are there, but above the place where the search began.
    Above {
        /// Where they are.
        line: usize,
        /// Where the search began.
        from: usize,
    },
    /// The lines are there, but do not end the file.
    NotAtEnd {
        /// Where they are.
        line: usize,
    },
    /// The file already has what the chunk would bring.
    Applied {
        /// Where it is.
        line: usize,
    },
    /// A place that is nearly right.
    Near {
        /// Where it begins.
        line: usize,
        /// The first line that differs.
        differs: usize,
        /// That line in the patch.
        patch: String,
        /// That line in the file; `None` past its end.
        file: Option<String>,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, patch_line, .. } = self;
        let what = match (self.is_anchor, self.expected.len()) {
            (true, _) => "the anchor",
            (false, 1) => "the expected line",
            (false, _) => "the expected lines",
        };
        write!(f, "`{path}` does not have {what} of line {patch_line} of the patch:")?;
        for line in self.expected.iter().take(MAX_SHOWN_LINES) {
            write!(f, "\n{}", shown(line))?;
        }
        if let Some(more) = self.expected.len().checked_sub(MAX_SHOWN_LINES).filter(|more| *more > 0) {
            write!(f, "\n… {more} more")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{hint}"),
            None => f.write_str("\nread the file again and copy the lines as they are"),
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above { line, from } => write!(
                f,
                "they are at line {line} of the file, but the search began at line {from}, below the previous chunk or \
                 the anchor; put the chunks in the order of the file"
            ),
            Self::NotAtEnd { line } => {
                write!(f, "they are at line {line} of the file, which is not its end; leave out `*** End of File`")
            }
            Self::Applied { line } => write!(
                f,
                "line {line} of the file already reads as this chunk would make it; leave the chunk out if it is done"
            ),
            Self::Near { line, differs, patch, file } => {
                write!(
                    f,
                    "the nearest place begins at line {line} of the file; the first difference is at line {differs}:"
                )?;
                write!(f, "\n  patch: `{}`", shown(patch))?;
                match file {
                    Some(file) => write!(f, "\n  file:  `{}`", shown(file)),
                    None => f.write_str("\n  file:  (ends here)"),
                }
            }
        }
    }
}

/// The part of an error about what cannot be taken back.
struct AlreadyDone<'a>(&'a Summary);

impl fmt::Display for AlreadyDone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("no file was changed")
        } else {
            write!(f, "already done, and still in place (leave it out when you try again):\n{}", self.0)
        }
    }
}

/// A line as an error shows it: bounded, and with control characters made visible.
fn shown(line: &str) -> String {
    let kept = stdx::cut_end(line, MAX_SHOWN_LINE);
    let mut out = String::with_capacity(kept.len());
    for c in kept.chars() {
        if c.is_control() && c != '\t' {
            // Writing to a string does not fail.
            let _ = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    if kept.len() < line.len() {
        out.push('…');
    }
    out
}
