//! What a person reads while a tree works: one line for everything worth knowing, none for anything else.

use std::time::Duration;

use protocol::{Call, EventKind, Item, ItemKind, MailKind, Outcome, Role, Status, TreeEvent, WaitingOn};
use stdx::one_line;

/// Characters of a line after the path, where the width of the screen is not known.
const WIDTH: usize = 110;

/// The fewest, however narrow the screen: what is shorter says nothing.
const MIN_WIDTH: usize = 40;

/// Of a line that says what went wrong: what is done about it stands at its end.
const WIDTH_BAD: usize = 300;

/// Turns events into lines.
pub(crate) struct Progress {
    colour: bool,
    /// Width of the longest path so far, so that what agents do stands in one column.
    column: usize,
    /// Calls by id, newest last, to say what an output belongs to.
    calls: Vec<(protocol::ThreadId, Call)>,
}

/// How a line is marked.
#[derive(Clone, Copy)]
enum Mark {
    Start,
    Call,
    Output,
    Say,
    Mail,
    Done,
    Bad,
    Wait,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Self::Start => '+',
            Self::Call => '$',
            Self::Output => ' ',
            Self::Say => '"',
            Self::Mail => '@',
            Self::Done => '=',
            Self::Bad => '!',
            Self::Wait => '.',
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Self::Start => "\x1b[36m",
            Self::Call => "\x1b[34m",
            Self::Output | Self::Wait => "\x1b[2m",
            Self::Say => "\x1b[0m",
            Self::Mail => "\x1b[35m",
            Self::Done => "\x1b[32m",
            Self::Bad => "\x1b[31m",
        }
    }
}

impl Progress {
    pub(crate) fn new(colour: bool) -> Self {
        Self { colour, column: "/root/worker_a".len(), calls: Vec::new() }
    }

    /// The line for an event, if it is worth one. `columns` is the width of the screen, where there is one.
    pub(crate) fn line(&mut self, event: &TreeEvent, columns: Option<usize>) -> Option<String> {
        let (mark, text) = match &event.kind {
            EventKind::AgentSpawned { role, nickname, task, .. } => {
                let name = nickname.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
                (Mark::Start, format!("{role}{name}: {task}"))
            }
            EventKind::AgentRehydrated { items } => (Mark::Start, format!("is back with {items} items")),
            EventKind::AgentEvicted => return None,
            EventKind::AgentClosed { reason } => (Mark::Done, Outcome::Closed.because(reason)),
            EventKind::AgentStatus { status: Status::Queued, position: Some(position), .. } => {
                (Mark::Wait, format!("queued, number {position} for a running slot"))
            }
            EventKind::AgentStatus { waiting_on: Some(WaitingOn::Agent), .. } => {
                (Mark::Wait, "waits for other agents".to_owned())
            }
            EventKind::AgentStalled { stalled_ms, waits, .. } => {
                let path = &event.path;
                let waits = waits.as_ref().map(|waits| format!(" while it waits for {waits}")).unwrap_or_default();
                let time = elapsed(Duration::from_millis(*stalled_ms));
                let text = format!(
                    "stalled: nothing has come for {time}{waits}; `agent interrupt {path}` stops it, `agent log {path}` \
                     shows what it did"
                );
                (Mark::Bad, text)
            }
            EventKind::ItemCompleted { item, .. } => self.item(event, item)?,
            EventKind::MailAccepted { from, kind, preview, .. } => match kind {
                MailKind::Spawn | MailKind::Input => return None,
                kind => (Mark::Mail, format!("{} from {from}: {preview}", kind.as_str())),
            },
            EventKind::MailReturned { reason, .. } => (Mark::Mail, format!("mail went back: {reason}")),
            EventKind::TurnCompleted { outcome, reason, usage, .. } => {
                self.calls.retain(|(thread, _)| *thread != event.thread);
                let tokens = format!("{} in, {} out", count(usage.input), count(usage.output));
                match (outcome, reason) {
                    (Outcome::Completed, None) => (Mark::Done, format!("done ({tokens})")),
                    (outcome, reason) => {
                        let mark = if *outcome == Outcome::Completed { Mark::Done } else { Mark::Bad };
                        let reason = reason.as_deref().unwrap_or("no reason given");
                        (mark, format!("{} ({tokens})", outcome.because(reason)))
                    }
                }
            }
            EventKind::Warning { message } => (Mark::Bad, format!("warning: {message}")),
            EventKind::Error { message, hints } => {
                let hints: String = hints.iter().map(|hint| format!("; {hint}")).collect();
                (Mark::Bad, format!("error: {message}{hints}"))
            }
            EventKind::TreeStarted { .. }
            | EventKind::AgentStatus { .. }
            | EventKind::TurnStarted { .. }
            | EventKind::MailDelivered { .. }
            | EventKind::TreeFinished { .. } => return None,
        };
        Some(self.render(event.path.as_str(), mark, &text, columns))
    }

