//! What must hold of a home whose task has come to its end, however often it was killed on the way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use protocol::{EffectId, ItemKind, Mail, MailId, MailKind, Outcome, Party, ThreadId};
use rollout::{Edge, ItemRecord, Line, RealDisk, Record, State, Store};
use stdx::AbsPath;
use testkit::{assert_bounded, assert_closed, assert_invariants};

use crate::scene::{ANSWER, LONG, Scene};

/// All agents of a home: their state and their lines. Writes nothing.
pub(crate) fn load(home: &Path) -> Vec<(State, Vec<Line>)> {
    let store = Store::new(AbsPath::new(home).unwrap(), Arc::new(RealDisk));
    let scan = store.scan().unwrap();
    assert!(scan.problems.is_empty(), "{:?}", scan.problems);
    let agent = |id: ThreadId| (store.load(id).unwrap().state, store.read(id).unwrap().lines);
    scan.heads.iter().map(|head| agent(head.meta.id)).collect()
}

/// Everything. `remembered` is whether each line that was ever written is still there: it need not be after a loss of
/// power, and then requests may have held what no rollout holds.
pub(crate) fn assert_whole(scene: &Scene, remembered: bool) {
    no_orphans(scene);
    let agents = load(scene.home.path());
    let mut paths: Vec<&str> = agents.iter().map(|(state, _)| state.meta.agent_path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/root", "/root/explorer", "/root/worker"], "each agent exists once");
    for (state, lines) in &agents {
        at_rest(state, lines);
    }
    mail_is_exactly_once(&agents);
    every_task_has_one_end(&agents);
    calls_tell_the_truth(&agents, true);
    client_is_answered(&agents);
    no_scraps(scene.home.path());
    let requests = scene.server.requests();
    if remembered {
        assert_invariants(&scene.home, &requests);
    } else {
        assert_closed(&requests);
        assert_bounded(&requests);
    }
}

/// Nothing that an agent of this home started runs on.
pub(crate) fn no_orphans(scene: &Scene) {
    assert_eq!(scene.processes(), [""; 0], "processes survive");
}

fn at_rest(state: &State, lines: &[Line]) {
    let path = &state.meta.agent_path;
    let findings = rollout::check(lines);
    assert!(findings.is_empty(), "{path}: {findings:?}");
    assert_eq!(lines.last().map(|line| line.ordinal), Some(lines.len() as u64), "{path}: ordinals have gaps");
    assert_eq!(state.edge, Edge::Open, "{path}");
    assert_eq!(state.meta.incarnation, 1, "{path}");
    assert!(state.is_at_rest() && state.cut_off.is_empty(), "{path} is not at rest: {state:?}");
}

/// Each mail is accepted once, by its recipient, and is in its context once or waits at an idle agent.
fn mail_is_exactly_once(agents: &[(State, Vec<Line>)]) {
    let mut accepted: HashMap<MailId, usize> = HashMap::new();
    for (state, lines) in agents {
        let path = &state.meta.agent_path;
        let mut read: HashMap<MailId, usize> = HashMap::new();
        for id in items(lines).flat_map(|item| &item.mail) {
            *read.entry(*id).or_default() += 1;
        }
        let mut sequences: BTreeMap<Option<ThreadId>, u64> = BTreeMap::new();
        for mail in mails(lines) {
            *accepted.entry(mail.id).or_default() += 1;
            assert_eq!(mail.to.thread, state.meta.id, "{path} has mail of somebody else: {mail:?}");
            let waits = state.pending.iter().any(|waiting| waiting.id == mail.id);
            let times = read.get(&mail.id).copied().unwrap_or_default();
            assert_eq!(times + usize::from(waits), 1, "{path} has read {times} times, pending {waits}: {mail:?}");
            assert!(!waits || !mail.kind.is_task(), "{path} has a task that never began: {mail:?}");
            let last = sequences.entry(mail.from.thread()).or_default();
            assert_eq!(mail.sequence, *last + 1, "{path}: {mail:?}");
            *last = mail.sequence;
        }
    }
    let twice: Vec<_> = accepted.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "accepted more than once: {twice:?}");
}

/// Files of agents that never were are set aside, and a long body is whole in its file.
fn no_scraps(home: &Path) {
    let store = Store::new(AbsPath::new(home).unwrap(), Arc::new(RealDisk));
    let unborn = store.scan().unwrap().unborn;
    assert!(unborn.is_empty(), "not set aside: {unborn:?}");
    let mut long = 0;
    for mail in load(home).iter().flat_map(|(_, lines)| mails(lines)) {
        let Some(file) = &mail.whole else { continue };
        let whole = std::fs::read_to_string(file).unwrap();
        assert!(whole.len() > LONG && whole.starts_with(&mail.body), "{file} does not hold all of {}", mail.id);
        long += 1;
    }
    assert_eq!(long, 1, "the second answer of the worker is long");
}

