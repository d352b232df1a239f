//! `agent interrupt`, and the tools of agents that interrupt and close: what stops, what stays, and who is told.

use protocol::Outcome;
use serde_json::json;
use testkit::{Gate, Home, Reply, Request, Running, Server};

use crate::count::{assert_whole, at};
use crate::play::{Play, command, end, exec, home, notes, parent, requests, spawns, standings, until, wait};
use crate::signals::{lives, pid};

/// A root that waits for `/root/a`, whose first step is `step`; told anything more, the child says it back.
fn with_child(step: impl Fn() -> Reply + Send + Sync + 'static) -> (Server, Home, Running) {
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["from=\"/root/a\""], "told"))
        .thinks("work", move |request| match (request.replies(), request.told().as_str()) {
            (_, "work") => step(),
            (_, told) => Reply::new().text(format!("a: {told}")),
        })
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    server.wait_until(|seen| seen.iter().any(|request| request.task() == "work"));
    (server, home, running)
}

/// The one result that the root has of `/root/a`.
#[track_caller]
fn result(server: &Server) -> String {
    let notes = notes(requests(server, "Lead").last().unwrap());
    let [note] = notes.as_slice() else { panic!("not one result: {notes:?}") };
    note.clone()
}

#[test]
fn while_the_model_is_asked() {
    let held = Gate::new();
    let hold = held.clone();
    let (server, home, running) = with_child(move || Reply::new().text("never said").wait_for(&hold));
    let run = command(&home, &["interrupt", "/root/a"]).run_ok();
    assert!(run.stderr.contains("/root/a is interrupted; `agent send /root/a"), "{}", run.stderr);
    assert_eq!(run.stdout, "");
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "told\n");
    let note = result(&server);
    assert!(note.contains("outcome=\"interrupted\"") && note.contains("interrupted by user"), "{note}");
    assert_eq!(standings(&home), ["/root open completed", "/root/a open interrupted"]);
    held.open();
    let again = command(&home, &["send", "/root/a", "still there?"]).run_ok();
    assert_eq!(again.stdout, "a: still there?\n");
    assert!(requests(&server, "work").last().unwrap().heard("<turn_aborted>"));
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root/a").ends("work"), [Outcome::Interrupted]);
    end(&home, &server, &again);
}

#[test]
fn while_a_command_runs_that_will_not_end() {
    let deaf = "trap '' INT TERM; echo $$ >deaf.pid; while :; do sleep 1000; done";
    let (server, home, running) = with_child(move || exec(deaf));
    until("the command", || pid(&home, "deaf.pid").is_some());
    let deaf = pid(&home, "deaf.pid").unwrap();
    command(&home, &["interrupt", "/root/a"]).run_ok();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "told\n");
    assert!(result(&server).contains("outcome=\"interrupted\""));
    // An interrupt ends turns; the end of the tree's owner ends processes, whatever they ignore.
    until("the end of the command", || !lives(deaf));
    assert_whole(&home);
    end(&home, &server, &run);
}

#[test]
fn of_an_agent_that_only_queues() {
    let held = Gate::new();
    let hold = held.clone();
    let server = Server::start(move |request: &Request| match request.task().as_str() {
        "Lead" => match (request.replies(), request.heard("from=\"/root/a\"")) {
            (0, _) => spawns(&[("a", "work a")]),
            (1, _) => spawns(&[("b", "work b")]),
            (_, false) => wait(),
            (_, true) => Reply::new().text("told"),
        },
        "work a" => Reply::new().text("a is done").wait_for(&hold),
        // What people say stands before the task.
        "me too" if ["now", "work b"].iter().all(|words| request.heard(words)) => Reply::new().text("b is done"),
        other => panic!("nobody has the task `{other}`: {request:?}"),
    });
    let home = home(&server);
    let running = command(&home, &["run", "--max-running", "1", "Lead"]).spawn();
    server.wait_until(|seen| seen.iter().any(|request| request.task() == "work a"));
    until("both children", || standings(&home).last().is_some_and(|row| row == "/root/b open queued"));
    let sent = command(&home, &["send", "/root/b", "me too"]).spawn();
    until("the words", || home.rollout("/root/b").text().contains("me too"));
    let run = command(&home, &["interrupt", "/root/b"]).run_ok();
    assert!(run.stderr.contains("/root/b is interrupted"), "{}", run.stderr);
    // Whoever waits for it is told that nobody begins it; what it was told stays with it.
    let sent = sent.wait();
    sent.assert_code(130);
    assert!(sent.stderr.contains("interrupted by user before it took this in"), "{}", sent.stderr);
    held.open();
    let run = running.wait();
    assert_eq!(run.stdout, "told\n", "{}", run.stderr);
    assert_eq!(standings(&home)[2], "/root/b open pending");
    let again = command(&home, &["send", "/root/b", "now"]).run_ok();
    assert_eq!(again.stdout, "b is done\n");
    let agents = assert_whole(&home);
    for words in ["work b", "me too", "now"] {
        assert_eq!(at(&agents, "/root/b").ends(words), [Outcome::Completed], "{words}");
    }
    end(&home, &server, &again);
}

