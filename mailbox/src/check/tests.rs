use expect_test::{Expect, expect};

use super::*;

const ME: &str = "00000000-0000-7000-8000-000000000001";
const OTHER: &str = "00000000-0000-7000-8000-000000000002";

fn check(kind: MailKind, from: Option<&str>, to: &str, body: &str, expect: Expect) {
    let from = match from {
        Some(thread) => Party::Agent(Address { path: "/root/a".parse().unwrap(), thread: thread.parse().unwrap() }),
        None => Party::Client { client: OTHER.parse().unwrap() },
    };
    let to = Address { path: to.parse().unwrap(), thread: ME.parse().unwrap() };
    let seen = check_new(kind, &from, &to, body).map_or_else(|refused| refused.to_string(), |()| "taken".to_owned());
    expect.assert_eq(&seen);
}

#[test]
fn what_may_be_sent() {
    check(MailKind::Message, Some(OTHER), "/root", "hello", expect!["taken"]);
    check(MailKind::Followup, Some(OTHER), "/root/b", "do it", expect!["taken"]);
    check(MailKind::Input, None, "/root", "do it", expect!["taken"]);
    check(MailKind::Result, Some(OTHER), "/root", "done", expect!["taken"]);
    check(
        MailKind::Message,
        Some(OTHER),
        "/root",
        " \n\t",
        expect!["the message must not be empty: say what the recipient should know or do"],
    );
    check(
        MailKind::Spawn,
        Some(OTHER),
        "/root/b",
        "",
        expect!["the task must not be empty: say what the recipient should know or do"],
    );
    check(
        MailKind::Input,
        None,
        "/root",
        "",
        expect!["the input must not be empty: say what the recipient should know or do"],
    );
    check(
        MailKind::Followup,
        Some(OTHER),
        "/root",
        "do it",
        expect!["a follow-up task cannot target /root: use send_message, or say it in your final answer"],
    );
    check(
        MailKind::Message,
        Some(ME),
        "/root/a",
        "hello",
        expect!["/root/a cannot send mail to itself: name another agent"],
    );
    check(
        MailKind::Followup,
        Some(ME),
        "/root",
        "hello",
        expect!["/root cannot send mail to itself: name another agent"],
    );
}
