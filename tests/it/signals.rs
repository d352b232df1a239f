//! Ctrl-C and a request to terminate: turns end, outputs are kept, nothing is left running, and the tree goes on.

use std::path::Path;

use testkit::{Agent, Gate, Home, Reply, Request, Run, Running, Server};

use crate::play::{Play, agent, command, end, exec, home, spawns, standings, tree, until, wait};

/// A root and a child that each run a command which does not end; both run.
fn busy() -> (Server, Home, Running) {
    let server = Play::new()
        .thinks("Work", |request| match request.replies() {
            0 => spawns(&[("a", "work too")]),
            1 => exec("echo $$ >root.pid; sleep 1000"),
            _ => Reply::new().text(format!("after all: {}", request.told())),
        })
        .thinks("work too", |request| match request.replies() {
            0 => exec("sleep 1000 & echo $$ >child.pid; wait"),
            _ => Reply::new().text("went on"),
        })
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Work"]).spawn();
    until("both commands", || ["root.pid", "child.pid"].iter().all(|file| pid(&home, file).is_some()));
    (server, home, running)
}

pub(crate) fn pid(home: &Home, file: &str) -> Option<u32> {
    std::fs::read_to_string(home.work().join(file)).ok()?.trim().parse().ok()
}

/// Whether a process is there and is more than its exit code.
pub(crate) fn lives(pid: u32) -> bool {
    std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).is_ok_and(|line| !line.is_empty())
}

#[track_caller]
fn ends_well(server: &Server, home: &Home, run: &Run) {
    run.assert_code(130);
    assert_eq!(run.stdout, "");
    assert!(!run.left_behind);
    for file in ["root.pid", "child.pid"] {
        let pid = pid(home, file).unwrap();
        assert!(!lives(pid), "{file}: {pid} still runs");
    }
    assert_eq!(standings(home), ["/root open interrupted", "/root/a open interrupted"]);
    for path in ["/root", "/root/a"] {
        let rollout = home.rollout(path);
        let outputs = rollout.payloads("response_item");
        let output = outputs.iter().rfind(|item| item["type"] == "function_call_output").unwrap().to_string();
        // A tool has a moment to hand over what it has; on a machine that is too busy for that it says so.
        let told = output.contains("The wait was interrupted") || output.contains("aborted by user after");
        assert!(told, "the call has its output: {output}");
        assert_eq!(rollout.count("turn_end"), 1, "{}", rollout.text());
    }
    // The child's end is told to the root, which has not read it yet.
    assert_eq!(tree(home)["agents"][0]["unread"], 1);
    let line = run.stderr.lines().find_map(|line| line.split_once("go on with: agent ")).unwrap().1;
    let resumed = agent(home).args(line.split(' ')).run_ok();
    assert!(resumed.stdout.starts_with("after all: You were cut off"), "{}", resumed.stdout);
    let last = crate::play::requests(server, "Work").pop().unwrap();
    assert!(last.heard("<turn_aborted>"), "it knows that it was interrupted: {last:?}");
    assert!(last.heard("outcome=\"interrupted\""), "and reads how its child ended: {last:?}");
    end(home, server, &resumed);
}

#[test]
fn ctrl_c_ends_the_turns_and_keeps_the_tree() {
    let (server, home, running) = busy();
    running.interrupt();
    let run = running.wait();
    ends_well(&server, &home, &run);
}

#[test]
fn a_request_to_terminate_does_the_same() {
    let (server, home, running) = busy();
    running.terminate();
    let run = running.wait();
    ends_well(&server, &home, &run);
}

#[test]
fn an_interrupt_while_the_model_is_asked() {
    let held = Gate::new();
    let gate = held.clone();
    let server = Server::start(move |request: &Request| match request.replies() {
        0 if request.told() == "Ask" => Reply::new().text("too late").wait_for(&gate),
        _ => Reply::new().text("here"),
    });
    let home = home(&server);
    let running = command(&home, &["run", "--json", "Ask"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    running.interrupt();
    let run = running.wait();
    run.assert_code(130);
    let finished = crate::json::events(&run).pop().unwrap();
    assert_eq!((&finished["outcome"], &finished["answer"]), (&"interrupted".into(), &serde_json::Value::Null));
    held.open();
    let again = command(&home, &["resume", "once more"]).run_ok();
    assert_eq!(again.stdout, "here\n");
    end(&home, &server, &again);
}

#[test]
fn a_second_interrupt_loses_nothing() {
    // The command is deaf, so its end takes a moment.
    let server =
        Play::new().says("Hold", [exec("trap '' INT TERM; echo $$ >held.pid; while :; do sleep 1000; done")]).serve();
    let home = home(&server);
    let running = command(&home, &["run", "Hold"]).spawn();
    until("the command", || pid(&home, "held.pid").is_some());
    running.interrupt();
    running.until_stderr("once more leaves at once");
    running.interrupt();
    let run = running.wait();
    run.assert_code(130);
    // Whether the first came to its end or the second cut it short: the next owner finds a whole tree.
    let resumed = command(&home, &["resume"]).run_ok();
    assert!(resumed.stdout.starts_with("/root  default · "), "{}", resumed.stdout);
    let held = pid(&home, "held.pid").unwrap();
    until("the end of the command", || !lives(held));
    testkit::assert_invariants(&home, &server.requests());
}

#[test]
fn an_interrupt_keeps_what_never_began() {
    let held = Gate::new();
    let server = Play::new()
        .thinks("Queue", |request| match request.replies() {
            // One after the other, so that it is `a` that gets the slot which the root gives back.
            0 => spawns(&[("a", "work a")]),
            1 => spawns(&[("b", "work b")]),
            2 => wait(),
            _ => panic!("it is not asked again: {request:?}"),
        })
        .says("work a", [Reply::new().text("never said").wait_for(&held)])
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "--max-running", "1", "Queue"]).spawn();
    server.wait_until(|seen| seen.iter().any(|request| request.task().starts_with("work ")));
    running.interrupt();
    let run = running.wait();
    run.assert_code(130);
    held.open();
    let standings = standings(&home);
    assert_eq!(standings, ["/root open interrupted", "/root/a open interrupted", "/root/b open pending"]);
    let report = command(&home, &["resume"]).run_ok();
    assert!(report.stdout.contains("/root/b  worker · not begun"), "{}", report.stdout);
    // The words of the line that resumes start the one that never began, and the other goes on.
    let more = Play::new()
        .thinks("Queue", |request| if request.heard("b began late") { Reply::new().text("b came") } else { wait() })
        .says("work a", [Reply::new().text("a went on")])
        .says("work b", [Reply::new().text("b began late")]);
    server.set_brain(more.brain());
    let resumed = command(&home, &["resume", "--continue", "go on"]).run_ok();
    assert_eq!(resumed.stdout, "b came\n", "{}", resumed.stderr);
    end(&home, &server, &resumed);
}

