//! What must hold of a play that has come to its end, counted over all rollouts, however often it was killed.

use std::collections::HashMap;

use protocol::{EffectId, ItemKind, Mail, MailId, MailKind, Outcome, Party, ThreadId};
use rollout::{Edge, Line, State};
use testkit::{append_only, bounded, closed, written};

use crate::count;
use crate::play::{Play, Step, done, reason, task, word};
use crate::scene::Scene;
use crate::verify::{calls_tell_the_truth, load, mails, no_orphans, records};

/// What a client was told.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// What it sent: a task, or a word.
    pub(crate) words: String,
    /// Whether it was told that this was accepted, or done.
    pub(crate) accepted: bool,
}

/// How much can be asked of a home, after what was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Each line that was ever written is there still. It need not be after a loss of power.
    pub(crate) remembered: bool,
    /// Every task has come to a good end. It need not have when the disk or the model failed meanwhile.
    pub(crate) done: bool,
    /// The disk has taken everything. Else outputs may say that a call may have run, and the model makes it again.
    pub(crate) sound: bool,
}

/// All that can be asked.
pub(crate) const ALL: Ask = Ask { remembered: true, done: true, sound: true };

/// Everything.
pub(crate) fn assert_played(scene: &Scene, play: &Play, clients: &[Told], ask: Ask) {
    no_orphans(scene);
    no_litter(scene);
    count::assert_whole(scene.home.path());
    let agents = load(scene.home.path());
    calls_tell_the_truth(&agents, ask.sound);
    let tree = Tree::new(&agents);
    tree.is_at_rest();
    tree.edges_are_as_they_should(play);
    tree.each_once(play, ask.done);
    tree.clients_were_told_the_truth(clients);
    if ask.done {
        tree.each_task_is_done(play);
    }
    let requests = scene.server.requests();
    let mut checks = vec![closed(&requests), bounded(&requests)];
    if ask.remembered {
        checks.extend([append_only(&requests), written(&scene.home, &requests)]);
    }
    for check in checks {
        assert_eq!(check, Ok(()));
    }
    let check = scene.agent(&["rollout", "check"]);
    assert!(check.code == 0 && check.stdout.contains("nothing wrong"), "{check:?}");
}

/// No file is left that somebody meant to rename or remove.
fn no_litter(scene: &Scene) {
    let mut folders = vec![scene.home.path().to_owned(), scene.home.temporary()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            assert!(!name.contains(".tmp") && !name.starts_with(".#"), "{} was left behind", path.display());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
}

/// Whether an output leaves it open what became of its call.
fn left_open(output: &str) -> bool {
    output.contains("aborted by user") || output.contains("may have run partly")
}

struct Tree<'a> {
    agents: &'a [(State, Vec<Line>)],
    by_thread: HashMap<ThreadId, &'a State>,
}

impl<'a> Tree<'a> {
    fn new(agents: &'a [(State, Vec<Line>)]) -> Self {
        let by_thread = agents.iter().map(|(state, _)| (state.meta.id, state)).collect();
        Self { agents, by_thread }
    }

    fn is_reachable(&self, state: &State) -> bool {
        let above = state.meta.parent_thread_id.and_then(|parent| self.by_thread.get(&parent));
        state.edge == Edge::Open && above.is_none_or(|above| self.is_reachable(above))
    }

