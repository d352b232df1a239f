//! Trees and reports as text.

use std::time::Duration;

use budget::Usd;
use frontend::{Edge, Found, Listing, Report, Row, Tokens};
use protocol::{AgentPath, Outcome, Status, Waits};
use stdx::Timestamp;

use crate::progress::{count, elapsed};

/// A tree as text, as it stands `now`: one line an agent, children below their parents.
pub(crate) fn tree(snapshot: &Listing, now: Timestamp) -> String {
    let mut text = format!("tree {}\n", snapshot.tree);
    let roots: Vec<&Row> = snapshot.agents.iter().filter(|row| row.parent.is_none()).collect();
    for row in roots {
        branch(snapshot, row, ("", ""), (now, false), &mut text);
    }
    text += &spending(snapshot);
    text
}

/// How the tree stands with its budget, in a line; nothing when it has none.
fn spending(snapshot: &Listing) -> String {
    let Some(budget) = &snapshot.budget else { return String::new() };
    let tokens = budget.tokens.map(|tokens| {
        let reserved =
            if tokens.reserved > 0 { format!(" and {} reserved", count(tokens.reserved)) } else { String::new() };
        format!("{}{reserved} of {} tokens", count(tokens.used), count(tokens.limit))
    });
    let usd = budget.usd.map(|usd| format!("{} of {}", Usd::new(usd.used), Usd::new(usd.limit)));
    let parts: Vec<String> = tokens.into_iter().chain(usd).collect();
    format!("budget: {} used\n", parts.join(", "))
}

/// `above` is whether an agent above is closed, and with it this one.
fn branch(
    snapshot: &Listing,
    row: &Row,
    (first, rest): (&str, &str),
    (now, above): (Timestamp, bool),
    text: &mut String,
) {
    let name = if row.parent.is_none() { row.path.as_str() } else { row.path.name() };
    *text += &format!("{first}{name}  {}\n", standing(row, now, above));
    let closed = above || row.edge == Edge::Closed;
    let children: Vec<&Row> = snapshot.agents.iter().filter(|child| is_child(child, &row.path, row)).collect();
    let last = children.len().saturating_sub(1);
    for (index, child) in children.into_iter().enumerate() {
        let (first, below) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        branch(snapshot, child, (&format!("{rest}{first}"), &format!("{rest}{below}")), (now, closed), text);
    }
}

fn is_child(child: &Row, path: &AgentPath, parent: &Row) -> bool {
    child.parent.as_ref() == Some(path) && child.thread_id != parent.thread_id
}

fn standing(row: &Row, now: Timestamp, above: bool) -> String {
    let mut parts = vec![match &row.waits {
        Some(Waits::Slot { position }) => format!("{}, number {position}", row.status),
        Some(waits) if *waits != Waits::Model => format!("{} for {waits}", row.status),
        _ if row.outcome == Some(Outcome::OverBudget) && row.status == Status::Errored => "over budget".to_owned(),
        _ => row.status.to_string(),
    }];
    if let Some(since) = row.since.filter(|_| row.status.is_active()) {
        parts.push(format!("for {}", elapsed(now.until(since))));
    }
    if let Some(stalled) = row.stalled_ms {
        parts.push(format!("stalled, nothing for {}", elapsed(Duration::from_millis(stalled))));
    }
    if row.edge == Edge::Closed {
        parts.push("closed".to_owned());
    } else if above {
        parts.push("closed above".to_owned());
    }
    parts.push(match &row.nickname {
        Some(nickname) => format!("{} {nickname}", row.role),
        None => row.role.clone(),
    });
    if row.unread > 0 {
        parts.push(format!("{} unread", row.unread));
    }
    if row.skipped > 0 {
        parts.push(format!("{} unreadable", many(row.skipped as u64, "line")));
    }
    parts.push(spent(row));
    parts.push(row.task.clone());
    parts.join(" · ")
}

/// What an agent has used: input, of which cached, and output, as servers counted; estimates and money where there are.
fn spent(row: &Row) -> String {
    let Tokens { input, cached_input, output } = row.tokens;
    let cached = if cached_input > 0 { format!(" ({} cached)", count(cached_input)) } else { String::new() };
    let mut text = format!("{} in{cached}, {} out", count(input), count(output));
    let guessed = row.estimated.input + row.estimated.output;
    if guessed > 0 {
        text += &format!(", about {} uncounted", count(guessed));
    }
    if let Some(usd) = row.cost_usd {
        text += &format!(", {}", Usd::new(usd));
    }
    text
}

