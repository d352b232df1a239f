//! Where results go.

use protocol::{MailKind, Outcome};
use rollout::Record;
use serde_json::json;
use testkit::{Act, On, When};

use super::house::{House, path};
use super::player::{Asked, Step, say};

/// Results in an agent's file: from whom and how.
fn results(house: &House, at: &str) -> Vec<(String, Outcome)> {
    house
        .records(at)
        .into_iter()
        .filter_map(|record| match record {
            Record::Mail(mail) if mail.kind == MailKind::Result => Some((mail.from.name().to_owned(), mail.outcome?)),
            _ => None,
        })
        .collect()
}

fn pair(name: &'static str) -> Step {
    Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }))
}

#[tokio::test]
async fn the_giver_of_a_followup_gets_its_result_also_when_it_is_no_parent() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.last()) {
        ("/root", _) if asked.before == 0 => vec![pair("a"), pair("b")],
        ("/root/a", "ask b") => {
            vec![Step::Call("followup_task", json!({ "target": "/root/b", "message": "for a" }))]
        }
        ("/root/a", last) if last.contains("accepted") => {
            vec![Step::Call("wait_agent", json!({ "targets": ["/root/b"] }))]
        }
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    let answer = tree.send(&path("a"), "ask b", true).await.unwrap().answer().await;
    assert_eq!(answer.end.outcome, Outcome::Completed);
    tree.quiet().await;
    assert_eq!(results(&house, "/root/a"), [("/root/b".to_owned(), Outcome::Completed)]);
    // The first tasks of both were the root's.
    assert_eq!(results(&house, "/root").len(), 2);
    assert!(house.player.last("/root/a").last().unwrap().contains("kind=\"result\""));
    house.finish(tree).await;
}

#[tokio::test]
async fn every_way_to_end_a_task_is_a_result() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![pair("fails"), pair("panics"), pair("silent")],
        ("/root/fails", _) => vec![Step::Fail],
        ("/root/panics", _) => vec![Step::Panic],
        ("/root/silent", _) => say(" "),
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    let mut got = results(&house, "/root");
    got.sort_by(|a, b| a.0.cmp(&b.0));
    let want = [("fails", Outcome::Errored), ("panics", Outcome::Errored), ("silent", Outcome::Completed)];
    assert_eq!(got, want.map(|(name, outcome)| (format!("/root/{name}"), outcome)));
    let bodies =
        house.records("/root").into_iter().filter_map(|r| if let Record::Mail(m) = r { Some(m.body) } else { None });
    assert!(bodies.into_iter().all(|body| !body.trim().is_empty()));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_client_hears_when_the_end_of_its_task_cannot_be_written() {
    let house = House::new(|_: &Asked| say("done"));
    let (tree, pending) = house.tree("go").await;
    house.disk.from(On::line("turn_end"), 1, When::Before, Act::Full);
    tree.go().await;
    let answer = pending.answer().await;
    tree.quiet().await;
    house.disk.heal();
    assert_eq!(tree.at(&protocol::AgentPath::root()).unwrap().pending().len(), 0);
    // Asked again, it reads itself back, and the task that broke off has its one end.
    let again = tree.send(&protocol::AgentPath::root(), "again", true).await.unwrap().answer().await;
    assert_eq!((answer.end.outcome, again.end.outcome), (Outcome::Errored, Outcome::Completed));
    assert!(answer.end.reason.unwrap().contains("the disk is full"));
    house.finish(tree).await;
}

#[tokio::test]
async fn a_client_hears_when_its_task_cannot_even_begin() {
    let house = House::new(|_: &Asked| say("done"));
    let (tree, pending) = house.tree("go").await;
    house.disk.at(On::op(testkit::Op::Write).bytes("task_started"), 1, When::Before, Act::Full);
    tree.go().await;
    let answer = pending.answer().await;
    assert_eq!(answer.end.outcome, Outcome::Errored);
    assert!(answer.end.reason.unwrap().contains("the disk is full"));
    tree.quiet().await;
    tree.go().await;
    house.finish(tree).await;
}

#[tokio::test]
async fn a_giver_hears_once_the_disk_is_well_again() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![pair("a")],
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    house.disk.from(On::line("turn_end"), 1, When::Before, Act::Full);
    let root = tree.at(&protocol::AgentPath::root()).unwrap();
    let a = tree.at(&path("a")).unwrap();
    let id = protocol::EffectId::new().mail();
    let mail = tree.letter(id, root.party(), &a, (MailKind::Followup, true), "more").unwrap();
    tree.deliver(&a, mail).await.unwrap();
    tree.quiet().await;
    assert_eq!(results(&house, "/root").len(), 1, "nothing is told that is not written");
    house.disk.heal();
    let next = tree.send(&path("a"), "go on", true).await.unwrap();
    assert_eq!(next.answer().await.end.outcome, Outcome::Completed);
    tree.quiet().await;
    let got: Vec<Outcome> = results(&house, "/root").into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(got, [Outcome::Completed, Outcome::Errored]);
    house.finish(tree).await;
}
