//! Taking a tree over, once and again.

use protocol::{Outcome, Status};
use rollout::Record;
use serde_json::json;
use testkit::{Act, Gate, On, Op, When};

use super::house::{House, path};
use super::player::{Asked, Step, say};

/// A root with two children and a grandchild. `a/deep` opens the first gate, `b` the second; both wait for the third.
fn family(deep: &Gate, b: &Gate, until: &Gate) -> House {
    let (deep, b, until) = (deep.clone(), b.clone(), until.clone());
    let hangs = move |at: &Gate| vec![Step::Wait(at.clone(), until.clone()), Step::Say("done".to_owned())];
    let spawn = |name: &str| Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }));
    House::new(move |asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![spawn("a"), spawn("b")],
        ("/root/a", 0) => vec![spawn("deep")],
        ("/root" | "/root/a", 1) => vec![Step::Call("wait_agent", json!({}))],
        ("/root/a/deep", 0) => hangs(&deep),
        ("/root/b", 0) => hangs(&b),
        _ => say("done"),
    })
}

/// Cuts what a crash would not have written: from the end of the running turn on.
fn crash(house: &House) {
    for head in house.store.scan().unwrap().heads {
        let text = std::fs::read_to_string(&*head.file).unwrap();
        let kept: String = text
            .lines()
            .take_while(|line| !line.contains("<turn_aborted>") && !line.contains("\"type\":\"turn_end\""))
            .flat_map(|line| [line, "\n"])
            .collect();
        std::fs::write(&*head.file, kept).unwrap();
    }
}

/// The tree of a family that crashed when both of its leaves were at work.
async fn crashed(house: &House, at_work: [&Gate; 2]) -> protocol::TreeId {
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    at_work[0].opened().await;
    at_work[1].opened().await;
    let id = tree.id();
    house.close(tree).await;
    crash(house);
    id
}

fn bytes(house: &House) -> u64 {
    house.store.scan().unwrap().heads.iter().map(|head| std::fs::metadata(&*head.file).unwrap().len()).sum()
}

#[tokio::test]
async fn it_reaches_the_same_state_however_often() {
    let [deep, b, never] = [Gate::new(), Gate::new(), Gate::new()];
    let house = family(&deep, &b, &never);
    let id = crashed(&house, [&deep, &b]).await;
    let (tree, first) = house.again(id).await;
    assert!(first.agents.iter().all(|agent| agent.status == Status::Lost), "{first:?}");
    assert!(first.agents.iter().all(|agent| agent.cut.in_turn));
    assert!(!tree.is_busy(), "nothing is started");
    let paid: usize = first.agents.iter().map(|agent| agent.cut.paid).sum();
    assert_eq!(paid, 3, "all but the root's, which a client gave");
    house.close(tree).await;
    let before = bytes(&house);
    let (tree, second) = house.again(id).await;
    assert_eq!(bytes(&house), before, "the second time nothing is left to write");
    let stand = |report: &frontend::Report| {
        report.agents.iter().map(|agent| (agent.path.clone(), agent.status, agent.unread)).collect::<Vec<_>>()
    };
    assert_eq!(stand(&first), stand(&second));
    house.finish(tree).await;
}

#[tokio::test]
async fn going_on_starts_children_before_their_givers_and_ends_every_task() {
    let [deep, b, open] = [Gate::new(), Gate::new(), Gate::new()];
    let mut house = family(&deep, &b, &open);
    let id = crashed(&house, [&deep, &b]).await;
    open.open();
    house.options.limits.max_running = 1;
    let asked = house.player.asked.lock().unwrap().len();
    let (tree, _) = house.again(id).await;
    let expected = tree.go_on().await.unwrap();
    assert_eq!(expected.len(), 1, "the root's task is the client's");
    for pending in expected {
        assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
    }
    tree.quiet().await;
    let order: Vec<String> =
        house.player.asked.lock().unwrap().iter().skip(asked).map(|asked| asked.path.clone()).collect();
    let first = |path: &str| order.iter().position(|at| at == path).unwrap();
    assert!(first("/root/a/deep") < first("/root/a") && first("/root/a") < first("/root"), "{order:?}");
    let results =
        house.records("/root").iter().filter(|r| matches!(r, Record::Mail(m) if m.continues.is_some())).count();
    assert!(results >= 2, "results name what they go on with");
    // Again: nothing was cut off any more.
    assert!(tree.go_on().await.unwrap().is_empty());
    assert!(!tree.is_busy());
    house.finish(tree).await;
}

#[tokio::test]
async fn a_tree_has_one_owner_and_its_agents_answer_the_next_day() {
    let open = Gate::new();
    open.open();
    let house = family(&Gate::new(), &Gate::new(), &open);
    let (tree, pending) = house.tree("go").await;
    let refused = crate::Tree::open(house.options.clone(), tree.id()).await;
    assert!(matches!(refused, Err(crate::TreeError::Lock(_))));
    tree.go().await;
    pending.answer().await;
    tree.quiet().await;
    let id = tree.id();
    house.close(tree).await;
    let (tree, _) = house.again(id).await;
    let answer = tree.send(&path("a/deep"), "one more thing", true).await.unwrap().answer().await;
    assert_eq!(answer.end.text.as_deref(), Some("done"));
    tree.quiet().await;
    let texts = house.player.last("/root/a/deep");
    assert_eq!(texts[2..], ["work", "done", "one more thing"]);
    assert!(tree.nodes().iter().filter(|node| node.facts().resident).count() == 1, "nobody else was loaded");
    house.finish(tree).await;
}

/// An agent whose file cannot be opened for want of room is there all the same: its spawn is not answered as if it were not.
#[tokio::test]
async fn a_disk_without_room_hides_nobody_from_whoever_spawned_them() {
    for n in 1..=3 {
        let [deep, b, open] = [Gate::new(), Gate::new(), Gate::new()];
        let house = family(&deep, &b, &open);
        let id = crashed(&house, [&deep, &b]).await;
        // As if the process had ended before the outputs of the spawns were written.
        let root = house.store.scan().unwrap().heads.into_iter().find(|head| head.meta.agent_path.is_root()).unwrap();
        let text = std::fs::read_to_string(&*root.file).unwrap();
        let kept: Vec<&str> = text.lines().take_while(|line| !line.contains("function_call_output")).collect();
        std::fs::write(&*root.file, kept.join("\n") + "\n").unwrap();
        house.disk.at(On::op(Op::Open), n, When::Before, Act::Full);
        let store = rollout::Store::new(house.store.home().clone(), std::sync::Arc::new(house.disk.clone()));
        let taken = crate::Tree::open(crate::Options { store, ..house.options.clone() }, id).await;
        let error = taken.err().expect("the disk has no room").to_string();
        assert!(error.contains("the disk is full"), "{error}");
        house.disk.heal();
        open.open();
        let (tree, _) = house.again(id).await;
        let outputs = house.records("/root").into_iter().filter_map(|record| match record {
            Record::Item(item) if item.item.kind() == protocol::ItemKind::Output => Some(item.item.text()),
            _ => None,
        });
        let outputs: Vec<String> = outputs.collect();
        assert!(outputs.iter().filter(|text| text.contains("task_name")).count() == 2, "{outputs:?}");
        house.close(tree).await;
    }
}