/// With one slot the root queues behind its child; its own command must not wait for a turn that nobody starts.
#[test]
fn of_a_root_that_queues_ends_the_command_that_waits_for_it() {
    let held = Gate::new();
    let hold = held.clone();
    let server = Server::start(move |request: &Request| match (request.task().as_str(), request.replies()) {
        ("Lead", 0) => spawns(&[("a", "work")]),
        ("Lead", _) if !request.heard("from=\"/root/a\"") => wait(),
        ("work", _) => Reply::new().text("a is done").wait_for(&hold),
        _ => Reply::new().text("told"),
    });
    let home = home(&server);
    let killed = command(&home, &["run", "Lead"]).spawn();
    server.wait_until(|seen| seen.iter().filter(|request| request.task() == "work").count() == 1);
    until("the root's wait", || standings(&home)[0] == "/root open waiting");
    killed.kill();
    killed.wait();
    let running = command(&home, &["resume", "--continue", "--max-running", "1"]).spawn();
    server.wait_until(|seen| seen.iter().filter(|request| request.task() == "work").count() == 2);
    until("the root in the queue", || standings(&home)[0] == "/root open queued");
    command(&home, &["interrupt", "/root"]).run_ok();
    held.open();
    let run = running.wait();
    run.assert_code(130);
    assert!(run.stderr.contains("interrupted by user before it took this in"), "{}", run.stderr);
    let again = command(&home, &["resume", "--continue"]).run_ok();
    assert_eq!(again.stdout, "told\n");
    assert_whole(&home);
    end(&home, &server, &again);
}

/// Words that were to join a turn which is interrupted before it takes them in.
#[test]
fn words_that_an_interrupt_keeps_are_told_of() {
    let [first, other] = [Gate::new(), Gate::new()];
    let [hold, busy] = [first.clone(), other.clone()];
    let server = Play::new()
        .thinks(
            "Lead",
            parent(spawns(&[("a", "work"), ("b", "go on")]), &["from=\"/root/a\"", "from=\"/root/b\""], "told"),
        )
        .thinks("work", move |request| match request.replies() {
            0 if request.told() == "work" => exec("true").wait_for(&hold),
            _ => Reply::new().text(format!("a: {}", request.told())),
        })
        .thinks("go on", move |_| Reply::new().text("b went on").wait_for(&busy))
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    server.wait_until(|seen| ["work", "go on"].iter().all(|task| seen.iter().any(|request| request.task() == *task)));
    let sent = command(&home, &["send", "/root/a", "by the way"]).spawn();
    sent.until_stderr("is working and takes this in");
    command(&home, &["interrupt", "/root/a"]).run_ok();
    let sent = sent.wait();
    sent.assert_code(130);
    assert!(sent.stderr.contains("kept for its next turn"), "{}", sent.stderr);
    first.open();
    other.open();
    let run = running.wait();
    run.assert_code(0);
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root/a").state.pending.len(), 1);
    let again = command(&home, &["send", "/root/a", "and now"]).run_ok();
    assert_eq!(again.stdout, "a: and now\n");
    assert!(requests(&server, "work").last().unwrap().heard("by the way"));
    assert_whole(&home);
    end(&home, &server, &again);
}

