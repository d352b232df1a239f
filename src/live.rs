//! The living part of the display: a few lines at the bottom that say who works at what. Pure: events and times in,
//! text out.

use std::time::Instant;

use protocol::{AgentPath, EventKind, Outcome, Status, TreeEvent, Usage, WaitingOn};
use stdx::one_line;

use crate::progress::{count, describe, elapsed};

/// Agents shown; the others are counted.
const MAX_ROWS: usize = 10;

/// What is known of the agents of a tree.
#[derive(Default)]
pub(crate) struct Live {
    agents: Vec<Agent>,
    used: Usage,
    /// Lines that stand on the screen.
    drawn: usize,
}

struct Agent {
    path: AgentPath,
    status: Status,
    waiting_on: Option<WaitingOn>,
    position: Option<usize>,
    doing: String,
    since: Instant,
    /// It was said to be stalled, and nothing has come of it since.
    stalled: bool,
}

impl Live {
    /// Takes an event in.
    pub(crate) fn take(&mut self, event: &TreeEvent, now: Instant) {
        match &event.kind {
            EventKind::AgentStatus { status, waiting_on, position } => {
                let agent = self.agent(&event.path, now);
                if agent.status != *status || agent.waiting_on != *waiting_on {
                    agent.since = now;
                    agent.stalled &=
                        matches!(waiting_on, Some(WaitingOn::Model | WaitingOn::Tool)) || *status == Status::Running;
                }
                (agent.status, agent.waiting_on, agent.position) = (*status, *waiting_on, *position);
            }
            EventKind::AgentSpawned { .. } => self.agent(&event.path, now).status = Status::Pending,
            EventKind::AgentClosed { .. } => self.agents.retain(|agent| !agent.path.is_at_or_below(&event.path)),
            EventKind::AgentStalled { .. } => self.agent(&event.path, now).stalled = true,
            EventKind::ItemCompleted { item, .. } => {
                if let Some(agent) = self.agents.iter_mut().find(|agent| agent.path == event.path) {
                    agent.stalled = false;
                }
                if let Some(call) = item.call() {
                    self.agent(&event.path, now).doing = describe(&call).unwrap_or(call.name);
                }
            }
            EventKind::TurnCompleted { outcome, usage, .. } => {
                self.used += *usage;
                let agent = self.agent(&event.path, now);
                agent.status = Status::from(*outcome);
                agent.since = now;
                agent.doing.clear();
                if *outcome == Outcome::Closed {
                    self.agents.retain(|agent| agent.path != event.path);
                }
            }
            _ => {}
        }
    }

