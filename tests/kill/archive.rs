//! Killed while a tree is archived, brought back or deleted: it is read wholly from wherever it lies, nobody drives a
//! part of it, and either command finishes what broke off.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use protocol::ThreadId;
use rollout::{RealDisk, Store};
use serde_json::json;
use stdx::AbsPath;
use testkit::{Home, Op, Reply, Request, Run, Server};

use crate::case::run_killed;
use crate::count::assert_whole;
use crate::point::{Point, any};
use crate::scene::Scene;

const TEXT: usize = 40_000;

/// A root and two children; the second has words that lie unread and a mail whose body is in a file of its own.
fn family() -> Scene {
    let server = Server::start(|request: &Request| match (request.task().as_str(), request.replies()) {
        ("Lead", 0) => {
            let spawn = |name: &str| json!({"task_name": name, "message": name, "agent_type": "worker"});
            Reply::new().call("spawn_agent", spawn("a")).call("spawn_agent", spawn("b"))
        }
        ("Lead", _) if ["from=\"/root/a\"", "from=\"/root/b\""].iter().all(|who| request.heard(who)) => {
            Reply::new().text("told")
        }
        ("Lead", _) => Reply::new().call("wait_agent", json!({"timeout_ms": 20_000})),
        ("a", _) => Reply::new().text("short"),
        _ => Reply::new().text("x".repeat(TEXT)),
    });
    let scene = Scene { home: Home::new().provider("mock", &server), server };
    scene.agent(&["run", "Lead"]).assert_code(0);
    scene.agent(&["send", "--queue", "/root/b", "unread"]).assert_code(0);
    scene
}

fn store(home: &Home) -> Store {
    Store::new(AbsPath::new(home.path()).unwrap(), Arc::new(RealDisk))
}

/// The lines of every agent, wherever its file is.
fn lines(home: &Home) -> BTreeMap<ThreadId, String> {
    let store = store(home);
    let scan = store.scan().unwrap();
    assert!(scan.problems.is_empty() && scan.unborn.is_empty(), "{:?} {:?}", scan.problems, scan.unborn);
    let text = |thread: ThreadId| format!("{:?}", store.read(thread).unwrap().lines);
    scan.heads.iter().map(|head| (head.meta.id, text(head.meta.id))).collect()
}

