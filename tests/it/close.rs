//! `agent close`: what ends with it, where mail goes, and that a name is free again.

use protocol::{MailKind, Outcome};
use rollout::Edge;
use serde_json::json;
use testkit::{Gate, Home, Reply, Running, Server};

use crate::count::{Counted, assert_whole, at};
use crate::play::{Play, command, end, exec, home, notes, requests, spawn, spawns, standings, tree, until, wait};
use crate::signals::{lives, pid};

/// Below the root `/root/m`; below that `run`, whose command does not end, and `idle`, which has had its say. `m` has not
/// read what they told it and is held.
fn family(held: &Gate) -> (Server, Home, Running) {
    let hold = held.clone();
    let server = Play::new()
        .thinks("Lead", |request| match request.replies() {
            0 => spawns(&[("m", "middle")]),
            _ if request.heard("from=\"/root/m\"") => Reply::new().text("told"),
            _ => wait(),
        })
        .thinks("middle", move |request| match request.replies() {
            0 => spawns(&[("run", "go on"), ("idle", "be short")]),
            1 => exec("true").wait_for(&hold),
            _ => panic!("it is closed: {request:?}"),
        })
        .thinks("go on", |request| match request.replies() {
            0 => Reply::new().call("send_message", json!({"target": "/root/m", "message": "a word from below"})),
            _ => exec("echo $$ >run.pid; sleep 1000"),
        })
        .says("be short", [Reply::new().text("short result")])
        .serve();
    let home = home(&server);
    let running = command(&home, &["run", "Lead"]).spawn();
    until("everybody", || {
        let all = home.rollouts().len() == 4 && pid(&home, "run.pid").is_some();
        all && home.rollout("/root/m").text().contains("short result")
    });
    (server, home, running)
}

/// What lies unread at the root: kinds and words.
fn unread(root: &Counted) -> Vec<(MailKind, String)> {
    let mut unread: Vec<_> = root.state.pending.iter().map(|mail| (mail.kind, mail.body.clone())).collect();
    unread.sort_by_key(|(kind, words)| (kind.as_str(), words.clone()));
    unread
}

#[test]
fn of_an_agent_in_the_middle() {
    let held = Gate::new();
    let (server, home, running) = family(&held);
    let command_pid = pid(&home, "run.pid").unwrap();
    let left = command(&home, &["send", "--queue", "/root/m/idle", "never read"]).run_ok();
    assert!(left.stderr.contains("left for /root/m/idle"));
    let waiting = command(&home, &["send", "/root/m", "never done"]).spawn();
    waiting.until_stderr("is working and takes this in");
    let run = command(&home, &["close", "/root/m", "--reason", "enough of this"]).run_ok();
    assert!(run.stderr.contains("/root/m is closed, and with it 2 agents below"), "{}", run.stderr);
    assert!(!lives(command_pid), "processes end with it");
    let waiting = waiting.wait();
    waiting.assert_code(130);
    assert!(waiting.stderr.contains("closed by user: enough of this"), "{}", waiting.stderr);
    assert!(!waiting.stderr.contains("agent resume"), "nothing of it can be resumed: {}", waiting.stderr);
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "told\n");
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root/m").ends("middle"), [Outcome::Closed]);
    assert_eq!(at(&agents, "/root/m").ends("never done"), [Outcome::Closed]);
    assert_eq!(at(&agents, "/root/m/run").ends("go on"), [Outcome::Closed]);
    assert!(matches!(at(&agents, "/root/m").state.edge, Edge::Closed { .. }));
    for below in ["/root/m/run", "/root/m/idle"] {
        assert_eq!(at(&agents, below).state.edge, Edge::Open, "only closing closes");
    }
    // The result that `m` had not read has moved up, and so have the one of `run` and the word that came back.
    let root = at(&agents, "/root");
    let got = |words: &str| root.mails().filter(|mail| mail.body.contains(words)).count();
    assert_eq!((got("short result"), got("a word from below")), (1, 1));
    let results = root.mails().filter(|mail| mail.kind == MailKind::Result).count();
    assert_eq!(results, 3, "of m, and of both below it");
    let rows = standings(&home);
    assert_eq!(rows[1], "/root/m closed interrupted");
    for path in ["/root/m", "/root/m/run", "/root/m/idle"] {
        let run = command(&home, &["send", path, "anybody?"]).run();
        run.assert_code(2);
        assert!(run.stderr.contains(&format!("no open agent at {path}; open agents: /root")), "{}", run.stderr);
    }
    end(&home, &server, &run);
}

/// One of them closes it; the other is told that it is closed.
#[test]
fn by_two_at_once() {
    let held = Gate::new();
    let (server, home, running) = family(&held);
    let both = [0, 1].map(|_| command(&home, &["close", "/root/m"]).spawn());
    let mut codes = both.map(|run| run.wait().code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 2]);
    held.open();
    let run = running.wait();
    run.assert_code(0);
    assert_whole(&home);
    assert_eq!(home.rollout("/root/m").count("edge"), 2, "opened and closed");
    end(&home, &server, &run);
}

