//! Commands beside a live `agent run`: each speaks to its process, and answers go to whom they belong.

use protocol::Outcome;
use serde_json::Value;
use testkit::{Gate, Home, Reply, Request, Run, Running, Server};

use crate::count::{Counted, assert_whole, at};
use crate::play::{Play, command, end, exec, home, requests, spawns, standings, tree, wait};

/// A root whose first step is held; then it says what it has heard. `/root/a` is idle.
struct Held {
    server: Server,
    home: Home,
    owner: Running,
    gate: Gate,
}

impl Held {
    fn new() -> Self {
        let gate = Gate::new();
        let held = gate.clone();
        let server = Play::new()
            .thinks("Lead", move |request| match request.replies() {
                0 => spawns(&[("a", "help")]),
                _ if !request.heard("a: help") => wait(),
                n if n < 10 && !request.heard("held it") => exec("echo held it").wait_for(&held),
                _ => Reply::new().text(format!("root: {}", request.told())),
            })
            .thinks("help", |request| Reply::new().text(format!("a: {}", request.told())))
            .serve();
        let home = home(&server);
        let owner = command(&home, &["run", "Lead"]).spawn();
        let held = |request: &Request| request.task() == "Lead" && request.heard("a: help");
        server.wait_until(|seen| seen.iter().any(held));
        Self { server, home, owner, gate }
    }

    fn command(&self, words: &[&str]) -> Run {
        command(&self.home, words).run()
    }

    fn spawn(&self, words: &[&str]) -> Running {
        command(&self.home, words).spawn()
    }

    /// Lets the root go on, and gives its answer and all agents once everything has been checked.
    fn end(self) -> (String, Vec<Counted>) {
        self.gate.open();
        let run = self.owner.wait();
        run.assert_code(0);
        let agents = assert_whole(&self.home);
        end(&self.home, &self.server, &run);
        (run.stdout, agents)
    }
}

/// Turns and tasks of a rollout that have ended.
fn ends(rollout: &str) -> (usize, usize) {
    let count = |kind: &str| rollout.matches(&format!("\"type\":\"{kind}\"")).count();
    (count("turn_end"), count("task_done"))
}

const TAKEN_IN: &str = "is working and takes this in before its next step";

#[test]
fn words_to_a_working_root_join_its_turn() {
    let held = Held::new();
    let sent = held.spawn(&["send", "/root", "and more"]);
    sent.until_stderr(TAKEN_IN);
    held.gate.open();
    let sent = sent.wait();
    sent.assert_code(0);
    assert_eq!(sent.stdout, "root: and more\n");
    let root = held.home.rollout("/root").text();
    assert_eq!((ends(&root), held.end().0.as_str()), ((1, 2), "root: and more\n"));
}

#[test]
fn two_who_speak_to_one_agent_at_once_are_both_heard() {
    let held = Held::new();
    let sent = ["first words", "second words"].map(|words| held.spawn(&["send", "/root", words]));
    for sent in &sent {
        sent.until_stderr(TAKEN_IN);
    }
    held.gate.open();
    let answers = sent.map(|sent| sent.wait().stdout);
    assert_eq!(answers[0], answers[1], "they are in one turn");
    let root = held.home.rollout("/root").text();
    let last = requests(&held.server, "Lead").pop().unwrap();
    assert!(last.heard("first words") && last.heard("second words"));
    assert_eq!((ends(&root), held.end().0), ((1, 3), answers[0].clone()));
}

#[test]
fn an_idle_agent_is_woken_in_the_owner_and_answers_whoever_asked() {
    let held = Held::new();
    let sent = [1, 2, 3].map(|n| held.spawn(&["send", "/root/a", &format!("number {n}.")]));
    let sent = sent.map(Running::wait);
    for (n, sent) in (1..).zip(&sent) {
        sent.assert_code(0);
        assert!(sent.stdout.starts_with("a: number "), "{n}: {}", sent.stdout);
    }
    // Words that came while it worked are taken in by the same turn, and then the last words are the answer to all.
    let child = requests(&held.server, "help").pop().unwrap();
    for n in 1..=3 {
        assert!(child.heard(&format!("number {n}.")), "{child:?}");
    }
    assert_eq!(tree(&held.home)["agents"][0]["unread"], 0, "the root is told nothing of what a person asked");
    let (_, agents) = held.end();
    assert_eq!(at(&agents, "/root/a").ends("number "), [Outcome::Completed; 3]);
}

