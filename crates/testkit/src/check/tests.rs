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

/// A request of the Messages wire: who speaks, and each text of it.
fn turns(messages: &[(&str, &[&str])]) -> Request {
    let block = |text: &&str| serde_json::json!({"type": "text", "text": text});
    let message = |(role, texts): &(&str, &[&str])| serde_json::json!({"role": role, "content": texts.iter().map(block).collect::<Vec<_>>()});
    let messages: Vec<_> = messages.iter().map(message).collect();
    let body = serde_json::json!({"max_tokens": 1, "messages": messages}).to_string();
    Request::over(Wire::Messages, "a", &body)
}

/// A request of the Chat wire: one message of a user.
fn chat(text: &str) -> Request {
    let body = serde_json::json!({"messages": [{"role": "user", "content": text}]}).to_string();
    Request::over(Wire::Chat, "a", &body)
}

#[test]
fn wires_of_turns_append_as_they_can() {
    let note = "<system_note>\nGo on.\n</system_note>";
    let noted = turns(&[("user", &["1"]), ("assistant", &["half"]), ("user", &[note])]);
    let more = turns(&[("user", &["1"]), ("assistant", &["half", "whole"]), ("user", &["2"])]);
    check(append_only(&[noted, more.clone()]), expect!["holds"]);
    let other = turns(&[("user", &["1"]), ("assistant", &["other"]), ("user", &["2"])]);
    assert!(append_only(&[more.clone(), other]).is_err());
    check(append_only(&[chat("1"), chat("1\n\n2")]), expect!["holds"]);
    assert!(append_only(&[chat("1"), chat("12")]).is_err(), "another text, not one more");
    assert!(append_only(&[turns(&[("user", &["1"])]), turns(&[("user", &["1\n\n2"])])]).is_err());
    // Each wire has a prefix of its own.
    check(append_only(&[request("a", &[user("x")]), more, chat("1"), request("a", &[user("x")])]), expect!["holds"]);
}

#[test]
fn what_is_sent_over_wires_of_turns_is_written() {
    let home = Home::new();
    let line = |kind: &str, payload: &str| format!(r#"{{"timestamp":"t","type":"{kind}","payload":{payload}}}"#);
    let meta = line("session_meta", r#"{"id":"a","agent_path":"/root"}"#);
    let thought = r#"{"type":"reasoning","wire":"messages","provider":"p","block":{"type":"sealed", "data":"x"}}"#;
    let items = [user("1"), Item::message(Role::Developer, "late"), user("2")];
    let mut lines: Vec<String> = items.iter().map(|item| line("response_item", item.raw())).collect();
    lines.push(line("response_item", thought));
    lines.push(line("response_item", Item::custom_call("c", "patch", "free \"text\"").raw()));
    lines.push(line("response_item", output("c").raw()));
    home.write("sessions/2026/01/02/rollout-1-a.jsonl", &format!("{meta}\n{}\n", lines.join("\n")));
    let seen = |request: Request| {
        let seen = written(&home, &[request]);
        // The file stands at the end.
        seen.map_err(|error| error[..error.rfind(" (").unwrap()].to_owned())
    };
    check(seen(chat("1\n\n<system_note>\nlate\n</system_note>\n\n2")), expect!["holds"]);
    check(
        seen(chat("1\n\n2\n\n3")),
        expect![[r#"request 1 of thread `a`: this was told and is not written, or out of order: "3""#]],
    );
    assert!(seen(chat("2\n\n1")).is_err(), "out of order");
    let body = |block: &str, input: &str, text: &str| {
        let body = format!(
            r#"{{"max_tokens":1,"messages":[{{"role":"user","content":[{{"type":"text","text":"1"}}]}},
            {{"role":"assistant","content":[{block},{{"type":"tool_use","id":"c","name":"patch","input":{input}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":"{text}"}}]}}]}}"#
        );
        Request::over(Wire::Messages, "a", &body)
    };
    let (block, input) = (r#"{"type":"sealed", "data":"x"}"#, r#"{"input": "free \"text\""}"#);
    check(seen(body(block, input, "fine")), expect!["holds"]);
    check(
        seen(body(r#"{"type":"sealed","data":"x"}"#, input, "fine")),
        expect![[
            r#"request 1 of thread `a`: this reasoning is not written, or out of order: "\"block\":{\"type\":\"sealed\",\"data\":\"x\"}""#
        ]],
    );
    check(
        seen(body(block, "{}", "fine")),
        expect![[r#"request 1 of thread `a`: this call is not written, or out of order: ("patch", Object {})"#]],
    );
    check(
        seen(body(block, input, "bad")),
        expect![[r#"request 1 of thread `a`: this output is not written, or out of order: "bad""#]],
    );
}
