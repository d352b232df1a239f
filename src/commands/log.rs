//! `agent log`.

use orchestrator::snapshot;
use protocol::{AgentPath, Item, ItemKind, Role};
use rollout::{EdgeStatus, Line, Record};

use crate::cli::Log;
use crate::exit::{self, Failure};
use crate::output;
use crate::wire::{Setting, alive};

pub(super) fn log(setting: &Setting, args: &Log) -> Result<u8, Failure> {
    let path = AgentPath::root().resolve(&args.path).map_err(|error| Failure::usage(error.to_string()))?;
    let tree = setting.tree()?;
    let listing = snapshot(&setting.store, tree, alive)?.listing;
    // The newest incarnation: that is the one that can be spoken to.
    let Some(row) = listing.agents.iter().filter(|row| row.path == path).max_by_key(|row| row.opened_at) else {
        let known: Vec<&str> = listing.agents.iter().map(|row| row.path.as_str()).collect();
        return Err(
            Failure::usage(format!("no agent ever lived at {path}")).hint(format!("agents: {}", known.join(", ")))
        );
    };
    let lines = setting.store.read(row.thread_id).map_err(|error| Failure::internal(error.to_string()))?;
    for bad in &lines.bad {
        output::note(&format!("warning: a line at byte {} could not be read: {}", bad.offset, bad.why));
    }
    if lines.torn > 0 {
        output::note(&format!("warning: the last {} bytes are an unfinished write", lines.torn));
    }
    let mut text = String::new();
    for line in &lines.lines {
        if setting.common.json {
            let mut bytes = Vec::new();
            rollout::encode(&mut bytes, line.timestamp, line.ordinal, line.part, &line.record)
                .map_err(|error| Failure::internal(error.to_string()))?;
            text += &String::from_utf8_lossy(&bytes);
        } else if let Some(said) = tell(line) {
            text += &format!("{}  {said}\n", line.timestamp);
        }
    }
    output::answer(&text);
    Ok(exit::DONE)
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
