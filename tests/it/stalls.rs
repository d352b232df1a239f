//! Nothing hangs silently: servers that only beat, agents of whose work nothing comes, tasks that may take so long, and
//! words that nobody reads any more.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use testkit::{Ended, Gate, Reply, Request, Server, Wire};

use crate::count::assert_whole;
use crate::play::{Play, command, end, exec, home, notes, parent, requests, spawns, standings, tree, until, wait};
use crate::signals::{lives, pid};

/// Whether a command is known by this first task, whatever deadline stands below it.
fn has(request: &Request, task: &str) -> bool {
    request.task().split("\n[deadline: ").next() == Some(task)
}

#[test]
fn a_stream_that_only_beats_is_tried_again_on_every_wire() {
    for wire in Wire::ALL {
        let first = AtomicBool::new(true);
        let server = Server::start(move |_: &Request| {
            let beats = first.swap(false, Ordering::SeqCst);
            if beats { Reply::new().text("never whole").beat_after(1) } else { Reply::new().text("fine") }
        });
        let home = home(&server).set("providers.mock.wire", wire.as_str());
        let home = home.set("providers.mock.progress_timeout_ms", 1_000);
        let run = command(&home, &["run", "Try"]).run_ok();
        assert_eq!(run.stdout, "fine\n", "{wire:?}");
        let said = "mock kept its stream open for 1 s and sent nothing of a reply; trying again";
        assert!(run.stderr.contains(said), "{wire:?}: {}", run.stderr);
        server.wait_until(|seen| seen[0].ended().is_some());
        assert_eq!(server.requests()[0].ended().unwrap().0, Ended::ClientLeft);
        end(&home, &server, &run);
    }
}

#[test]
fn a_server_that_is_not_to_be_waited_for_ends_the_run_at_once() {
    let server = Server::start(|_: &Request| Reply::new().text("fine"));
    let home = home(&server).set("providers.mock.unreachable_for_ms", 0);
    drop(server);
    let run = command(&home, &["run", "Try"]).run();
    run.assert_code(3);
    assert!(run.stderr.contains("gave up after 0 s without an answer"), "{}", run.stderr);
    assert!(!run.stderr.contains("trying again"), "{}", run.stderr);
}