    fn mails(&self) -> impl Iterator<Item = &'a Mail> {
        self.agents.iter().flat_map(|(_, lines)| mails(lines))
    }

    /// Nobody has anything to do, and nothing waits where it should not.
    fn is_at_rest(&self) {
        for (state, _) in self.agents {
            let path = &state.meta.agent_path;
            assert!(state.is_at_rest(), "{path} is not at rest: {state:?}");
            if self.is_reachable(state) {
                assert!(state.cut_off.is_empty(), "{path} has not gone on with {:?}", state.cut_off);
                let waiting: Vec<_> = state.pending.iter().filter(|mail| mail.kind.is_task()).collect();
                assert!(waiting.iter().all(|mail| !mail.trigger_turn), "{path} has not begun {waiting:?}");
            } else {
                assert!(state.pending.is_empty(), "{path} is closed and has mail: {:?}", state.pending);
            }
        }
    }

    /// Closed is what somebody closed, by the one who was to.
    fn edges_are_as_they_should(&self, play: &Play) {
        for (state, _) in self.agents {
            let Edge::Closed { reason: why, by, .. } = &state.edge else { continue };
            let path = state.meta.agent_path.as_str();
            let closes = play.steps().any(|(of, step)| match step {
                Step::Close { agent, word } => agent == path && *why == reason(*word) && *by == play.tasks[of].agent,
                _ => false,
            });
            assert!(closes, "{path} was closed by {by}: {why}");
        }
    }

    /// Each agent, follow-up and message is there once; at the most, when its giver did not get to it.
    fn each_once(&self, play: &Play, all_done: bool) {
        for (of, step) in play.steps() {
            let (kind, words) = match step {
                Step::Spawn(number) => (MailKind::Spawn, task(*number)),
                Step::Follow(number) => (MailKind::Followup, task(*number)),
                Step::Tell { word: number, .. } => (MailKind::Message, word(*number)),
                Step::Close { word, .. } => {
                    let why = reason(*word);
                    let closed = |state: &State| matches!(&state.edge, Edge::Closed { reason, .. } if *reason == why);
                    let times = self.agents.iter().filter(|(state, _)| closed(state)).count();
                    assert!(times <= 1, "{why} {times} times");
                    let had_to = all_done && self.has_done(of) && !self.is_shut(&play.tasks[of].agent);
                    assert!(times == 1 || !had_to, "{why} was never done");
                    continue;
                }
                _ => continue,
            };
            let same = |mail: &&Mail| mail.kind == kind && mail.continues.is_none() && mail.body.contains(&words);
            let times = self.mails().filter(same).count();
            assert!(times <= 1 + self.aborted(&words), "{words} was accepted {times} times");
            let has_to =
                kind != MailKind::Message && all_done && self.has_done(of) && !self.is_shut(&play.tasks[of].agent);
            assert!(times > 0 || !has_to, "{words} was never accepted");
        }
    }

    /// Calls with these words that an interrupt or a failing disk cut off: they may have run.
    fn aborted(&self, words: &str) -> usize {
        let mut aborted = 0;
        for (_, lines) in self.agents {
            let outputs: Vec<EffectId> = crate::verify::items(lines)
                .filter(|item| item.item.kind() == ItemKind::Output && left_open(&item.item.text()))
                .filter_map(|item| item.effect)
                .collect();
            let with_words =
                |item: &&rollout::ItemRecord| item.item.call().is_some_and(|call| call.arguments.contains(words));
            let calls = crate::verify::items(lines).filter(with_words).filter_map(|item| item.effect);
            aborted += calls.filter(|effect| outputs.contains(effect)).count();
        }
        aborted
    }

    /// Whether somebody closed this agent or one above it: from then on until its turn ended it was refused everything.
    fn is_shut(&self, path: &str) -> bool {
        let closed = self.agents.iter().filter(|(state, _)| state.is_closed());
        let mut above = closed.map(|(state, _)| state.meta.agent_path.as_str());
        above.any(|above| path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// Whether the task of this number has come to a good end.
    fn has_done(&self, number: usize) -> bool {
        self.ends(number).iter().any(|(outcome, text)| *outcome == Outcome::Completed && text.contains(&done(number)))
    }

    /// How a task ended, and each that went on with it, in the order of the file.
    fn ends(&self, number: usize) -> Vec<(Outcome, String)> {
        let mut ends = Vec::new();
        for (_, lines) in self.agents {
            let words = task(number);
            let given = mails(lines).filter(|mail| mail.kind.is_task() && mail.body.contains(&words));
            let given: Vec<MailId> = given.map(|mail| mail.id).collect();
            ends.extend(records(lines, |record| match record {
                rollout::Record::TaskDone(done) if given.contains(&done.task) => {
                    Some((done.end.outcome, done.end.text.clone().unwrap_or_default()))
                }
                _ => None,
            }));
        }
        ends
    }

    /// Each task that an agent got that is there still was done, once; that of an agent that somebody interrupts may
    /// have ended with that.
    fn each_task_is_done(&self, play: &Play) {
        for (state, lines) in self.agents.iter().filter(|(state, _)| self.is_reachable(state)) {
            let path = state.meta.agent_path.as_str();
            let interrupted =
                play.steps().any(|(_, step)| matches!(step, Step::Interrupt { agent, .. } if agent == path));
            for (number, _) in play.tasks.iter().enumerate() {
                let given = mails(lines).any(|mail| mail.kind.is_task() && mail.body.contains(&task(number)));
                if !given {
                    continue;
                }
                let ends = self.ends(number);
                let well = ends.iter().filter(|(outcome, _)| *outcome == Outcome::Completed).count();
                let stopped = ends.last().is_some_and(|(outcome, _)| *outcome == Outcome::Interrupted);
                let good = if interrupted && stopped { well == 0 } else { well == 1 && self.has_done(number) };
                assert!(good, "{path}: {} ended as {ends:?}", task(number));
            }
        }
        assert!(self.has_done(0), "the client has no answer: {:?}", self.ends(0));
    }

    /// What a client was told is so: what was accepted is there once, what was not at the most once.
    fn clients_were_told_the_truth(&self, clients: &[Told]) {
        let mut by_words: HashMap<&str, (usize, usize)> = HashMap::new();
        for client in clients {
            let (sent, accepted) = by_words.entry(&client.words).or_default();
            *sent += 1;
            *accepted += usize::from(client.accepted);
        }
        for (words, (sent, accepted)) in by_words {
            let same = |mail: &&Mail| {
                matches!(mail.from, Party::Client { .. }) && mail.continues.is_none() && mail.body.contains(words)
            };
            let times = self.mails().filter(same).count();
            assert!(
                accepted <= times && times <= sent,
                "{words} was sent {sent} times, accepted {accepted} times, and is there {times} times"
            );
        }
    }
}
