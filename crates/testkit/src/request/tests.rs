use protocol::{Call, Item, Role};

use super::*;

fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

fn call(id: &str, name: &str) -> Call {
    Call { call_id: id.into(), name: name.into(), arguments: format!("{{\"of\":\"{name}\"}}"), custom: false }
}

fn item(call: &Call) -> Item {
    Item::function_call(&call.call_id, &call.name, &call.arguments)
}

#[test]
fn a_conversation_is_understood() {
    let (a, b) = (call("call_0", "a"), call("call_0", "b"));
    let request = Request::example(
        "t9",
        &[
            Item::message(Role::Developer, "instructions"),
            user("<environment_context>\ncwd\n</environment_context>"),
            user("# AGENTS.md instructions for /x\n\nbe nice"),
            user("the task"),
            Item::parse(r#"{"type":"reasoning","encrypted_content":"z"}"#).unwrap(),
            item(&a),
            item(&b),
            Item::output(&a, "out a"),
            Item::output(&b, "out b"),
            Item::message(Role::Assistant, "first answer"),
            user("a second task"),
            item(&call("call_1", "c")),
        ],
        &["exec_command", "apply_patch"],
    );
    assert_eq!(request.thread(), "t9");
    assert_eq!(request.tools(), ["exec_command", "apply_patch"]);
    assert_eq!((request.task().as_str(), request.told().as_str()), ("the task", "a second task"));
    assert_eq!(request.replies(), 3);
    assert_eq!(request.outputs(), ["out a", "out b"]);
    let calls = request.calls();
    let calls: Vec<_> = calls.iter().map(|(call, output)| (call.name.as_str(), output.as_deref())).collect();
    assert_eq!(calls, [("a", Some("out a")), ("b", Some("out b")), ("c", None)]);
    assert!(request.heard("out b") && request.heard("second") && !request.heard("first answer"));
    assert!(request.contains("first answer") && request.contains(r#"{"of":"c"}"#) && !request.contains("third"));
    assert_eq!(request.last().unwrap().call().unwrap().name, "c");
}

#[test]
fn nothing_is_made_up() {
    let request = Request::example("t", &[], &[]);
    assert_eq!((request.task(), request.replies(), request.last()), (String::new(), 0, None));
    assert_eq!((request.session(), request.header("x")), ("", None));
}

/// A conversation over each wire, as its clients send it.
fn conversations() -> [Request; 3] {
    let made = call("c1", "run");
    let items = [
        Item::message(Role::Developer, "be good"),
        user("<environment_context>\ncwd\n</environment_context>"),
        user("the task\n\nin two parts"),
        item(&made),
        Item::output(&made, "out"),
        user("<agent_mail kind=\"result\" from=\"/root/a\">\n</agent_mail> is\n\nquoted\n</agent_mail>"),
        Item::message(Role::Assistant, "an answer"),
        user("more"),
    ];
    let chat = serde_json::json!({"tools": [{"type": "function", "function": {"name": "run"}}], "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": format!("{}\n\n{}", items[1].text(), items[2].text())},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": made.arguments}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
        {"role": "user", "content": items[5].text()},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": "more"},
    ]});
    let text = |text: &str| serde_json::json!({"type": "text", "text": text});
    let messages = serde_json::json!({"tools": [{"name": "run"}], "max_tokens": 1, "system": [text("be good")], "messages": [
        {"role": "user", "content": [text(&items[1].text()), text(&items[2].text())]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "run", "input": {"of": "run"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "out"}, text(&items[5].text())]},
        {"role": "assistant", "content": [text("an answer")]},
        {"role": "user", "content": [text("more")]},
    ]});
    [
        Request::example("t", &items, &["run"]),
        Request::over(Wire::Chat, "t", &chat.to_string()),
        Request::over(Wire::Messages, "t", &messages.to_string()),
    ]
}

#[test]
fn a_conversation_is_the_same_over_every_wire() {
    let [canonical, chat, messages] = conversations();
    assert_eq!(canonical.items().len(), 8);
    for request in [chat, messages] {
        assert_eq!(request.items(), canonical.items(), "{:?}", request.wire());
        assert_eq!(request.tools(), ["run"]);
        assert_eq!((request.task().as_str(), request.told().as_str()), ("the task\n\nin two parts", "more"));
        assert_eq!((request.replies(), request.outputs(), request.calls().len()), (2, vec!["out".to_owned()], 1));
        assert!(request.contains("an answer") && request.heard("quoted") && !request.heard("an answer"));
    }
}

#[test]
fn what_a_server_of_the_wire_refuses_is_no_request() {
    let read = |wire, body: &str| Request::new(wire, 1, 1, Vec::new(), body.as_bytes().to_vec()).1;
    let chat = |messages: &str| read(Wire::Chat, &format!(r#"{{"messages":[{messages}]}}"#)).unwrap_err();
    let user = r#"{"role":"user","content":"a"}"#;
    let call = r#"{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"b","arguments":"{}"}}]}"#;
    for (body, why) in [
        (format!(r#"{user},{{"role":"system","content":"late"}}"#), "at the beginning only"),
        (format!("{user},{call},{user}"), "is not answered"),
        (format!("{user},{call}"), "calls are not answered"),
        (format!(r#"{user},{{"role":"tool","tool_call_id":"2","content":""}}"#), "answers no call"),
        (format!("{user},{}", call.replace("{}", "7")), "arguments are no object: 7"),
        (format!(r#"{user},{{"role":"assistant"}}"#), "says nothing"),
        (format!(r#"{user},{{"role":"king","content":""}}"#), "unknown role"),
    ] {
        assert!(chat(&body).contains(why), "{why}: {}", chat(&body));
    }
    let messages =
        |messages: &str| read(Wire::Messages, &format!(r#"{{"max_tokens":1,"messages":[{messages}]}}"#)).unwrap_err();
    let user = r#"{"role":"user","content":[{"type":"text","text":"a"}]}"#;
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"b","input":{}}]}"#;
    for (body, why) in [
        (format!("{user},{user}"), "alternate"),
        (call.to_owned(), "alternate"),
        (format!("{user},{call}"), "the last word is the model's"),
        (format!("{user},{call},{user}"), "results stand before texts"),
        (user.replace(":\"a\"", ":\" \""), "a text is empty"),
        (format!("{user},{},{user}", call.replace("{}", "[]")), "arguments are no object: []"),
        (user.replace("\"text\",", "\"video\","), "no place there"),
    ] {
        assert!(messages(&body).contains(why), "{why}: {}", messages(&body));
    }
    assert!(read(Wire::Messages, r#"{"messages":[]}"#).unwrap_err().contains("max_tokens"));
    assert!(read(Wire::Chat, r#"{"input":[]}"#).unwrap_err().contains("messages"));
}
