//! Owners that go while others wait: in good order, killed, held, and two that want to be the next.

use protocol::Outcome;
use testkit::{Gate, Home, Reply, Request, Running, Server};

use crate::count::{assert_whole, at};
use crate::play::{command, end, exec, home};

/// How often a race is run: each run orders the two a little differently.
const RACES: usize = 10;

fn echo(request: &Request) -> Reply {
    Reply::new().text(format!("heard: {}", request.told()))
}

/// Words to the root while `owner` comes to its end; whoever does them, they are done once.
#[test]
fn an_owner_that_ends_while_others_speak_loses_nothing() {
    let server = Server::start(echo);
    let home = home(&server);
    command(&home, &["run", "Begin"]).run_ok();
    for n in 0..RACES {
        let words = ["one", "two"].map(|who| format!("{who} {n}."));
        let both = words.each_ref().map(|words| command(&home, &["send", "/root", words]).spawn());
        for (words, run) in words.iter().zip(both.map(Running::wait)) {
            run.assert_code(0);
            // Words that come while the others are being answered join their turn, and then its answer is for both.
            assert!(run.stdout.starts_with("heard: ") && run.stdout.ends_with(&format!("{n}.\n")), "{words}: {run:?}");
            end(&home, &server, &run);
        }
    }
    let agents = assert_whole(&home);
    let root = at(&agents, "/root");
    for n in 0..RACES {
        for words in ["one", "two"].map(|who| format!("{who} {n}.")) {
            assert_eq!((root.accepted(&words), root.ends(&words)), (1, vec![Outcome::Completed]), "{words}");
        }
    }
}

/// A run with a step that is held at `at_step`, and what it takes to end it.
fn held(at_step: usize) -> (Server, Home, Running, Gate) {
    let gate = Gate::new();
    let hold = gate.clone();
    let server = Server::start(move |request: &Request| match request.replies() {
        n if n == at_step => exec("true").wait_for(&hold),
        n if n < at_step => exec("true"),
        _ => echo(request),
    });
    let home = home(&server);
    let owner = command(&home, &["run", "Own"]).spawn();
    server.wait_until(|seen| seen.len() == at_step + 1);
    (server, home, owner, gate)
}

fn steer(home: &Home, words: &str) -> Running {
    let sent = command(home, &["send", "/root", words]).spawn();
    sent.until_stderr("is working and takes this in");
    sent
}

#[test]
fn who_waits_takes_over_when_the_owner_is_killed() {
    let (server, home, owner, gate) = held(0);
    let sent = steer(&home, "in spite of it");
    owner.kill();
    assert_eq!(owner.wait().code, 137);
    gate.open();
    let run = sent.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "heard: in spite of it\n");
    assert!(run.stderr.contains("let go of it; taking it over"), "{}", run.stderr);
    let agents = assert_whole(&home);
    let root = at(&agents, "/root");
    assert_eq!((root.ends("Own"), root.ends("in spite of it")), (vec![Outcome::Lost], vec![Outcome::Completed]));
    assert_eq!(root.accepted("in spite of it"), 1);
    end(&home, &server, &run);
}

