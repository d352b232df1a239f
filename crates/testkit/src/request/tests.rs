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
