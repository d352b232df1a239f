//! `agent log`.

use std::ops::ControlFlow;
use std::time::Duration;

use orchestrator::snapshot;
use protocol::{Item, ItemKind, Role};
use rollout::{EdgeStatus, Forked, ItemRecord, Line, Record, Tally};
use stdx::AbsPath;

use super::signals::Interrupts;
use crate::cli::Log;
use crate::exit::{self, Failure};
use crate::output;
use crate::who;
use crate::wire::{Setting, alive};

/// Bytes of text that are put together before they are written, 64 KiB: enough that writing does not cost, and little
/// beside the longest line.
const PIECE: usize = 64 << 10;

/// How often a followed file is looked at. A person does not see less; a file system does not feel more.
const LOOK: Duration = Duration::from_millis(200);

pub(super) async fn log(setting: &Setting, args: &Log) -> Result<u8, Failure> {
    let path = who::agent(&args.path)?;
    let tree = setting.tree()?;
    let listing = snapshot(&setting.store, setting.mirror(), tree, alive)?.listing;
    // The newest incarnation: that is the one that can be spoken to.
    let Some(row) = listing.agents.iter().filter(|row| row.path == path).max_by_key(|row| row.opened_at) else {
        let known: Vec<&str> = listing.agents.iter().map(|row| row.path.as_str()).collect();
        return Err(
            Failure::usage(format!("no agent ever lived at {path}")).hint(format!("agents: {}", known.join(", ")))
        );
    };
    let file = setting.store.file(row.thread_id).map_err(internal)?;
    let json = setting.common.json;
    let Some(mut tally) = show(setting, &file, 0, json)? else { return Ok(exit::DONE) };
    told(&file, &tally);
    if tally.torn > 0 && !args.follow {
        output::note(&format!("warning: {file}: the last {} bytes are an unfinished write", tally.torn));
    }
    if !args.follow {
        return Ok(exit::DONE);
    }
    if rollout::is_packed(&file) {
        output::note(&format!("this tree is archived, so nothing more comes; `agent unarchive {tree}` brings it back"));
        return Ok(exit::DONE);
    }
    let mut size = length(&file);
    let mut interrupts = Interrupts::listen();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupts.next() => return Ok(exit::DONE),
        }
        if length(&file) == size {
            continue;
        }
        size = length(&file);
        // From where the last look saw whole writes end. Whoever took the tree over may have cut off what followed.
        match show(setting, &file, tally.good, json)? {
            Some(more) => tally = more,
            // Whoever read this has left.
            None => return Ok(exit::DONE),
        }
        told(&file, &tally);
    }
}

fn internal(error: rollout::Error) -> Failure {
    match error {
        rollout::Error::Removed { file } => Failure::usage(format!(
            "{} was moved while it was read: its tree is being archived or deleted",
            file.display()
        ))
        .hint("give the command again; `agent list --archived` lists what is archived"),
        error => Failure::internal(error.to_string()),
    }
}

