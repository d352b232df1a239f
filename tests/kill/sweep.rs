//! Kills a family of five on three levels at every one of its effects on the disk.

use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::{MailKind, Outcome};
use rollout::Edge;
use testkit::Op;

use crate::count::{self, at};
use crate::life::{Client, Life, side_by_side};
use crate::play::{Play, Step, Task, task, word};
use crate::point::{Point, Seen, any, call, line, mail};
use crate::tally::{ALL, Ask};

/// How many homes are worked on at a time in one test: most of a case is waiting.
pub(crate) const JOBS: usize = 3;

const CLIENT: usize = 7;

/// Two children with a child each. `a` has its child interrupted and sets it to work again; `b` ends before its child
/// does, and is closed while that works and mail waits.
pub(crate) fn family() -> Play {
    use Step::{Await, Close, Follow, Interrupt, Run, Spawn, Tell};
    let tell = |to: &str, word| Tell { to: to.to_owned(), word };
    let agent = |agent: &str, replies: Vec<Vec<Step>>| Task { agent: agent.to_owned(), replies, ..Task::default() };
    let (a, b, x, y) = ("/root/a", "/root/b", "/root/a/x", "/root/b/y");
    let root = vec![
        vec![Spawn(1), Spawn(2)],
        vec![Await(vec![1, 2])],
        vec![Follow(5), tell(b, 20)],
        vec![Await(vec![5])],
        vec![Close { agent: b.to_owned(), word: 30 }],
    ];
    let first = vec![
        vec![Spawn(3), tell(b, 21)],
        vec![Interrupt { agent: x.to_owned(), nth: 1 }],
        vec![Follow(4)],
        vec![Await(vec![4])],
    ];
    let second = vec![vec![Spawn(6), Run { word: 40, background: true }], vec![tell(x, 22)]];
    let tasks = vec![
        agent("/root", root),
        agent(a, first),
        agent(b, second),
        Task { thinks: 400, ..agent(x, Vec::new()) },
        agent(x, vec![vec![tell(b, 23), Run { word: 41, background: true }]]),
        Task { long: true, ..agent(a, vec![vec![tell(y, 24)]]) },
        Task { thinks: 600, ..agent(y, vec![vec![tell(a, 25)]]) },
        agent(a, vec![vec![tell("/root", 26)]]),
    ];
    Play { tasks }
}

/// Two people: one gives `a` a task, one leaves words for `b`'s child.
pub(crate) fn clients(dies: bool) -> [Client; 2] {
    let to = |to: &str, words: String, queue| Client { after: 6, to: to.to_owned(), words, queue, dies };
    [to("/root/a", task(CLIENT), false), to("/root/b/y", word(50), true)]
}

pub(crate) const RUN: [&str; 2] = ["run", "TASK-0: do all of it."];

/// Kills it at `point`, brings it back, and counts. Whether there was a kill.
fn kill_at(point: &Point, dies: bool) -> bool {
    let mut life = Life::new(&family(), |home| home);
    let killed = life.lives(&RUN, Some(point), &clients(dies));
    if killed {
        if !life.began() {
            return true;
        }
        life.is_taken_over();
        life.goes_on();
    }
    life.send_again(&clients(dies));
    life.ends(Ask { remembered: !point.loses_power(), ..ALL });
    killed
}

/// What the command does to the disk when nobody kills it; another run may have a few effects more or less.
fn effects() -> Vec<Seen> {
    let mut life = Life::new(&family(), |home| home);
    assert!(!life.lives(&RUN, None, &clients(true)));
    life.send_again(&clients(true));
    life.ends(ALL);
    life.scene.effects().unwrap()
}

/// Before, in the middle and after every effect; an effect without bytes has no middle.
pub(crate) fn every_point() -> Vec<Point> {
    let whens = |effect: &Seen| if effect.is(Op::Write) { &[0, 1, 2][..] } else { &[0, 2] };
    let all = effects();
    let points = (1..).zip(&all).flat_map(|(n, effect)| whens(effect).iter().map(move |when| any(n).when(*when)));
    points.collect()
}

/// One point at every effect: writes are killed before, in the middle of and after them in turn, other effects before
/// and after them. That is a third of [`every_point`], which `cargo xtask torture --sweep` goes through.
fn a_point_everywhere() -> Vec<Point> {
    let (mut writes, mut others) = (0, 0);
    let mut point = |(n, effect): (usize, &Seen)| {
        let (count, whens) = if effect.is(Op::Write) { (&mut writes, 3) } else { (&mut others, 2) };
        *count += 1;
        // After an effect without bytes is what comes after its middle.
        any(n).when(*count % whens * (4 - whens))
    };
    (1..).zip(&effects()).map(&mut point).collect()
}

