//! Tasks that may take so long: what they end with, who hears of it, and what goes on.
//!
//! Every deadline here is an hour away, and the test lets that hour pass when it is ready.

use std::sync::Arc;
use std::time::Duration;

use protocol::{MailKind, Outcome, Status};
use rollout::Record;
use serde_json::json;
use stdx::Timestamp;
use testkit::Gate;

use super::house::{House, path};
use super::player::{Asked, Step, say};
use crate::node::Node;
use crate::{Mode, Tree};

const HOUR: u64 = 3_600_000;

fn in_an_hour() -> Timestamp {
    stdx::now().after(Duration::from_millis(HOUR))
}

async fn passes(tree: &Tree, at: &str) -> Arc<Node> {
    let node = tree.at(&path(at)).unwrap();
    node.facts().tasks.hasten();
    tree.expire(&node).await;
    node
}

/// Waits until an agent that queued asleep has given up its place.
async fn gives_up(tree: &Tree, node: &Node) {
    let mut changes = tree.0.changes.subscribe();
    while node.is_busy() {
        changes.changed().await.unwrap();
    }
}

fn spawn(name: &str, deadline: Option<u64>) -> Step {
    Step::Call("spawn_agent", json!({ "task_name": name, "message": "work", "deadline_ms": deadline }))
}

fn wait() -> Step {
    Step::Call("wait_agent", json!({ "timeout_ms": HOUR }))
}

#[tokio::test]
async fn a_turn_ends_with_what_it_has_and_so_do_those_who_work_for_it() {
    let [reached, never] = [Gate::new(), Gate::new()];
    let at = reached.clone();
    let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![Step::Say("so far".to_owned()), spawn("a", None)],
        ("/root/a", 0) => vec![spawn("deep", None)],
        ("/root" | "/root/a", 1) => vec![wait()],
        ("/root/a/deep", _) => vec![Step::Wait(at.clone(), never.clone())],
        _ => say("done"),
    });
    let deadline = in_an_hour();
    let (tree, pending) = Tree::create_until(house.options.clone(), "go", Some(deadline)).await.unwrap();
    house.play(&tree);
    tree.go().await;
    reached.opened().await;
    let told = &house.player.last("/root")[2];
    assert!(told.starts_with("go\n[deadline: ") && told.contains(&deadline.to_string()), "{told}");
    passes(&tree, "/root").await;
    let end = pending.answer().await.end;
    assert_eq!((end.outcome, end.text.as_deref(), end.is_expired()), (Outcome::Interrupted, Some("so far"), true));
    tree.quiet().await;
    let stand: Vec<Status> = tree.listing().agents.iter().map(|row| row.status).collect();
    assert_eq!(stand, [Status::Interrupted; 3]);
    // Each giver has exactly one result of it; nobody wakes for that.
    for (giver, from) in [("/root", "/root/a"), ("/root/a", "/root/a/deep")] {
        let pending = tree.at(&path(giver)).unwrap().pending();
        let [result] = pending.as_slice() else { panic!("{pending:?}") };
        assert_eq!((result.from.name(), result.outcome), (from, Some(Outcome::Interrupted)));
        assert!(result.body.contains("the deadline of /root passed"), "{}", result.body);
    }
    house.finish(tree).await;
}

#[tokio::test]
async fn a_task_that_only_queues_ends_without_a_turn() {
    let [reached, go] = [Gate::new(), Gate::new()];
    let (at, until) = (reached.clone(), go.clone());
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a", None)],
        ("/root", 1) => vec![spawn("b", Some(HOUR))],
        ("/root", 2) => vec![wait()],
        ("/root/a", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    reached.opened().await;
    assert_eq!(tree.listing().agents[2].position, Some(1));
    let b = passes(&tree, "b").await;
    gives_up(&tree, &b).await;
    assert_eq!((b.facts().status, b.pending().len()), (Status::Interrupted, 0));
    go.open();
    pending.answer().await;
    tree.quiet().await;
    let results: Vec<String> = house
        .records("/root")
        .into_iter()
        .filter_map(|record| if let Record::Mail(mail) = record { Some(mail) } else { None })
        .filter(|mail| mail.kind == MailKind::Result && mail.from.name() == "/root/b")
        .map(|mail| mail.body)
        .collect();
    let [result] = results.as_slice() else { panic!("{results:?}") };
    assert!(
        result.starts_with("(interrupted: its deadline passed (") && result.contains("before it was begun"),
        "{result}"
    );
    assert_eq!(house.player.last("/root/b"), [""; 0]);
    house.finish(tree).await;
}

#[tokio::test]
async fn it_holds_over_a_restart_and_nobody_begins_what_is_over() {
    let house = House::new(|_: &Asked| say("done"));
    let deadline = in_an_hour();
    let (tree, pending) = Tree::create_until(house.options.clone(), "go", Some(deadline)).await.unwrap();
    let (id, task) = (tree.id(), pending.task);
    house.close(tree).await;
    let (tree, _) = house.again(id).await;
    let root = tree.at(&path("/root")).unwrap();
    assert_eq!(root.facts().tasks.first(), Some(deadline));
    root.facts().tasks.hasten();
    let end = tree.await_task(task).await.unwrap().answer().await.end;
    assert!(end.is_expired() && end.reason.as_ref().unwrap().ends_with("before it was begun"), "{end:?}");
    tree.quiet().await;
    assert_eq!(house.player.asked.lock().unwrap().len(), 0);
    // It is over once and for all.
    let id = tree.id();
    house.close(tree).await;
    let (tree, _) = house.again(id).await;
    assert_eq!(tree.await_task(task).await.unwrap().answer().await.end, end);
    house.finish(tree).await;
}

#[tokio::test]
async fn other_tasks_of_the_agent_go_on() {
    let [reached, never] = [Gate::new(), Gate::new()];
    let at = reached.clone();
    let house = House::new(move |asked: &Asked| match asked.before {
        0 => vec![Step::Wait(at.clone(), never.clone())],
        _ => say("the other one is done"),
    });
    let (tree, first) = Tree::create_until(house.options.clone(), "go", Some(in_an_hour())).await.unwrap();
    house.play(&tree);
    tree.go().await;
    reached.opened().await;
    let (_, second) =
        tree.submit(&path("/root"), "more", Mode::StartOrSteer, protocol::RequestId::new()).await.unwrap();
    passes(&tree, "/root").await;
    assert!(first.answer().await.end.is_expired());
    let end = second.unwrap().answer().await.end;
    assert_eq!((end.outcome, end.text.as_deref()), (Outcome::Completed, Some("the other one is done")));
    house.finish(tree).await;
}

#[tokio::test]
async fn the_watch_keeps_it_without_being_asked() {
    let never = Gate::new();
    let house = House::new(move |_: &Asked| vec![Step::Wait(Gate::new(), never.clone())]);
    let soon = stdx::now().after(Duration::from_millis(50));
    let (tree, pending) = Tree::create_until(house.options.clone(), "go", Some(soon)).await.unwrap();
    house.play(&tree);
    tree.go().await;
    // In its turn or before it, as the machine has it.
    assert!(pending.answer().await.end.is_expired());
    house.finish(tree).await;
}
