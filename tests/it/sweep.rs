//! Interrupted, closed and steered at every point of a child's turn: before the headers of a reply, after each of its
//! events, while its command runs, while the output is on its way.

use protocol::Outcome;
use testkit::{Gate, Home, Reply, Request, Running, Server};

use crate::count::{assert_whole, at};
use crate::play::{Play, command, end, exec, home, notes, parent, requests, spawns, until};

/// Events of a reply with one call, and of one with one short text; a gate behind the last of them holds the end of
/// the stream. More than there are hold nothing.
const EVENTS: usize = 7;

/// Where the child is when something is done to it.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// Of the reply (0 calls a command, 1 is its answer): before the headers.
    Before(usize),
    /// Of the reply: after so many events.
    After(usize, usize),
    /// While its command runs.
    InCommand,
}

fn points() -> Vec<Point> {
    let replies =
        |reply| std::iter::once(Point::Before(reply)).chain((1..=EVENTS).map(move |n| Point::After(reply, n)));
    replies(0).chain([Point::InCommand]).chain(replies(1)).collect()
}

struct Scene {
    server: Server,
    home: Home,
    running: Running,
    gate: Gate,
}

/// A run whose child is at this point.
fn reach(point: Point) -> Scene {
    let gate = Gate::new();
    let hold = gate.clone();
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["from=\"/root/a\""], "told"))
        .thinks("work", move |request| {
            let at = request.replies();
            let reply = match (at, point) {
                (0, Point::InCommand) => exec("touch begun; until [ -e go ]; do sleep 0.01; done"),
                (0, _) => exec("echo worked"),
                _ => Reply::new().text(format!("heard: {}", request.told())),
            };
            match point {
                Point::Before(of) if of == at => reply.wait_for(&hold),
                Point::After(of, events) if of == at => reply.wait_after(events, &hold),
                _ => reply,
            }
        })
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    let of = match point {
        Point::Before(of) | Point::After(of, _) => of,
        Point::InCommand => 0,
    };
    let there = |request: &Request| request.task() == "work" && request.replies() == of;
    server.wait_until(|seen| seen.iter().any(there));
    if let Point::InCommand = point {
        until("the command", || home.work().join("begun").exists());
    }
    Scene { server, home, running, gate }
}

impl Scene {
    fn go_on(&self) {
        self.gate.open();
        std::fs::write(self.home.work().join("go"), "").unwrap();
    }

    /// The run has come to its end, the root has one result of the child, and the child's task has this end, or had
    /// come to its own before it was stopped.
    fn ends(self, point: Point, stopped: Option<Outcome>) {
        let run = self.running.wait();
        run.assert_code(0);
        assert_eq!(run.stdout, "told\n", "{point:?}: {}", run.stderr);
        let agents = assert_whole(&self.home);
        let child = at(&agents, "/root/a");
        let ends = child.ends("work");
        assert!(ends == [Outcome::Completed] || stopped.is_some_and(|end| ends == [end]), "{point:?}: {ends:?}");
        let told = notes(requests(&self.server, "Lead").last().unwrap());
        assert_eq!(told.len(), 1, "{point:?}: {told:?}");
        assert!(told[0].contains(&format!("outcome=\"{}\"", ends[0])), "{point:?}: {told:?}");
        end(&self.home, &self.server, &run);
    }
}

#[test]
fn interrupted_at_every_point_of_a_turn() {
    for point in points() {
        println!("{point:?}");
        let scene = reach(point);
        command(&scene.home, &["interrupt", "/root/a"]).run_ok();
        scene.go_on();
        scene.ends(point, Some(Outcome::Interrupted));
    }
}

#[test]
fn closed_at_every_point_of_a_turn() {
    for point in points() {
        println!("{point:?}");
        let scene = reach(point);
        command(&scene.home, &["close", "/root/a"]).run_ok();
        scene.go_on();
        scene.ends(point, Some(Outcome::Closed));
    }
}

#[test]
fn steered_at_every_point_of_a_turn() {
    for point in points() {
        println!("{point:?}");
        let scene = reach(point);
        let sent = command(&scene.home, &["send", "/root/a", "mind this"]).spawn();
        // On disk, so taken: from now on it is in time for the turn, or begins the next one.
        until("the words", || scene.home.rollout("/root/a").text().contains("mind this"));
        scene.go_on();
        let sent = sent.wait();
        sent.assert_code(0);
        assert_eq!(sent.stdout, "heard: mind this\n", "{point:?}: {}", sent.stderr);
        let child = requests(&scene.server, "work");
        let times = child.last().unwrap().items().iter().filter(|item| item.text() == "mind this").count();
        assert_eq!(times, 1, "{point:?}");
        scene.ends(point, None);
    }
}
