//! Agents of whose work nothing comes: who is told, once, and what the tree shows.
//!
//! Nobody watches here but the test: it looks as if it were five minutes later.

use std::sync::Arc;
use std::time::Duration;

use protocol::{EventKind, Status, TreeEvent, WaitingOn, Waits};
use serde_json::{Value, json};
use testkit::Gate;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::house::{House, event, path, so_far};
use super::player::{Asked, Step, say};
use crate::Tree;

const AFTER: Duration = Duration::from_mins(5);

fn look(tree: &Tree) {
    tree.look(Instant::now() + AFTER, AFTER);
}

fn spawn(name: &str) -> Step {
    Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }))
}

/// A wait that only something that happens ends.
fn wait() -> Vec<Step> {
    vec![Step::Call("wait_agent", json!({ "timeout_ms": 3_600_000 }))]
}

/// Waits until the agent at `at` waits for others.
async fn waits(events: &mut UnboundedReceiver<Arc<TreeEvent>>, at: &str) {
    let waits = |event: &TreeEvent| {
        event.path.as_str() == at
            && matches!(event.kind, EventKind::AgentStatus { waiting_on: Some(WaitingOn::Agent), .. })
    };
    event(events, waits).await;
}

/// The answers of the waits that an agent made.
fn answers(house: &House, at: &str) -> Vec<Value> {
    let texts = house.player.last(at);
    let texts = texts.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    texts.filter(|value| value.get("woke").is_some()).collect()
}

