use std::sync::Arc;

use protocol::{Address, AgentPath, Item, ThreadId};

use super::*;
use crate::Head;

fn view(items: &[Item]) -> View {
    let thread = ThreadId::new();
    View::new(&ModelRequest {
        tree: thread.into(),
        agent: Address { path: AgentPath::root(), thread },
        role: "default".to_owned(),
        head: Arc::new(Head { tools: "[]".into(), names: Vec::new() }),
        input: items.iter().cloned().collect(),
        max_output: None,
        effort: None,
    })
}

fn user(text: &str) -> Item {
    Item::message(Role::User, text)
}

#[test]
fn replies_are_counted_from_the_conversation() {
    let call = Item::function_call("c", "f", "{}");
    let output = Item::output(&call.call().unwrap(), "out");
    let mut items = vec![
        Item::message(Role::Developer, "instructions"),
        user("<environment_context>\ncwd: /x\n</environment_context>"),
        user("do it"),
    ];
    let seen = |items: &[Item]| {
        let view = view(items);
        (view.replies, view.step, view.last().to_owned())
    };
    assert_eq!(seen(&items), (0, 0, "do it".to_owned()));
    items.extend([Item::message(Role::Assistant, "hm"), call.clone(), call.clone(), output.clone(), output.clone()]);
    assert_eq!(seen(&items), (1, 1, "out".to_owned()));
    items.push(user("<agent_mail kind=\"result\" from=\"/root/a\" id=\"1\">\nfound\n</agent_mail>"));
    assert_eq!(seen(&items).1, 1, "a result is no task");
    items.push(user("<budget_reminder>\nLess than 50 % is left\n</budget_reminder>"));
    assert!(!seen(&items).2.contains("budget"), "what is left of a budget is nobody's words");
    items.extend([call, output]);
    assert_eq!(seen(&items), (2, 2, "out".to_owned()));
    items.push(user("<turn_aborted>\nx\n</turn_aborted>"));
    items.push(user("<agent_mail kind=\"followup\" from=\"/root\" id=\"1\">\nonce more\n</agent_mail>"));
    assert_eq!((seen(&items).0, seen(&items).1), (2, 0));
    let view = view(&items);
    assert_eq!((view.prompt.as_str(), view.task.as_str()), ("do it", "once more"));
    assert!(!view.texts.iter().any(|text| text.contains("cwd") || text.contains("instructions")));
}

#[test]
fn marks_are_taken_off() {
    let check = |text: &str, expect: &str| assert_eq!(words(text), expect, "{text}");
    check("<agent_mail kind=\"result\">\n a <b> \n</agent_mail>", "a <b>");
    check("  plain ", "plain");
    check("<p>\nnot closed", "<p>\nnot closed");
    check("<p>\nclosed by another</q>", "<p>\nclosed by another</q>");
    check("<>\n</>", "<>\n</>");
    check("", "");
}
