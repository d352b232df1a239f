//! The rules of the house that no compiler checks.
//!
//! What the rules are about (which crate may know what, which packages are banned, which files may be long) stands in
//! `rules.rs`; how a rule is checked stands beside the kind of file it looks at.

mod docs;
mod lock;
mod manifests;
mod rules;
mod sources;
mod workspace;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use workspace::Workspace;

/// One broken rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    /// The file, from the root of the workspace; with a line where there is one.
    file: String,
    /// What is wrong.
    what: String,
    /// What to do.
    todo: String,
}

impl Fault {
    fn new(file: impl Into<String>, what: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { file: file.into(), what: what.into(), todo: todo.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.file, self.what, self.todo)
    }
}

/// Checks every rule in the workspace at `root`.
///
/// # Errors
/// When a manifest or a source cannot be read or is not TOML.
pub(crate) fn check(root: &Path) -> Result<Vec<Fault>> {
    let workspace = Workspace::read(root)?;
    let mut faults = Vec::new();
    manifests::check(&workspace, &mut faults);
    lock::check(root, &mut faults)?;
    docs::check(&workspace, &mut faults);
    sources::check(root, &mut faults)?;
    faults.sort();
    Ok(faults)
}

#[cfg(test)]
mod tests;
