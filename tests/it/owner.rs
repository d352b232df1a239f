//! One process drives a tree; everybody else speaks to it.

use testkit::{Gate, Reply, Request, Server};

use crate::play::{command, end, home};

#[test]
fn a_tree_has_one_owner_until_it_dies() {
    let held = Gate::new();
    let gate = held.clone();
    let server = Server::start(move |request: &Request| match request.told().as_str() {
        "Own" => Reply::new().text("never said").wait_for(&gate),
        told => Reply::new().text(format!("done: {told}")),
    });
    let home = home(&server);
    let owner = command(&home, &["run", "Own"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    let pid = format!("process {}", owner.pid());
    let left = command(&home, &["send", "--queue", "/root", "later"]).run_ok();
    assert!(left.stderr.contains(&pid) && left.stderr.contains("left for /root"), "{}", left.stderr);
    let report = command(&home, &["resume"]).run_ok();
    assert!(report.stderr.contains(&pid) && report.stdout.contains("/root  default"), "{report:?}");
    // Looking needs no lock, and shows that it runs.
    assert_eq!(crate::play::standings(&home), ["/root open running"]);
    let shown = command(&home, &["log"]).run_ok();
    assert!(shown.stdout.contains("user: Own"), "{}", shown.stdout);
    assert_eq!(server.requests().len(), 1, "the others asked nobody");
    owner.kill();
    assert_eq!(owner.wait().code, 137);
    assert_eq!(crate::play::standings(&home), ["/root open lost"]);
    let run = command(&home, &["send", "/root", "me now"]).run_ok();
    assert_eq!(run.stdout, "done: me now\n");
    assert!(server.requests().last().unwrap().heard("later"), "what the first owner took is read by the next");
    held.open();
    end(&home, &server, &run);
}

#[test]
fn two_trees_of_one_folder_do_not_hinder_each_other() {
    let held = Gate::new();
    let gate = held.clone();
    let server = Server::start(move |request: &Request| match request.task().as_str() {
        "First" => Reply::new().text("first").wait_for(&gate),
        task => Reply::new().text(format!("done: {task}")),
    });
    let home = home(&server);
    let first = command(&home, &["run", "First"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    let second = command(&home, &["run", "Second"]).run_ok();
    assert_eq!(second.stdout, "done: Second\n");
    held.open();
    let run = first.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "first\n");
    end(&home, &server, &run);
}

#[test]
fn a_copied_home_leaves_the_commands_of_the_original_alone() {
    let server = Server::start(|request: &Request| match request.replies() {
        0 => Reply::new()
            .call("exec_command", serde_json::json!({"cmd": "until [ -e go ]; do sleep 0.02; done; echo let go"})),
        _ => Reply::new().text(request.outputs().concat()),
    });
    let home = home(&server);
    let owner = command(&home, &["run", "Wait for the file"]).spawn();
    let started = || home.rollouts().iter().any(|rollout| rollout.text().contains(r#""event":"started""#));
    crate::play::until("the command runs", started);
    let copy = home.copy();
    let looked = command(&copy, &["resume"]).run_ok();
    assert!(looked.stderr.contains("is this a copied home?"), "{}", looked.stderr);
    home.write_work("go", "");
    let run = owner.wait();
    run.assert_code(0);
    assert!(run.stdout.contains("let go"), "{}", run.stdout);
    end(&home, &server, &run);
}