/// Names of the files below `place`, temporary ones included.
fn names(home: &Home, place: &str) -> Vec<String> {
    fn below(folder: &Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                below(&entry.path(), into);
            } else {
                into.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    let mut names = Vec::new();
    below(&home.path().join(place), &mut names);
    names
}

fn ends_in(name: &str, ending: &str) -> bool {
    name.ends_with(ending)
}

/// Where the three files are: in use, archived.
fn places(home: &Home) -> (usize, usize) {
    let used = names(home, "sessions");
    let archived = names(home, "archived_sessions");
    assert!(used.iter().all(|name| ends_in(name, ".jsonl")), "{used:?}");
    assert!(archived.iter().all(|name| ends_in(name, ".jsonl.zst")), "{archived:?}");
    (used.len(), archived.len())
}

fn tree_of(home: &Home) -> String {
    let scan = store(home).scan().unwrap();
    scan.heads.iter().find(|head| head.meta.depth == 0).unwrap().meta.session_id.to_string()
}

/// Every point of a command: before each effect, in the middle of each write, after the last.
fn points(base: &Scene, args: &[&str]) -> Vec<Point> {
    let (run, effects) = base.copy().killed(args, None);
    run.assert_code(0);
    let effects = effects.unwrap();
    let mut points = Vec::new();
    for (n, effect) in (1..).zip(&effects) {
        points.push(any(n));
        points.extend(effect.is(Op::Write).then(|| any(n).when(1)));
    }
    points.push(any(effects.len()).when(2));
    points
}

/// What holds of a tree whose archiving, or bringing back, broke off: everybody sees all of it, and only a tree that is
/// wholly in use is driven.
fn looked_at(scene: &Scene, tree: &str, before: &BTreeMap<ThreadId, String>) -> bool {
    assert_eq!(&lines(&scene.home), before, "the same lines for whoever reads them");
    let of_tree = |args: &[&str]| scene.agent(&[args, &["--tree", tree]].concat());
    let shown = of_tree(&["tree"]);
    shown.assert_code(0);
    assert!(["/root", "a  completed", "b  completed"].iter().all(|row| shown.stdout.contains(row)), "{shown:?}");
    let log = of_tree(&["log", "/root/b"]);
    assert!(log.stdout.contains("xxxx"), "{log:?}");
    scene.agent(&["rollout", "check"]).assert_code(0);
    let pieces = store(&scene.home).pieces(tree.parse().unwrap()).unwrap();
    let whole = !pieces.any_archived();
    assert!(!pieces.pieces[0].is_archived() || pieces.all_archived(), "an archived root means that all are");
    let refused = |run: Run| {
        run.assert_code(2);
        assert!(run.stderr.contains("is archived") && run.stderr.contains("agent unarchive"), "{run:?}");
    };
    if whole {
        of_tree(&["resume"]).assert_code(0);
    } else {
        assert!(scene.agent(&["list", "--archived"]).stdout.contains(tree), "it is listed as what it is");
        for args in [&["resume"][..], &["send", "/root", "x"], &["close", "/root"], &["interrupt", "/root"]] {
            refused(of_tree(args));
        }
    }
    assert_eq!(&lines(&scene.home), before, "nobody has written");
    whole
}

/// Kills `args` at each point; then it is looked at, finished, and undone; or undone at once.
fn killed_everywhere(base: &Scene, args: &[&str], power: bool, step: usize) {
    let tree = tree_of(&base.home);
    let before = lines(&base.home);
    let (mut kills, mut between) = (0, 0);
    for point in points(base, args).into_iter().step_by(step) {
        let point = if power { point.power() } else { point };
        println!("{args:?} {point:?}");
        let scene = base.copy();
        kills += usize::from(run_killed(&scene, args, &point));
        between += usize::from(!looked_at(&scene, &tree, &before));
        // The other way from here.
        let undone = scene.copy();
        let other = if args[0] == "archive" { "unarchive" } else { "archive" };
        undone.agent(&[other, &tree]).assert_code(0);
        assert_eq!(places(&undone.home), if other == "archive" { (0, 3) } else { (3, 0) }, "{point:?}");
        assert_eq!(lines(&undone.home), before, "{point:?}");
        // And on.
        scene.agent(&[args[0], &tree]).assert_code(0);
        assert_eq!(places(&scene.home), if args[0] == "archive" { (0, 3) } else { (3, 0) }, "{point:?}");
        assert_eq!(lines(&scene.home), before, "{point:?}");
        scene.agent(&["unarchive", &tree]).assert_code(0);
        scene.agent(&["resume", "--tree", &tree]).assert_code(0);
        assert_whole(&scene.home);
    }
    assert!(kills * step > 20 && between > 2, "{kills} kills, {between} of them in between");
}

#[test]
fn archiving() {
    let base = family();
    let tree = tree_of(&base.home);
    killed_everywhere(&base, &["archive", &tree], false, 1);
}

#[test]
fn archiving_when_the_power_goes() {
    let base = family();
    let tree = tree_of(&base.home);
    killed_everywhere(&base, &["archive", &tree], true, 2);
}

#[test]
fn bringing_back() {
    let base = family();
    let tree = tree_of(&base.home);
    base.agent(&["archive", &tree]).assert_code(0);
    killed_everywhere(&base, &["unarchive", &tree], false, 1);
}

#[test]
fn bringing_back_when_the_power_goes() {
    let base = family();
    let tree = tree_of(&base.home);
    base.agent(&["archive", &tree]).assert_code(0);
    killed_everywhere(&base, &["unarchive", &tree], true, 2);
}

/// A tree that was killed at work is taken over, and then archived; killed at any point of that, too.
#[test]
fn archiving_what_a_crash_left() {
    let scene = Scene::new();
    let crash = crate::point::mail("result", 2).when(1);
    assert!(run_killed(&scene, &["run", crate::scene::PROMPT], &crash));
    let tree = tree_of(&scene.home);
    for point in points(&scene, &["archive", &tree]).into_iter().step_by(5) {
        println!("{point:?}");
        let copy = scene.copy();
        run_killed(&copy, &["archive", &tree], &point);
        copy.agent(&["archive", &tree]).assert_code(0);
        assert_eq!(names(&copy.home, "sessions").iter().filter(|name| ends_in(name, ".jsonl")).count(), 0);
        copy.agent(&["unarchive", &tree]).assert_code(0);
        copy.agent(&["resume", "--continue"]).assert_code(0);
        crate::verify::assert_whole(&copy, true);
    }
}

/// Names of files and folders of this home that have an id of the tree in them.
fn left(home: &Home, ids: &[String]) -> Vec<String> {
    fn below(folder: &Path, ids: &[String], into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if ids.iter().any(|id| name.contains(id.as_str())) {
                into.push(name);
            }
            below(&entry.path(), ids, into);
        }
    }
    let mut found = Vec::new();
    below(home.path(), ids, &mut found);
    found
}