/// A child whose server only beats: the parent hears of it in its wait and interrupts it; a person reads what to do.
#[test]
fn a_stalled_child_is_told_of_and_can_be_stopped() {
    let server = Play::new()
        .thinks("Lead", |request| {
            let stalled = request.outputs().iter().any(|output| output.contains(r#""woke":"stalled""#));
            let stopped = request.calls().iter().any(|(call, _)| call.name == "interrupt_agent");
            match (request.replies(), stalled, stopped) {
                (0, ..) => spawns(&[("a", "work")]),
                (_, true, false) => Reply::new().call("interrupt_agent", json!({ "target": "a" })),
                _ if request.heard("from=\"/root/a\"") => Reply::new().text("told"),
                _ => wait(),
            }
        })
        .says("work", [Reply::new().text("never said").beat_after(0)])
        .serve();
    let home = home(&server).set("stall_after_ms", 1_000);
    let run = command(&home, &["run", "--json", "Lead"]).run_ok();
    let events = run.json_lines();
    let stalls: Vec<_> = events.iter().filter(|event| event["type"] == "agent.stalled").collect();
    let [stall] = stalls.as_slice() else { panic!("{stalls:?}") };
    assert_eq!((&stall["path"], &stall["status"]), (&json!("/root/a"), &json!("running")));
    assert_eq!(stall["waits"], json!({ "for": "model" }));
    assert!(stall["stalled_ms"].as_u64().unwrap() >= 1_000, "{stall}");
    let note = notes(requests(&server, "Lead").last().unwrap());
    assert!(note.len() == 1 && note[0].contains("outcome=\"interrupted\""), "{note:?}");
    assert_eq!(standings(&home), ["/root open completed", "/root/a open interrupted"]);
    assert_whole(&home);
    end(&home, &server, &run);
}

#[test]
fn the_tree_says_what_everybody_waits_for_and_marks_who_is_stalled() {
    let held = Gate::new();
    let hold = held.clone();
    let server = Play::new()
        .thinks(
            "Lead",
            parent(spawns(&[("a", "work"), ("b", "run")]), &["from=\"/root/a\"", "from=\"/root/b\""], "told"),
        )
        .thinks("work", move |_| Reply::new().text("a is done").wait_for(&hold))
        .says("run", [exec("until test -e go; do sleep 0.1; done; echo went"), Reply::new().text("b is done")])
        .serve();
    let home = home(&server).set("stall_after_ms", 1_000);
    let running = command(&home, &["run", "Lead"]).spawn();
    running.until_stderr("`agent interrupt /root/a` stops it, `agent log /root/a` shows what it did");
    let row = |path: &str| {
        let rows = tree(&home)["agents"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["path"] == path).unwrap_or_default()
    };
    until("the command", || row("/root/b")["waits"]["for"] == "tool");
    let waits = &row("/root/b")["waits"]["calls"];
    assert_eq!(*waits, json!(["$ until test -e go; do sleep 0.1; done; echo went"]));
    assert!(row("/root/a")["stalled_ms"].is_u64() && row("/root/a")["since"].is_string(), "{}", row("/root/a"));
    until("the root's wait", || row("/root")["waits"]["for"] == "agents");
    let text = command(&home, &["tree"]).run_ok().stdout;
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line("/root  ").contains("waiting for other agents · for "), "{text}");
    assert!(line("─ a  ").contains("running · for ") && line("─ a  ").contains("stalled, nothing for "), "{text}");
    assert!(line("─ b  ").contains("waiting for $ until test -e go"), "{text}");
    held.open();
    home.write_work("go", "");
    let run = running.wait();
    run.assert_code(0);
    assert_whole(&home);
    end(&home, &server, &run);
}

#[test]
fn a_task_that_takes_too_long_ends_with_what_it_has() {
    let server = Server::start(|request: &Request| {
        assert!(has(request, "Try"), "{request:?}");
        Reply::new().text("so far").call("exec_command", json!({ "cmd": "echo $$ >sleeper.pid; exec sleep 1000" }))
    });
    let home = home(&server);
    let running = command(&home, &["run", "--deadline", "3s", "Try"]).spawn();
    until("the command", || pid(&home, "sleeper.pid").is_some());
    let run = running.wait();
    run.assert_code(1);
    assert_eq!(run.stdout, "so far\n");
    assert!(run.stderr.contains("error: interrupted: its deadline passed (20"), "{}", run.stderr);
    let sleeper = pid(&home, "sleeper.pid").unwrap();
    until("the end of the command", || !lives(sleeper));
    assert_eq!(standings(&home), ["/root open interrupted"]);
    assert_whole(&home);
    end(&home, &server, &run);
}

/// What the model had begun to say counts, though it was never whole.
#[test]
fn words_that_were_half_said_are_what_there_is() {
    let words = "a first half that is longer than one piece, and a second half that never comes";
    let server = Server::start(move |_: &Request| Reply::new().text(words).stall_after(4));
    let home = home(&server);
    let run = command(&home, &["run", "--deadline", "2s", "Try"]).run();
    run.assert_code(1);
    assert!(words.starts_with(run.stdout.trim_end()) && run.stdout.len() > 5, "{}", run.stdout);
    assert_whole(&home);
    end(&home, &server, &run);
}

#[test]
fn a_deadline_holds_over_a_kill() {
    let server = Server::start(|_: &Request| Reply::new().stall_before_headers());
    let home = home(&server);
    let killed = command(&home, &["run", "--deadline", "2s", "Try"]).spawn();
    server.wait_until(|seen| !seen.is_empty());
    killed.kill();
    killed.wait();
    let run = command(&home, &["resume", "--continue"]).run();
    run.assert_code(1);
    assert!(run.stderr.contains("its deadline passed"), "{}", run.stderr);
    let mails = home.rollout("/root").payloads("mail");
    assert_eq!(mails.len(), 2, "the task, and the one that goes on with it");
    assert_eq!(mails[0]["deadline"], mails[1]["deadline"]);
    assert_eq!(home.rollout("/root").count("task_done"), 2);
    end(&home, &server, &run);
}

/// Words that a busy agent does not come to in time: only they end.
#[test]
fn words_with_a_deadline_that_nobody_comes_to() {
    let held = Gate::new();
    let hold = held.clone();
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["from=\"/root/a\""], "told"))
        .thinks("work", move |_| Reply::new().text("a is done").wait_for(&hold))
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    server.wait_until(|seen| seen.iter().any(|request| request.task() == "work"));
    let sent = command(&home, &["send", "--deadline", "1s", "/root/a", "hurry"]).run();
    sent.assert_code(1);
    assert!(sent.stderr.contains("before it was begun"), "{}", sent.stderr);
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "told\n");
    let agents = assert_whole(&home);
    assert_eq!(crate::count::at(&agents, "/root/a").ends("work"), [protocol::Outcome::Completed]);
    end(&home, &server, &run);
}

