//! `agent run`: trees of several shapes do their task.

use protocol::ItemKind;
use serde_json::json;
use testkit::{Gate, Reply, brains};

use crate::play::{Play, command, end, exec, home, parent, requests, spawns, standings, wait};

/// The default of `max_running`.
const MAX_RUNNING: usize = 8;

#[test]
fn an_explorer_finds_a_worker_patches_and_the_root_reports() {
    let patch = "*** Begin Patch\n*** Update File: src/greet.txt\n@@\n-helo world\n+hello world\n*** End Patch\n";
    let explore = json!({"task_name": "find", "message": "where is the typo?", "agent_type": "explorer"});
    let work = json!({"task_name": "mend", "message": "mend src/greet.txt", "agent_type": "worker"});
    let server = Play::new()
        .thinks("Fix the greeting", move |request| {
            let calls = request.calls().into_iter().filter(|(call, _)| call.name == "spawn_agent").count();
            match (calls, request.heard("found in src/greet.txt:1"), request.heard("patched")) {
                (0, ..) => Reply::new().call("spawn_agent", explore.clone()),
                (1, true, _) => Reply::new().call("spawn_agent", work.clone()),
                (2, _, true) => Reply::new().text("The greeting is fixed."),
                _ => wait(),
            }
        })
        .thinks("where is the typo?", |request| match request.outputs().pop() {
            None => exec("grep -rn helo src"),
            Some(output) if output.contains("src/greet.txt:1:helo world") => {
                Reply::new().text("found in src/greet.txt:1")
            }
            Some(output) => panic!("{output}"),
        })
        .says(
            "mend src/greet.txt",
            [Reply::new().call("apply_patch", json!({"input": patch})), Reply::new().text("patched it")],
        )
        .serve();
    let home = home(&server);
    home.write_work("src/greet.txt", "helo world\n");
    let run = command(&home, &["run", "Fix the greeting"]).run_ok();
    assert_eq!(run.stdout, "The greeting is fixed.\n");
    assert_eq!(std::fs::read_to_string(home.work().join("src/greet.txt")).unwrap(), "hello world\n");
    assert_eq!(standings(&home), ["/root open completed", "/root/find open completed", "/root/mend open completed"]);
    let roles = ["/root", "/root/find", "/root/mend"].map(|path| home.rollout(path).meta()["agent_role"].clone());
    assert_eq!(roles, ["default", "explorer", "worker"]);
    let explorer = &requests(&server, "where is the typo?")[0];
    assert!(!explorer.tools().contains(&"apply_patch"), "an explorer changes nothing: {:?}", explorer.tools());
    assert!(requests(&server, "mend src/greet.txt")[0].tools().contains(&"apply_patch"));
    for line in [
        &format!("tree {} · mock/model · ", home.rollout("/root").tree()),
        "no sandbox (danger-full-access)",
        "/root/find     + explorer",
        "/root/mend     = done (",
    ] {
        assert!(run.stderr.contains(line), "`{line}` is not in\n{}", run.stderr);
    }
    end(&home, &server, &run);
}

