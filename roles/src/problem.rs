//! What is wrong with a role file, and with the name of a role.

use std::fmt;

/// A role file, or a part of one, that is left out. A warning to a person; never the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file as it was named by the caller.
    pub file: String,
    /// Line from 1, when the problem has a place.
    pub line: Option<usize>,
    /// The key, when the problem is about one.
    pub key: Option<String>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// Nobody knows this role, or the tree may not use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRole {
    /// The name that was asked for.
    pub name: String,
    /// The roles that there are, in their order.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown role `{}`", stdx::one_line(&self.name, 80))?;
        if let Some(nearest) = stdx::nearest(&self.name, self.known.iter().map(String::as_str)) {
            write!(f, ", did you mean `{nearest}`?")?;
        } else {
            f.write_str(":")?;
        }
        write!(f, " known roles: {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownRole {}
