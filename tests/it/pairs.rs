//! Two commands at once on a tree that nobody drives: one drives it, the other speaks to it or comes after it.

use testkit::{Home, Reply, Request, Run, Server};

use crate::count::{assert_whole, at};
use crate::play::{command, end, home, spawns, wait};

const COMMANDS: [&[&str]; 9] = [
    &["send", "/root", "say this"],
    &["send", "/root/a", "say this"],
    &["send", "--queue", "/root", "for later"],
    &["resume"],
    &["resume", "say this"],
    &["resume", "--continue"],
    &["interrupt", "/root/a"],
    &["close", "/root/a"],
    &["tree", "--json"],
];

fn brain(request: &Request) -> Reply {
    match (request.task().as_str(), request.replies()) {
        ("Lead", 0) => spawns(&[("a", "help")]),
        ("Lead", _) if !request.heard("a: help") => wait(),
        ("Lead", _) => Reply::new().text(format!("root: {}", request.told())),
        _ => Reply::new().text(format!("a: {}", request.told())),
    }
}

/// What may come of a command when the agent that it speaks to may be interrupted or closed meanwhile.
fn good(words: &[&str], other: &[&str], run: &Run) -> bool {
    let disturbed = words.contains(&"/root/a") && (other[0] == "close" || other[0] == "interrupt");
    match (run.code, words[0]) {
        // Words that were left a moment later are read by the same turn, and then they are the last.
        (0, "send" | "resume") if words.last() == Some(&"say this") => {
            let last = ["say this\n", "for later\n"].into_iter().find(|last| run.stdout.ends_with(last));
            last == Some("say this\n") || (last.is_some() && other.last() == Some(&"for later"))
        }
        (0, _) => true,
        // Closed before it was reached, or while it worked; interrupted while it worked.
        (2, _) => disturbed && run.stderr.contains("no open agent at /root/a"),
        (130, "send") => disturbed && (run.stderr.contains("closed by") || run.stderr.contains("interrupted by")),
        _ => false,
    }
}

fn pair(base: &Home, first: &[&str], second: &[&str]) {
    let server = Server::start(brain);
    let home = base.copy().provider("mock", &server);
    let both = [first, second].map(|words| command(&home, words).arg("--last").spawn());
    let [one, two] = both.map(testkit::Running::wait);
    for (words, other, run) in [(first, second, &one), (second, first, &two)] {
        assert!(good(words, other, run), "{words:?} beside {other:?}: {run:?}");
    }
    let agents = assert_whole(&home);
    for words in ["say this", "for later"] {
        let said = |target: &str| {
            let to = |words: &&[&str]| words.contains(&target) || (words[0] == "resume" && target == "/root");
            [first, second].iter().filter(|command| command.last() == Some(&words) && to(command)).count()
        };
        assert_eq!(at(&agents, "/root").accepted(words), said("/root"), "{first:?} beside {second:?}");
        assert!(at(&agents, "/root/a").accepted(words) <= said("/root/a"));
    }
    if !server.requests().is_empty() {
        end(&home, &server, &two);
    }
}

/// Every pair, split over two tests so that they run side by side.
fn pairs(shard: usize) {
    let server = Server::start(brain);
    let base = home(&server);
    command(&base, &["run", "Lead"]).run_ok();
    let all =
        COMMANDS.iter().enumerate().flat_map(|(n, first)| COMMANDS[n..].iter().map(move |second| (first, second)));
    for (first, second) in all.skip(shard).step_by(2) {
        pair(&base, first, second);
    }
}

#[test]
fn every_pair_of_commands_1_of_2() {
    pairs(0);
}

#[test]
fn every_pair_of_commands_2_of_2() {
    pairs(1);
}
