//! `agent tree`.

use orchestrator::snapshot;

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
        Format::Text | Format::Json => {
            let json = serde_json::to_string(&snapshot);
            output::answer(&json.map_err(|error| Failure::internal(format!("the tree has no JSON form: {error}")))?);
        }
    }
    Ok(exit::DONE)
}
