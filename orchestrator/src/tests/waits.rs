//! `wait_agent` and `list_agents` in a tree that runs.

use std::sync::{Arc, Mutex};

use protocol::EventKind;
use serde_json::{Value, json};
use testkit::Gate;

use super::house::{House, event, path};
use super::player::{Asked, Step, say};

fn spawn(name: &str) -> Step {
    Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }))
}

fn wait(arguments: Value) -> Vec<Step> {
    vec![Step::Call("wait_agent", arguments)]
}

/// The answers of the waits that an agent made.
fn answers(house: &House, at: &str) -> Vec<Value> {
    let texts = house.player.last(at);
    texts
        .iter()
        .filter_map(|text| serde_json::from_str::<Value>(text).ok())
        .filter(|v| v.get("woke").is_some())
        .collect()
}

#[tokio::test]
async fn who_waits_gives_its_slot_to_those_it_waits_for() {
    let mut house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), spawn("b")],
        ("/root/a", 0) => vec![spawn("deep")],
        ("/root" | "/root/a", 1) => wait(json!({})),
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    pending.answer().await;
    tree.quiet().await;
    assert_eq!(answers(&house, "/root/a")[0]["woke"], "results");
    assert_eq!(house.agents(), 4);
    house.finish(tree).await;
}

#[tokio::test]
async fn a_wait_for_nobody_who_works_returns_at_once_and_says_how_they_stand() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root", 2) => wait(json!({ "targets": ["a"] })),
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    tree.send(&path("/root"), "again", true).await.unwrap().answer().await;
    let answers = answers(&house, "/root");
    // The result of its first task had been read with the words that asked for this wait.
    assert_eq!((&answers[0]["woke"], &answers[0]["timed_out"]), (&json!("settled"), &json!(false)));
    assert_eq!(answers[0]["agents"], json!([{ "agent_name": "/root/a", "agent_status": "completed" }]));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_wait_names_those_it_cannot_wait_for() {
    let house = House::new(|asked: &Asked| match asked.before {
        0 => [json!({ "targets": ["nobody"] }), json!({ "targets": ["/root"] }), json!({ "targets": ["a/../b"] })]
            .into_iter()
            .flat_map(wait)
            .collect(),
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    let texts = house.player.last("/root");
    assert!(texts[6].contains("/root/nobody") && texts[7].contains("itself"), "{texts:?}");
    assert!(!texts[8].contains("woke"), "{texts:?}");
    house.finish(tree).await;
}

#[tokio::test(start_paused = true)]
async fn a_time_out_of_range_is_clamped_and_said() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), Step::Wait(Gate::new(), at.clone())],
        ("/root", 1) => wait(json!({ "targets": ["a"], "timeout_ms": 5 })),
        ("/root", 2) => wait(json!({ "targets": ["a"], "timeout_ms": 0 })),
        ("/root/a", _) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    let before = tokio::time::Instant::now();
    tree.go().await;
    pending.answer().await;
    assert!(before.elapsed().as_secs() >= 2, "two waits of a second");
    for answer in answers(&house, "/root") {
        assert_eq!((&answer["woke"], &answer["timed_out"]), (&json!("timeout"), &json!(true)));
        assert_eq!(answer["note"], "timeout_ms was set to 1000");
    }
    go.open();
    house.finish(tree).await;
}