#[test]
fn of_somebody_who_does_nothing() {
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["done"], "told"))
        .says("work", [Reply::new().text("done")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    let text = home.rollout("/root/a").text();
    let idle = command(&home, &["interrupt", "/root/a"]).run_ok();
    assert!(idle.stderr.contains("nothing runs at /root/a: nobody drives this tree"), "{}", idle.stderr);
    assert_eq!(home.rollout("/root/a").text(), text, "nothing is written");
    end(&home, &server, &run);
}

#[test]
fn of_the_root_ends_its_answer_and_not_the_others() {
    let held = Gate::new();
    let hold = held.clone();
    let (server, home, running) = with_child(move || Reply::new().text("a is done").wait_for(&hold));
    until("the root's wait", || standings(&home)[0] == "/root open waiting");
    command(&home, &["interrupt", "/root"]).run_ok();
    running.until_stderr("the root has ended its turn; 1 agent still works, waiting for it");
    assert_eq!(standings(&home), ["/root open interrupted", "/root/a open running"]);
    held.open();
    let run = running.wait();
    run.assert_code(130);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("not read by the root: /root/a: a is done"), "{}", run.stderr);
    let again = command(&home, &["send", "/root", "and?"]).run_ok();
    assert_eq!(again.stdout, "told\n");
    assert!(result(&server).contains("a is done"));
    assert_whole(&home);
    end(&home, &server, &again);
}

/// An agent may do it to those below and beside it, not to itself or anybody above.
#[test]
fn agents_control_others_but_not_those_above() {
    let held = Gate::new();
    let hold = held.clone();
    let both = |target: &str| {
        let call = |reply: Reply, tool: &str| reply.call(tool, json!({ "target": target }));
        ["interrupt_agent", "close_agent"].iter().fold(Reply::new(), |reply, tool| call(reply, tool))
    };
    let refused = |target: &str, reply: Reply| {
        ["interrupt_agent", "close_agent"]
            .iter()
            .fold(reply, |reply, tool| reply.call(*tool, json!({ "target": target })))
    };
    let above = refused("/root", refused("/root/m", refused("/root/m/nobody", Reply::new())));
    let self_too = refused("/root", Reply::new());
    let server = Play::new()
        .thinks("Lead", move |request| match request.replies() {
            0 => spawns(&[("m", "middle")]),
            1 => self_too.clone(),
            _ if request.heard("m is done") => Reply::new().text("told"),
            _ => wait(),
        })
        .thinks("middle", move |request| match request.replies() {
            0 => spawns(&[("w", "work"), ("x", "refuse")]),
            1 => wait(),
            _ if !request.heard("x is done") => wait(),
            _ if request.calls().iter().all(|(call, _)| call.name != "close_agent") => both("w"),
            _ if request.heard("from=\"/root/m/w\"") => Reply::new().text("m is done"),
            _ => wait(),
        })
        .thinks("work", move |_| Reply::new().text("never said").wait_for(&hold))
        .says("refuse", [above, Reply::new().text("x is done")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    assert_eq!(run.stdout, "told\n");
    held.open();
    let outputs = requests(&server, "refuse")[1].outputs();
    let root = requests(&server, "Lead")[2].outputs();
    assert_eq!(outputs.len(), 6);
    for output in &outputs[..2] {
        assert!(output.contains("no open agent at /root/m/nobody"), "{outputs:?}");
    }
    for output in outputs[2..].iter().chain(&root[1..3]) {
        assert!(output.contains("that is itself or above it"), "{output}");
    }
    let middle = requests(&server, "middle");
    let outputs = middle.last().unwrap().outputs();
    let stood: Vec<&String> = outputs.iter().filter(|output| output.contains("previous_status")).collect();
    assert_eq!(stood, [r#"{"previous_status":"running"}"#, r#"{"previous_status":"interrupted"}"#]);
    let told: Vec<String> = notes(middle.last().unwrap());
    assert_eq!(told.iter().filter(|note| note.contains("from=\"/root/m/w\"")).count(), 1, "{told:?}");
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root/m/w").ends("work"), [Outcome::Interrupted]);
    assert_eq!(standings(&home)[2], "/root/m/w closed interrupted");
    end(&home, &server, &run);
}
