//! Where a value came from.

use std::fmt;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of a file.
    File {
        /// The file, as shown to a person.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// A `-c`; its argument as it was given.
    Override(String),
    /// A flag, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the defaults"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Override(text) => write!(f, "`-c {}`", stdx::one_line(text, crate::error::QUOTE)),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}
