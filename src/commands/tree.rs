//! `agent tree`.

use orchestrator::{Snapshot, snapshot};

use crate::cli::{Format, Show};
use crate::exit::{self, Failure};
use crate::output;
use crate::render;
use crate::wire::{Setting, alive};

pub(super) fn tree(setting: &Setting, args: &Show) -> Result<u8, Failure> {
    let snapshot = snapshot(&setting.store, setting.tree()?, alive)?;
    for problem in &snapshot.problems {
        output::note(&format!("warning: {problem}"));
    }
    match args.format {
        Format::Text if !setting.common.json => output::answer(&render::tree(&snapshot)),
        Format::Dot => output::answer(&render::dot(&snapshot)),
        Format::Mermaid => output::answer(&render::mermaid(&snapshot)),
        Format::Text | Format::Json => json(&snapshot)?,
    }
    Ok(exit::DONE)
}

/// Prints a tree as one line of JSON.
pub(super) fn json(snapshot: &Snapshot) -> Result<(), Failure> {
    let json = serde_json::to_string(snapshot);
    output::answer(&json.map_err(|error| Failure::internal(format!("the tree has no JSON form: {error}")))?);
    Ok(())
}
