//! Killed while agents are forked: either there is no child, or all that it was forked from is there too.

use rollout::{Record, Store};
use serde_json::json;
use stdx::AbsPath;
use testkit::{Home, Op, Reply, Request, Server};

use crate::case::run_killed;
use crate::count::{assert_whole, load};
use crate::point::{Point, Seen, any};
use crate::scene::Scene;

/// What the root says before it forks; every child has to know it.
const SAID: &str = "what was said before";

/// A root that says something and forks two children at once; the first forks a child of its own. All as the conversation
/// has it, so that it goes on after a kill.
fn brain(request: &Request) -> Reply {
    let instructions = request.items()[0].text();
    let mine = |path: &str| instructions.contains(path);
    // Of what is taken over no spawn is its own: those of the parent are answered with no nickname.
    let spawned = |name: &str| {
        let call = format!(r#""task_name":"{name}""#);
        request.calls().iter().any(|(made, output)| {
            made.name == "spawn_agent"
                && made.arguments.contains(&call)
                && output.as_ref().is_some_and(|output| output.contains("nickname"))
        })
    };
    let fork = |reply: Reply, name: &str| {
        let arguments = json!({"task_name": name, "message": name, "fork_turns": "all"});
        if spawned(name) { reply } else { reply.call("spawn_agent", arguments) }
    };
    if mine("/root/a/x") || mine("/root/b") {
        assert!(request.contains(SAID), "it does not know what it was forked from: {request:?}");
        return Reply::new().text("known");
    }
    let (children, above): (&[&str], bool) = if mine("/root/a") { (&["x"], false) } else { (&["a", "b"], true) };
    if above && !request.contains(SAID) {
        return Reply::new().commentary(SAID).call("exec_command", json!({"cmd": "true", "yield_time_ms": 250}));
    }
    let reply = children.iter().fold(Reply::new(), |reply, name| fork(reply, name));
    if reply.has_calls() {
        return reply;
    }
    let path = if above { "/root" } else { "/root/a" };
    if children.iter().all(|name| request.heard(&format!("from=\"{path}/{name}\""))) {
        return Reply::new().text("known by all");
    }
    reply.call("wait_agent", json!({"timeout_ms": 20_000}))
}

fn scene() -> Scene {
    let server = Server::start(brain);
    Scene { home: Home::new().provider("mock", &server), server }
}

/// Every child is whole: what it refers to is there.
fn forks_are_whole(home: &Home) -> usize {
    let store = Store::new(AbsPath::new(home.path()).unwrap(), std::sync::Arc::new(rollout::RealDisk));
    let mut forks = 0;
    for head in store.scan().unwrap().heads {
        let lines = store.read(head.meta.id).unwrap().lines;
        let forked = lines.iter().filter(|line| matches!(line.record, Record::Forked(_))).count();
        assert_eq!(forked, usize::from(head.meta.depth > 0), "{}", head.meta.agent_path);
        let loaded = store.load(head.meta.id).unwrap();
        assert_eq!(loaded.lack, None, "{}", head.meta.agent_path);
        let knows = loaded.state.transcript.iter().any(|item| item.text().contains(SAID));
        assert!(knows || forked == 0, "{}", head.meta.agent_path);
        forks += forked;
    }
    forks
}

const RUN: [&str; 2] = ["run", "Lead"];

fn effects() -> Vec<Seen> {
    let scene = scene();
    let (run, effects) = scene.killed(&RUN, None);
    run.assert_code(0);
    assert_eq!(forks_are_whole(&scene.home), 3);
    effects.unwrap()
}

/// Whether there was a kill.
fn kill_at(point: &Point) -> bool {
    println!("{point:?}");
    let scene = scene();
    let killed = run_killed(&scene, &RUN, point);
    // Before anybody repairs anything, also.
    forks_are_whole(&scene.home);
    let began = load(&scene.home).iter().any(|agent| agent.state.meta.depth == 0);
    if killed && began {
        scene.agent(&["resume", "--continue"]).assert_code(0);
        // What was not given before the kill is given by whoever goes on.
        assert_eq!(forks_are_whole(&scene.home), 3);
        assert_whole(&scene.home);
        scene.agent(&["rollout", "check"]).assert_code(0);
    }
    killed
}

fn sweep(points: impl Iterator<Item = Point>) {
    let points: Vec<Point> = points.collect();
    let kills = points.iter().filter(|point| kill_at(point)).count();
    assert!(kills > points.len() / 2, "{kills} kills at {} points", points.len());
}

/// Writes before, in the middle of and after them in turn, other effects before and after them.
fn everywhere() -> impl Iterator<Item = Point> {
    let point = |(n, effect): (usize, Seen)| any(n).when(if effect.is(Op::Write) { n % 3 } else { n % 2 * 2 });
    (1..).zip(effects()).map(point)
}

#[test]
fn sweep_of_forks() {
    sweep(everywhere());
}

/// What was not synced is gone: a parent's lines that a child refers to may not be among that.
#[test]
fn sweep_of_forks_when_the_power_goes() {
    sweep(everywhere().map(Point::power));
}
