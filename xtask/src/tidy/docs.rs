//! Rules about `docs/`: every dependency is a decision, and the decision is written down.

use std::collections::BTreeSet;
use std::fs;

use super::Fault;
use super::workspace::Workspace;

const FILE: &str = "docs/DEPENDENCIES.md";

pub(super) fn check(workspace: &Workspace, faults: &mut Vec<Fault>) {
    let text = fs::read_to_string(workspace.root.join(FILE)).unwrap_or_default();
    let written: BTreeSet<_> = text.lines().filter_map(named).collect();
    let table = workspace.dependencies();
    let external: BTreeSet<_> =
        table.iter().filter(|(_, value)| value.get("path").is_none()).map(|(name, _)| name.as_str()).collect();
    for name in external.difference(&written) {
        let row = format!("add a row `| {name} | why | instead of | where |`, the name in back quotes");
        faults.push(Fault::new(FILE, format!("nothing says why `{name}` is a dependency"), row));
    }
    for name in written.difference(&external) {
        faults.push(Fault::new(FILE, format!("`{name}` is no dependency any more"), "take its row out"));
    }
}

/// The name in a row of a table: back quotes around it, first in the row.
fn named(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once("` |").map(|(name, _)| name)
}
