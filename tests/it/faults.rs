//! Providers that fail: what is tried again, what is not, what is said, and that nothing is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Ended, Home, Reply, Request, Run, Server};

use crate::play::{Play, agent, command, end, exec, home, parent, requests, spawns, standings};

/// A server that first answers with `faults`, then says `fine`.
fn fails_first(faults: impl IntoIterator<Item = Reply>) -> Server {
    let faults: Vec<Reply> = faults.into_iter().collect();
    let count = AtomicUsize::new(0);
    Server::start(move |_: &Request| {
        let at = count.fetch_add(1, Ordering::SeqCst);
        faults.get(at).cloned().unwrap_or_else(|| Reply::new().text("fine"))
    })
}

/// Runs one task against `faults`, which the command gets over: the run, and how many requests it took.
#[track_caller]
fn overcomes(faults: impl IntoIterator<Item = Reply>) -> (Run, Vec<Request>) {
    let server = fails_first(faults);
    let home = home(&server);
    let run = command(&home, &["run", "Try"]).run_ok();
    assert_eq!(run.stdout, "fine\n");
    end(&home, &server, &run);
    let requests = server.requests();
    let first = requests[0].raw().to_vec();
    assert!(requests.iter().all(|request| request.raw() == first), "what is tried again is the same, to the byte");
    (run, requests)
}

/// After a run that failed, the tree is there and goes on once the server is well.
#[track_caller]
fn goes_on(home: &Home, server: &Server, run: &Run) {
    let id = home.rollout("/root").tree().to_owned();
    assert!(run.stderr.contains(&format!("the tree is kept: agent resume --tree {id}")), "{}", run.stderr);
    assert_eq!(run.stdout, "", "there is no answer");
    server.set_brain(|request: &Request| Reply::new().text(format!("well again: {}", request.task())));
    let again = command(home, &["resume", "--tree", &id, "go on"]).run_ok();
    assert_eq!(again.stdout, "well again: Try\n");
    end(home, server, &again);
}

#[test]
fn errors_of_the_server_are_tried_again() {
    let (run, requests) = overcomes([Reply::new().status(500), Reply::new().status(503)]);
    assert_eq!(requests.len(), 3);
    assert!(run.stderr.contains("mock answered 500: scripted status 500; trying again in 0."), "{}", run.stderr);
}

#[test]
fn a_server_that_asks_to_wait_is_given_the_time() {
    let (run, requests) = overcomes([Reply::new().status_with_headers(429, [("retry-after-ms", "700")])]);
    assert_eq!(requests.len(), 2);
    let waited = requests[1].arrived() - requests[0].arrived();
    assert!(waited >= Duration::from_millis(700), "asked for 700 ms, got {waited:?}");
    assert!(run.stderr.contains("mock answered 429"), "{}", run.stderr);
}

#[test]
fn streams_that_break_are_tried_again() {
    for broken in [
        Reply::new().text("half").cut_after(3),
        Reply::new().text("half").reset_after(2),
        Reply::new().text("half").cut_inside_event(2),
        Reply::new().text("half").cut_after(0),
        Reply::new().no_completed(),
    ] {
        let (run, requests) = overcomes([broken.clone()]);
        assert_eq!(requests.len(), 2, "{broken:?}: {}", run.stderr);
    }
}

#[test]
fn garbage_is_tried_again() {
    let (run, requests) = overcomes([Reply::new().garbage(), Reply::new().body("<html><p>Bad gateway</p></html>")]);
    assert_eq!(requests.len(), 3);
    assert!(run.stderr.contains("not the Responses protocol"), "{}", run.stderr);
}