fn woke(house: &House, at: &str) -> Vec<String> {
    answers(house, at).iter().map(|answer| answer["woke"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_stalled_child_wakes_the_wait_and_the_same_stall_never_again() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root", 1 | 2) => wait(),
        ("/root/a", _) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    let (mut events, mut all) = (tree.events(), tree.events());
    tree.go().await;
    reached.opened().await;
    waits(&mut events, "/root").await;
    look(&tree);
    waits(&mut events, "/root").await;
    look(&tree);
    go.open();
    pending.answer().await;
    tree.quiet().await;
    assert_eq!(woke(&house, "/root"), ["stalled", "results"]);
    let told = &answers(&house, "/root")[0];
    let child = &told["agents"][0];
    assert_eq!((&child["agent_name"], &child["agent_status"]), (&json!("/root/a"), &json!("running")));
    assert!(child["stalled_ms"].is_u64() && told["note"].as_str().unwrap().contains("interrupt_agent"), "{told}");
    // The root waited for somebody all the time: it was not stalled.
    let all = so_far(&mut all);
    let stalls: Vec<_> = all.iter().filter(|(_, kind)| matches!(kind, EventKind::AgentStalled { .. })).collect();
    let [(stalled, EventKind::AgentStalled { stalled_ms, .. })] = stalls[..] else { panic!("{stalls:?}") };
    assert!(stalled == "/root/a" && *stalled_ms >= 299_000, "{stalls:?}");
    house.finish(tree).await;
}

#[tokio::test]
async fn after_progress_it_may_stall_again() {
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root", 1..4) => wait(),
        ("/root/a", _) => vec![
            Step::Wait(held[0].clone(), held[1].clone()),
            Step::Say("half of it".to_owned()),
            Step::Wait(held[2].clone(), held[3].clone()),
            Step::Say("done".to_owned()),
        ],
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    let stalled = || tree.listing().agents[1].stalled_ms.is_some();
    waits(&mut events, "/root").await;
    for n in [0, 2] {
        gates[n].opened().await;
        assert!(!stalled());
        look(&tree);
        // It was told, and waits again.
        waits(&mut events, "/root").await;
        assert!(stalled());
        gates[n + 1].open();
    }
    pending.answer().await;
    tree.quiet().await;
    assert_eq!(woke(&house, "/root"), ["stalled", "stalled", "results"]);
    house.finish(tree).await;
}

#[tokio::test]
async fn the_tree_shows_what_everybody_waits_for() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), spawn("b")],
        ("/root", 1) => vec![Step::Call("wait_agent", json!({ "targets": ["b", "a"] }))],
        ("/root/a" | "/root/b", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, _pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    reached.opened().await;
    let rows = tree.listing().agents;
    let mut named = match &rows[0].waits {
        Some(Waits::Agents { paths }) => paths.clone(),
        other => panic!("{other:?}"),
    };
    named.sort();
    assert_eq!((named, rows[0].waiting_on), (vec![path("a"), path("b")], Some(WaitingOn::Agent)));
    // Whoever came first works, the other one queues.
    let (works, queues) = if rows[1].status == Status::Queued { (2, 1) } else { (1, 2) };
    assert_eq!((&rows[works].waits, rows[works].status), (&Some(Waits::Model), Status::Running));
    assert_eq!((&rows[queues].waits, rows[queues].status), (&Some(Waits::Slot { position: 1 }), Status::Queued));
    look(&tree);
    let stalled = event(&mut events, |event| matches!(event.kind, EventKind::AgentStalled { .. })).await;
    let EventKind::AgentStalled { status, waits, .. } = &stalled.kind else { panic!("{stalled:?}") };
    assert_eq!((&stalled.path, *status, waits), (&rows[works].path, Status::Running, &Some(Waits::Model)));
    // Whoever queues is not stalled, however long it takes.
    let stalls: Vec<bool> = tree.listing().agents.iter().map(|row| row.stalled_ms.is_some()).collect();
    assert_eq!(stalls, [false, works == 1, works == 2]);
    go.open();
    tree.quiet().await;
    assert!(tree.listing().agents.iter().all(|row| row.waits.is_none() && row.stalled_ms.is_none()));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_grandchild_is_told_of_to_its_parent_and_to_nobody_above_who_named_nobody() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root/a", 0) => vec![spawn("deep")],
        ("/root" | "/root/a", 1) => wait(),
        ("/root/a", 2) => {
            until.open();
            wait()
        }
        ("/root/a/deep", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    let (mut events, mut others) = (tree.events(), tree.events());
    tree.go().await;
    reached.opened().await;
    waits(&mut events, "/root").await;
    waits(&mut others, "/root/a").await;
    look(&tree);
    pending.answer().await;
    tree.quiet().await;
    assert_eq!(
        (woke(&house, "/root/a"), woke(&house, "/root")),
        (vec!["stalled".into(), "results".into()], vec!["results".into()])
    );
    go.open();
    house.finish(tree).await;
}

#[tokio::test]
async fn who_cannot_be_loaded_is_told_of_with_the_reason() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a")],
        ("/root", 1) => vec![spawn("b")],
        ("/root", 2) => vec![Step::Call("wait_agent", json!({ "targets": ["b"], "timeout_ms": 3_600_000 }))],
        ("/root/a", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    reached.opened().await;
    let b = tree.at(&path("b")).unwrap();
    let file = house.store.file(b.meta.id).unwrap();
    std::fs::remove_file(&file).unwrap();
    go.open();
    pending.answer().await;
    tree.quiet().await;
    let told = &answers(&house, "/root")[0];
    let note = told["agents"][0]["note"].as_str().unwrap_or_default();
    assert!(note.starts_with("its task is not begun: ") && note.contains("close_agent"), "{told}");
    assert_eq!(b.facts().status, Status::Errored);
    // Whoever gave the task reads it also without waiting, once however often it is tried.
    tree.wake(&b).await;
    tree.quiet().await;
    let root = tree.at(&path("/root")).unwrap();
    tree.send(&path("/root"), "and?", true).await.unwrap().answer().await;
    tree.quiet().await;
    let read = house.player.last("/root");
    let told: Vec<&String> =
        read.iter().filter(|text| text.starts_with("<agent_mail kind=\"message\" from=\"/root/b\"")).collect();
    assert!(told.len() == 1 && told[0].contains("The task that you gave me is not begun"), "{read:?}");
    assert_eq!((root.pending().len(), b.pending().len()), (0, 1), "the task is kept");
    house.finish(tree).await;
}
