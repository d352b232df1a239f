//! What was done.

use std::fmt;

/// What was done to files, in order. Shows as one line a file: `A new`, `M changed`, `D gone`, `R old -> new`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// One entry a file.
    pub done: Vec<Done>,
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// A file was made.
    Added(String),
    /// A file was changed in place, or replaced as a whole.
    Modified(String),
    /// A file was removed.
    Deleted(String),
    /// A file went elsewhere, perhaps with changes.
    Moved {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
    },
}

impl Summary {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, done) in self.done.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            done.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(path) => write!(f, "A {path}"),
            Self::Modified(path) => write!(f, "M {path}"),
            Self::Deleted(path) => write!(f, "D {path}"),
            Self::Moved { from, to } => write!(f, "R {from} -> {to}"),
        }
    }
}