/// Kills at each of these points, so many homes at a time.
pub(crate) fn kill_at_all(points: &[Point], jobs: usize) {
    let kills = AtomicUsize::new(0);
    let one = |(n, point): &(usize, &Point)| {
        let killed = kill_at(point, n % 2 == 0);
        kills.fetch_add(usize::from(killed), Ordering::Relaxed);
    };
    let numbered: Vec<(usize, &Point)> = points.iter().enumerate().collect();
    side_by_side(jobs, &numbered, |point| format!("{point:?}"), one);
    let kills = kills.into_inner();
    assert!(kills > points.len() * 3 / 4, "{kills} kills at {} points", points.len());
}

fn sweep(shard: usize) {
    let points: Vec<Point> = a_point_everywhere().into_iter().skip(shard).step_by(4).collect();
    kill_at_all(&points, JOBS);
}

/// Without a kill the play does all that it is there for.
#[test]
fn a_family_that_nobody_kills() {
    let mut life = Life::new(&family(), |home| home);
    assert!(!life.lives(&RUN, None, &clients(true)));
    life.ends(ALL);
    let agents = count::assert_whole(life.scene.home.path());
    assert_eq!(agents.len(), 5);
    let (root, b, y) = (at(&agents, "/root"), at(&agents, "/root/b"), at(&agents, "/root/b/y"));
    assert_eq!(at(&agents, "/root/a/x").ends(&task(3)), [Outcome::Interrupted]);
    assert_eq!(y.ends(&task(6)), [Outcome::Closed], "it was at work");
    assert!(b.state.edge != Edge::Open && y.state.edge == Edge::Open);
    let up = |kind| root.mails().filter(|mail| mail.kind == kind && mail.from.name().starts_with("/root/b")).count();
    assert_eq!(up(MailKind::Result), 2, "that of b, and that of y");
    assert_eq!(up(MailKind::Returned), 1, "what the root had to say to b");
    assert!(root.mails().any(|mail| mail.whole.is_some()), "one answer is long");
    assert_eq!(at(&agents, "/root/a").accepted(&task(CLIENT)) + y.accepted(&word(50)), 2);
}

#[test]
fn everywhere_1_of_4() {
    sweep(0);
}

#[test]
fn everywhere_2_of_4() {
    sweep(1);
}

#[test]
fn everywhere_3_of_4() {
    sweep(2);
}

#[test]
fn everywhere_4_of_4() {
    sweep(3);
}

/// As a kill, and what was not synced is gone with it.
#[test]
fn power_is_lost_at_every_fifth_effect() {
    let points: Vec<Point> = a_point_everywhere().into_iter().step_by(5).map(Point::power).collect();
    kill_at_all(&points, JOBS);
}

/// Kills a run at `point`, and then `args` at every `step`-th of its effects on what that left; then a takeover.
fn twice(point: &Point, args: &[&str], step: usize) {
    let mut first = Life::new(&family(), |home| home);
    assert!(first.lives(&RUN, Some(point), &clients(true)), "the play does not get to {point:?}");
    let mut calm = first.copy();
    assert!(!calm.lives(args, None, &[]));
    let effects = calm.scene.effects().unwrap().len();
    let points: Vec<usize> = (1..=effects).step_by(step).collect();
    side_by_side(
        JOBS,
        &points,
        |n| format!("{point:?}, then {args:?} at {n}"),
        |n| {
            let mut life = first.copy();
            let again = any(*n).when(*n);
            if life.lives(args, Some(&again), &[]) {
                // The second takeover is killed as well, somewhere.
                life.lives(&["resume"], Some(&any(1 + n % 7)), &[]);
                life.is_taken_over();
            }
            life.goes_on();
            life.send_again(&clients(true));
            life.ends(Ask { remembered: false, ..ALL });
        },
    );
}

#[test]
fn while_taking_over() {
    twice(&mail("result", 2).when(2), &["resume"], 1);
    twice(&line("edge", 6).when(2), &["resume"], 1);
}

#[test]
fn while_going_on() {
    twice(&call("wait_agent", 2).when(2), &["resume", "--continue"], 8);
    twice(&call("close_agent", 1).when(2), &["resume", "--continue"], 4);
}