    fn item(&mut self, event: &TreeEvent, item: &Item) -> Option<(Mark, String)> {
        match item.kind() {
            ItemKind::Message(Role::Assistant) => Some((Mark::Say, item.text())),
            ItemKind::FunctionCall | ItemKind::CustomCall => {
                let call = item.call()?;
                let text = describe(&call);
                self.calls.push((event.thread, call));
                text.map(|text| (Mark::Call, text))
            }
            ItemKind::Output => {
                let id = item.answered_call_id()?;
                let at = self.calls.iter().rposition(|(thread, call)| *thread == event.thread && call.call_id == id)?;
                let (_, call) = self.calls.remove(at);
                result(&call, &item.text()).map(|text| (Mark::Output, text))
            }
            ItemKind::Message(_) | ItemKind::Reasoning | ItemKind::Other => None,
        }
    }

    fn render(&mut self, path: &str, mark: Mark, text: &str, columns: Option<usize>) -> String {
        self.column = self.column.max(path.len()).min(32);
        // Before the text stand the path, a blank, the sign and a blank.
        let before = self.column.max(path.len()) + 3;
        let width = columns.map_or(WIDTH, |columns| columns.saturating_sub(before).max(MIN_WIDTH));
        let text = one_line(text, if matches!(mark, Mark::Bad) { WIDTH_BAD.max(width) } else { width });
        let (sign, width) = (mark.sign(), self.column);
        if self.colour {
            format!("\x1b[1m{path:width$}\x1b[0m {}{sign} {text}\x1b[0m", mark.colour())
        } else {
            format!("{path:width$} {sign} {text}")
        }
    }
}

/// A call in a few words; none for calls that other lines tell better.
pub(crate) fn describe(call: &Call) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let field = |name: &str| arguments.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
    match call.name.as_str() {
        "exec_command" => Some(field("cmd").to_owned()),
        "apply_patch" => Some(format!("apply_patch {}", patched(&call.arguments))),
        "spawn_agent" | "wait_agent" | "list_agents" => None,
        "send_message" | "followup_task" => Some(format!("{} to {}", call.name, field("target"))),
        name => Some(format!("{name} {}", call.arguments)),
    }
}

/// The files that a patch names.
fn patched(patch: &str) -> String {
    let files: Vec<&str> = patch
        .split(['\n', '"'])
        .flat_map(|line| line.split("\\n"))
        .filter_map(|line| line.strip_prefix("*** ")?.split_once(" File: ").map(|(_, file)| file.trim()))
        .collect();
    files.join(", ")
}

/// What came of a call, when it is worth a line: a command that failed, a call that could not be made.
fn result(call: &Call, output: &str) -> Option<String> {
    match call.name.as_str() {
        "exec_command" | "write_stdin" => ran(output),
        "spawn_agent" if !output.starts_with('{') => Some(format!("not spawned: {output}")),
        "send_message" | "followup_task" if !output.starts_with('{') => Some(format!("not sent: {output}")),
        // Other lines tell what these did; only what went wrong is news.
        "spawn_agent" | "send_message" | "followup_task" | "wait_agent" | "list_agents" | "interrupt_agent"
        | "close_agent"
            if output.starts_with('{') =>
        {
            None
        }
        _ => Some(output.to_owned()).filter(|output| !output.trim().is_empty()),
    }
}