/// Writes the lines of a file from `from` on, a piece at a time. None when nobody reads any more.
fn show(setting: &Setting, file: &AbsPath, from: u64, json: bool) -> Result<Option<Tally>, Failure> {
    let mut text = String::new();
    let mut failed = None;
    let mut left = false;
    let tally = setting.store.walk(file, from, |line| {
        let mut put = |line: &Line| {
            if let Err(error) = render(line, json, &mut text) {
                failed.get_or_insert(error);
            }
            if text.len() >= PIECE {
                left |= !output::pour(&text);
                text.clear();
            }
        };
        put(&line);
        if let Record::Forked(fork) = &line.record
            && let Err(error) = referred(setting, fork, &line, &mut put)
        {
            failed.get_or_insert(error);
        }
        if left || failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let tally = tally.map_err(internal)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if !left && !text.is_empty() {
        left = !output::pour(&text);
    }
    Ok((!left).then_some(tally))
}

/// Puts the items that a fork refers to where they belong, as lines of the one that does.
fn referred(setting: &Setting, fork: &Forked, at: &Line, put: &mut dyn FnMut(&Line)) -> Result<(), Failure> {
    let parent = Some(fork.parent.thread);
    let lack = setting.store.taken_over(fork, |item| {
        let record = ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: parent };
        put(&Line { part: None, record: Record::Item(record), ..at.clone() });
    });
    if let Some(lack) = lack.map_err(internal)? {
        output::note(&format!("warning: {lack}"));
    }
    Ok(())
}

/// Says what of a file was passed over.
fn told(file: &AbsPath, tally: &Tally) {
    for bad in &tally.bad {
        output::note(&format!("warning: a line at byte {} could not be read: {}", bad.offset, bad.why));
    }
    if tally.skipped > 0 {
        let lines = if tally.skipped == 1 { "line" } else { "lines" };
        output::note(&format!("warning: {file}: {} {lines} could not be read", tally.skipped));
    }
    if tally.unknown > 0 {
        let lines = if tally.unknown == 1 { "line is" } else { "lines are" };
        output::note(&format!("warning: {file}: {} {lines} of a type that this version does not know", tally.unknown));
    }
}

fn length(file: &AbsPath) -> u64 {
    std::fs::metadata(file).map_or(0, |meta| meta.len())
}

fn render(line: &Line, json: bool, text: &mut String) -> Result<(), Failure> {
    if json {
        let mut bytes = Vec::new();
        rollout::encode(&mut bytes, line.timestamp, line.ordinal, line.part, &line.record).map_err(internal)?;
        *text += &String::from_utf8_lossy(&bytes);
    } else if let Some(said) = tell(line) {
        *text += &format!("{}  {said}\n", line.timestamp);
    }
    Ok(())
}

/// A line for people; none for book-keeping.
fn tell(line: &Line) -> Option<String> {
    match &line.record {
        Record::SessionMeta(meta) => Some(format!("{} ({}), {}", meta.agent_path, meta.agent_role, meta.model)),
        Record::Item(record) => item(&record.item),
        Record::Forked(fork) => Some(format!(
            "forked: the next {} items are {}'s, lines {} to {} of its rollout",
            fork.items, fork.parent.path, fork.first, fork.through
        )),
        Record::Mail(mail) => Some(format!("mail: {} from {} accepted", mail.kind.as_str(), mail.from.name())),
        Record::MailReturned(back) => Some(format!("mail: {} sent back: {}", back.ids.len(), back.reason)),
        Record::TurnEnd(end) => {
            let reason = end.end.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Some(format!("turn ended, {}{reason}", end.end.outcome))
        }
        Record::Edge(edge) => {
            let what = match edge.status {
                EdgeStatus::Open => "opened",
                EdgeStatus::Closed => "closed",
            };
            Some(format!("{what} by {}: {}", edge.by, edge.reason))
        }
        Record::Compacted(compacted) => Some(format!(
            "compacted: window {}, {} items: {}",
            compacted.window_number,
            compacted.replacement_history.as_ref().map_or(0, Vec::len),
            compacted.message
        )),
        Record::TurnContext(_)
        | Record::Checkpoint(_)
        | Record::WorldState(_)
        | Record::TaskDone(_)
        | Record::Sent { .. }
        | Record::Process(_)
        | Record::Usage(_)
        | Record::Limits(_)
        | Record::Event(_)
        | Record::Other { .. } => None,
    }
}

fn item(item: &Item) -> Option<String> {
    Some(match item.kind() {
        ItemKind::Message(Role::Assistant) => format!("assistant: {}", item.text()),
        ItemKind::Message(Role::User) => format!("user: {}", item.text()),
        ItemKind::Message(Role::Developer) => format!("instructions: {} bytes", item.text().len()),
        ItemKind::FunctionCall | ItemKind::CustomCall => {
            let call = item.call()?;
            format!("call {}: {}", call.name, call.arguments)
        }
        ItemKind::Output => format!("output: {}", item.text()),
        ItemKind::Reasoning => "reasoning (opaque)".to_owned(),
        ItemKind::Other => format!("other item: {}", item.raw()),
    })
}
