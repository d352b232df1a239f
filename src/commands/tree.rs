//! `agent tree`.

use frontend::{Listing, Op, Reply};
use orchestrator::snapshot;
use protocol::TreeId;

use super::remote::{Spoken, ask};
use crate::cli::{Format, Show};
use crate::exit::{self, Failure};
use crate::output;
use crate::reach::owner;
use crate::render;
use crate::wire::{Setting, alive};

pub(super) async fn tree(setting: &Setting, args: &Show) -> Result<u8, Failure> {
    if setting.common.json && matches!(args.format, Format::Dot | Format::Mermaid) {
        return Err(Failure::usage("--json and this --format contradict each other")
            .hint("leave one of the two out; `--json` is the same as `--format json`"));
    }
    let snapshot = look(setting, setting.tree()?).await?;
    match args.format {
        Format::Text if !setting.common.json => output::answer(&render::tree(&snapshot, stdx::now())),
        Format::Dot => output::answer(&render::dot(&snapshot)),
        Format::Mermaid => output::answer(&render::mermaid(&snapshot)),
        Format::Text | Format::Json => json(&snapshot)?,
    }
    Ok(exit::DONE)
}

/// The tree as its owner sees it, or, when nobody drives it, as its rollouts have it.
pub(super) async fn look(setting: &Setting, id: TreeId) -> Result<Listing, Failure> {
    if let Some(client) = owner(setting, id).await
        && let Ok(Spoken::Done(Reply::Tree(listing))) = ask(&client, Op::Tree).await
    {
        for row in listing.agents.iter().filter(|row| row.skipped > 0) {
            let file = setting.store.file(row.thread_id).map_or(row.path.to_string(), |file| file.to_string());
            let lines = if row.skipped == 1 { "line" } else { "lines" };
            output::note(&format!("warning: {file}: {} {lines} could not be read", row.skipped));
        }
        return Ok(listing);
    }
    let snapshot = snapshot(&setting.store, setting.mirror(), id, alive)?;
    for problem in &snapshot.problems {
        output::note(&format!("warning: {problem}"));
    }
    if snapshot.archived > 0 {
        let part = if snapshot.archived < snapshot.listing.agents.len() { " in part" } else { "" };
        output::note(&format!("this tree is archived{part}; `agent unarchive {id}` brings it back"));
    }
    Ok(snapshot.listing)
}

/// Prints a tree as one line of JSON.
pub(super) fn json(snapshot: &Listing) -> Result<(), Failure> {
    let json = serde_json::to_string(snapshot);
    output::answer(&json.map_err(|error| Failure::internal(format!("the tree has no JSON form: {error}")))?);
    Ok(())
}