/// What came of a command: its last words, and how many lines there were.
fn ran(output: &str) -> Option<String> {
    let (head, body) = output.split_once("Output:\n").unwrap_or(("", output));
    let code = head.lines().find_map(|line| line.strip_prefix("Process exited with code "));
    // An output that was cut begins with two lines that say how much there was.
    let cut = body.strip_prefix("Warning: truncated output").and_then(|rest| rest.split_once("\nTotal output lines: "));
    let counted = cut.and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    let lines: u64 = counted.unwrap_or_else(|| u64::try_from(body.lines().count()).unwrap_or(u64::MAX));
    let last = body.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match code {
        Some("0") if last.is_empty() => None,
        Some("0") if lines == 1 => Some(last.to_owned()),
        Some("0") => Some(format!("{} ({lines} lines)", one_line(last, 80))),
        Some(code) if last.is_empty() => Some(format!("exit {code}")),
        Some(code) => Some(format!("exit {code}: {last}")),
        None => Some(match head.lines().find_map(|line| line.strip_prefix("Process running with session ID ")) {
            Some(id) if last.is_empty() => format!("runs on as session {id}"),
            Some(id) => format!("runs on as session {id}: {last}"),
            None => output.to_owned(),
        }),
    }
}

/// A span of time for people.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        seconds => format!("{}h{:02}", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// A number of tokens for people.
pub(crate) fn count(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        let seen: Vec<String> = [0, 999, 1_000, 12_345, 1_234_567].into_iter().map(count).collect();
        assert_eq!(seen, ["0", "999", "1.0k", "12.3k", "1.2M"]);
    }

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Add File: a b\n+x\n*** Update File: c\n*** End Patch";
        assert_eq!(patched(patch), "a b, c");
        let json = serde_json::json!({ "input": patch }).to_string();
        assert_eq!(patched(&json), "a b, c");
    }

    #[test]
    fn outputs_are_told_when_they_matter() {
        let call =
            |name: &str| Call { call_id: "c".into(), name: name.into(), arguments: String::new(), custom: false };
        let exec = |code: &str, body: &str| {
            result(
                &call("exec_command"),
                &format!("Wall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{body}"),
            )
        };
        assert_eq!(exec("0", ""), None);
        assert_eq!(exec("0", "a\n"), Some("a".to_owned()));
        assert_eq!(exec("0", "a\nb\n"), Some("b (2 lines)".to_owned()));
        assert_eq!(exec("3", "oops\n"), Some("exit 3: oops".to_owned()));
        assert_eq!(exec("3", ""), Some("exit 3".to_owned()));
        let cut = "Warning: truncated output (original token count: 9000)\nTotal output lines: 7654\n\n1\n…9 tokens \
                   truncated…\n7654\n";
        assert_eq!(exec("0", cut), Some("7654 (7654 lines)".to_owned()));
        let on = |body: &str| {
            let head = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess running with session ID 55\nOutput:\n";
            result(&call("exec_command"), &format!("{head}{body}"))
        };
        assert_eq!(on(""), Some("runs on as session 55".to_owned()));
        assert_eq!(on("a\nready\n"), Some("runs on as session 55: ready".to_owned()));
        assert_eq!(exec("0", "Total output lines: 9\nb\n"), Some("b (2 lines)".to_owned()), "its own words");
        assert_eq!(result(&call("spawn_agent"), r#"{"task_name":"/root/a"}"#), None);
        assert_eq!(result(&call("spawn_agent"), "limit"), Some("not spawned: limit".to_owned()));
        assert_eq!(result(&call("list_agents"), r#"{"agents":[]}"#), None);
        for name in ["browse", "wait_agent", "apply_patch", "exec_command"] {
            let missing = format!("there is no tool called `{name}`");
            assert_eq!(result(&call(name), &missing), Some(missing.clone()));
        }
    }

    #[test]
    fn lines_fill_the_screen_and_no_more() {
        let mut progress = Progress::new(false);
        let text = "word ".repeat(100);
        for (columns, width) in
            [(None, 14 + 3 + WIDTH), (Some(200), 200), (Some(80), 80), (Some(9), 14 + 3 + MIN_WIDTH)]
        {
            let line = progress.render("/root", Mark::Say, &text, columns);
            assert_eq!(line.trim_end_matches('…').chars().count() + 1, width, "{columns:?}: {line}");
        }
        let bad = progress.render("/root", Mark::Bad, &text, Some(80));
        assert!(bad.chars().count() > WIDTH_BAD, "its end says what to do: {bad}");
    }
}