#[test]
fn an_interrupt_while_children_finish() {
    let held = Gate::new();
    let server = Play::new()
        .says("Hurry", [spawns(&[("slow", "take your time")]), Reply::new().text("I did not wait.")])
        .says("take your time", [Reply::new().text("never said").wait_for(&held)])
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Hurry"]).spawn();
    running.until_stderr("the root has answered; 1 agent still works");
    server.wait_until(|seen| seen.iter().any(|request| request.task() == "take your time"));
    running.interrupt();
    let run = running.wait();
    run.assert_code(130);
    held.open();
    assert_eq!(standings(&home), ["/root open completed", "/root/slow open interrupted"]);
    end(&home, &server, &run);
}

#[test]
fn what_a_crash_left_running_is_ended_by_the_next_owner() {
    let (server, home, running) = busy();
    running.kill();
    assert_eq!(running.wait().code, 137);
    let pids = ["root.pid", "child.pid"].map(|file| pid(&home, file).unwrap());
    assert!(pids.into_iter().all(lives), "nobody could end them");
    let run = command(&home, &["resume"]).run_ok();
    assert!(!pids.into_iter().any(lives));
    for path in ["/root", "/root/a"] {
        assert!(run.stderr.contains(&format!("{path}: ended what a crash left running: ")), "{}", run.stderr);
    }
    assert!(run.stdout.contains("cut off in the middle of a turn · 1 call broke off"), "{}", run.stdout);
    server.set_brain(|request: &Request| {
        assert!(request.heard("the process ended; this may have run partly"), "{request:?}");
        Reply::new().text("on")
    });
    let resumed = command(&home, &["resume", "--continue"]).run_ok();
    assert_eq!(resumed.stdout, "on\n");
    end(&home, &server, &resumed);
}

/// `timeout` sends its signal to the process and once more to its group: that is one, and nothing is left running.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let server = Server::start(|_: &Request| exec("echo $$ >sleeper.pid; exec sleep 1000"));
    let home = home(&server);
    let running = command(&home, &["run", "Try"]).spawn();
    until("the command", || pid(&home, "sleeper.pid").is_some());
    running.terminate();
    running.terminate();
    let run = running.wait();
    run.assert_code(130);
    assert!(run.stderr.contains("the tree is kept; go on with:"), "{}", run.stderr);
    assert!(!lives(pid(&home, "sleeper.pid").unwrap()));
    end(&home, &server, &run);
}

/// The answer is there and the command lets go of its tree, which takes a moment as long as a process is deaf.
#[test]
fn an_interrupt_after_the_answer_takes_nothing_back() {
    let deaf = "(trap '' TERM INT; echo $$ >deaf.pid; while :; do sleep 1000; done) </dev/null >/dev/null 2>&1 & \
                until [ -s deaf.pid ]; do sleep 0.01; done";
    let server = Play::new().says("Leave one", [exec(deaf), Reply::new().text("It runs.")]).serve();
    let home = home(&server);
    let running = command(&home, &["run", "Leave one"]).spawn();
    running.until_stdout("It runs.");
    running.interrupt();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "It runs.\n");
    end(&home, &server, &run);
}

#[test]
fn a_terminal_that_goes_away_ends_the_turns_unless_told_not_to() {
    for (first, code) in [("", 130), ("trap '' HUP; ", 0)] {
        let held = Gate::new();
        let gate = held.clone();
        let server = Play::new().says("Ask", [Reply::new().text("here").wait_for(&gate)]).serve();
        let home = home(&server);
        let line = format!("{first}exec \"$AGENT\" run Ask");
        let running =
            Agent::new("/bin/sh", &home).args(["-c", &line]).env("AGENT", env!("CARGO_BIN_EXE_agent")).spawn();
        server.wait_until(|seen| seen.len() == 1);
        running.hang_up();
        if code == 0 {
            held.open();
        }
        let run = running.wait();
        held.open();
        run.assert_code(code);
        assert_eq!(run.stdout, if code == 0 { "here\n" } else { "" });
        end(&home, &server, &run);
    }
}
