//! What a home goes through after a kill: looked at, taken over twice, gone on with, counted, taken over once more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{AgentPath, Outcome};
use rollout::State;
use testkit::{Run, Server};

use crate::point::Point;
use crate::scene::{ANSWER, PROMPT, Scene};
use crate::verify::{assert_whole, load, no_orphans};

/// What a process that was killed exits with, as [`Run`] tells it.
pub(crate) const KILLED: i32 = 128 + 9;

/// Runs the scenario, kills it at `point`, and sees to it that the tree comes back whole. Whether there was a kill:
/// a run may have fewer effects than another, and is counted all the same.
pub(crate) fn kill_run(point: &Point) -> bool {
    let scene = Scene::new();
    let killed = run_killed(&scene, &["run", PROMPT], point);
    if killed {
        comes_back(&scene, point.loses_power());
    } else {
        assert_whole(&scene, true);
    }
    killed
}

/// Runs a command that is killed at `point`, or comes to a good end before it gets there.
pub(crate) fn run_killed(scene: &Scene, args: &[&str], point: &Point) -> bool {
    let (run, effects) = scene.killed(args, Some(point));
    run.assert_code(if effects.is_some() { 0 } else { KILLED });
    if effects.is_none() && point.loses_power() {
        scene.end_processes();
    }
    effects.is_none()
}

/// All that a killed home has to stand.
pub(crate) fn comes_back(scene: &Scene, lost_power: bool) {
    let before = files(scene.home.path());
    let agents = load(scene.home.path());
    let look = scene.agent(&["tree"]);
    assert_eq!(changed(&before, &files(scene.home.path())), [""; 0], "`agent tree` wrote: {look:?}");
    if !agents.iter().any(|(state, _)| state.meta.parent_thread_id.is_none()) {
        never_began(scene, &look);
        return;
    }
    look.assert_code(0);
    for (state, _) in &agents {
        assert!(look.stdout.contains(state.meta.agent_path.name()), "an agent is not shown: {look:?}");
    }

    let first = take_over(scene);
    says_what_was_cut_off(&first, agents.iter().map(|(state, _)| state));
    if lost_power {
        // A loss of power ends them; one that was just being started then has only shown itself by now.
        scene.end_processes();
    } else {
        no_orphans(scene);
    }
    let taken = sessions(scene);
    let second = take_over(scene);
    assert_eq!(changed(&taken, &sessions(scene)), [""; 0], "taking over twice wrote twice: {first:?} {second:?}");
    for news in ["broke off", "sent on now", "unfinished write", "set aside", "ended what a crash left"] {
        assert!(!second.stdout.contains(news) && !second.stderr.contains(news), "told twice: {second:?}");
    }

    let answered = client_has_answer(scene);
    let run = scene.agent(&["resume", "--continue"]);
    run.assert_code(0);
    assert_eq!(run.stdout.contains(ANSWER), !answered, "{run:?}");
    assert_whole(scene, !lost_power);

    let rest = sessions(scene);
    let last = take_over(scene);
    assert_eq!(changed(&rest, &sessions(scene)), [""; 0], "a tree at rest was written to: {last:?}");
}

/// The root's file was not whole, so there never was a tree: every command says so.
fn never_began(scene: &Scene, look: &Run) {
    let resumed = scene.agent(&["resume", "--continue"]);
    for run in [look, &resumed] {
        run.assert_code(2);
        assert!(run.stderr.contains("no tree"), "{run:?}");
    }
    assert!(load(scene.home.path()).is_empty());
}

/// Takes the tree over; fails if that speaks to a model.
pub(crate) fn take_over(scene: &Scene) -> Run {
    // A server of its own instead of the real one: what a killed process has sent there may still be arriving.
    let tripwire = Server::start(|_| testkit::Reply::new().text("nobody should ask"));
    let there = format!("providers.mock.base_url={:?}", tripwire.base_url());
    let run = scene.agent(&["resume", "-c", &there]);
    run.assert_code(0);
    assert_eq!(tripwire.connections(), 0, "taking over started a model: {run:?}");
    run
}

/// The report names every agent, and those whose turn broke off.
fn says_what_was_cut_off<'a>(report: &Run, agents: impl Iterator<Item = &'a State>) {
    for state in agents {
        let path = state.meta.agent_path.as_str();
        let mut lines = report.stdout.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(path));
        let line = line.unwrap_or_else(|| panic!("{path} is not reported: {report:?}"));
        let cut_off = state.open_turn.is_some() || !state.cut_off.is_empty();
        assert_eq!(line.contains("cut off in the middle of a turn"), cut_off, "{report:?}");
        let owes = state.obligations.len() + owed_by_turn(state);
        for (count, what, how) in [(state.open_calls.len(), "call", "broke off"), (owes, "result", "sent on now")] {
            let many = if count == 1 { "" } else { "s" };
            let told = format!("{count} {what}{many} {how}");
            assert_eq!((line.contains(&told), line.contains(how)), (count > 0, count > 0), "{told}: {report:?}");
        }
    }
}

/// Results that the end of the open turn will owe to agents.
fn owed_by_turn(state: &State) -> usize {
    let open = state.open_turn.is_some();
    state.tasks_taken.iter().filter(|task| open && task.giver.thread().is_some()).count()
}

/// Whether the client's task has ended well already.
fn client_has_answer(scene: &Scene) -> bool {
    let agents = load(scene.home.path());
    let (root, _) = agents.iter().find(|(state, _)| state.meta.agent_path == AgentPath::root()).unwrap();
    root.done.values().any(|end| end.outcome == Outcome::Completed)
}

pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn sessions(scene: &Scene) -> Files {
    files(&scene.home.path().join("sessions"))
}

fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.is_file() && !is_mirror(&path) {
            // What is no file is the socket of an owner that was killed.
            all.insert(path.clone(), std::fs::read(path).unwrap());
        }
    }
    all
}

/// The mirror follows whatever is read; it is no part of what must stay as it is.
fn is_mirror(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("state.sqlite"))
}

/// The files that differ, each with what was added.
pub(crate) fn changed(before: &Files, after: &Files) -> Vec<String> {
    let names: std::collections::BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differ = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let tail = |name: &PathBuf| {
        let old = before.get(name).map_or(0, Vec::len);
        let new = after.get(name).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(new.get(old..).unwrap_or_default()).into_owned()
    };
    differ.map(|name| format!("{}: {}", name.display(), tail(name))).collect()
}