/// The words were in the turn that the kill cut off: they go on under a name that follows from their own, and whoever
/// gave them waits for that.
#[test]
fn what_a_kill_cut_off_goes_on_for_those_who_wait() {
    let [first, second] = [Gate::new(), Gate::new()];
    let gates = [first.clone(), second.clone()];
    let server = Server::start(move |request: &Request| match request.replies() {
        n @ (0 | 1) => exec("true").wait_for(&gates[n]),
        _ if request.heard("number one") && request.heard("number two") => Reply::new().text("both are done"),
        _ => panic!("words are lost: {request:?}"),
    });
    let home = home(&server);
    let owner = command(&home, &["run", "Own"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    let sent = ["number one", "number two"].map(|words| steer(&home, words));
    first.open();
    server.wait_until(|seen| seen.last().is_some_and(|request| request.heard("number two")));
    owner.kill();
    assert_eq!(owner.wait().code, 137);
    second.open();
    for run in sent.map(Running::wait) {
        run.assert_code(0);
        assert_eq!(run.stdout, "both are done\n", "{}", run.stderr);
        end(&home, &server, &run);
    }
    let agents = assert_whole(&home);
    for words in ["number one", "number two"] {
        let ends = at(&agents, "/root").ends(words);
        assert_eq!(ends, [Outcome::Lost, Outcome::Completed], "{words}");
    }
}

#[test]
fn json_goes_on_when_another_process_takes_over() {
    let (server, home, owner, gate) = held(0);
    let sent = command(&home, &["send", "--json", "/root", "in JSON"]).spawn();
    sent.until_stderr("is working and takes this in");
    owner.kill();
    assert_eq!(owner.wait().code, 137);
    gate.open();
    let run = sent.wait();
    run.assert_code(0);
    let events = crate::outside::events(&run);
    assert_eq!(events.last().unwrap()["answer"], "heard: in JSON");
    end(&home, &server, &run);
}

#[test]
fn ctrl_c_at_the_owner_leaves_words_to_whoever_waits_for_them() {
    let (server, home, owner, gate) = held(0);
    let sent = steer(&home, "all the same");
    owner.interrupt();
    owner.wait().assert_code(130);
    gate.open();
    let run = sent.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "heard: all the same\n");
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root").ends("all the same"), [Outcome::Completed]);
    end(&home, &server, &run);
}

#[test]
fn an_owner_that_does_not_answer_is_named_and_may_come_back() {
    let (server, home, owner, gate) = held(0);
    owner.hold();
    let asked: [&[&str]; 5] =
        [&["send", "/root", "x"], &["resume", "x"], &["resume"], &["interrupt", "/root"], &["close", "/root"]];
    // Looking does without it.
    let looked = [&["tree"][..], &["log"]].map(|words| command(&home, words).spawn());
    for run in asked.map(|words| command(&home, words).spawn()).map(Running::wait) {
        run.assert_code(5);
        assert_eq!(run.stdout, "");
        let pid = owner.pid();
        for says in [&format!("process {pid} drives this tree"), &format!("`kill {pid}`"), "does not answer"] {
            assert!(run.stderr.contains(says), "`{says}` is not in {}", run.stderr);
        }
    }
    for run in looked.map(Running::wait) {
        run.assert_code(0);
        assert!(run.stdout.contains("Own"), "{}", run.stdout);
    }
    owner.release();
    let sent = steer(&home, "now then");
    gate.open();
    let sent = sent.wait();
    assert_eq!(sent.stdout, "heard: now then\n", "{}", sent.stderr);
    let run = owner.wait();
    assert_eq!(run.stdout, "heard: now then\n");
    assert_whole(&home);
    end(&home, &server, &run);
}

/// Nobody drives the tree any more, and two want to at the same moment.
#[test]
fn of_two_who_take_over_at_once_one_owns_and_the_other_speaks_to_it() {
    for n in 0..RACES {
        let (server, home, owner, gate) = held(1);
        let words = ["one", "two"].map(|who| format!("{who} {n}."));
        owner.kill();
        let both = words.each_ref().map(|words| command(&home, &["send", "/root", words]).spawn());
        assert_eq!(owner.wait().code, 137);
        gate.open();
        for run in both.map(Running::wait) {
            run.assert_code(0);
            assert!(run.stdout.starts_with("heard: "), "{run:?}");
            end(&home, &server, &run);
        }
        let agents = assert_whole(&home);
        let root = at(&agents, "/root");
        for words in &words {
            assert_eq!((root.accepted(words), root.ends(words)), (1, vec![Outcome::Completed]), "{words}");
        }
        assert_eq!(root.ends("Own"), [Outcome::Lost]);
    }
}
