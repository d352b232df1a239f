use expect_test::expect;
use protocol::{Outcome, ThreadId};

use super::*;

fn address(path: &str, n: u8) -> Address {
    let thread: ThreadId = format!("00000000-0000-7000-8000-{n:012}").parse().unwrap();
    Address { path: path.parse().unwrap(), thread }
}

fn task() -> TaskId {
    "11111111-0000-7000-8000-000000000001".parse().unwrap()
}

fn message(to: Address, body: String) -> Mail {
    Mail {
        id: task(),
        tree: TreeId::from(address("/root", 0).thread),
        from: Party::Agent(address("/root/b", 2)),
        to,
        kind: MailKind::Message,
        trigger_turn: false,
        sequence: 9,
        body,
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}

#[test]
fn a_result_is_never_blank_and_never_too_long() {
    let give = |text: Option<String>| {
        let end = TaskEnd { outcome: Outcome::Completed, text, reason: None };
        let (from, to) = (address("/root/a", 1), address("/root", 0));
        result(TreeId::from(to.thread), task(), (task().result(), from, to), &end, None)
    };
    let mail = give(Some("Done.".to_owned()));
    assert_eq!((mail.body.as_str(), mail.kind, mail.trigger_turn), ("Done.", MailKind::Result, false));
    assert_eq!((mail.answers, mail.outcome, mail.sequence), (Some(task()), Some(Outcome::Completed), 0));
    expect!["(completed, no text)"].assert_eq(&give(None).body);
    let long = give(Some("é".repeat(MAX_BODY)));
    assert_eq!(long.body.len(), MAX_BODY);
}

#[test]
fn a_returned_mail_names_where_it_was_for_and_why() {
    let mail = returned(
        &message(address("/root/a", 1), "Are you there?".to_owned()),
        address("/root/b", 2),
        "closed by\nuser",
    );
    expect!["Not delivered to /root/a: closed by user. The message said:\n\nAre you there?"].assert_eq(&mail.body);
    assert_eq!((mail.id, mail.answers), (task().returned(), Some(task())));
    assert_eq!((mail.from.name(), mail.kind, mail.sequence), ("/root/a", MailKind::Returned, 0));
    // With the longest path, reason and body it still fits.
    let deep = protocol::AgentPath::root().resolve(&vec!["a".repeat(64); 16].join("/")).unwrap();
    let from = message(address(deep.as_str(), 1), "x".repeat(MAX_BODY));
    let mail = returned(&from, address("/root/b", 2), &"\u{1F980}".repeat(500));
    assert!(mail.body.len() <= MAX_BODY && mail.body.len() > MAX_BODY - PREFACE, "{}", mail.body.len());
}

#[test]
fn a_forwarded_result_keeps_its_sender_and_words() {
    let first = Mail {
        id: task().result(),
        kind: MailKind::Result,
        answers: Some(task()),
        outcome: Some(Outcome::Lost),
        ..message(address("/root/a", 1), "half".to_owned())
    };
    let moved = forwarded(&first, address("/root", 0));
    assert_eq!(moved.to, address("/root", 0));
    assert_eq!(moved.sequence, 0);
    let same = Mail { id: first.id, to: first.to.clone(), sequence: first.sequence, ..moved };
    assert_eq!(same, first);
}

#[test]
fn bodies_are_cut_at_a_boundary() {
    assert_eq!(cut_body(&"x".repeat(MAX_BODY)), None);
    assert_eq!(cut_body(&"x".repeat(MAX_BODY + 1)), Some(&*"x".repeat(MAX_BODY)));
    let odd = format!("x{}", "é".repeat(MAX_BODY / 2));
    assert_eq!(cut_body(&odd).map(str::len), Some(MAX_BODY - 1));
}