#[test]
fn sixteen_children_work_side_by_side_while_the_root_goes_on() {
    let names: Vec<(String, String)> = (0..16).map(|n| (format!("child_{n}"), format!("say number {n}"))).collect();
    let children: Vec<(&str, &str)> = names.iter().map(|(name, task)| (name.as_str(), task.as_str())).collect();
    let first = spawns(&children);
    let held = Gate::new();
    let gate = held.clone();
    let mut play = Play::new().thinks("Count", move |request| match request.replies() {
        0 => first.clone(),
        1 => exec("echo the root works"),
        _ if (0..16).all(|n| request.heard(&format!("number {n} is done"))) => Reply::new().text("All 16 reported."),
        _ => wait(),
    });
    for n in 0..16 {
        let gate = gate.clone();
        play = play.thinks(&format!("say number {n}"), move |request| match request.outputs().pop() {
            None => exec(&format!("echo it is {n}")).wait_for(&gate),
            Some(output) if output.ends_with(&format!("it is {n}\n")) => {
                Reply::new().text(format!("number {n} is done"))
            }
            Some(output) => panic!("{output}"),
        });
    }
    let server = play.serve();
    let home = home(&server);
    let running = command(&home, &["run", "Count"]).spawn();
    // Nobody is answered before the gate opens, so these all began before any of them had finished. The root has run
    // a command meanwhile, and is waiting: its slot goes to an eighth child.
    server.wait_until(|seen| {
        let begun = seen.iter().filter(|request| request.task().starts_with("say number")).count();
        let root = seen.iter().rfind(|request| request.task() == "Count");
        begun == MAX_RUNNING && root.is_some_and(|root| root.heard("the root works"))
    });
    assert!(server.requests().iter().all(|request| request.task() == "Count" || request.ended().is_none()));
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "All 16 reported.\n");
    assert_eq!(server.most_at_once(), MAX_RUNNING);
    assert_eq!(home.rollouts().len(), 17);
    for n in 0..16 {
        let seen = requests(&server, &format!("say number {n}"));
        assert_eq!(seen.len(), 2, "child {n} needs two requests");
    }
    assert!(run.stderr.contains("queued, number "), "a queued agent shows its place:\n{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn one_slot_is_enough_for_a_parent_that_waits() {
    let server = brains_server(brains::spawn_n(3, brains::exec_once("echo done")));
    let home = home(&server);
    let run = command(&home, &["run", "--max-running", "1", "Go"]).run_ok();
    assert_eq!(run.stdout, "3 of 3 children reported\n");
    assert_eq!(server.most_at_once(), 1);
    end(&home, &server, &run);
}

#[test]
fn three_levels_need_one_slot() {
    let server = brains_server(brains::tree(3, 2));
    let home = home(&server);
    let run = command(&home, &["run", "--max-running", "1", "Grow"]).run_ok();
    assert_eq!(run.stdout, "2 of 2 children reported\n");
    assert_eq!(server.most_at_once(), 1);
    assert_eq!(home.rollouts().len(), 1 + 2 + 4 + 8);
    let standings = standings(&home);
    assert!(standings.iter().all(|line| line.ends_with(" open completed")), "{standings:?}");
    end(&home, &server, &run);
}

#[test]
fn more_agents_than_may_be_in_memory() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let tasks: Vec<String> = names.iter().map(|name| format!("task {name}")).collect();
    let children: Vec<(&str, &str)> = names.iter().copied().zip(tasks.iter().map(String::as_str)).collect();
    let first = spawns(&children);
    let mut play = Play::new().thinks("Many", move |request| {
        let all = |what: &str| names.iter().all(|name| request.heard(&format!("{what} {name}.")));
        let again = request.calls().iter().filter(|(call, _)| call.name == "followup_task").count();
        match (request.replies(), all("first"), again, all("second")) {
            (0, ..) => first.clone(),
            (_, true, 0, _) => names.iter().fold(Reply::new(), |reply, name| {
                reply.call("followup_task", json!({"target": name, "message": "and again"}))
            }),
            (.., true) => Reply::new().text("Twelve results."),
            _ => wait(),
        }
    });
    for name in names {
        play = play.says(
            &format!("task {name}"),
            [Reply::new().text(format!("first {name}.")), Reply::new().text(format!("second {name}."))],
        );
    }
    let server = play.serve();
    let home = home(&server);
    let run = command(&home, &["run", "--json", "--max-resident", "2", "--max-running", "2", "Many"]).run_ok();
    let events = run.json_lines();
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(events.last().unwrap()["answer"], "Twelve results.");
    assert!(count("agent.evicted") >= 4, "7 agents and room for 2: {} evictions", count("agent.evicted"));
    assert!(count("agent.rehydrated") >= 4, "who was unloaded came back for its second task");
    assert_eq!(count("error"), 0, "{}", run.stdout);
    for name in names {
        let seen = requests(&server, &format!("task {name}"));
        assert_eq!(seen.len(), 2);
        assert!(seen[1].contains(&format!("first {name}.")), "it knows what it did before");
    }
    end(&home, &server, &run);
}