#[test]
fn what_was_said_before_the_break_is_not_lost() {
    let server = fails_first([Reply::new().text("the first half").call("teleport", json!({})).no_completed()]);
    let home = home(&server);
    let run = command(&home, &["run", "Try"]).run_ok();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("the first half"));
    assert_eq!(requests[1].outputs().len(), 1);
    end(&home, &server, &run);
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    let server = fails_first([]);
    let (home, address) = (home(&server), server.address());
    drop(server);
    let running = command(&home, &["run", "Try"]).spawn();
    running.until_stderr("trying again in");
    let server = Server::start_at(address, |_: &Request| Reply::new().text("fine"));
    let run = running.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "fine\n");
    assert!(run.stderr.contains("nobody answers for mock at http://127.0.0.1:"), "{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn a_key_that_is_refused_ends_the_run_and_is_named() {
    let server = fails_first([Reply::new().status(401).body(r#"{"error":{"message":"no such key"}}"#)]);
    let home = home(&server).set("providers.mock.api_key_env", "MOCK_KEY");
    let run = command(&home, &["run", "Try"]).run();
    run.assert_code(3);
    assert!(run.stderr.contains("export MOCK_KEY=…"), "{}", run.stderr);
    assert!(server.requests().is_empty(), "without a key nothing is asked");
    assert!(home.rollouts().is_empty(), "and no tree is made");
    let run = agent(&home).args(["run", "Try"]).env("MOCK_KEY", "sk-secret").run();
    run.assert_code(3);
    assert!(run.stderr.contains("error: mock answered 401: no such key\n"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: check the key in MOCK_KEY"), "{}", run.stderr);
    assert!(!run.stderr.contains("sk-secret"));
    assert_eq!(server.requests().len(), 1, "a refusal is not tried again");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-secret"));
    assert!(!home.rollout("/root").text().contains("sk-secret"));
    let id = home.rollout("/root").tree().to_owned();
    let again = agent(&home).args(["resume", "--tree", &id, "go on"]).env("MOCK_KEY", "sk-better").run_ok();
    assert_eq!(again.stdout, "fine\n");
    end(&home, &server, &again);
}

#[test]
fn a_conversation_that_is_too_long_for_the_server_ends_clearly() {
    let body =
        json!({"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}});
    let server = fails_first([Reply::new().status(400).body(body.to_string())]);
    let home = home(&server);
    let run = command(&home, &["run", "Try"]).run();
    run.assert_code(1);
    assert!(run.stderr.contains("error: mock answered 400: Your input exceeds the context window"), "{}", run.stderr);
    assert!(run.stderr.contains("hint: give the rest of the task to a new agent"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 1, "it is not tried again");
    goes_on(&home, &server, &run);
}

#[test]
fn a_window_that_is_full_ends_the_task_before_the_request() {
    // The smallest window that a configuration may state is 1,024 tokens.
    let server = fails_first([exec("true").usage(2_000, 0, 10)]);
    let home = home(&server).set("models.mock/model.window", 1_024);
    let run = command(&home, &["run", "Try"]).run();
    run.assert_code(1);
    assert_eq!(server.requests().len(), 1);
    let text = "the conversation has 2010 tokens and fills the window of mock/model (1024 tokens)";
    assert!(run.stderr.contains(text), "{}", run.stderr);
    assert!(run.stderr.contains("hint: give the rest of the task to a new agent"), "{}", run.stderr);
    // It is as full the next day; only a larger window, or another agent, goes on.
    let again = command(&home, &["resume", "Try"]).run();
    again.assert_code(1);
    assert!(again.stderr.contains(text), "{}", again.stderr);
    assert_eq!(server.requests().len(), 1);
    let home = home.set("models.mock/model.window", 100_000);
    goes_on(&home, &server, &run);
}

#[test]
fn a_server_that_falls_silent_is_left() {
    for (silent, words) in [
        (Reply::new().text("one").stall_after(2), "mock sent nothing for 1 s; trying again"),
        (Reply::new().stall_before_headers(), "mock did not begin to answer within 1 s; trying again"),
    ] {
        let server = fails_first([silent]);
        let home = home(&server).set("providers.mock.idle_timeout_ms", 1_000);
        let begun = Instant::now();
        let run = command(&home, &["run", "Try"]).run_ok();
        assert!(begun.elapsed() >= Duration::from_secs(1));
        assert!(run.stderr.contains(words), "{}", run.stderr);
        server.wait_until(|seen| seen[0].ended().is_some());
        assert_eq!(server.requests()[0].ended().unwrap().0, Ended::ClientLeft);
        end(&home, &server, &run);
    }
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    let (_, requests) = overcomes([Reply::new().failed("server_error", "we fell over")]);
    assert_eq!(requests.len(), 2);
    let server = fails_first([Reply::new().failed("insufficient_quota", "you have no money left")]);
    let home = home(&server);
    let run = command(&home, &["run", "Try"]).run();
    run.assert_code(1);
    assert!(run.stderr.contains("you have no money left") && run.stderr.contains("billing"), "{}", run.stderr);
    assert_eq!(server.requests().len(), 1);
    goes_on(&home, &server, &run);
}

#[test]
fn a_child_whose_provider_fails_costs_nobody_else_anything() {
    let server = Play::new()
        .thinks(
            "Lead",
            parent(spawns(&[("a", "fail"), ("b", "work")]), &["from=\"/root/a\"", "b is well"], "one failed"),
        )
        .says("fail", [Reply::new().status(400).body(r#"{"error":{"message":"no such model"}}"#)])
        .says("work", [Reply::new().text("b is well")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    assert_eq!(run.stdout, "one failed\n");
    assert_eq!(standings(&home), ["/root open completed", "/root/a open errored", "/root/b open completed"]);
    server.set_brain(|_: &Request| Reply::new().text("well again"));
    let again = command(&home, &["send", "/root/a", "once more"]).run_ok();
    assert_eq!(again.stdout, "well again\n");
    assert_eq!(requests(&server, "fail").len(), 2);
    end(&home, &server, &again);
}
