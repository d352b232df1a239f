//! Driving a tree from a command: showing what happens, minding Ctrl-C, and ending well.

use std::sync::Arc;

use orchestrator::{Answer, Pending, Tree};
use protocol::{EventKind, Outcome, TaskEnd, TreeEvent, TreeId, UnreadResult};
use stdx::one_line;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::exit::{self, Failure};
use crate::output;
use crate::progress::Progress;
use crate::wire::Setting;

/// A tree that a command drives.
pub(super) struct Drive {
    tree: Tree,
    json: bool,
    shown: JoinHandle<()>,
    interrupts: Interrupts,
    resume: String,
}

impl Drive {
    /// Begins to show the tree's events.
    pub(super) fn new(setting: &Setting, tree: Tree) -> Self {
        let json = setting.common.json;
        let events = tree.events();
        let colour = output::colour(&setting.env);
        let shown = tokio::spawn(show(events, json, colour));
        // Both: the words for a root that was interrupted, and a start for what never began.
        let resume = format!("agent resume --tree {} --continue \"go on\"", tree.id());
        Self { tree, json, shown, interrupts: Interrupts::listen(), resume }
    }

    /// Waits for a task's end and then for the whole tree to be quiet, prints the answer, and lets go of the tree.
    pub(super) async fn finish(mut self, pending: Pending) -> u8 {
        let who = if pending.agent.is_root() { "the root".to_owned() } else { pending.agent.to_string() };
        let answer = tokio::select! {
            answer = pending.answer() => answer,
            () = self.interrupts.next() => return self.interrupt().await,
        };
        match self.tree.at_work() {
            0 => {}
            1 => output::note(&format!("{who} has answered; 1 agent still works, waiting for it")),
            many => output::note(&format!("{who} has answered; {many} agents still work, waiting for them")),
        }
        tokio::select! {
            () = self.tree.quiet() => {}
            () = self.interrupts.next() => return self.interrupt().await,
        }
        let unread = self.tree.unread_results();
        self.tree.finished(&answer);
        self.end(Some(&answer), &unread).await;
        exit::of(&answer)
    }

    /// Waits for the tree to be quiet, for a command that gave no task of its own.
    pub(super) async fn settle(mut self) -> u8 {
        tokio::select! {
            () = self.tree.quiet() => {}
            () = self.interrupts.next() => return self.interrupt().await,
        }
        let unread = self.tree.unread_results();
        self.tree.finished(&nothing(Outcome::Completed, "no task was given"));
        self.end(None, &unread).await;
        exit::DONE
    }

    /// The first Ctrl-C: turns end, everything is flushed, every edge stays open. The second ends the process.
    async fn interrupt(mut self) -> u8 {
        output::note("interrupted: ending the turns; once more leaves at once");
        tokio::select! {
            () = self.tree.interrupt_all("interrupted by the user") => {}
            () = self.interrupts.next() => exit_now(),
        }
        self.tree.finished(&nothing(Outcome::Interrupted, "interrupted by the user"));
        let resume = self.resume.clone();
        self.end(None, &[]).await;
        output::note(&format!("the tree is kept; go on with: {resume}"));
        exit::INTERRUPTED
    }

    async fn end(mut self, answer: Option<&Answer>, unread: &[UnreadResult]) {
        tokio::select! {
            () = self.tree.shut_down() => {}
            () = self.interrupts.next() => exit_now(),
        }
        let id = self.tree.id();
        // The last holder of the tree's events is gone with this, so the printer comes to its end.
        drop(self.tree);
        if let Err(error) = self.shown.await {
            output::note(&format!("warning: the progress display broke down: {error}"));
        }
        if let Some(answer) = answer {
            tell(id, answer, self.json);
        }
        for result in unread {
            output::note(&format!("not read by the root: {}: {}", result.from, one_line(&result.text, 200)));
        }
    }
}

/// What stands in the last event of a command that has no answer.
fn nothing(outcome: Outcome, reason: &str) -> Answer {
    Answer { end: TaskEnd { outcome, text: None, reason: Some(reason.to_owned()) }, fault: None }
}

/// Prints an answer: its words on stdout, why it ended so on stderr.
fn tell(tree: TreeId, answer: &Answer, json: bool) {
    if !json && let Some(text) = &answer.end.text {
        output::answer(text);
    }
    if let Some(reason) = &answer.end.reason {
        let hints = answer.fault.as_ref().map(|fault| fault.hints.clone()).unwrap_or_default();
        let said = match answer.end.outcome {
            // The line begins with `error: ` anyway.
            Outcome::Errored => reason.clone(),
            outcome => format!("{outcome}: {reason}"),
        };
        let mut failure = Failure::internal(said);
        failure.hints = hints;
        if exit::of(answer) == exit::DONE {
            output::note(&format!("note: {reason}"));
        } else {
            output::failure(&failure.hint(format!("the tree is kept: agent resume --tree {tree} \"…\"")));
        }
    }
}

async fn show(mut events: UnboundedReceiver<Arc<TreeEvent>>, json: bool, colour: bool) {
    let mut progress = Progress::new(colour);
    while let Some(event) = events.recv().await {
        if json {
            match serde_json::to_string(&*event) {
                Ok(line) => output::answer(&line),
                Err(error) => output::note(&format!("warning: an event has no JSON form: {error}")),
            }
        } else if let Some(line) = progress.line(&event) {
            output::note(&line);
        }
        if matches!(event.kind, EventKind::TreeFinished { .. }) {
            return;
        }
    }
}

/// Ctrl-C and requests to terminate, from the moment this is made. There is one for a whole command, so that none is
/// missed between two waits: the process does not die of them any more.
struct Interrupts {
    signals: Option<(Signal, Signal)>,
}

impl Interrupts {
    fn listen() -> Self {
        let signals = signal(SignalKind::interrupt()).and_then(|ctrl_c| Ok((ctrl_c, signal(SignalKind::terminate())?)));
        Self { signals: signals.ok() }
    }

    /// Waits for the next one; for ever where none can be heard.
    async fn next(&mut self) {
        match &mut self.signals {
            Some((ctrl_c, terminate)) => tokio::select! {
                _ = ctrl_c.recv() => {}
                _ = terminate.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the second Ctrl-C leaves at once; everything accepted is on disk")]
fn exit_now() -> ! {
    std::process::exit(i32::from(exit::INTERRUPTED))
}
