use testkit::{Op, child_value};

use crate::case::{comes_back, kill_run, run_killed};
use crate::point::{self, Point, any, bytes, call, line, mail, op};
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
    assert!(effects.is_some_and(|effects| effects > 80), "{effects:?}");
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

/// Effects of the scenario when nobody kills it; a run may have a few more or less.
fn effects(scene: &Scene, args: &[&str]) -> usize {
    let (run, effects) = scene.killed(args, None);
    run.assert_code(0);
    effects.unwrap()
}

/// One kill at every `of`-th effect of any kind, in turn before, within and after it.
fn sweep(shard: usize, of: usize) {
    let all = effects(&Scene::new(), &["run", PROMPT]);
    let mut kills = 0;
    for n in (shard + 1..=all).step_by(of) {
        for when in 0..3 {
            let point = any(n).when(when);
            println!("{point:?}");
            kills += usize::from(kill_run(&point));
        }
    }
    assert!(kills > all / of, "{kills} kills among {all} effects");
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

/// Kills the scenario at `point`, then every takeover of what that left at one of its effects, then `args` again.
fn twice(point: &Point, args: &[&str]) {
    let scene = Scene::new();
    assert!(run_killed(&scene, &["run", PROMPT], point), "the scenario does not get to {point:?}");
    let whole = scene.copy();
    let all = effects(&whole, args);
    if args.contains(&"--continue") {
        assert_whole(&whole, false);
    }
    for (n, when) in (1..=all).flat_map(|n| [(n, 0), (n, 1), (n, 2)]) {
        let again = any(n).when(when);
        println!("{point:?}, then {again:?}");
        let copy = scene.copy();
        run_killed(&copy, args, &again);
        comes_back(&copy, true);
    }
}

#[test]
fn while_taking_over() {
    twice(&mail("result", 1), &["resume"]);
}