#[tokio::test]
async fn a_message_and_a_persons_words_wake_a_wait() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), Step::Wait(Gate::new(), at.clone())],
        ("/root", 1 | 2) => wait(json!({})),
        ("/root/a", 0) => vec![
            Step::Wait(at.clone(), until.clone()),
            Step::Call("send_message", json!({ "target": "/root", "message": "half of it" })),
        ],
        ("/root/a", 1) => vec![Step::Wait(Gate::new(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    let waits =
        |kind: &EventKind| matches!(kind, EventKind::AgentStatus { waiting_on: Some(protocol::WaitingOn::Agent), .. });
    event(&mut events, |event| waits(&event.kind)).await;
    tree.send(&path("/root"), "hurry", true).await.unwrap();
    event(&mut events, |event| waits(&event.kind)).await;
    go.open();
    tree.quiet().await;
    let woke: Vec<Value> = answers(&house, "/root").into_iter().map(|answer| answer["woke"].clone()).collect();
    // The message comes before the result, and wakes at once.
    assert_eq!(woke, ["input", "messages"]);
    house.finish(tree).await;
}

#[tokio::test]
async fn an_interrupted_wait_ends_without_a_slot() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root", 1) => wait(json!({})),
        ("/root/a", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    reached.opened().await;
    let root = tree.at(&path("/root")).unwrap();
    let stop = runtime::Stop {
        outcome: protocol::Outcome::Interrupted,
        reason: "enough".to_owned(),
        goes_on: false,
        only: Vec::new(),
    };
    assert!(crate::life::interrupt(&root, stop).await);
    assert_eq!(pending.answer().await.end.outcome, protocol::Outcome::Interrupted);
    assert!(!root.is_busy());
    assert_eq!(tree.0.slots.in_use(), (1, 0), "the child's");
    // The tool was not dropped: it said itself why it woke.
    let texts = house.records("/root");
    let outputs =
        texts.iter().filter_map(|r| if let rollout::Record::Item(i) = r { Some(i.item.text()) } else { None });
    assert!(outputs.into_iter().any(|text| text.contains("\"woke\":\"interrupted\"")));
    go.open();
    house.finish(tree).await;
}

#[tokio::test]
async fn the_list_has_everybody_asleep_or_not() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), spawn("b")],
        ("/root", 2) => vec![Step::Call("list_agents", json!({}))],
        ("/root", 4) => vec![Step::Call("list_agents", json!({ "path_prefix": "b" }))],
        _ => say("done"),
    });
    house.options.limits.max_resident = 1;
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    for words in ["list", "below"] {
        tree.send(&path("/root"), words, true).await.unwrap().answer().await;
        tree.quiet().await;
        let texts = house.player.last("/root");
        let list: Value = texts.iter().rev().find_map(|text| serde_json::from_str(text).ok()).unwrap();
        seen.lock().unwrap().push(list["agents"].as_array().unwrap().clone());
    }
    let seen = seen.lock().unwrap().clone();
    let names = |n: usize| seen[n].iter().map(|row| row["agent_name"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!((names(0), names(1)), (vec!["/root", "/root/a", "/root/b"], vec!["/root/b"]));
    assert!(["running", "waiting"].contains(&seen[0][0]["agent_status"].as_str().unwrap()));
    assert!(seen[0].iter().skip(1).all(|row| row["agent_status"] == "completed"));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_ring_of_waits_is_told_at_once() {
    let hour = 3_600_000;
    let [all_there, open] = [Gate::new(), Gate::new()];
    open.open();
    let once_all_are_there =
        move |gates: (&Gate, &Gate), step: Step| vec![Step::Wait(gates.0.clone(), gates.1.clone()), step];
    let ring = move |targets: Value| Step::Call("wait_agent", json!({ "targets": targets, "timeout_ms": hour }));
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("x"), spawn("y"), spawn("z")],
        ("/root", 1) => once_all_are_there((&all_there, &open), ring(json!([]))),
        ("/root/x", 0) => once_all_are_there((&Gate::new(), &all_there), ring(json!(["/root/y"]))),
        ("/root/y", 0) => once_all_are_there((&Gate::new(), &all_there), ring(json!(["/root/x"]))),
        // Nobody in particular: neither those above nor itself count.
        ("/root/z", 0) => once_all_are_there((&Gate::new(), &all_there), ring(json!([]))),
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    // Not a measure of speed: the waits are for an hour, and a test that hangs tells nobody why.
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), async {
        assert_eq!(pending.answer().await.end.outcome, protocol::Outcome::Completed);
        tree.quiet().await;
    });
    ended.await.expect("nobody sits out the hour");
    for path in ["/root/x", "/root/y"] {
        let told = &answers(&house, path)[0];
        assert_eq!(told["woke"], "settled", "{told}");
    }
    house.finish(tree).await;
}

#[tokio::test]
async fn other_calls_beside_a_wait_do_not_keep_its_slot() {
    let hour = 3_600_000;
    let followup = || Step::Call("followup_task", json!({ "target": "a", "message": "more" }));
    let wait_for = move |who: &str| Step::Call("wait_agent", json!({ "targets": [who], "timeout_ms": hour }));
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), spawn("b")],
        // A call that must run alone before the wait, one behind it, and two waits side by side.
        ("/root", 1) => vec![followup(), wait_for("a"), followup()],
        ("/root", 2) => vec![wait_for("a"), wait_for("b")],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    let ended = tokio::time::timeout(std::time::Duration::from_mins(1), async {
        assert_eq!(pending.answer().await.end.outcome, protocol::Outcome::Completed);
        tree.quiet().await;
    });
    ended.await.expect("nobody sits out the hour");
    house.finish(tree).await;
}
