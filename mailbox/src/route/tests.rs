use expect_test::{Expect, expect};
use protocol::{ThreadId, TreeId};

use super::*;

mod ways;

fn address(path: &str) -> Address {
    // One thread a path, so that names in a test stand for agents.
    let n = path.bytes().fold(0u64, |n, b| (n * 31 + u64::from(b)) % 1_000_000_000);
    let thread: ThreadId = format!("00000000-0000-7000-8000-{n:012}").parse().unwrap();
    Address { path: path.parse().unwrap(), thread }
}

fn client() -> Party {
    Party::Client { client: "22222222-0000-7000-8000-000000000001".parse().unwrap() }
}

fn task() -> TaskId {
    "11111111-0000-7000-8000-000000000001".parse().unwrap()
}

fn mail(kind: MailKind, from: Party) -> Mail {
    Mail {
        id: if kind == MailKind::Result { task().result() } else { task() },
        tree: TreeId::from(address("/root").thread),
        from,
        to: address("/root/a/b"),
        kind,
        trigger_turn: kind.is_task(),
        sequence: 1,
        body: "words".to_owned(),
        whole: None,
        answers: (kind == MailKind::Result).then(task),
        outcome: None,
        continues: None,
        deadline: None,
    }
}

fn show(route: &Route) -> String {
    let ids = [
        (task().result(), "result"),
        (task().result().forwarded(), "result.forwarded"),
        (task().returned(), "returned"),
    ];
    let name = |id: &MailId| ids.iter().find(|(known, _)| known == id).map_or("unknown id", |(_, name)| *name);
    match route {
        Route::Deliver { to, id } => format!("deliver to {} as {}", to.path, name(id)),
        Route::Forward { to, id } => format!("forward to {} as {}", to.path, name(id)),
        Route::Return { to, id } => format!("return to {} as {}", to.path, name(id)),
        Route::EndTask => "end the task".to_owned(),
        Route::Client(_) => "tell the client".to_owned(),
        Route::Drop(lost) => format!("drop: {lost}"),
    }
}

fn check_result(giver: &Party, nearest: Option<&str>, expect: Expect) {
    expect.assert_eq(&show(&route_result(task(), giver, nearest.map(address).as_ref())));
}

fn check_undelivered(mail: &Mail, above_recipient: Option<&str>, near_sender: Option<&str>, expect: Expect) {
    let (above, near) = (above_recipient.map(address), near_sender.map(address));
    expect.assert_eq(&show(&route_undelivered(mail, above.as_ref(), near.as_ref())));
}

#[test]
fn results() {
    let giver = Party::Agent(address("/root/a"));
    check_result(&giver, Some("/root/a"), expect!["deliver to /root/a as result"]);
    check_result(&giver, Some("/root"), expect!["forward to /root as result.forwarded"]);
    check_result(&giver, None, expect!["drop: no agent up to the root is open: nobody is left to read it"]);
    check_result(&client(), None, expect!["tell the client"]);
}

#[test]
fn undelivered() {
    let agent = || Party::Agent(address("/root/c"));
    let (above, near) = (Some("/root/a"), Some("/root/c"));
    check_undelivered(&mail(MailKind::Result, agent()), above, near, expect!["forward to /root/a as result.forwarded"]);
    check_undelivered(
        &mail(MailKind::Result, agent()),
        None,
        near,
        expect!["drop: no agent up to the root is open: nobody is left to read it"],
    );
    check_undelivered(&mail(MailKind::Message, agent()), above, near, expect!["return to /root/c as returned"]);
    check_undelivered(&mail(MailKind::Message, agent()), above, Some("/root"), expect!["return to /root as returned"]);
    check_undelivered(
        &mail(MailKind::Message, agent()),
        above,
        None,
        expect!["drop: no agent up to the root is open: nobody is left to read it"],
    );
    check_undelivered(&mail(MailKind::Message, client()), above, None, expect!["tell the client"]);
    check_undelivered(
        &mail(MailKind::Returned, agent()),
        above,
        near,
        expect!["drop: returned mail is not returned again"],
    );
    for kind in [MailKind::Spawn, MailKind::Followup] {
        check_undelivered(&mail(kind, agent()), above, near, expect!["end the task"]);
    }
    check_undelivered(&mail(MailKind::Input, client()), above, None, expect!["end the task"]);
}

/// A result that was accepted, moved on, moved on again, and one that goes the short way after a crash are one mail.
#[test]
fn every_way_of_a_result_gives_one_id() {
    let giver = Party::Agent(address("/root/a/b"));
    let Route::Forward { id: short, .. } = route_result(task(), &giver, Some(&address("/root"))) else { panic!() };
    let first = mail(MailKind::Result, Party::Agent(address("/root/c")));
    let once = crate::forwarded(&first, address("/root/a"));
    let twice = crate::forwarded(&once, address("/root"));
    assert_eq!([once.id, twice.id], [short, short]);
    let Route::Forward { id, .. } = route_undelivered(&once, Some(&address("/root")), None) else { panic!() };
    assert_eq!(id, short);
}
