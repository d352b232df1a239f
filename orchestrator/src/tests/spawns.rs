//! Spawning: what refuses leaves nothing behind.

use protocol::{EventKind, Outcome};
use rollout::Record;
use serde_json::json;
use testkit::{Act, On, When};

use super::house::{House, so_far};
use super::player::{Asked, Step, say};

/// Calls `spawn_agent` with these arguments, one call each, in the first reply.
fn spawns(all: &[serde_json::Value]) -> Vec<Step> {
    all.iter().map(|arguments| Step::Call("spawn_agent", arguments.clone())).collect()
}

fn child(name: &str) -> serde_json::Value {
    json!({ "task_name": name, "message": "work" })
}

#[tokio::test]
async fn a_refused_spawn_leaves_the_path_free_and_no_file() {
    let wrong = [
        json!({ "task_name": "a", "message": "x", "agent_type": "wizard" }),
        json!({ "task_name": "A b", "message": "x" }),
        json!({ "task_name": "a", "message": "  " }),
        json!({ "task_name": "a", "message": "x", "fork_turns": "some" }),
        json!({ "task_name": "a", "message": "x", "colour": "red" }),
    ];
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => spawns(&wrong),
        ("/root", 1) => spawns(&[child("a")]),
        _ => say("done"),
    });
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
    tree.quiet().await;
    let texts = house.player.last("/root");
    let said: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|text| !text.starts_with("spawn_agent") || text.starts_with("spawn_agent:"))
        .collect();
    for (text, part) in said[3..8].iter().zip(["wizard", "A b", "", "fork_turns", "colour"]) {
        assert!(text.contains(part) && !text.contains("task_name\":\"/root"), "{text}");
    }
    assert_eq!(house.agents(), 2);
    house.finish(tree).await;
}

#[tokio::test]
async fn limits_of_depth_and_number_refuse_by_name() {
    let mut house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => spawns(&[child("a"), child("b"), child("c")]),
        ("/root", 1) => vec![Step::Call("wait_agent", json!({}))],
        ("/root/a", 0) => spawns(&[child("deeper")]),
        _ => say("done"),
    });
    house.options.limits.max_depth = 1;
    house.options.limits.max_agents = 2;
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    let root = house.player.last("/root").join("\n");
    assert!(root.contains("limit is 2") || root.contains(" 2"), "the limit is named: {root}");
    let deeper = house.player.last("/root/a");
    assert!(deeper.last().unwrap().contains('1'), "{deeper:?}");
    assert_eq!(house.agents(), 3);
    house.finish(tree).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_spawns_of_one_name_in_one_reply_one_succeeds() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => spawns(&[child("twin"), child("twin"), child("twin")]),
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    tree.quiet().await;
    assert_eq!(house.agents(), 2);
    let spawned = so_far(&mut events).iter().filter(|(_, kind)| matches!(kind, EventKind::AgentSpawned { .. })).count();
    assert_eq!(spawned, 1);
    house.finish(tree).await;
}

#[tokio::test]
async fn a_full_disk_refuses_a_child_and_the_next_one_gets_its_path() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0 | 1) => spawns(&[child("a")]),
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    house.disk.at(On::line("session_meta"), 1, When::Middle, Act::Full);
    tree.go().await;
    tree.quiet().await;
    let texts = house.player.last("/root");
    assert!(texts.iter().any(|text| text.contains("the disk is full")), "{texts:?}");
    assert_eq!(house.agents(), 2);
    let meta = &house.records("/root/a")[0];
    assert!(matches!(meta, Record::SessionMeta(meta) if meta.incarnation == 1));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_fork_begins_with_its_own_instructions_and_closed_copies() {
    let fork =
        |turns: &str| json!({ "task_name": format!("fork_{turns}"), "message": "your part", "fork_turns": turns });
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => say("first answer"),
        ("/root", 1) => spawns(&[fork("all"), fork("1")]),
        _ => say("done"),
    });
    let (tree, first) = house.tree("first").await;
    tree.go().await;
    first.answer().await;
    let second = tree.send(&protocol::AgentPath::root(), "second", true).await.unwrap();
    second.answer().await;
    tree.quiet().await;
    let all = house.player.last("/root/fork_all");
    assert_eq!(all[2..5], ["first", "first answer", "second"]);
    assert_eq!(all[5..7], ["spawn_agent", "spawn_agent"]);
    assert!(all[7].contains("belongs to the parent") && all[8].contains("belongs to the parent"), "{all:?}");
    assert_eq!((all[9].as_str(), all.len()), ("your part", 10));
    let one = house.player.last("/root/fork_1");
    assert_eq!((one[2].as_str(), one.last().unwrap().as_str()), ("second", "your part"));
    assert!(all[0].contains("/root/fork_all"), "its own instructions: {}", all[0]);
    let root = tree.id().root();
    let records = house.records("/root/fork_all");
    let taken = records.iter().find_map(|record| if let Record::Forked(fork) = record { Some(fork) } else { None });
    let taken = taken.unwrap();
    assert_eq!((taken.parent.thread, taken.items), (root, 7), "three texts, two calls, two answers");
    let items = records.iter().filter(|record| matches!(record, Record::Item(_))).count();
    assert_eq!(items, 4, "its own: instructions, folder, task, answer");
    house.finish(tree).await;
}