#[test]
fn the_root_may_answer_before_its_children() {
    let held = Gate::new();
    let server = Play::new()
        .says("Hurry", [spawns(&[("slow", "take your time")]), Reply::new().text("I did not wait.")])
        .says("take your time", [Reply::new().text("late but whole").wait_for(&held)])
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Hurry"]).spawn();
    running.until_stderr("the root has answered; 1 agent still works, waiting for it");
    assert_eq!(running.stdout(), "", "the answer comes when the tree is quiet");
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "I did not wait.\n");
    assert!(run.stderr.contains("not read by the root: /root/slow: late but whole"), "{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn the_roles_of_a_tree_are_those_that_were_named() {
    let explorer = json!({"task_name": "a", "message": "look", "agent_type": "explorer"});
    let worker = json!({"task_name": "b", "message": "work", "agent_type": "worker"});
    let wizard = json!({"task_name": "c", "message": "magic", "agent_type": "wizard"});
    let first = Reply::new().call("spawn_agent", explorer).call("spawn_agent", worker).call("spawn_agent", wizard);
    let server = Play::new()
        .thinks("Roles", parent(first, &["looked"], "done"))
        .says("look", [Reply::new().text("looked")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--roles", "explorer", "Roles"]).run_ok();
    assert_eq!(run.stdout, "done\n");
    let root = requests(&server, "Roles");
    let outputs = root[1].outputs();
    assert!(outputs[0].contains("/root/a"), "{outputs:?}");
    for refused in &outputs[1..] {
        assert!(refused.contains("explorer") && !refused.contains("\"task_name\""), "it names the roles: {refused}");
    }
    assert!(root[0].raw_tools().contains("explorer") && !root[0].raw_tools().contains("- worker"));
    assert_eq!(home.rollouts().len(), 2, "a refused child leaves no file");
    let calls = root[1].items().iter().filter(|item| item.kind() == ItemKind::FunctionCall).count();
    assert_eq!(calls, 3);
    end(&home, &server, &run);
}

#[test]
fn a_child_may_have_a_model_of_its_own() {
    let other = testkit::Server::start(|request: &testkit::Request| {
        Reply::new().text(format!("{} here", request.json()["model"].as_str().unwrap_or_default()))
    });
    let child = |name: &str, model: &str| json!({"task_name": name, "message": "who?", "model": model});
    let first =
        Reply::new().call("spawn_agent", child("a", "other/special")).call("spawn_agent", child("b", "nowhere/x"));
    let server = Play::new().thinks("Two", parent(first, &["special here"], "done")).serve();
    let home = home(&server).provider("other", &other);
    let run = command(&home, &["run", "Two"]).run_ok();
    assert_eq!(run.stdout, "done\n");
    let outputs = requests(&server, "Two")[1].outputs();
    assert!(outputs[1].contains("`nowhere`") && outputs[1].contains("mock, "), "{outputs:?}");
    assert_eq!(other.requests().len(), 1);
    assert_eq!(home.rollouts().len(), 2);
    testkit::assert_invariants(&home, &other.requests());
    // It keeps its model, unless the command names one for all.
    let again = command(&home, &["send", "/root/a", "still you?"]).run_ok();
    assert_eq!(again.stdout, "special here\n");
    server.set_brain(|_: &testkit::Request| Reply::new().text("now I am it"));
    let moved = command(&home, &["send", "--model", "mock/model", "/root/a", "and now?"]).run_ok();
    assert_eq!(moved.stdout, "now I am it\n");
    end(&home, &server, &moved);
}

fn brains_server(brain: impl Fn(&testkit::Request) -> Reply + Send + Sync + 'static) -> testkit::Server {
    testkit::Server::start(brain)
}