    fn agent(&mut self, path: &AgentPath, now: Instant) -> &mut Agent {
        let at = self.agents.iter().position(|agent| agent.path == *path).unwrap_or_else(|| {
            self.agents.push(Agent {
                path: path.clone(),
                status: Status::Pending,
                waiting_on: None,
                position: None,
                doing: String::new(),
                since: now,
                stalled: false,
            });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }

    /// What takes the lines off the screen that [`Live::block`] put there.
    pub(crate) fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }

    /// The lines as they should stand now, for a screen of this many columns. Nothing when nobody works.
    pub(crate) fn block(&mut self, columns: usize, now: Instant) -> String {
        let active: Vec<&Agent> = self.agents.iter().filter(|agent| agent.status.is_active()).collect();
        if active.is_empty() || columns < 20 {
            return String::new();
        }
        let queued = active.iter().filter(|agent| agent.status == Status::Queued).count();
        let done = self.agents.len() - active.len();
        let mut lines = vec![format!(
            "-- {} working, {queued} queued, {done} at rest, {} tokens",
            active.len() - queued,
            count(self.used.total())
        )];
        let width = active.iter().take(MAX_ROWS).map(|agent| agent.path.as_str().len()).max().unwrap_or(0).min(40);
        for agent in active.iter().take(MAX_ROWS) {
            lines.push(format!(
                "   {:width$}  {:>5}  {}{}",
                agent.path,
                elapsed(now.saturating_duration_since(agent.since)),
                if agent.stalled { "stalled; " } else { "" },
                agent.words()
            ));
        }
        if active.len() > MAX_ROWS {
            lines.push(format!("   and {} more", active.len() - MAX_ROWS));
        }
        self.drawn = lines.len();
        // Never as wide as the screen: a line that wraps is two lines to the terminal.
        lines.iter().map(|line| format!("\x1b[2m{}\x1b[0m\n", fit(line, columns - 1))).collect()
    }
}

impl Agent {
    fn words(&self) -> String {
        match (self.status, self.waiting_on) {
            (Status::Queued, _) => match self.position {
                Some(position) => format!("queued, number {position}"),
                None => "queued".to_owned(),
            },
            (_, Some(WaitingOn::Agent)) => "waits for other agents".to_owned(),
            (_, Some(WaitingOn::Model)) => "waits for the provider".to_owned(),
            (_, Some(WaitingOn::Approval)) => "waits for your decision".to_owned(),
            (Status::Waiting, Some(WaitingOn::Tool)) if !self.doing.is_empty() => format!("$ {}", self.doing),
            (Status::Running, _) => "thinks".to_owned(),
            (status, _) => status.to_string(),
        }
    }
}

/// The beginning of a line that fits into `columns`.
fn fit(line: &str, columns: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    format!("{}{}", " ".repeat(indent), one_line_kept(line.trim_start(), columns.saturating_sub(indent)))
}

/// As [`one_line`], but blanks within stay: they align the columns.
fn one_line_kept(line: &str, columns: usize) -> String {
    let shown: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(columns).collect();
    if line.chars().count() > columns { one_line(&shown, columns.saturating_sub(1)) + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use protocol::{ThreadId, TreeId};
    use stdx::Timestamp;

    use super::*;

    fn event(path: &str, kind: EventKind) -> TreeEvent {
        let thread = ThreadId::new();
        TreeEvent {
            seq: 1,
            time: Timestamp::EPOCH,
            tree: TreeId::from(thread),
            path: path.parse().unwrap(),
            thread,
            kind,
        }
    }

    fn status(path: &str, status: Status, waiting_on: Option<WaitingOn>) -> TreeEvent {
        event(path, EventKind::AgentStatus { status, waiting_on, position: None })
    }

    fn plain(text: &str) -> String {
        text.replace("\x1b[2m", "").replace("\x1b[0m", "")
    }

    #[test]
    fn says_who_works_at_what() {
        let now = Instant::now();
        let mut live = Live::default();
        assert_eq!(live.block(80, now), "");
        live.take(&status("/root", Status::Waiting, Some(WaitingOn::Agent)), now);
        live.take(&status("/root/a", Status::Waiting, Some(WaitingOn::Tool)), now);
        let call = protocol::Item::function_call("c", "exec_command", r#"{"cmd":"sleep  1"}"#);
        live.take(&event("/root/a", EventKind::ItemCompleted { turn: None, item: call }), now);
        live.take(&status("/root/b", Status::Queued, None), now);
        live.take(&status("/root/c", Status::Completed, None), now);
        let block = plain(&live.block(80, now + Duration::from_secs(75)));
        assert_eq!(
            block,
            "-- 2 working, 1 queued, 1 at rest, 0 tokens\n   /root     1m15  waits for other agents\n   \
             /root/a   1m15  $ sleep  1\n   /root/b   1m15  queued\n"
        );
        assert_eq!(live.erase(), "\r\x1b[4A\x1b[J");
        assert_eq!(live.erase(), "", "once");
    }

    #[test]
    fn lines_never_reach_the_edge() {
        let now = Instant::now();
        let mut live = Live::default();
        for n in 0..30 {
            live.take(&status(&format!("/root/agent_{n}"), Status::Running, None), now);
        }
        let block = plain(&live.block(24, now));
        assert!(block.lines().all(|line| line.chars().count() < 24), "{block}");
        assert_eq!(block.lines().count(), MAX_ROWS + 2);
        assert!(block.ends_with("   and 20 more\n"));
    }
}