/// Deletes a tree, killed at each point; another tree beside it stays as it is.
fn deleted_everywhere(archive: bool, power: bool, step: usize) {
    let base = family();
    let tree = tree_of(&base.home);
    let ids: Vec<String> = lines(&base.home).keys().map(ToString::to_string).collect();
    if archive {
        base.agent(&["archive", &tree]).assert_code(0);
    }
    base.agent(&["run", "a"]).assert_code(0);
    let all = lines(&base.home);
    let args = ["delete", "--yes", &tree];
    let (mut untouched, mut begun) = (0, 0);
    for point in points(&base, &args).into_iter().step_by(step) {
        let point = if power { point.power() } else { point };
        println!("{args:?} {point:?}");
        let scene = base.copy();
        run_killed(&scene, &args, &point);
        let shown = scene.agent(&["tree", "--tree", &tree]);
        let listed = scene.agent(&["list"]);
        listed.assert_code(0);
        assert!(!listed.stderr.contains("was there and is gone"), "{listed:?}");
        if shown.code == 0 {
            // It has not begun.
            assert_eq!(lines(&scene.home), all, "{point:?}");
            untouched += 1;
        } else {
            shown.assert_code(2);
            assert!(!listed.stdout.contains(&tree), "{listed:?}");
            let resumed = scene.agent(&["resume", "--tree", &tree]);
            resumed.assert_code(2);
            if !left(&scene.home, &ids).is_empty() && listed.stderr.contains(&tree) {
                assert!(listed.stderr.contains(&format!("`agent delete {tree}` finishes it")), "{listed:?}");
                begun += 1;
            }
        }
        let again = scene.agent(&args);
        if again.code != 0 {
            // All that it had was gone already, but for its empty folder.
            again.assert_code(2);
            assert!(again.stderr.contains("no tree begins with"), "{again:?}");
        } else {
            assert_eq!(left(&scene.home, &ids), [""; 0], "{point:?}");
        }
        let rest: BTreeMap<_, _> = lines(&scene.home);
        assert_eq!(rest.len(), 1, "{point:?}");
        assert!(rest.iter().all(|(thread, lines)| all.get(thread) == Some(lines)));
        let listed = scene.agent(&["list"]);
        assert!(listed.stderr.is_empty() && listed.stdout.lines().count() == 1, "{listed:?}");
        scene.agent(&["resume", "--last"]).assert_code(0);
    }
    assert!(untouched > 0 && begun > 2, "{untouched} untouched, {begun} begun");
}

#[test]
fn deleting() {
    deleted_everywhere(false, false, 1);
}

#[test]
fn deleting_what_is_archived() {
    deleted_everywhere(true, false, 2);
}

#[test]
fn deleting_when_the_power_goes() {
    deleted_everywhere(false, true, 1);
}
