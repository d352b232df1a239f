//! Loading and unloading.

use protocol::{EventKind, MailKind, Outcome};
use serde_json::json;
use testkit::{Act, Gate, On, Op, When};

use super::house::{House, event, path, so_far};
use super::player::{Asked, Step, say};

fn crowd(asked: &Asked) -> Vec<Step> {
    match (asked.path.as_str(), asked.before) {
        ("/root", 0) => ["a", "b", "c"]
            .map(|name| Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" })))
            .into(),
        ("/root", 1) => vec![Step::Call("wait_agent", json!({}))],
        _ => say("done"),
    }
}

async fn resident(tree: &crate::Tree) -> Vec<String> {
    // What is over the limit is unloaded in the background once its agent rests.
    let mut changes = tree.0.changes.subscribe();
    loop {
        let names: Vec<String> = tree
            .nodes()
            .iter()
            .filter(|node| node.facts().resident)
            .map(|node| node.address.path.to_string())
            .collect();
        if names.len() <= tree.0.options.limits.max_resident {
            return names;
        }
        changes.changed().await.unwrap();
    }
}

#[tokio::test]
async fn idle_agents_over_the_limit_are_unloaded_and_stay_in_the_tree() {
    let mut house = House::new(crowd);
    house.options.limits.max_resident = 2;
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    assert_eq!(resident(&tree).await.len(), 2);
    assert_eq!(tree.reachable().len(), 4, "every edge is open");
    // Unread mail does not pin it, and it goes on with its memory.
    for name in ["a", "b", "c", "a"] {
        tree.send(&path(name), "for later", false).await.unwrap();
        let answer = tree.send(&path(name), "now", true).await.unwrap().answer().await;
        assert_eq!(answer.end.outcome, Outcome::Completed);
        tree.quiet().await;
        assert_eq!(resident(&tree).await.len(), 2);
    }
    let texts = house.player.last("/root/a");
    assert_eq!(texts[2..], ["work", "done", "for later", "now", "done", "for later", "now"]);
    house.finish(tree).await;
}

#[tokio::test]
async fn the_least_recently_used_goes_first_and_processes_pin() {
    let mut house = House::new(crowd);
    house.options.limits.max_resident = 3;
    let (tree, _pending) = house.tree("go").await;
    house.processes.0.lock().unwrap().insert("/root/b".to_owned(), 1);
    tree.go().await;
    tree.quiet().await;
    let use_it = async |name: &str| {
        tree.send(&path(name), "now", true).await.unwrap().answer().await;
        tree.quiet().await;
        resident(&tree).await
    };
    use_it("a").await;
    use_it("b").await;
    // `a` is used again, which makes the root the one that was used least.
    use_it("a").await;
    assert_eq!(use_it("c").await, ["/root/a", "/root/b", "/root/c"]);
    // Now `b` would be next, but its process runs.
    use_it("a").await;
    let mut events = tree.events();
    tree.send(&protocol::AgentPath::root(), "now", true).await.unwrap().answer().await;
    tree.quiet().await;
    assert_eq!(resident(&tree).await, ["/root", "/root/a", "/root/b"]);
    let evicted: Vec<String> =
        so_far(&mut events).into_iter().filter(|(_, k)| matches!(k, EventKind::AgentEvicted)).map(|(p, _)| p).collect();
    assert_eq!(evicted, ["/root/c"]);
    house.finish(tree).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_mails_to_a_sleeping_agent_load_it_once() {
    let house = House::new(crowd);
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    let id = tree.id();
    house.close(tree).await;
    let (tree, _) = house.again(id).await;
    let mut events = tree.events();
    let (a, b) = (path("a"), path("a"));
    let (one, two) = tokio::join!(tree.send(&a, "one", true), tree.send(&b, "two", true));
    let answers = tokio::join!(one.unwrap().answer(), two.unwrap().answer());
    assert_eq!([answers.0.end.outcome, answers.1.end.outcome], [Outcome::Completed; 2]);
    tree.quiet().await;
    let loaded =
        so_far(&mut events).iter().filter(|(_, kind)| matches!(kind, EventKind::AgentRehydrated { .. })).count();
    assert_eq!(loaded, 1);
    house.finish(tree).await;
}

#[tokio::test]
async fn an_agent_that_only_queues_is_not_loaded() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let (reached, opened) = (sampled.clone(), go.clone());
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![
            Step::Call("spawn_agent", json!({ "task_name": "a", "message": "work" })),
            Step::Wait(reached.clone(), opened.clone()),
        ],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, _pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    let queued = event(&mut events, |e| matches!(e.kind, EventKind::AgentStatus { position: Some(_), .. })).await;
    assert_eq!(queued.path.as_str(), "/root/a");
    let node = tree.at(&path("a")).unwrap();
    assert!(!node.facts().resident && node.is_busy());
    assert!(node.pending().iter().all(|mail| mail.kind == MailKind::Spawn));
    go.open();
    house.finish(tree).await;
}

/// Its rollout refused the outputs of a turn, and it was unloaded before the next one: what that left open is closed first.
#[tokio::test]
async fn who_was_unloaded_with_open_calls_closes_them_before_it_goes_on() {
    let mut house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![Step::Call("spawn_agent", json!({ "task_name": "a", "message": "work" }))],
        ("/root", 1) => vec![Step::Call("wait_agent", json!({}))],
        ("/root/a", 0) => vec![Step::Call("send_message", json!({ "target": "/root", "message": "by the way" }))],
        _ => say("done"),
    });
    house.options.limits.max_resident = 1;
    house.disk.at(On::op(Op::Write).bytes(r#"\"accepted\""#), 1, When::Before, Act::Broken);
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    pending.answer().await;
    tree.quiet().await;
    house.disk.heal();
    let a = tree.at(&path("a")).unwrap();
    assert_eq!(a.facts().last_end.as_ref().unwrap().outcome, Outcome::Errored);
    assert_eq!(house.store.load(a.meta.id).unwrap().state.open_calls.len(), 1);
    // Whoever is used last stays in memory.
    tree.send(&path("/root"), "now", true).await.unwrap().answer().await;
    tree.quiet().await;
    assert_eq!(resident(&tree).await, ["/root"]);
    let answer = tree.send(&path("a"), "again", true).await.unwrap().answer().await;
    assert_eq!(answer.end.outcome, Outcome::Completed);
    house.finish(tree).await;
}
