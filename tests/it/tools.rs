//! Calls and their outputs: when they start, in what order they are recorded, and what survives a broken stream.

use protocol::ItemKind;
use serde_json::json;
use testkit::{Gate, Reply};

use crate::play::{Play, command, end, home, requests, until};

#[test]
fn a_tool_starts_while_the_stream_is_open() {
    let rest = Gate::new();
    // The item is finished; what ends the reply does not come.
    let first = whole_call("touch begun").wait_after(CALL_EVENTS, &rest);
    let server = Play::new().says("Stream", [first, Reply::new().text("ok")]).serve();
    let home = home(&server);
    let running = command(&home, &["run", "Stream"]).spawn();
    until("the file of the command", || home.work().join("begun").exists());
    assert_eq!(server.requests().len(), 1);
    assert!(server.requests()[0].ended().is_none(), "the reply is still under way");
    rest.open();
    let run = running.wait();
    run.assert_code(0);
    end(&home, &server, &run);
}

/// How many events come with a reply whose only item is [`whole_call`], up to the one that finishes the item: the
/// reply begins, the item begins, the item is finished.
const CALL_EVENTS: usize = 3;

/// A call that the server sends as one piece.
fn whole_call(cmd: &str) -> Reply {
    let arguments = json!({ "cmd": cmd }).to_string();
    Reply::new()
        .raw_item(json!({"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": arguments}))
}

#[test]
fn parallel_calls_run_side_by_side_and_are_answered_in_their_order() {
    // Each needs the other: one after the other, the first would give up after its 20 s.
    let meet = |mine: &str, other: &str| {
        format!(
            "touch {mine}; for i in $(seq 2000); do [ -e {other} ] && break; sleep 0.01; done; [ -e {other} ] && echo {mine} met {other}"
        )
    };
    let first = Reply::new()
        .call("exec_command", json!({"cmd": meet("a", "b") + "; while [ ! -e c ]; do sleep 0.01; done"}))
        .call("exec_command", json!({"cmd": meet("b", "a")}))
        .call("exec_command", json!({"cmd": "touch c; echo third"}));
    let server = Play::new().says("Meet", [first, Reply::new().text("ok")]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "Meet"]).run_ok();
    let outputs = server.requests()[1].outputs();
    for (output, words) in outputs.iter().zip(["a met b", "b met a", "third"]) {
        assert!(output.contains(words), "{output}");
    }
    assert_eq!(outputs.len(), 3);
    end(&home, &server, &run);
}

#[test]
fn a_call_is_kept_when_its_stream_is_cut() {
    let cut = whole_call("echo once >>log; cat log").cut_after(CALL_EVENTS);
    let server = Play::new()
        .thinks("Cut", move |request| match request.outputs().pop() {
            None => cut.clone(),
            Some(output) => Reply::new().text(output.lines().last().unwrap_or_default()),
        })
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Cut"]).run_ok();
    assert_eq!(run.stdout, "once\n");
    assert_eq!(std::fs::read_to_string(home.work().join("log")).unwrap(), "once\n", "it did not run again");
    let requests = server.requests();
    assert_eq!(requests.len(), 2, "the retried request has the call and its output");
    assert_eq!(requests[1].calls().len(), 1);
    assert!(run.stderr.contains("trying again in"), "{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn what_only_the_server_understands_is_kept_to_the_byte() {
    use ItemKind::{FunctionCall, Other, Output, Reasoning};
    let strange = r#"{"type":"hologram","id":"h1", "light" : [1.50, 2e3],"nested":{"z":1,"a":"\u00e9 \/"}}"#;
    let first = Reply::new()
        .reasoning("b3BhcXVlIGJ5dGVz")
        .raw_item(strange)
        .call("exec_command", json!({"cmd": "true"}))
        .reasoning("bW9yZQ==");
    let server = Play::new().says("Keep", [first, Reply::new().text("ok")]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "Keep"]).run_ok();
    let second = &server.requests()[1];
    let all: Vec<(ItemKind, &str)> = second.items().iter().map(|item| (item.kind(), item.raw())).collect();
    let at = all.iter().position(|(kind, _)| *kind == Reasoning).unwrap();
    let kinds: Vec<ItemKind> = all[at..].iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Reasoning, Other, FunctionCall, Reasoning, Output]);
    assert_eq!(all[at + 1].1, strange);
    assert!(all[at].1.contains("b3BhcXVlIGJ5dGVz") && all[at + 3].1.contains("bW9yZQ=="));
    end(&home, &server, &run);
}

#[test]
fn servers_that_repeat_call_ids_are_served() {
    let pair = |n: usize| {
        Reply::new()
            .call("exec_command", json!({"cmd": format!("echo left {n}")}))
            .call("exec_command", json!({"cmd": format!("echo right {n}")}))
            .repeat_call_ids()
    };
    let server = Play::new().says("Repeat", [pair(1), pair(2), Reply::new().text("ok")]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "Repeat"]).run_ok();
    let outputs = server.requests()[2].outputs();
    for (output, words) in outputs.iter().zip(["left 1", "right 1", "left 2", "right 2"]) {
        assert!(output.contains(words), "{output}");
    }
    assert_eq!(outputs.len(), 4);
    end(&home, &server, &run);
}

#[test]
fn a_call_that_cannot_be_made_is_answered_and_the_turn_goes_on() {
    let bad = Reply::new()
        .call("exec_command", json!({"cmd": "true", "colour": "red"}))
        .call("send_message", json!({"target": "a", "message": "x", "priority": 1}))
        .call("spawn_agent", json!({"task_name": "a"}))
        .call("teleport", json!({"to": "mars"}))
        .raw_call("exec_command", "{\"cmd\": \"tru")
        .raw_call("wait_agent", "soon")
        .call("wait_agent", json!({"timeout_ms": "long"}))
        .call("apply_patch", json!({"input": "please change the file"}))
        .call("exec_command", json!({"cmd": "  "}))
        .call("spawn_agent", json!({"task_name": "a", "message": "x", "fork_turns": "some"}))
        .call("spawn_agent", json!({"task_name": "a", "message": "x", "model": "nowhere/x"}));
    let server = Play::new().says("Bad calls", [bad, Reply::new().text("still here")]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "Bad calls"]).run_ok();
    assert_eq!(run.stdout, "still here\n");
    let outputs = server.requests()[1].outputs();
    let expected: [&[&str]; 11] = [
        &["colour", "cmd"],
        &["send_message", "priority", "target"],
        &["spawn_agent", "message"],
        &["no tool called `teleport`", "exec_command", "spawn_agent"],
        &["exec_command"],
        &["wait_agent"],
        &["wait_agent", "`long`", "timeout_ms"],
        &["not a valid patch", "*** Begin Patch"],
        &["`cmd` is empty"],
        &["fork_turns", "`some`"],
        &["nowhere"],
    ];
    assert_eq!(outputs.len(), expected.len());
    for (output, words) in outputs.iter().zip(expected) {
        for word in words {
            assert!(output.contains(word), "`{word}` is not in `{output}`");
        }
    }
    assert_eq!(requests(&server, "Bad calls").len(), 2);
    assert_eq!(home.rollouts().len(), 1);
    end(&home, &server, &run);
}
