//! Driving a tree from a command: showing what happens, minding Ctrl-C, and ending well.

use std::sync::Arc;

use orchestrator::{Answer, Pending, Tree};
use protocol::{EventKind, Outcome, TaskEnd, TreeEvent, TreeId, UnreadResult};
use stdx::one_line;
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
        Self { tree, json, shown, resume }
    }

    /// Waits for a task's end and then for the whole tree to be quiet, prints the answer, and lets go of the tree.
    pub(super) async fn finish(self, pending: Pending) -> u8 {
        let who = if pending.agent.is_root() { "the root".to_owned() } else { pending.agent.to_string() };
        let answer = tokio::select! {
            answer = pending.answer() => answer,
            () = interrupted() => return self.interrupt().await,
        };
        match self.tree.at_work() {
            0 => {}
            1 => output::note(&format!("{who} has answered; 1 agent still works, waiting for it")),
            many => output::note(&format!("{who} has answered; {many} agents still work, waiting for them")),
        }
        tokio::select! {
            () = self.tree.quiet() => {}
            () = interrupted() => return self.interrupt().await,
        }
        let unread = self.tree.unread_results();
        self.tree.finished(&answer);
        self.end(Some(&answer), &unread).await;
        exit::of(&answer)
    }

    /// Waits for the tree to be quiet, for a command that gave no task of its own.
    pub(super) async fn settle(self) -> u8 {
        tokio::select! {
            () = self.tree.quiet() => {}
            () = interrupted() => return self.interrupt().await,
        }
        let unread = self.tree.unread_results();
        self.tree.finished(&nothing(Outcome::Completed, "no task was given"));
        self.end(None, &unread).await;
        exit::DONE
    }

    /// The first Ctrl-C: turns end, everything is flushed, every edge stays open. The second ends the process.
    async fn interrupt(self) -> u8 {
        output::note("interrupted: ending the turns; once more leaves at once");
        let again = tokio::spawn(async {
            interrupted().await;
            exit_now();
        });
        self.tree.interrupt_all("interrupted by the user").await;
        self.tree.finished(&nothing(Outcome::Interrupted, "interrupted by the user"));
        let resume = self.resume.clone();
        self.end(None, &[]).await;
        again.abort();
        output::note(&format!("the tree is kept; go on with: {resume}"));
        exit::INTERRUPTED
    }

    async fn end(self, answer: Option<&Answer>, unread: &[UnreadResult]) {
        self.tree.shut_down().await;
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
        let mut failure = Failure::internal(format!("{}: {reason}", answer.end.outcome));
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

/// Ctrl-C or a request to terminate.
async fn interrupted() {
    let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        result = tokio::signal::ctrl_c() => if result.is_err() { std::future::pending().await },
        _ = terminate.recv() => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "the second Ctrl-C leaves at once; everything accepted is on disk")]
fn exit_now() {
    std::process::exit(i32::from(exit::INTERRUPTED));
}
