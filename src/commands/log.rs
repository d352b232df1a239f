//! `agent log`.

use std::time::Duration;

use orchestrator::snapshot;
use protocol::{Item, ItemKind, Role};
use rollout::{EdgeStatus, Line, Lines, Record};

use super::signals::Interrupts;
use crate::cli::Log;
use crate::exit::{self, Failure};
use crate::output;
use crate::who;
use crate::wire::{Setting, alive};

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
    let read = || setting.store.read(row.thread_id).map_err(|error| Failure::internal(error.to_string()));
    let lines = read()?;
    for bad in &lines.bad {
        output::note(&format!("warning: a line at byte {} could not be read: {}", bad.offset, bad.why));
    }
    if lines.torn > 0 && !args.follow {
        output::note(&format!("warning: the last {} bytes are an unfinished write", lines.torn));
    }
    output::answer(&render(&lines.lines, setting.common.json)?);
    if !args.follow {
        return Ok(exit::DONE);
    }
    let mut last = lines.lines.last().map_or(0, |line| line.ordinal);
    let mut size = length(&lines);
    let mut interrupts = Interrupts::listen();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupts.next() => return Ok(exit::DONE),
        }
        if length(&lines) == size {
            continue;
        }
        size = length(&lines);
        let new: Vec<Line> = read()?.lines.into_iter().filter(|line| line.ordinal > last).collect();
        last = new.last().map_or(last, |line| line.ordinal);
        let text = render(&new, setting.common.json)?;
        if !text.is_empty() && !output::pour(&text) {
            // Whoever read this has left.
            return Ok(exit::DONE);
        }
    }
}

fn length(lines: &Lines) -> u64 {
    std::fs::metadata(&lines.file).map_or(0, |meta| meta.len())
}

fn render(lines: &[Line], json: bool) -> Result<String, Failure> {
    let mut text = String::new();
    for line in lines {
        if json {
            let mut bytes = Vec::new();
            rollout::encode(&mut bytes, line.timestamp, line.ordinal, line.part, &line.record)
                .map_err(|error| Failure::internal(error.to_string()))?;
            text += &String::from_utf8_lossy(&bytes);
        } else if let Some(said) = tell(line) {
            text += &format!("{}  {said}\n", line.timestamp);
        }
    }
    Ok(text)
}

/// A line for people; none for book-keeping.
fn tell(line: &Line) -> Option<String> {
    match &line.record {
        Record::SessionMeta(meta) => Some(format!("{} ({}), {}", meta.agent_path, meta.agent_role, meta.model)),
        Record::Item(record) => item(&record.item),
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
        Record::TurnContext(_)
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
