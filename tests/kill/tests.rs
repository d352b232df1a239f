use std::path::Path;

use testkit::{Op, child_value};

use crate::case::{comes_back, kill_run, run_killed};
use crate::point::{self, Point, Seen, any, bytes, call, line, mail, op};
use crate::scene::{ANSWER, PROMPT, Scene};
use crate::verify::assert_whole;

/// Also what every killed process is: the rest of this target starts it again with a plan.
#[test]
fn a_run_that_nobody_kills() {
    if let Some(word) = child_value() {
        point::carry_out(&word);
    }
    let scene = Scene::new();
    let (run, effects) = scene.killed(&["run", PROMPT], None);
    run.assert_code(0);
    assert!(run.stdout.contains(ANSWER), "{run:?}");
    assert!(effects.is_some_and(|effects| effects.len() > 80));
    assert_whole(&scene, true);
}

/// Kills before, in the middle of, and after each of these points. Every one of them must be met.
fn killed_at(points: &[Point]) {
    for point in points.iter().flat_map(|point| point.clone().all()) {
        println!("{point:?}");
        assert!(kill_run(&point), "the scenario does not get to {point:?}");
    }
}

#[test]
fn while_the_tree_is_made() {
    killed_at(&[op(Op::CreateDir, 1), op(Op::Create, 1), line("session_meta", 1), op(Op::Sync, 1), op(Op::SyncDir, 1)]);
}

#[test]
fn at_spawns() {
    killed_at(&[call("spawn_agent", 1), call("spawn_agent", 2), op(Op::Create, 2), op(Op::Create, 3)]);
    killed_at(&[mail("spawn", 1), mail("spawn", 2)]);
}

#[test]
fn at_calls() {
    killed_at(&[call("exec_command", 1), call("send_message", 1), call("send_message", 2), call("followup_task", 1)]);
    killed_at(&[call("wait_agent", 1), call("wait_agent", 2)]);
}