/// A tree in the language of Graphviz.
pub(crate) fn dot(snapshot: &Listing) -> String {
    let mut text = String::from("digraph tree {\n  rankdir=TB;\n  node [shape=box, style=rounded];\n");
    for (index, row) in snapshot.agents.iter().enumerate() {
        let style = if row.edge == Edge::Closed { ", style=\"rounded,dashed\"" } else { "" };
        let label = format!("{}\\n{} {}", quoted(row.path.as_str()), quoted(&row.role), row.status);
        text += &format!("  n{index} [label=\"{label}\"{style}];\n");
    }
    for (from, to) in edges(snapshot) {
        text += &format!("  n{from} -> n{to};\n");
    }
    text + "}\n"
}

/// A tree as a Mermaid flow chart.
pub(crate) fn mermaid(snapshot: &Listing) -> String {
    let mut text = String::from("flowchart TD\n");
    for (index, row) in snapshot.agents.iter().enumerate() {
        text += &format!("  n{index}[\"{}<br/>{} {}\"]\n", quoted(row.path.as_str()), quoted(&row.role), row.status);
    }
    for (from, to) in edges(snapshot) {
        let arrow = if snapshot.agents.get(to).is_some_and(|row| row.edge == Edge::Closed) { "-.->" } else { "-->" };
        text += &format!("  n{from} {arrow} n{to}\n");
    }
    text
}

/// Parent and child, by their places in the listing. A path may have had several incarnations: the parent is the
/// newest that is not younger than the child.
fn edges(snapshot: &Listing) -> impl Iterator<Item = (usize, usize)> + '_ {
    let place = |child: &Row| {
        let parents = snapshot.agents.iter().enumerate();
        parents
            .filter(|(_, row)| Some(&row.path) == child.parent.as_ref() && row.opened_at <= child.opened_at)
            .max_by_key(|(_, row)| row.opened_at)
            .map(|(index, _)| index)
    };
    snapshot.agents.iter().enumerate().filter_map(move |(to, row)| Some((place(row)?, to)))
}

/// A text within double quotes.
fn quoted(text: &str) -> String {
    text.replace(['"', '\\', '\n'], "'")
}

/// What taking a tree over found: one line an agent.
pub(crate) fn report(report: &Report) -> String {
    let mut text = String::new();
    for agent in &report.agents {
        text += &format!("{}  {}\n", agent.path, told(agent));
    }
    text
}

/// What is odd about a tree that was taken over; each a line for stderr.
pub(crate) fn oddities(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in &report.agents {
        let path = &agent.path;
        let of = agent.cut.file.as_ref().map(|file| format!(" ({file})")).unwrap_or_default();
        if agent.cut.torn > 0 {
            lines.push(format!("{path}: an unfinished write of {} was cut off{of}", many(agent.cut.torn, "byte")));
        }
        if agent.cut.skipped > 0 {
            let count = many(agent.cut.skipped as u64, "line");
            lines.push(format!("{path}: passed over {count} that could not be read{of}"));
        }
        for command in &agent.swept {
            lines.push(format!("{path}: ended what a crash left running: {command}"));
        }
        for command in &agent.survive {
            lines.push(format!("{path}: a process that a crash left still runs: {command}"));
        }
    }
    lines.extend(
        report.unborn.iter().map(|file| format!("an agent was cut off while it was made: {file} is set aside")),
    );
    lines.extend(report.problems.iter().cloned());
    lines
}

/// So many of them.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn told(agent: &Found) -> String {
    let mut parts = vec![match (agent.status, agent.last) {
        (_, Some(Outcome::OverBudget)) => "stopped by its budget".to_owned(),
        (_, Some(Outcome::Completed)) if agent.cut.in_turn => "finished; an earlier task was cut off".to_owned(),
        _ if agent.cut.in_turn => "cut off in the middle of a turn".to_owned(),
        (Status::Pending, None) => "not begun".to_owned(),
        (Status::Pending, Some(_)) => "has a task that is not begun".to_owned(),
        (_, Some(Outcome::Completed)) => "finished".to_owned(),
        (status, _) => status.to_string(),
    }];
    if agent.cut.calls > 0 {
        parts.push(format!("{} broke off", many(agent.cut.calls as u64, "call")));
    }
    if agent.unread > agent.unread_results {
        parts.push(format!("{} unread", agent.unread - agent.unread_results));
    }
    if agent.unread_results > 0 {
        parts.push(format!("{} not read", many(agent.unread_results as u64, "result")));
    }
    if agent.cut.paid > 0 {
        parts.push(format!("{} sent on now", many(agent.cut.paid as u64, "result")));
    }
    if !agent.swept.is_empty() {
        parts.push(format!("{} ended", many(agent.swept.len() as u64, "command")));
    }
    format!("{} · {}", agent.role, parts.join(" · "))
}
