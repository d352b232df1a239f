//! What an agent started ends with it, however it tried to get away: with a session of its own, without an environment,
//! without a file of its command's, after the command was over.

use testkit::{Gate, Home, Reply, Request, Running, Server};

use crate::play::{Play, agent, command, end, exec, home, spawns, until, wait};
use crate::signals::{lives, pid};

/// A command that is over when its daemon runs, which is nobody's any more and has nothing of it.
fn daemon(name: &str) -> String {
    format!(
        "env -i setsid /bin/sh -c 'echo $$ >{name}; exec sleep 1000' </dev/null >/dev/null 2>&1 & \
         until [ -s {name} ]; do sleep 0.01; done"
    )
}

/// The root has left a daemon and waits; its child has left one and is held in its next reply, as the root is in its
/// last.
fn two_daemons(held: &Gate) -> (Server, Home, Running) {
    let [hold, hold_root] = [held.clone(), held.clone()];
    let first = spawns(&[("a", "work")]).call("exec_command", serde_json::json!({ "cmd": daemon("root.pid") }));
    let server = Play::new()
        .thinks("Lead", move |request| match request.replies() {
            0 => first.clone(),
            _ if request.heard("from=\"/root/a\"") => Reply::new().text("told").wait_for(&hold_root),
            _ => wait(),
        })
        .thinks("work", move |request| match request.replies() {
            0 => exec(&daemon("a.pid")),
            _ => Reply::new().text("done").wait_for(&hold),
        })
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    server.wait_until(|seen| {
        let at = |task: &str| seen.iter().any(|request: &Request| request.task() == task && request.replies() == 1);
        at("Lead") && at("work")
    });
    (server, home, running)
}

#[test]
fn daemons_of_a_crash_are_ended_and_told_once() {
    let held = Gate::new();
    let (server, home, running) = two_daemons(&held);
    running.kill();
    assert_eq!(running.wait().code, 137);
    held.open();
    let pids = ["root.pid", "a.pid"].map(|file| pid(&home, file).unwrap());
    assert!(pids.into_iter().all(lives), "nobody could end them");
    let run = command(&home, &["resume"]).run_ok();
    assert!(!pids.into_iter().any(lives));
    for path in ["/root", "/root/a"] {
        assert_eq!(
            run.stderr.matches(&format!("{path}: ended what a crash left running: ")).count(),
            1,
            "{}",
            run.stderr
        );
    }
    let again = command(&home, &["resume"]).run_ok();
    assert!(!again.stderr.contains("left running"), "{}", again.stderr);
    end(&home, &server, &again);
}

#[test]
fn an_interrupt_leaves_a_daemon_and_a_close_ends_it() {
    let held = Gate::new();
    let (server, home, running) = two_daemons(&held);
    let [root, child] = ["root.pid", "a.pid"].map(|file| pid(&home, file).unwrap());
    command(&home, &["interrupt", "/root/a"]).run_ok();
    assert!(lives(child), "the agent is still there, and so is what it started");
    command(&home, &["close", "/root/a"]).run_ok();
    assert!(!lives(child));
    assert!(lives(root), "another agent's is its own");
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert!(!lives(root), "with the tree everything ends");
    end(&home, &server, &run);
}

/// An agent that is out of memory has no processes, or it would not be: its daemon keeps it there.
#[test]
fn a_daemon_of_an_idle_agent_ends_with_its_close() {
    let held = Gate::new();
    let hold = held.clone();
    let server = Play::new()
        .thinks("Lead", move |request| match request.replies() {
            0 => spawns(&[("a", "work"), ("b", "rest")]),
            _ if request.heard("from=\"/root/a\"") && request.heard("from=\"/root/b\"") => {
                Reply::new().text("told").wait_for(&hold)
            }
            _ => wait(),
        })
        .thinks("work", |request| match request.replies() {
            0 => exec(&daemon("a.pid")),
            _ => Reply::new().text("done"),
        })
        .says("rest", [Reply::new().text("rested")])
        .serve();
    let home = home(&server);
    let running = agent(&home).args(["run", "--max-resident", "1", "Lead"]).spawn();
    until("the daemon", || pid(&home, "a.pid").is_some());
    server.wait_until(|seen| seen.iter().any(|request| request.task() == "Lead" && request.heard("from=\"/root/b\"")));
    let daemon = pid(&home, "a.pid").unwrap();
    assert!(lives(daemon));
    command(&home, &["close", "/root/a"]).run_ok();
    assert!(!lives(daemon));
    held.open();
    running.wait().assert_code(0);
}