#[test]
fn looking_leaving_and_naming_nobody_disturb_nothing() {
    let held = Held::new();
    let pid = format!("process {}", held.owner.pid());
    let before = held.server.requests().len();
    for (words, says) in [
        (&["send", "--queue", "/root", "for later"][..], "left for /root; it reads this with its next task"),
        (&["send", "--queue", "/root/a", "for later"], "left for /root/a"),
        (&["resume"], &pid),
        (&["resume", "--continue"], "nothing was cut off and nothing waits to begin"),
        (&["interrupt", "/root/a"], "nothing ran at /root/a"),
    ] {
        let run = held.command(words);
        run.assert_code(0);
        assert!(run.stderr.contains(says), "{words:?}: {}", run.stderr);
    }
    for words in [&["send", "/root/nobody", "x"][..], &["interrupt", "/root/nobody"], &["close", "/root/nobody"]] {
        let run = held.command(words);
        run.assert_code(2);
        assert!(run.stderr.contains("no open agent at /root/nobody; open agents: /root, /root/a"), "{}", run.stderr);
    }
    assert_eq!(held.command(&["log", "/root/a"]).code, 0);
    let running = standings(&held.home);
    assert!(running[0].starts_with("/root open ") && running[1] == "/root/a open completed", "{running:?}");
    assert_eq!(tree(&held.home)["agents"][1]["unread"], 1);
    assert_eq!(held.server.requests().len(), before, "nobody was asked");
    let (answer, agents) = held.end();
    assert_eq!(answer, "root: for later\n");
    assert_eq!(at(&agents, "/root/a").state.pending.len(), 1, "it wakes nobody");
}

#[test]
fn a_task_for_the_root_of_a_driven_tree() {
    let held = Held::new();
    let resumed = held.spawn(&["resume", "one more thing"]);
    resumed.until_stderr(TAKEN_IN);
    let both = held.spawn(&["resume", "--continue", "and another"]);
    both.until_stderr(TAKEN_IN);
    held.gate.open();
    for run in [resumed, both].map(Running::wait) {
        run.assert_code(0);
        assert_eq!(run.stdout, "root: and another\n");
    }
    assert_eq!(held.end().0, "root: and another\n");
}

/// What holds of the events of a command that speaks to another process.
#[track_caller]
pub(crate) fn events(run: &Run) -> Vec<Value> {
    let events = run.json_lines();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<u64>>(), "{}", run.stdout);
    let finished = events.iter().filter(|event| event["type"] == "tree.finished").count();
    assert_eq!((finished, &events.last().unwrap()["type"]), (1, &"tree.finished".into()), "{}", run.stdout);
    events
}

#[test]
fn events_of_a_tree_that_another_process_drives() {
    let held = Held::new();
    let sent = held.spawn(&["send", "--json", "/root", "in JSON"]);
    sent.until_stderr(TAKEN_IN);
    held.gate.open();
    let sent = sent.wait();
    sent.assert_code(0);
    let events = events(&sent);
    let last = events.last().unwrap();
    assert_eq!((&last["outcome"], &last["answer"]), (&"completed".into(), &"root: in JSON".into()));
    assert_eq!(last["path"], "/root");
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in ["mail.accepted", "mail.delivered", "turn.completed"] {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), 1, "{kind}: {kinds:?}");
    }
    assert_ne!(last["usage"]["input"], 0, "tokens of the whole tree: {last}");
    held.end();
}

#[test]
fn ctrl_c_leaves_the_tree_to_its_owner() {
    let held = Held::new();
    let sent = held.spawn(&["send", "/root", "never mind"]);
    sent.until_stderr(TAKEN_IN);
    // It is taken and so it is done, whoever waits for it.
    sent.interrupt();
    let sent = sent.wait();
    sent.assert_code(130);
    assert!(sent.stderr.contains("left: the tree goes on in its own process"), "{}", sent.stderr);
    assert_eq!(held.end().0, "root: never mind\n");
}