#[test]
fn in_a_tree_that_nobody_drives() {
    let held = Gate::new();
    let (server, home, running) = family(&held);
    running.interrupt();
    running.wait().assert_code(130);
    held.open();
    let asked = server.requests().len();
    let run = command(&home, &["close", "/root/m"]).run_ok();
    assert!(run.stderr.contains("/root/m is closed, and with it 2 agents below"), "{}", run.stderr);
    assert_eq!(server.requests().len(), asked, "no model is asked");
    let agents = assert_whole(&home);
    let words: Vec<String> = unread(at(&agents, "/root")).into_iter().map(|(_, words)| words).collect();
    assert!(words.iter().any(|words| words.contains("short result")), "{words:?}");
    assert!(words.iter().any(|words| words.contains("a word from below")), "{words:?}");
    let before = at(&agents, "/root").mails().count();
    let twice = command(&home, &["close", "/root/m"]).run();
    twice.assert_code(2);
    assert!(twice.stderr.contains("no open agent at /root/m"), "{}", twice.stderr);
    command(&home, &["resume"]).run_ok();
    assert_eq!(at(&assert_whole(&home), "/root").mails().count(), before, "nothing comes twice");
    end(&home, &server, &run);
}

#[test]
fn of_the_root_ends_the_tree() {
    let held = Gate::new();
    let (server, home, running) = family(&held);
    let command_pid = pid(&home, "run.pid").unwrap();
    let run = command(&home, &["close", "/root"]).run_ok();
    assert!(run.stderr.contains("/root is closed, and with it 3 agents below"), "{}", run.stderr);
    let run = running.wait();
    run.assert_code(130);
    assert!(run.stderr.contains("closed by the user"), "{}", run.stderr);
    assert!(!run.stderr.contains("agent resume"), "{}", run.stderr);
    assert!(!lives(command_pid));
    held.open();
    assert_whole(&home);
    for words in [&["send", "/root", "x"][..], &["resume", "x"], &["close", "/root"], &["send", "/root/m", "x"]] {
        let run = command(&home, words).run();
        run.assert_code(2);
        assert!(run.stderr.contains("the tree is closed"), "{words:?}: {}", run.stderr);
    }
    for words in [&["resume"][..], &["resume", "--continue"], &["tree"], &["log"]] {
        command(&home, words).run_ok();
    }
    assert_eq!(standings(&home)[0], "/root closed interrupted");
    assert_whole(&home);
    end(&home, &server, &run);
}

/// An agent closes its child while that works, and gives the name to a new one.
#[test]
fn a_name_is_free_again_and_old_mail_does_not_reach_the_new_one() {
    let held = Gate::new();
    let hold = held.clone();
    let close = json!({"target": "a", "reason": "the wrong way"});
    let server = Play::new()
        .thinks("Lead", move |request| match request.replies() {
            0 => spawns(&[("a", "the first")]),
            1 => Reply::new().call("send_message", json!({"target": "a", "message": "for the old one"})),
            2 => Reply::new().call("close_agent", close.clone()),
            3 => Reply::new().call("spawn_agent", spawn("a", "the second")),
            _ if request.heard("second is done") => Reply::new().text("told"),
            _ => wait(),
        })
        .thinks("the first", move |_| Reply::new().text("never said").wait_for(&hold))
        .says("the second", [Reply::new().text("second is done")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    assert_eq!(run.stdout, "told\n");
    held.open();
    let second = &requests(&server, "the second")[0];
    assert!(!second.heard("for the old one") && notes(second).is_empty());
    let agents = assert_whole(&home);
    let both: Vec<&Counted> = agents.iter().filter(|agent| agent.path() == "/root/a").collect();
    assert_eq!([both[0].state.meta.incarnation, both[1].state.meta.incarnation], [1, 2]);
    assert_eq!(both[0].ends("the first"), [Outcome::Closed]);
    let told = notes(requests(&server, "Lead").last().unwrap());
    let of = |sign: &str| told.iter().filter(|note| note.contains(sign)).count();
    assert_eq!(of("outcome=\"closed\""), 1, "{told:?}");
    assert!(of("for the old one") <= 1);
    assert_eq!(tree(&home)["agents"].as_array().unwrap().len(), 3);
    let rows = standings(&home);
    assert_eq!(rows[1..], ["/root/a closed interrupted", "/root/a open completed"]);
    let log = command(&home, &["log", "/root/a"]).run_ok();
    assert!(log.stdout.contains("the second") && !log.stdout.contains("the first"), "{}", log.stdout);
    end(&home, &server, &run);
}
