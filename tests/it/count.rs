//! What must hold of a tree at rest, counted over all its rollouts: nothing is lost, nothing is there twice.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use protocol::{Mail, MailId, MailKind, Outcome, ThreadId};
use rollout::{Edge, Line, RealDisk, Record, State, Store};
use stdx::AbsPath;

/// One agent: its state and its lines.
pub(crate) struct Counted {
    pub(crate) state: State,
    lines: Vec<Line>,
}

/// All agents of a home, in the order of their making. Writes nothing.
pub(crate) fn load(home: impl AsRef<Path>) -> Vec<Counted> {
    let store = Store::new(AbsPath::new(home.as_ref()).unwrap(), Arc::new(RealDisk));
    let scan = store.scan().unwrap();
    assert!(scan.problems.is_empty(), "{:?}", scan.problems);
    let agent = |id: ThreadId| Counted { state: store.load(id).unwrap().state, lines: store.read(id).unwrap().lines };
    let mut agents: Vec<Counted> = scan.heads.iter().map(|head| agent(head.meta.id)).collect();
    agents.sort_by_key(|agent| (agent.state.meta.timestamp, agent.state.meta.incarnation));
    agents
}

impl Counted {
    pub(crate) fn path(&self) -> &str {
        self.state.meta.agent_path.as_str()
    }

    /// Mail that was accepted here.
    pub(crate) fn mails(&self) -> impl Iterator<Item = &Mail> {
        self.lines.iter().filter_map(|line| if let Record::Mail(mail) = &line.record { Some(&**mail) } else { None })
    }

    /// How often each mail is named by what `ids` picks out of a line.
    fn times(&self, ids: impl Fn(&Record) -> Vec<MailId>) -> HashMap<MailId, usize> {
        let mut times = HashMap::new();
        for id in self.lines.iter().flat_map(|line| ids(&line.record)) {
            *times.entry(id).or_default() += 1;
        }
        times
    }

    /// How the task of the mail with these words ended, oldest first.
    pub(crate) fn ends(&self, words: &str) -> Vec<Outcome> {
        let tasks: Vec<MailId> = self.mails().filter(|mail| mail.body.contains(words)).map(|mail| mail.id).collect();
        let done = |line: &Line| match &line.record {
            Record::TaskDone(done) if tasks.contains(&done.task) => Some(done.end.outcome),
            _ => None,
        };
        self.lines.iter().filter_map(done).collect()
    }

    /// How often mail with these words was accepted here.
    pub(crate) fn accepted(&self, words: &str) -> usize {
        self.mails().filter(|mail| mail.body.contains(words)).count()
    }

    fn at_rest(&self) {
        let (path, state) = (self.path(), &self.state);
        let findings = rollout::check(&self.lines);
        assert!(findings.is_empty(), "{path}: {findings:?}");
        assert_eq!(self.lines.last().map(|line| line.ordinal), Some(self.lines.len() as u64), "{path}: ordinals");
        assert!(state.open_calls.is_empty() && state.open_turn.is_none(), "{path} is not closed: {state:?}");
        assert!(state.obligations.is_empty(), "{path} owes: {:?}", state.obligations);
        assert!(state.tasks_taken.is_empty(), "{path} has tasks without an end: {:?}", state.tasks_taken);
    }
}

/// The newest agent at a path.
#[track_caller]
pub(crate) fn at<'a>(agents: &'a [Counted], path: &str) -> &'a Counted {
    agents.iter().rfind(|agent| agent.path() == path).unwrap_or_else(|| panic!("nobody lived at {path}"))
}

/// Every transcript is closed, each mail is read once, or waits, or went back once, and each task has one end, of which
/// its giver, when that is an agent, has one result.
#[track_caller]
pub(crate) fn assert_whole(home: impl AsRef<Path>) -> Vec<Counted> {
    let agents = load(home);
    agents.iter().for_each(Counted::at_rest);
    let mut accepted: HashMap<MailId, usize> = HashMap::new();
    let mut results: HashMap<MailId, Vec<&Mail>> = HashMap::new();
    // A result that moves on a second time keeps the id that it got when it first did.
    let moved = |agent: &Counted, mail: &Mail| {
        let again = mail.answers.is_some_and(|task| mail.id == task.result().forwarded());
        mail.kind == MailKind::Result && again && agent.state.returned.contains(&mail.id)
    };
    let stays = agents.iter().flat_map(|agent| agent.mails().filter(move |mail| !moved(agent, mail)));
    for mail in stays {
        *accepted.entry(mail.id).or_default() += 1;
        if let (MailKind::Result, Some(task)) = (mail.kind, mail.answers) {
            results.entry(task).or_default().push(mail);
        }
    }
    let twice: Vec<_> = accepted.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "accepted more than once: {twice:?}");
    let root_closed = agents.iter().any(|agent| agent.path() == "/root" && agent.state.edge != Edge::Open);
    let all_back = |agent: &Counted| agent.state.returned.iter().copied().collect::<Vec<_>>();
    let gone_back: HashSet<MailId> = agents.iter().flat_map(all_back).collect();
    for agent in &agents {
        let path = agent.path();
        let read = agent.times(|record| if let Record::Item(item) = record { item.mail.clone() } else { Vec::new() });
        let back =
            agent.times(|record| if let Record::MailReturned(back) = record { back.ids.clone() } else { Vec::new() });
        let done = agent.times(|record| if let Record::TaskDone(done) = record { vec![done.task] } else { Vec::new() });
        let of = |times: &HashMap<MailId, usize>, id| times.get(&id).copied().unwrap_or_default();
        for mail in agent.mails() {
            let waits = agent.state.pending.iter().any(|waiting| waiting.id == mail.id);
            let (read, back, done) = (of(&read, mail.id), of(&back, mail.id), of(&done, mail.id));
            // A task that nobody took in has an end when its agent is closed, and is not sent back.
            let ended_unread = usize::from(read == 0) * done;
            assert_eq!(
                read + back + ended_unread + usize::from(waits),
                1,
                "{path}: read {read}, back {back}, done {done}, waits {waits}: {mail:?}"
            );
            assert_eq!(done, usize::from(mail.kind.is_task() && !waits && back == 0), "{path}: ends of {mail:?}");
            let told: Vec<MailId> = results.remove(&mail.id).unwrap_or_default().iter().map(|mail| mail.id).collect();
            let owed = done == 1 && mail.from.thread().is_some();
            // To its giver, or, when that is closed, to one above; or to both, when the giver was closed in between.
            let (result, moved) = (mail.id.result(), mail.id.result().forwarded());
            let good = match told.as_slice() {
                [] => !owed || root_closed,
                [one] => owed && (*one == result || *one == moved),
                [one, two] => owed && gone_back.contains(&result) && [*one, *two].contains(&moved),
                _ => false,
            };
            assert!(good, "{path}: results {told:?} of {mail:?}");
        }
    }
    assert!(results.is_empty(), "results of tasks that nobody had: {results:?}");
    agents
}