/// Each task ends once; if an agent gave it, that agent has one result of it, and the debt is settled.
fn every_task_has_one_end(agents: &[(State, Vec<Line>)]) {
    let mut results: HashMap<MailId, Vec<&Mail>> = HashMap::new();
    for mail in agents.iter().flat_map(|(_, lines)| mails(lines)).filter(|mail| mail.kind == MailKind::Result) {
        results.entry(mail.answers.unwrap()).or_default().push(mail);
    }
    let mut given = 0;
    for (state, lines) in agents {
        let path = &state.meta.agent_path;
        for task in mails(lines).filter(|mail| mail.kind.is_task()) {
            let ends: Vec<_> = records(lines, |record| match record {
                Record::TaskDone(done) if done.task == task.id => Some(done),
                _ => None,
            });
            let [end] = ends.as_slice() else { panic!("{path}: {} ends of {task:?}", ends.len()) };
            assert_eq!(end.giver, task.from, "{path}");
            let sent = records(lines, |record| match record {
                Record::Sent { obligation, mail } if *obligation == task.id => Some(mail),
                _ => None,
            });
            let got = results.remove(&task.id).unwrap_or_default();
            let Party::Agent(giver) = &task.from else {
                assert!(sent.is_empty() && got.is_empty(), "{path}: mail for a client: {got:?}");
                continue;
            };
            given += 1;
            let [result] = got.as_slice() else { panic!("{path}: {} results of {task:?}", got.len()) };
            assert_eq!(result.id, task.id.result());
            assert_eq!((result.to.thread, result.outcome), (giver.thread, Some(end.end.outcome)), "{path}");
            assert!(!sent.is_empty() && sent.iter().all(|id| **id == result.id), "{path}: {sent:?} for {result:?}");
        }
    }
    assert!(results.is_empty(), "results of tasks that nobody had: {results:?}");
    assert!(given >= 3, "two spawns and a follow-up give three tasks, not {given}");
}

/// Each call that sends or spawns is answered, and by what is so. Where the disk was not `sound` an output may also leave
/// it open whether something is there, or refuse what could not be synced; it never claims what is not there.
pub(crate) fn calls_tell_the_truth(agents: &[(State, Vec<Line>)], sound: bool) {
    let all: HashSet<MailId> = agents.iter().flat_map(|(_, lines)| mails(lines)).map(|mail| mail.id).collect();
    let born: HashSet<EffectId> = agents.iter().filter_map(|(state, _)| Some(state.meta.spawned_by?.effect)).collect();
    let mut made: HashSet<MailId> = HashSet::new();
    for (state, lines) in agents {
        let path = &state.meta.agent_path;
        let outputs: HashMap<EffectId, String> = items(lines)
            .filter(|item| item.item.kind() == ItemKind::Output)
            .map(|item| (item.effect.unwrap(), item.item.text()))
            .collect();
        for item in items(lines) {
            let (Some(call), Some(effect)) = (item.item.call(), item.effect) else { continue };
            let output = outputs.get(&effect).unwrap_or_else(|| panic!("{path}: {call:?} has no output"));
            let (there, told) = match call.name.as_str() {
                "spawn_agent" => (born.contains(&effect), output.contains("task_name")),
                "send_message" | "followup_task" => (all.contains(&effect.mail()), output.contains("accepted")),
                _ => continue,
            };
            // What an interrupt cut off may have run.
            let open = output.contains("aborted by user") || !sound;
            let told = told || (there && open);
            assert_eq!(there, told, "{path}: {call:?} was answered {output}");
            made.extend(told.then(|| effect.mail()));
        }
    }
    // Not called for: an agent that a failing disk kept from being loaded says so to whoever gave the task.
    let tasks = agents.iter().flat_map(|(_, lines)| mails(lines)).filter(|mail| mail.kind.is_task() && !sound);
    made.extend(tasks.map(|task| task.id.not_begun()));
    for mail in agents.iter().flat_map(|(_, lines)| mails(lines)) {
        let called = matches!(mail.kind, MailKind::Spawn | MailKind::Message | MailKind::Followup);
        assert!(!called || mail.continues.is_some() || made.contains(&mail.id), "nobody sent {mail:?}");
    }
}

/// The client's task, or what goes on with it, has ended well, once.
fn client_is_answered(agents: &[(State, Vec<Line>)]) {
    let (root, _) = agents.iter().find(|(state, _)| state.meta.parent_thread_id.is_none()).unwrap();
    let ends: Vec<_> = root.done.values().filter(|end| end.outcome != Outcome::Lost).collect();
    let [end] = ends.as_slice() else { panic!("the client has {} answers: {ends:?}", ends.len()) };
    assert_eq!((end.outcome, end.text.as_deref()), (Outcome::Completed, Some(ANSWER)));
}

pub(crate) fn records<'a, T>(lines: &'a [Line], pick: impl Fn(&'a Record) -> Option<T>) -> Vec<T> {
    lines.iter().filter_map(|line| pick(&line.record)).collect()
}

pub(crate) fn items(lines: &[Line]) -> impl Iterator<Item = &ItemRecord> {
    lines.iter().filter_map(|line| if let Record::Item(item) = &line.record { Some(item) } else { None })
}

pub(crate) fn mails(lines: &[Line]) -> impl Iterator<Item = &Mail> {
    lines.iter().filter_map(|line| if let Record::Mail(mail) = &line.record { Some(&**mail) } else { None })
}
