use expect_test::{Expect, expect};
use protocol::{Call, Role};

use super::*;
use crate::Home;

fn call(id: &str) -> Call {
    Call { call_id: id.into(), name: "run".into(), arguments: "{}".into(), custom: false }
}

fn made(id: &str) -> Item {
    Item::function_call(id, "run", "{}")
}

fn output(id: &str) -> Item {
    Item::output(&call(id), "fine")
}

fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

fn request(thread: &str, items: &[Item]) -> Request {
    Request::example(thread, items, &["run"])
}

fn check(seen: Result<(), String>, expect: Expect) {
    expect.assert_eq(&seen.map_or_else(|error| error, |()| "holds".to_owned()));
}

#[test]
fn requests_only_append() {
    let a = request("a", &[user("1")]);
    let b = request("b", &[user("other")]);
    let longer = request("a", &[user("1"), user("2")]);
    check(append_only(&[a.clone(), b.clone(), a.clone(), longer.clone()]), expect!["holds"]);
    check(
        append_only(&[a.clone(), b, request("a", &[user("2")])]),
        expect![[r#"
            request 1 of thread `a` does not begin with request 1: item 0 was
              {"type":"message","role":"user","content":[{"type":"input_text","text":"1"}]}
            and is
              {"type":"message","role":"user","content":[{"type":"input_text","text":"2"}]}"#]],
    );
    check(
        append_only(&[longer, a.clone()]),
        expect![[r#"
            request 1 of thread `a` does not begin with request 1: item 1 was
              {"type":"message","role":"user","content":[{"type":"input_text","text":"2"}]}
            and is
              nothing"#]],
    );
    let spaced = Item::parse(&user("1").raw().replace("\":", "\": ")).unwrap();
    assert!(append_only(&[a.clone(), request("a", &[spaced])]).is_err(), "the same JSON in other bytes");
    check(
        append_only(&[a, Request::example("a", &[user("1")], &["other"])]),
        expect!["request 1 of thread `a` has other tools than request 1"],
    );
}

#[test]
fn transcripts_are_closed() {
    let seen = |items: &[Item]| closed(&[request("a", items)]);
    check(seen(&[made("1"), made("2"), output("1"), user("mail"), output("2")]), expect!["holds"]);
    check(seen(&[made("0"), made("0"), output("0"), output("0"), made("0"), output("0")]), expect!["holds"]);
    check(seen(&[made("1"), user("a")]), expect!["request 1 of thread `a`: call `1` (run) has no output"]);
    check(
        seen(&[made("1"), made("2"), output("2"), output("1")]),
        expect!["request 1 of thread `a`: item 2 answers `2` and `1` (run) was to be answered first"],
    );
    check(
        seen(&[made("1"), output("1"), output("1")]),
        expect!["request 1 of thread `a`: item 2 answers `1` and no call is open"],
    );
    check(seen(&[output("1"), made("1")]), expect!["request 1 of thread `a`: item 0 answers `1` and no call is open"]);
}

#[test]
fn items_are_bounded() {
    let frame = user("").raw().len();
    check(bounded(&[request("a", &[user(&"x".repeat(40_000 - frame))])]), expect!["holds"]);
    let seen = bounded(&[request("a", &[user("1"), user(&"x".repeat(40_001 - frame))])]);
    let first = seen.map_err(|error| error.lines().next().unwrap().to_owned());
    check(first, expect!["request 1 of thread `a`: item 1 has 40001 bytes:"]);
}

#[test]
fn what_is_sent_is_written() {
    let home = Home::new();
    let line = |kind: &str, payload: &str| format!(r#"{{"timestamp":"t","type":"{kind}","payload":{payload}}}"#);
    let meta = line("session_meta", r#"{"id":"a","agent_path":"/root"}"#);
    let mail = line("mail", user("in the mail only").raw());
    let items = [user("1"), made("1"), output("1"), user("1")];
    let items: Vec<String> = items.iter().map(|item| line("response_item", item.raw())).collect();
    let torn = r#"{"timestamp":"t","type":"resp"#;
    home.write("sessions/2026/01/02/rollout-1-a.jsonl", &format!("{meta}\n{mail}\n{}\n{torn}", items.join("\n")));
    let seen = |thread: &str, items: &[Item]| {
        let seen = written(&home, &[request(thread, items)]);
        seen.map_err(|error| error.replace(home.path().to_str().unwrap(), "$AGENT_HOME"))
    };
    check(seen("a", &[user("1"), made("1"), output("1"), user("1")]), expect!["holds"]);
    check(seen("a", &[made("1"), output("1")]), expect!["holds"]);
    check(
        seen("a", &[user("1"), user("in the mail only")]),
        expect![[r#"
            request 1 of thread `a`: item 1 is in $AGENT_HOME/sessions/2026/01/02/rollout-1-a.jsonl not at all:
              {"type":"message","role":"user","content":[{"type":"input_text","text":"in the mail only"}]}"#]],
    );
    check(
        seen("a", &[output("1"), made("1")]),
        expect![[r#"
            request 1 of thread `a`: item 1 is in $AGENT_HOME/sessions/2026/01/02/rollout-1-a.jsonl out of order or fewer times:
              {"type":"function_call","call_id":"1","name":"run","arguments":"{}"}"#]],
    );
    assert!(seen("a", &[user("1"), user("1"), user("1")]).is_err(), "written twice, sent three times");
    check(seen("b", &[user("1")]), expect!["request 1 of thread `b`: this agent has no rollout"]);
    assert_invariants(&home, &[request("a", &[user("1"), made("1"), output("1")])]);
}

#[test]
fn an_unreadable_request_passes_no_check() {
    let empty = [request("a", &[])];
    for seen in [append_only(&empty), closed(&empty), bounded(&empty), written(Home::new(), &empty)] {
        check(seen, expect!["request 1 of thread `a` has no items"]);
    }
    assert!(std::panic::catch_unwind(|| assert_closed(&[request("a", &[made("1")])])).is_err());
    assert!(std::panic::catch_unwind(|| assert_append_only(&[request("a", &[])])).is_err());
    assert!(std::panic::catch_unwind(|| assert_bounded(&[request("a", &[])])).is_err());
    assert!(std::panic::catch_unwind(|| assert_written(Home::new(), &[request("a", &[])])).is_err());
    assert!(std::panic::catch_unwind(|| assert_invariants(Home::new(), &[])).is_err());
}
