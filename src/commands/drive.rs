//! Driving a tree from a command: showing what happens, minding Ctrl-C, and ending well.

use std::sync::Arc;
use std::time::Duration;

use orchestrator::{Answer, Mode, Pending, Submitted, Tree};
use protocol::{AgentPath, EventKind, Outcome, RequestId, Status, TaskEnd, TreeEvent, TreeId};
use stdx::{Timestamp, one_line};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use super::signals::{Interrupts, exit_now};
use crate::exit::{self, Failure};
use crate::output;
use crate::progress::Progress;
use crate::reach::{Owned, Served};
use crate::wire::Setting;

/// How often the living part of the display is brought up to date when nothing happens.
const TICK: Duration = Duration::from_millis(500);

/// A tree that a command drives.
pub(super) struct Drive {
    tree: Tree,
    door: Served,
    json: bool,
    shown: JoinHandle<()>,
    interrupts: Interrupts,
    resume: String,
}

impl Drive {
    /// Begins to show the tree's events.
    pub(super) fn new(setting: &Setting, owned: Owned) -> Self {
        let Owned { tree, door, .. } = owned;
        let json = setting.common.json;
        let events = tree.events();
        let colour = output::colour(&setting.env);
        let live = output::live(&setting.env);
        let shown = tokio::spawn(show(events, json, colour, live));
        let resume = format!("agent resume --tree {} --continue", tree.id());
        Self { tree, door, json, shown, interrupts: Interrupts::listen(), resume }
    }

    /// The tree.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Gives words to an agent. Words that an earlier owner took already are waited for, not given again.
    pub(super) async fn give(
        &self,
        path: &AgentPath,
        body: &str,
        wake: bool,
        (request, deadline): (RequestId, Option<Timestamp>),
    ) -> Result<Pending, Failure> {
        let mode = if wake { Mode::StartOrSteer } else { Mode::Leave };
        match self.tree.submit_until(path, body, mode, request, deadline).await? {
            (Submitted::NotSubmitted(why), _) => Err(Failure::usage(why.to_string())),
            (_, Some(pending)) => Ok(pending),
            (_, None) => Err(Failure::internal("the words were taken, and nobody answers for them")),
        }
    }

    /// Lets go of a tree in which this command has nothing to wait for. What others have given to it meanwhile is done
    /// first: they were told that it is.
    pub(super) async fn drop_tree(mut self) {
        if !self.tree.shut_door() {
            tokio::select! {
                () = self.tree.over() => {}
                () = self.interrupts.next() => self.tree.end_turns("interrupted by the user").await,
            }
        }
        let late = self.tree.events();
        self.shown.abort();
        output::still();
        self.let_go(late, false).await;
    }

    /// Waits for a task's end and then for the whole tree to be quiet, prints the answer, and lets go of the tree.
    pub(super) async fn finish(mut self, pending: Pending) -> u8 {
        let who = if pending.agent.is_root() { "the root".to_owned() } else { pending.agent.to_string() };
        let answer = tokio::select! {
            answer = pending.answer() => answer,
            () = self.interrupts.next() => return self.interrupt().await,
        };
        let has = if answer.end.outcome == Outcome::Completed { "has answered" } else { "has ended its turn" };
        match self.tree.at_work() {
            0 => {}
            1 => output::note(&format!("{who} {has}; 1 agent still works, waiting for it")),
            many => output::note(&format!("{who} {has}; {many} agents still work, waiting for them")),
        }
        tokio::select! {
            () = self.tree.over() => {}
            () = self.interrupts.next() => return self.interrupt().await,
        }
        let code = exit::of(&answer);
        self.end(&answer, Printed::Answer).await;
        code
    }

    /// Waits for the tree to be quiet, for a command that gave no task of its own.
    pub(super) async fn settle(mut self) -> u8 {
        tokio::select! {
            () = self.tree.over() => {}
            () = self.interrupts.next() => return self.interrupt().await,
        }
        self.end(&nothing(Outcome::Completed, "no task was given"), Printed::Unread).await;
        exit::DONE
    }

    /// The first Ctrl-C: turns end, everything is flushed, every edge stays open. The second ends the process.
    async fn interrupt(mut self) -> u8 {
        output::note("interrupted: ending the turns; once more leaves at once");
        tokio::select! {
            () = self.tree.end_turns("interrupted by the user") => {}
            () = self.interrupts.next() => exit_now(),
        }
        let resume = self.resume.clone();
        self.end(&nothing(Outcome::Interrupted, "interrupted by the user"), Printed::Nothing).await;
        output::note(&format!("the tree is kept; go on with: {resume}"));
        exit::INTERRUPTED
    }

