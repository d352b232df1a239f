//! `--json`: one object a line on stdout, and nothing else there.

use serde_json::Value;
use testkit::{Reply, Run};

use crate::play::{Play, command, end, home, parent, spawns};

/// The events of a run, after the checks that hold for every run.
#[track_caller]
pub(crate) fn events(run: &Run) -> Vec<Value> {
    let events = run.json_lines();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<u64>>(), "from 1, without gaps");
    for event in &events {
        for key in ["time", "tree", "path", "thread", "type"] {
            assert!(event[key].is_string(), "`{key}` is missing: {event}");
        }
        let time = event["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".", "not RFC 3339 with ms: {time}");
    }
    assert_eq!(events[0]["type"], "tree.started");
    let finished = events.iter().filter(|event| event["type"] == "tree.finished").count();
    assert_eq!((finished, &events.last().unwrap()["type"]), (1, &"tree.finished".into()));
    events
}

#[test]
fn a_run_tells_all_that_happens() {
    let server = Play::new()
        .thinks("Tell", parent(spawns(&[("a", "task a")]), &["told"], "the answer"))
        .says("task a", [Reply::new().text("told").usage(100, 40, 7)])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "--json", "Tell"]).run_ok();
    let events = events(&run);
    let root = home.rollout("/root");
    assert!(events.iter().all(|event| event["tree"] == root.tree()));
    let kinds = |path: &str| -> Vec<&str> {
        let of = events.iter().filter(|event| event["path"] == path && event["type"] != "agent.status");
        of.map(|event| event["type"].as_str().unwrap()).collect()
    };
    assert_eq!(
        kinds("/root/a"),
        [
            "agent.spawned",
            "turn.started",
            "item.completed",
            "item.completed",
            "item.completed",
            "mail.delivered",
            "item.completed",
            "turn.completed"
        ]
    );
    let child = events.iter().find(|event| event["type"] == "turn.completed" && event["path"] == "/root/a").unwrap();
    assert_eq!(child["text"], "told");
    assert_eq!((&child["usage"]["input"], &child["usage"]["cached_input"]), (&100.into(), &40.into()));
    let finished = events.last().unwrap();
    assert_eq!((&finished["outcome"], &finished["answer"]), (&"completed".into(), &"the answer".into()));
    assert_eq!(finished["unread_results"], Value::Array(Vec::new()));
    let ended = events.iter().filter(|event| event["type"] == "turn.completed");
    let sum: u64 = ended.map(|event| event["usage"]["input"].as_u64().unwrap()).sum();
    assert_eq!(finished["usage"]["input"], sum, "the whole tree's");
    assert!(!run.stderr.contains("\"seq\""), "events are not on stderr");
    end(&home, &server, &run);
}

#[test]
fn a_task_that_fails_ends_the_events_too() {
    let server = Play::new().says("Fail", [Reply::new().status(400)]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "--json", "Fail"]).run();
    run.assert_code(1);
    let events = events(&run);
    let finished = events.last().unwrap();
    assert_eq!((&finished["outcome"], &finished["answer"]), (&"errored".into(), &Value::Null));
    end(&home, &server, &run);
}

#[test]
fn every_command_keeps_stdout_to_json() {
    let server = Play::new().says("One", [Reply::new().text("two"), Reply::new().text("three")]).serve();
    let home = home(&server);
    let run = command(&home, &["run", "One"]).run_ok();
    assert_eq!(run.stdout, "two\n");
    for words in
        [&["resume", "--json"][..], &["tree", "--json"], &["log", "--json"], &["resume", "--continue", "--json"]]
    {
        let run = command(&home, words).run_ok();
        // It fails the test when a line is not JSON.
        let lines = run.json_lines();
        assert!(lines.iter().all(Value::is_object), "{words:?}: {}", run.stdout);
    }
    let run = command(&home, &["resume", "--json", "One more"]).run_ok();
    assert_eq!(events(&run)[0]["resumed"], true);
    assert_eq!(run.json_lines().last().unwrap()["answer"], "three");
    end(&home, &server, &run);
}

#[test]
fn results_that_are_sent_late_leave_no_gap() {
    let server = Play::new()
        .thinks("Late", parent(spawns(&[("a", "task a")]), &["result of a"], "the answer"))
        .says("task a", [Reply::new().text("result of a")])
        .serve();
    let home = home(&server);
    command(&home, &["run", "Late"]).run_ok();
    // As a kill leaves it between the end of the child's task and the root's acceptance of the result.
    let child = home.rollout("/root/a");
    let text = child.text();
    let kept: String =
        text.lines().filter(|line| !line.contains("\"type\":\"sent\"")).map(|line| format!("{line}\n")).collect();
    assert_ne!(kept, text);
    std::fs::write(child.file(), kept).unwrap();
    let root = home.rollout("/root");
    let text = root.text();
    let at = text.lines().position(|line| line.contains("\"type\":\"mail\"") && line.contains("result of a")).unwrap();
    let kept: String = text.lines().take(at).map(|line| format!("{line}\n")).collect();
    std::fs::write(root.file(), kept).unwrap();
    let run = command(&home, &["resume", "--continue", "--json"]).run_ok();
    let numbers: Vec<u64> = run.json_lines().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<u64>>(), "from 1, without gaps");
    assert_eq!(home.rollout("/root").text().matches("\"kind\":\"result\"").count(), 1, "the result is there, once");
}
