//! Interrupting and shutting down.

use protocol::{Outcome, Status};
use serde_json::json;
use testkit::Gate;

use super::house::{House, event, path};
use super::player::{Asked, Step, say};

/// The root spawns `a`, which hangs at the gate with the only slot, and then `b`, which queues.
fn hanging(at: &Gate, until: &Gate) -> House {
    let (at, until) = (at.clone(), until.clone());
    // One a reply, so that `a` queues before `b`.
    let spawn = |name: &str| vec![Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }))];
    let mut house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => spawn("a"),
        ("/root", 1) => spawn("b"),
        ("/root/a", 0) => vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("done"),
    });
    house.options.limits.max_running = 1;
    house
}

#[tokio::test]
async fn stopping_everybody_stops_also_those_who_queue_asleep() {
    let [at, never] = [Gate::new(), Gate::new()];
    let house = hanging(&at, &never);
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    at.opened().await;
    let b = tree.at(&path("b")).unwrap();
    let facts = b.facts().clone();
    assert_eq!((facts.status, facts.resident), (Status::Queued, false));
    tree.interrupt_all("enough").await;
    tree.quiet().await;
    // Its task stays for later; nothing claims that it queues.
    let status = b.facts().status;
    assert_eq!((status, b.pending().len()), (Status::Pending, 1));
    assert_eq!(tree.0.slots.in_use(), (0, 0));
    assert_eq!(house.player.last("/root/b"), [""; 0]);
    let asks = house.player.asked.lock().unwrap().len();
    tree.wake(&b).await;
    tree.quiet().await;
    assert_eq!(house.player.asked.lock().unwrap().len(), asks + 1);
    house.finish(tree).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_and_an_interrupt_at_once_lose_neither_slot_nor_mail() {
    let mut house = House::new(|_: &Asked| say("done"));
    house.options.limits.max_running = 1;
    let (tree, pending) = house.tree("go").await;
    tree.go().await;
    pending.answer().await;
    tree.quiet().await;
    let root = tree.at(&path("/root")).unwrap();
    for _ in 0..40 {
        let at = path("/root");
        let stop = || runtime::Stop {
            outcome: Outcome::Interrupted,
            reason: "enough".to_owned(),
            goes_on: false,
            only: Vec::new(),
        };
        let (sent, ..) = tokio::join!(tree.send(&at, "more", true), crate::life::interrupt(&root, stop()));
        crate::life::interrupt(&root, stop()).await;
        tree.quiet().await;
        assert_eq!(tree.0.slots.in_use(), (0, 0));
        tree.wake(&root).await;
        tree.quiet().await;
        assert_eq!(root.pending().len(), 0);
        sent.unwrap().answer().await;
    }
    house.finish(tree).await;
}

#[tokio::test]
async fn a_wake_after_an_interrupt_in_the_queue_counts() {
    let [at, go] = [Gate::new(), Gate::new()];
    let house = hanging(&at, &go);
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    at.opened().await;
    let b = tree.at(&path("b")).unwrap();
    let stop =
        runtime::Stop { outcome: Outcome::Interrupted, reason: "enough".to_owned(), goes_on: false, only: Vec::new() };
    // No await of the runtime lies between the two: the start that is called off has not noticed yet.
    assert!(!crate::life::interrupt(&b, stop).await);
    tree.wake(&b).await;
    go.open();
    tree.quiet().await;
    assert_eq!(house.player.last("/root/b").last().unwrap(), "work");
    house.finish(tree).await;
}

#[tokio::test]
async fn shutting_down_interrupts_keeps_every_edge_and_lets_go() {
    let [at, never] = [Gate::new(), Gate::new()];
    let house = hanging(&at, &never);
    let (tree, pending) = house.tree("go").await;
    let mut events = tree.events();
    tree.go().await;
    at.opened().await;
    let id = tree.id();
    house.close(tree).await;
    assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
    let stopped = event(&mut events, |e| {
        matches!(&e.kind, protocol::EventKind::TurnCompleted { outcome: Outcome::Interrupted, .. })
    });
    assert_eq!(stopped.await.path.as_str(), "/root/a");
    let (tree, report) = house.again(id).await;
    let stand: Vec<_> = report.agents.iter().map(|agent| (agent.path.to_string(), agent.status)).collect();
    let want = [("/root", Status::Completed), ("/root/a", Status::Interrupted), ("/root/b", Status::Pending)];
    assert_eq!(stand, want.map(|(path, status)| (path.to_owned(), status)));
    house.finish(tree).await;
}

/// A client that asks for its answer wakes the agent that has its task. Once the turns are being ended nobody is woken:
/// a task that never began is not to begin only to be cut off.
#[tokio::test]
async fn what_is_pending_when_the_turns_end_is_left_for_the_next_owner() {
    let [at, never] = [Gate::new(), Gate::new()];
    let (hangs, until) = (at.clone(), never.clone());
    let house = House::new(move |asked: &Asked| match asked.texts.last().map(String::as_str) {
        Some("go") => vec![Step::Wait(hangs.clone(), until.clone()), Step::Say("done".to_owned())],
        _ => say("heard"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    at.opened().await;
    let words = tree.send(&path("/root"), "more", true).await.unwrap();
    tree.end_turns("enough").await;
    drop(tree.await_task(words.task).await.unwrap());
    drop(tree.await_task(words.task).await.unwrap());
    drop(tree.send(&path("/root"), "too late", true).await.unwrap());
    tree.quiet().await;
    let root = tree.at(&path("/root")).unwrap();
    let pending: Vec<String> = root.pending().into_iter().map(|mail| mail.body).collect();
    assert_eq!(pending, ["more", "too late"]);
    assert_eq!(house.player.asked.lock().unwrap().len(), 1, "no turn has begun");
    let id = tree.id();
    house.close(tree).await;
    let (tree, _) = house.again(id).await;
    let answer = tree.await_task(words.task).await.unwrap();
    assert_eq!(answer.answer().await.end.text.as_deref(), Some("heard"));
    house.finish(tree).await;
}

/// A client that asks for its answer right after the interrupt does not undo it.
#[tokio::test]
async fn words_that_an_interrupt_left_are_told_of_to_whoever_asks_late() {
    let [at, go] = [Gate::new(), Gate::new()];
    let house = hanging(&at, &go);
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    at.opened().await;
    let words = tree.send(&path("b"), "more", true).await.unwrap();
    tree.interrupt(&path("b"), &crate::close::By::User).await.unwrap();
    let late = tree.await_task(words.task).await.unwrap();
    for pending in [words, late] {
        let end = pending.answer().await.end;
        assert_eq!(end.outcome, Outcome::Interrupted);
        assert!(end.reason.unwrap().contains("before it took this in"));
    }
    // Whoever waits is answered before the start has noticed that it is called off.
    let b = tree.at(&path("b")).unwrap();
    let mut changes = tree.0.changes.subscribe();
    let rests = async {
        while b.is_busy() {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), rests).await.expect("nobody has woken it");
    // Somebody who does has both read.
    let more = tree.send(&path("b"), "now", true).await.unwrap();
    go.open();
    assert_eq!(more.answer().await.end.outcome, Outcome::Completed);
    house.finish(tree).await;
}

/// All turns stop at once, and the end of somebody below wakes whoever waits for it: that one asks no model any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_goes_on_with_the_end_of_a_child_when_both_are_closed() {
    for _ in 0..20 {
        let [at, never] = [Gate::new(), Gate::new()];
        let (hangs, until) = (at.clone(), never.clone());
        let house = House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
            ("/root", 0) => vec![Step::Call("spawn_agent", json!({ "task_name": "a", "message": "work" }))],
            ("/root", 1) => vec![Step::Call("wait_agent", json!({ "timeout_ms": 3_600_000 }))],
            ("/root/a", 0) => vec![Step::Wait(hangs.clone(), until.clone()), Step::Say("done".to_owned())],
            _ => say("went on"),
        });
        let (tree, pending) = house.tree("go").await;
        let mut events = tree.events();
        tree.go().await;
        at.opened().await;
        event(&mut events, |e| {
            let waits = protocol::EventKind::AgentStatus {
                status: Status::Waiting,
                waiting_on: Some(protocol::WaitingOn::Agent),
                position: None,
            };
            e.path.is_root() && e.kind == waits
        })
        .await;
        tree.close(&path("/root"), "enough", &crate::close::By::User).await.unwrap();
        let end = pending.answer().await.end;
        assert_eq!((end.outcome, end.text), (Outcome::Closed, None));
        assert_eq!(house.player.asked.lock().unwrap().len(), 3, "no request after the close");
        house.finish(tree).await;
    }
}