    /// Says how the command ended, and only then lets go of the tree: all of it is on disk, and whoever loses patience
    /// meanwhile has the answer.
    async fn end(mut self, answer: &Answer, printed: Printed) {
        let late = self.tree.events();
        self.tree.finished(answer);
        let shown = tokio::select! {
            // It comes to its end with that event.
            shown = &mut self.shown => shown,
            () = self.interrupts.next() => exit_now(),
        };
        output::still();
        if let Err(error) = shown {
            output::note(&format!("warning: the progress display broke down: {error}"));
        }
        if printed == Printed::Answer {
            let hints = answer.fault.as_ref().map(|fault| fault.hints.clone()).unwrap_or_default();
            tell(self.tree.id(), &answer.end, hints, exit::of(answer), self.json);
        }
        let listing = self.tree.listing();
        match listing.agents.iter().filter(|row| row.status == Status::Pending).count() {
            0 => {}
            1 => output::note("1 agent has a task that did not begin: `agent resume --continue` starts it"),
            many => output::note(&format!(
                "{many} agents have a task that did not begin: `agent resume --continue` starts them"
            )),
        }
        if printed != Printed::Nothing {
            for result in self.tree.unread_results() {
                output::note(&format!("not read by the root: {}: {}", result.from, one_line(&result.text, 200)));
            }
        }
        self.let_go(late, printed == Printed::Nothing).await;
    }

    /// Lets go of the tree. Whoever presses Ctrl-C meanwhile is told that it ends already, unless they know, and leaves at
    /// once with the next. `late` are events that the display does not show any more.
    async fn let_go(self, mut late: UnboundedReceiver<Arc<TreeEvent>>, mut known: bool) {
        let Self { tree, mut door, mut interrupts, .. } = self;
        let ending = async {
            tree.shut_down().await;
            door.close().await;
        };
        tokio::pin!(ending);
        loop {
            tokio::select! {
                () = &mut ending => break,
                () = interrupts.next() => {
                    if std::mem::replace(&mut known, true) {
                        exit_now();
                    }
                    output::note("letting go of the tree; once more leaves at once");
                }
            }
        }
        while let Ok(event) = late.try_recv() {
            match &event.kind {
                EventKind::Warning { message } => output::note(&format!("warning: {message}")),
                EventKind::Error { message, hints } => {
                    let hints: String = hints.iter().map(|hint| format!("\n  hint: {hint}")).collect();
                    output::note(&format!("warning: {message}{hints}"));
                }
                _ => {}
            }
        }
    }
}

/// What a command prints at its end, beside its events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printed {
    /// The answer, and results that the root has not read.
    Answer,
    /// Results that the root has not read.
    Unread,
    /// Neither: it was interrupted.
    Nothing,
}

/// What stands in the last event of a command that has no answer.
fn nothing(outcome: Outcome, reason: &str) -> Answer {
    Answer { end: TaskEnd { outcome, text: None, reason: Some(reason.to_owned()) }, fault: None }
}

/// Prints an answer: its words on stdout, why it ended so on stderr.
pub(super) fn tell(tree: TreeId, end: &TaskEnd, hints: Vec<String>, code: u8, json: bool) {
    if !json && let Some(text) = &end.text {
        output::answer(text);
    }
    let Some(reason) = &end.reason else { return };
    if code == exit::DONE {
        return output::note(&format!("note: {reason}"));
    }
    let said = match end.outcome {
        // The line begins with `error: ` anyway.
        Outcome::Errored => reason.clone(),
        outcome => outcome.because(reason),
    };
    let mut failure = Failure::internal(said);
    failure.hints = hints;
    output::failure(&match end.outcome {
        Outcome::OverBudget => failure.hint(more(tree, reason)),
        Outcome::Closed => failure.hint(format!("the tree as it is now: agent tree --tree {tree}")),
        _ => failure.hint(format!("the tree is kept: agent resume --tree {tree} \"…\"")),
    });
}

/// What to do when a budget is used up. Whose it is stands in the reason.
fn more(tree: TreeId, reason: &str) -> String {
    if reason.contains("everybody below it is used up") {
        "the budget is that of its role: raise it in the role's file, then give it the task again".to_owned()
    } else if reason.contains(" alone is used up") {
        format!("give it more and the task again: agent resume --tree {tree} -c agent_budget_tokens=N \"…\"")
    } else {
        format!("with more it goes on: agent resume --tree {tree} --continue --budget-tokens N (or --budget-usd X)")
    }
}

async fn show(mut events: UnboundedReceiver<Arc<TreeEvent>>, json: bool, colour: bool, live: bool) {
    let mut progress = Progress::new(colour);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = tokio::time::sleep(TICK), if live => {
                output::tick();
                continue;
            }
        };
        let Some(event) = event else { return };
        output::event(&event, json, &mut progress);
        if matches!(event.kind, EventKind::TreeFinished { .. }) {
            return;
        }
    }
}
