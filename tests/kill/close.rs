//! Killed while an agent is closed: taken over, it is closed with all that follows from that, or not at all.

use protocol::{MailKind, Outcome};
use rollout::Edge;
use serde_json::json;
use testkit::{Gate, Home, Op, Reply, Request, Server};

use crate::case::run_killed;
use crate::count::{Counted, assert_whole, at};
use crate::point::{Blow, Point, any, bytes, call, line, mail, op};
use crate::scene::Scene;

fn spawn(name: &str, task: &str) -> Reply {
    Reply::new().call("spawn_agent", json!({"task_name": name, "message": task, "agent_type": "worker"}))
}

fn wait() -> Reply {
    Reply::new().call("wait_agent", json!({"timeout_ms": 20_000}))
}

fn scene(brain: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Scene {
    let server = Server::start(brain);
    Scene { home: Home::new().provider("mock", &server), server }
}

/// `/root/m` rests, and has not read the result of the agent below it, a message from there, and a person's words.
fn family() -> Scene {
    let rests = Gate::new();
    let scene = scene(move |request: &Request| match (request.task().as_str(), request.replies()) {
        ("Lead", 0) => spawn("m", "middle"),
        ("Lead", _) if !request.heard("from=\"/root/m\"") => wait(),
        ("Lead", _) => {
            rests.open();
            Reply::new().text("told")
        }
        ("middle", 0) => spawn("l", "leaf"),
        ("middle", _) => Reply::new().text("m does not wait"),
        ("leaf", 0) => {
            let word = json!({"target": "/root/m", "message": "a word from below"});
            Reply::new().call("send_message", word).wait_for(&rests)
        }
        _ => Reply::new().text("result of the leaf"),
    });
    scene.agent(&["run", "Lead"]).assert_code(0);
    scene.agent(&["send", "--queue", "/root/m", "words of a person"]).assert_code(0);
    assert_eq!(at(&assert_whole(&scene.home), "/root/m").state.pending.len(), 3);
    scene
}

/// Where the three are now: with `m`, or, when that is closed, where they belong.
fn all_or_nothing(agents: &[Counted]) -> bool {
    let (root, m) = (at(agents, "/root"), at(agents, "/root/m"));
    let closed = m.state.edge != Edge::Open;
    assert_eq!(m.state.pending.len(), if closed { 0 } else { 3 });
    let moved = |kind: MailKind, words: &str| {
        root.mails().filter(|mail| mail.kind == kind && mail.body.contains(words)).count()
    };
    let both = (moved(MailKind::Result, "result of the leaf"), moved(MailKind::Returned, "a word from below"));
    assert_eq!(both, if closed { (1, 1) } else { (0, 0) });
    assert_eq!(m.accepted("words of a person"), 1);
    assert_eq!(m.ends("words of a person"), if closed { vec![Outcome::Closed] } else { Vec::new() });
    assert_eq!(at(agents, "/root/m/l").state.edge, Edge::Open);
    closed
}

#[test]
fn a_close_is_whole_or_has_not_been() {
    const CLOSE: [&str; 2] = ["close", "/root/m"];
    let base = family();
    let (run, effects) = base.copy().killed(&CLOSE, None);
    run.assert_code(0);
    let effects = effects.unwrap();
    let mut seen = [0, 0];
    for n in 1..=effects.len() {
        let whens = if effects[n - 1].is(Op::Write) { 0..3 } else { 0..1 };
        for when in whens {
            let point = any(n).when(when);
            let scene = base.copy();
            run_killed(&scene, &CLOSE, &point);
            scene.agent(&["resume"]).assert_code(0);
            let closed = all_or_nothing(&assert_whole(&scene.home));
            seen[usize::from(closed)] += 1;
            let again = scene.agent(&CLOSE);
            again.assert_code(if closed { 2 } else { 0 });
            assert!(all_or_nothing(&assert_whole(&scene.home)), "{point:?}: {again:?}");
        }
    }
    assert!(seen.iter().all(|times| *times > 0), "closed and not closed: {seen:?}");
}

/// An agent closes another that works; the kill comes while it does.
fn close_by_an_agent(point: &Point) {
    let never = Gate::new();
    let hold = never.clone();
    let scene = scene(move |request: &Request| match request.task().as_str() {
        "Lead" if request.heard("from=\"/root/a\"") => Reply::new().text("told"),
        "Lead" => match request.calls().iter().filter(|(call, _)| call.name != "wait_agent").count() {
            0 => spawn("a", "work"),
            1 => Reply::new().call("close_agent", json!({"target": "a"})),
            _ => wait(),
        },
        _ if request.heard("Go on with it") => Reply::new().text("gone on"),
        _ => Reply::new().text("never said").wait_for(&hold),
    });
    assert!(run_killed(&scene, &["run", "Lead"], point), "the scenario does not get to {point:?}");
    never.open();
    scene.agent(&["resume"]).assert_code(0);
    assert_whole(&scene.home);
    scene.agent(&["resume", "--continue"]).assert_code(0);
    let agents = assert_whole(&scene.home);
    let child = at(&agents, "/root/a");
    let ends = child.ends("work");
    if child.state.edge == Edge::Open {
        // It may not have begun before the kill.
        let lost = ends.len() == 2 && ends[0] == Outcome::Lost;
        assert!(ends.last() == Some(&Outcome::Completed) && (ends.len() == 1 || lost), "{point:?}: {ends:?}");
    } else {
        // Begun only after the kill, it may have completed before the close that follows.
        let once = [Outcome::Closed, Outcome::Completed].map(|end| vec![end]);
        assert!(once.contains(&ends), "{point:?}: {ends:?}");
    }
    let root = at(&agents, "/root").state.done.values().filter(|end| end.text.as_deref() == Some("told")).count();
    assert_eq!(root, 1, "{point:?}");
}

#[test]
fn while_an_agent_closes_another() {
    let points = [
        call("close_agent", 1),
        line("edge", 3),
        bytes(r#""outcome":"closed""#, 1),
        mail("result", 1),
        line("sent", 1),
        bytes("previous_status", 1),
    ];
    for point in points.into_iter().flat_map(Point::all) {
        println!("{point:?}");
        close_by_an_agent(&point);
    }
}

/// An agent is closed while it spawns: the child is closed with it, whichever was first on the disk.
#[test]
fn a_child_that_is_being_made_is_closed_with_its_parent() {
    let spawning = Gate::new();
    let begun = spawning.clone();
    let scene = scene(move |request: &Request| match (request.task().as_str(), request.replies()) {
        ("Lead", 0) => spawn("m", "middle"),
        ("Lead", 1) => Reply::new().call("close_agent", json!({"target": "m"})).wait_for(&begun),
        ("Lead", _) if request.heard("from=\"/root/m\"") => Reply::new().text("told"),
        ("Lead", _) => wait(),
        ("middle", _) => spawn("l", "leaf").then(&spawning),
        _ => Reply::new().text("the leaf has nobody to tell"),
    });
    // The child's file takes a while, and the close comes meanwhile.
    let slow = op(Op::Create, 3).with(Blow::Slow);
    let (run, effects) = scene.killed(&["run", "Lead"], Some(&slow));
    run.assert_code(0);
    assert!(effects.is_some());
    let agents = assert_whole(&scene.home);
    let leaf = at(&agents, "/root/m/l");
    assert_eq!((leaf.state.pending.len(), leaf.ends("leaf")), (0, vec![Outcome::Closed]), "{run:?}");
}
