//! The tree outlives its process: agents are spoken to, shown and woken by later ones.

use protocol::Item;
use serde_json::Value;
use testkit::{Gate, Home, Reply, Request, Server};

use crate::play::{Play, agent, command, end, exec, home, parent, requests, spawns, standings, tree};

/// A finished tree of a root and two workers, `a` and `b`; the server now answers every request with `brain`.
fn grown(brain: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Server, Home) {
    let server = Play::new()
        .thinks("Start", parent(spawns(&[("a", "task a"), ("b", "task b")]), &["a did it", "b did it"], "all done"))
        .says("task a", [exec("echo a works"), Reply::new().text("a did it")])
        .says("task b", [Reply::new().text("b did it")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Start"]).run_ok();
    assert_eq!(run.stdout, "all done\n");
    server.set_brain(brain);
    (server, home)
}

/// The items of the agent's last request, and the reply to it: all it knows.
fn known(server: &Server, task: &str) -> Vec<Item> {
    requests(server, task).last().unwrap().items().to_vec()
}

#[test]
fn one_agent_is_spoken_to_in_a_new_process() {
    let (server, home) = grown(|request| Reply::new().text(format!("I remember: {}", request.outputs().len())));
    let before = known(&server, "task a");
    let count = server.requests().len();
    let run = command(&home, &["send", "--json", "/root/a", "what did you do?"]).run_ok();
    let events = run.json_lines();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<&Value>>();
    let loaded = of("agent.rehydrated");
    assert_eq!(loaded.len(), 1, "only the one that is spoken to is loaded: {loaded:?}");
    assert_eq!(loaded[0]["path"], "/root/a");
    assert_eq!(of("turn.started").len(), 1);
    let finished = events.last().unwrap();
    assert_eq!((&finished["type"], &finished["answer"]), (&"tree.finished".into(), &"I remember: 1".into()));
    let all = server.requests();
    assert_eq!(all.len(), count + 1);
    let items = all[count].items();
    let kept: Vec<&str> = before.iter().map(Item::raw).collect();
    let sent: Vec<&str> = items.iter().map(Item::raw).collect();
    assert_eq!(sent[..kept.len()], kept, "it knows what it knew, to the byte");
    assert_eq!(sent.len(), kept.len() + 2, "its last answer, and what it is asked now");
    assert_eq!(items[kept.len()].text(), "a did it");
    assert_eq!(items[kept.len() + 1].text(), "what did you do?");
    end(&home, &server, &run);
}

#[test]
fn send_prints_the_answer_and_nothing_else() {
    let (server, home) = grown(|_| Reply::new().text("here is b"));
    let run = command(&home, &["send", "/root/b", "say something"]).run_ok();
    assert_eq!(run.stdout, "here is b\n");
    // A bare name hangs below the root.
    let run = command(&home, &["send", "b", "again"]).run_ok();
    assert_eq!(run.stdout, "here is b\n");
    end(&home, &server, &run);
}

#[test]
fn resume_and_tree_show_every_agent_and_ask_no_model() {
    let (server, home) = grown(|request| panic!("nobody asked for this: {request:?}"));
    let count = server.requests().len();
    let id = home.rollout("/root").tree().to_owned();
    let run = command(&home, &["resume"]).run_ok();
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines,
        ["/root  default · finished", "/root/a  worker · finished", "/root/b  worker · finished"],
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains(&format!("tree {id}")), "{}", run.stderr);
    let shown = command(&home, &["tree"]).run_ok();
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines[0], format!("tree {id}"));
    for (line, begin) in
        lines[1..].iter().zip(["/root  completed · default", "├─ a  completed · worker", "└─ b  completed · worker"])
    {
        assert!(line.starts_with(begin), "`{line}` does not begin with `{begin}`");
    }
    assert_eq!(lines.len(), 4);
    let rows = tree(&home)["agents"].as_array().unwrap().clone();
    assert_eq!(rows[1]["task"], "task a");
    assert_eq!(rows[1]["parent"], "/root");
    assert!(rows[1]["tokens"]["input"].as_u64().unwrap() > 0);
    // A prefix that fits no other tree names it, from any folder.
    let elsewhere = agent(&home).args(["tree", "--tree", &id[..8]]).cwd(home.path()).run_ok();
    assert_eq!(elsewhere.stdout, shown.stdout);
    assert_eq!(server.requests().len(), count);
    end(&home, &server, &run);
}

#[test]
fn resume_gives_the_root_a_task() {
    let (server, home) = grown(|request| Reply::new().text(format!("again: {}", request.told())));
    let run = command(&home, &["resume", "and now?"]).run_ok();
    assert_eq!(run.stdout, "again: and now?\n");
    assert!(run.stderr.contains("/root/a  worker · finished"), "{}", run.stderr);
    let last = server.requests().pop().unwrap();
    assert_eq!(last.task(), "Start", "it is the same root");
    end(&home, &server, &run);
}

#[test]
fn mail_that_is_queued_is_read_with_the_next_task() {
    let (server, home) = grown(|_| Reply::new().text("read both"));
    let count = server.requests().len();
    let run = command(&home, &["send", "--queue", "/root/a", "for later"]).run_ok();
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("left for /root/a"), "{}", run.stderr);
    assert_eq!(server.requests().len(), count, "nobody is woken");
    assert_eq!(tree(&home)["agents"][1]["unread"], 1);
    let report = command(&home, &["resume"]).run_ok();
    assert!(report.stdout.contains("/root/a  worker · finished · 1 unread"), "{}", report.stdout);
    let run = command(&home, &["send", "/root/a", "now"]).run_ok();
    assert_eq!(run.stdout, "read both\n");
    let request = server.requests().pop().unwrap();
    let texts: Vec<String> = request.items().iter().map(Item::text).collect();
    assert_eq!(texts[texts.len() - 2..], ["for later", "now"]);
    assert_eq!(texts.iter().filter(|text| *text == "for later").count(), 1);
    assert_eq!(tree(&home)["agents"][1]["unread"], 0);
    end(&home, &server, &run);
}

#[test]
fn a_tree_that_was_killed_goes_on_where_it_was_cut_off() {
    let held = Gate::new();
    let gate = held.clone();
    let server = Play::new()
        .thinks("Start", parent(spawns(&[("a", "task a")]), &["a did it"], "all done"))
        .thinks("task a", move |request| match request.replies() {
            0 => exec("echo a works"),
            _ => Reply::new().text("a did it").wait_for(&gate),
        })
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Start"]).spawn();
    server.wait_until(|seen| {
        let waits = seen.iter().any(|request| request.task() == "Start" && request.replies() == 1);
        waits && seen.iter().any(|request| request.task() == "task a" && request.replies() == 1)
    });
    running.kill();
    assert_eq!(running.wait().code, 137);
    held.open();
    assert_eq!(standings(&home), ["/root open lost", "/root/a open lost"]);
    let count = server.requests().len();
    let run = command(&home, &["resume"]).run_ok();
    for line in
        ["/root  default · cut off in the middle of a turn", "/root/a  worker · cut off in the middle of a turn"]
    {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    assert_eq!(server.requests().len(), count, "resuming asks no model");
    let run = command(&home, &["resume", "--continue"]).run_ok();
    assert_eq!(run.stdout, "all done\n");
    assert_eq!(standings(&home), ["/root open completed", "/root/a open completed"]);
    end(&home, &server, &run);
}
