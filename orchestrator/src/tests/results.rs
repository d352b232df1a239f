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

/// Takes the note that its last mail was sent out of an agent's file, as a loss of power may: it is not synced. A row that
/// was made of it later goes, too.
fn forgets_that_it_sent(house: &House, at: &str) {
    let scan = house.store.scan().unwrap();
    let file = &scan.heads.iter().find(|head| head.meta.agent_path.as_str() == at).unwrap().file;
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let sent = lines.iter().rposition(|line| line.contains("\"type\":\"sent\"")).expect("it sent something");
    let left = &lines[..sent];
    std::fs::write(file, left.join("\n") + "\n").unwrap();
    for name in ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm"] {
        let _ = std::fs::remove_file(house.store.home().join(name));
    }
}

#[tokio::test]
async fn what_a_closed_agent_has_read_is_not_sent_on_when_the_note_of_it_is_lost() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![pair("a")],
        ("/root/a", 0) => vec![pair("b")],
        ("/root/a", 1) => vec![Step::Call("wait_agent", json!({}))],
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    assert_eq!(results(&house, "/root/a").len(), 1);
    let by = crate::close::By::User;
    tree.close(&path("a"), "enough", &by).await.unwrap();
    let id = tree.id();
    house.close(tree).await;
    forgets_that_it_sent(&house, "/root/a/b");
    let (tree, report) = house.again(id).await;
    assert_eq!(report.problems, [""; 0]);
    let got: Vec<String> = results(&house, "/root").into_iter().map(|(from, _)| from).collect();
    assert_eq!(got, ["/root/a"], "b answered a, who has read it");
    house.finish(tree).await;
}

#[tokio::test]
async fn what_came_back_and_was_read_does_not_come_back_again() {
    let house = House::new(|asked: &Asked| match (asked.path.as_str(), asked.before) {
        ("/root", 0) => vec![pair("a")],
        ("/root/a", 0) => vec![pair("b")],
        ("/root/a", 1) => vec![Step::Call("wait_agent", json!({}))],
        ("/root/a", 2) => vec![Step::Call("send_message", json!({ "target": "b", "message": "by the way" }))],
        ("/root/a", 3) => vec![Step::Call("close_agent", json!({ "target": "b" }))],
        _ => say("done"),
    });
    let (tree, _pending) = house.tree("go").await;
    tree.go().await;
    tree.quiet().await;
    tree.send(&path("a"), "and?", true).await.unwrap().answer().await;
    tree.quiet().await;
    let back = |at: &str| {
        let is_back = |record: &Record| matches!(record, Record::Mail(mail) if mail.kind == MailKind::Returned);
        house.records(at).iter().filter(|record| is_back(record)).count()
    };
    assert_eq!(back("/root/a"), 1);
    tree.close(&path("a"), "enough", &crate::close::By::User).await.unwrap();
    let id = tree.id();
    house.close(tree).await;
    forgets_that_it_sent(&house, "/root/a/b");
    assert!(house.records("/root/a/b").iter().any(|record| matches!(record, Record::MailReturned(_))));
    let (tree, report) = house.again(id).await;
    assert_eq!((report.problems.len(), back("/root")), (0, 0));
    assert_eq!(results(&house, "/root").len(), 1);
    house.finish(tree).await;
}