#[test]
fn at_outputs() {
    let output = |n| bytes(r#""type":"function_call_output""#, n);
    killed_at(&[output(1), output(2), output(3), output(4), output(5), output(6), output(7)]);
}

#[test]
fn at_mail() {
    killed_at(&[mail("message", 1), mail("message", 2), mail("followup", 1)]);
    killed_at(&[mail("result", 1), mail("result", 2), mail("result", 3)]);
}

#[test]
fn at_ends() {
    killed_at(&[line("turn_end", 1), line("turn_end", 2), line("turn_end", 3), line("turn_end", 4)]);
    killed_at(&[line("sent", 1), line("sent", 2), line("sent", 3)]);
}

#[test]
fn at_processes_and_bookkeeping() {
    killed_at(&[line("process", 1), line("process", 2), line("process", 3)]);
    killed_at(&[line("usage", 1), line("usage", 4), line("event_msg", 1), line("event_msg", 3)]);
    killed_at(&[line("turn_context", 1), line("turn_context", 2)]);
}

/// Loses power as well: only what was synced is left.
fn power_lost_at(points: &[Point]) {
    for point in points.iter().flat_map(|point| point.clone().power().all()) {
        println!("{point:?}");
        assert!(kill_run(&point), "the scenario does not get to {point:?}");
    }
}

#[test]
fn power_is_lost_at_files_and_mail() {
    power_lost_at(&[op(Op::CreateDir, 1), line("session_meta", 1), op(Op::Sync, 1), op(Op::SyncDir, 1)]);
    power_lost_at(&[mail("spawn", 1), mail("spawn", 2), mail("message", 1), mail("message", 2), mail("followup", 1)]);
    power_lost_at(&[mail("result", 1), mail("result", 2), mail("result", 3)]);
}

#[test]
fn power_is_lost_at_syncs_and_ends() {
    power_lost_at(&[op(Op::Sync, 3), op(Op::Sync, 5), op(Op::Sync, 8), op(Op::Sync, 12), op(Op::Sync, 16)]);
    power_lost_at(&[line("turn_end", 1), line("turn_end", 2), line("turn_end", 4), line("sent", 1), line("sent", 3)]);
    power_lost_at(&[op(Op::SyncDir, 4), op(Op::SyncDir, 6), line("process", 2), call("wait_agent", 1)]);
}

/// What the command does to the disk when nobody kills it; another run may have a few effects more or less.
fn effects(scene: &Scene, args: &[&str]) -> Vec<Seen> {
    let (run, effects) = scene.killed(args, None);
    run.assert_code(0);
    effects.unwrap()
}

/// Before each of these effects and, of a write, in the middle of it; after the last. "After" is before the next.
fn each(effects: &[Seen]) -> Vec<Point> {
    let mut points = Vec::new();
    for (n, effect) in (1..).zip(effects) {
        points.push(any(n));
        points.extend(effect.is(Op::Write).then(|| any(n).when(1)));
    }
    points.push(any(effects.len()).when(2));
    points
}

/// One kill at every `of`-th of those points.
fn sweep(shard: usize, of: usize) {
    let points = each(&effects(&Scene::new(), &["run", PROMPT]));
    let mut kills = 0;
    for point in points.iter().skip(shard).step_by(of) {
        println!("{point:?}");
        kills += usize::from(kill_run(point));
    }
    assert!(kills > points.len() / of / 2, "{kills} kills at {} points", points.len());
}

#[test]
fn at_every_effect_1_of_4() {
    sweep(0, 4);
}

#[test]
fn at_every_effect_2_of_4() {
    sweep(1, 4);
}

#[test]
fn at_every_effect_3_of_4() {
    sweep(2, 4);
}

#[test]
fn at_every_effect_4_of_4() {
    sweep(3, 4);
}

/// Kills the scenario at `point`, then `args` on what that left at every `step`-th of its effects, and brings it back.
fn twice(point: &Point, args: &[&str], step: usize) {
    let scene = Scene::new();
    assert!(run_killed(&scene, &["run", PROMPT], point), "the scenario does not get to {point:?}");
    let again = each(&effects(&scene.copy(), args));
    for again in again.iter().step_by(step) {
        println!("{point:?}, then {again:?}");
        let copy = scene.copy();
        let killed = run_killed(&copy, args, again);
        if !killed && args.contains(&"--continue") {
            assert_whole(&copy, true);
        } else {
            comes_back(&copy, true);
        }
    }
}

const RESUME: [&str; 1] = ["resume"];
const CONTINUE: [&str; 2] = ["resume", "--continue"];

#[test]
fn while_taking_over_owed_results() {
    twice(&mail("result", 1), &RESUME, 1);
    twice(&mail("result", 3), &RESUME, 2);
}

#[test]
fn while_taking_over_processes_and_half_a_child() {
    twice(&line("process", 2).when(2), &RESUME, 1);
    twice(&mail("spawn", 2).when(1), &RESUME, 1);
}

#[test]
fn while_going_on() {
    twice(&call("wait_agent", 1).when(2), &CONTINUE, 5);
    twice(&call("followup_task", 1).when(2), &CONTINUE, 3);
}

/// What a killed process wrote may not be on the disk. It has to be before anything is written that stands on it:
/// that a mail was accepted, that a child was spawned.
#[test]
fn taking_over_syncs_what_it_finds_before_it_writes() {
    let scene = Scene::new();
    assert!(run_killed(&scene, &["run", PROMPT], &mail("message", 2).when(2)));
    let effects = effects(&scene, &RESUME);
    let first = |op: Op, path: &Path| effects.iter().position(|seen| seen.is(op) && seen.path == path);
    let written = effects.iter().position(|seen| seen.is(Op::Write)).unwrap();
    for opened in effects.iter().filter(|seen| seen.is(Op::Open)) {
        let synced = first(Op::Sync, &opened.path).unwrap();
        assert!(synced < written, "{} is synced after a write: {effects:#?}", opened.path.display());
        let folders = opened.path.ancestors().skip(1).take_while(|folder| folder.starts_with(scene.home.path()));
        for folder in folders {
            let synced = first(Op::SyncDir, folder);
            assert!(synced.is_some_and(|at| at < written), "{} is not synced first: {effects:#?}", folder.display());
        }
    }
}