/// A root that does not wait for those it has given work leaves them no more time than it has.
#[test]
fn who_is_not_waited_for_has_no_more_time_than_the_task() {
    let server = Server::start(|request: &Request| match (has(request, "Lead"), request.replies()) {
        (true, 0) => spawns(&[("a", "work")]),
        (true, _) => Reply::new().text("I do not wait."),
        (false, _) => exec("sleep 1000"),
    });
    let home = home(&server);
    let run = command(&home, &["run", "--deadline", "2s", "Lead"]).run_ok();
    assert_eq!(run.stdout, "I do not wait.\n");
    assert_eq!(standings(&home), ["/root open completed", "/root/a open interrupted"]);
    let mails = [home.rollout("/root"), home.rollout("/root/a")].map(|rollout| rollout.payloads("mail"));
    assert_eq!(mails[0][0]["deadline"], mails[1][0]["deadline"]);
    assert!(mails[0][0]["deadline"].is_string());
    assert_whole(&home);
    end(&home, &server, &run);
}

/// Words with a deadline join a turn that has a task without one: both are cut off, and only the first is over.
#[test]
fn a_task_beside_one_whose_deadline_passed_can_go_on() {
    let [heard, never] = [Gate::new(), Gate::new()];
    let (told, held) = (heard.clone(), never.clone());
    let server = Server::start(move |request: &Request| match request.replies() {
        _ if request.heard("You were cut off") => Reply::new().text("all of it"),
        0 => exec("until [ -e go ]; do sleep 0.01; done"),
        _ => {
            told.open();
            Reply::new().text("never whole").wait_for(&held)
        }
    });
    let home = home(&server);
    let running = command(&home, &["run", "Long"]).spawn();
    server.wait_until(|seen| !seen.is_empty());
    let quick = command(&home, &["send", "--deadline", "4s", "/root", "quick"]).spawn();
    until("the words", || home.rollout("/root").count("mail") == 2);
    home.write_work("go", "");
    heard.wait();
    quick.wait().assert_code(1);
    running.wait().assert_code(1);
    never.open();
    let goes_on: Vec<serde_json::Value> =
        home.rollout("/root").payloads("task_done").iter().map(|done| done["goes_on"].clone()).collect();
    assert_eq!(goes_on, [json!(true), json!(null)]);
    let run = command(&home, &["resume", "--continue"]).run_ok();
    assert_eq!(run.stdout, "all of it\n");
    end(&home, &server, &run);
}

#[test]
fn words_that_a_close_leaves_unread_are_said() {
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["from=\"/root/a\""], "told"))
        .says("work", [Reply::new().text("a is done")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    command(&home, &["send", "--queue", "/root/a", "by the way"]).run_ok();
    let closed = command(&home, &["close", "/root/a"]).run_ok();
    let said = "not read by /root/a, and now nobody will: by the way";
    assert!(closed.stderr.contains(said), "{}", closed.stderr);
    assert_whole(&home);
    end(&home, &server, &run);
}
