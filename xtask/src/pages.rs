//! Pages of `docs/` that are made from code. Each is compared by a test of the crate that it is made from.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes them, and returns the paths of those that changed.
pub(crate) fn write(root: &Path) -> Result<Vec<&'static str>> {
    let mut changed = Vec::new();
    for (path, text) in [("docs/CONFIG.md", config::reference())] {
        let full = root.join(path);
        if fs::read_to_string(&full).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&full, text).with_context(|| format!("cannot write {path}"))?;
        changed.push(path);
    }
    Ok(changed)
}
