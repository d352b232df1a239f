use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use protocol::Call;
use serde_json::Value;

use super::*;
use crate::body::Body;
use crate::{ModelRequest, Provider, chat, lab, messages};

const NASTY: [&str; 7] = ["a", "b \"c\" \\ d", "é😀\n", "]}]}", "\"}]}", " ", "\u{0}\u{2028}"];

/// What happens to a conversation between two requests, or in them.
#[derive(Clone, Debug)]
enum Step {
    User(Vec<usize>),
    Developer(usize),
    Reply { thinks: bool, text: Option<usize>, calls: Vec<(usize, bool)> },
    Unknown,
}

fn step() -> impl Strategy<Value = Step> {
    let text = 0..NASTY.len();
    prop_oneof![
        vec(text.clone(), 1..3).prop_map(Step::User),
        text.clone().prop_map(Step::Developer),
        (any::<bool>(), proptest::option::of(text.clone()), vec((0..3_usize, any::<bool>()), 0..4))
            .prop_map(|(thinks, text, calls)| Step::Reply { thinks, text, calls }),
        Just(Step::Unknown),
    ]
}

/// Reasoning of both wires, as their normalisers would give it in answer to a request.
fn thoughts(after_note: bool) -> Vec<Item> {
    let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
    let (block, text) = (raw(r#"{"type":"thinking","thinking":"hm","signature":"S"}"#), raw(r#""h\"m""#));
    let signed = Opaque { block: Some(&block), after_note, ..Opaque::default() };
    let plain = Opaque { field: Some("reasoning_content".into()), text: Some(&text), ..Opaque::default() };
    vec![
        signed.item(Wire::Messages, "lab").unwrap(),
        plain.item(Wire::Chat, "lab").unwrap(),
        Item::parse(r#"{"type":"reasoning","encrypted_content":"Zz"}"#).unwrap(),
    ]
}

fn call(id: usize, custom: bool, text: &str) -> Item {
    let id = ["x", "call_1|y", ""][id];
    if custom { Item::custom_call(id, "patch", text) } else { Item::function_call(id, "f", text) }
}

fn output(call: &Item, text: &str) -> Item {
    Item::output(&call.call().unwrap(), text)
}

fn request(items: &[Item]) -> ModelRequest {
    let provider = lab::provider(Wire::Chat, "http://x");
    lab::request(&*lab::model(&provider), items)
}

/// The body on either wire, for a provider of this name.
fn bodies(provider: &str, items: &[Item]) -> [Body; 2] {
    let provider = Provider::new(provider, "http://x", Wire::Chat);
    let origin = |wire| crate::fault::Origin { provider: provider.name.clone(), ..lab::origin(wire) };
    [
        chat::Chat::new(&provider).body(&origin(Wire::Chat), &request(items), usize::MAX),
        messages::Messages::new(&provider).body(&origin(Wire::Messages), &request(items), usize::MAX).0,
    ]
}

proptest! {
    #[test]
    fn bodies_only_grow(system in 0..3_usize, first in 0..NASTY.len() - 2, steps in vec(step(), 0..12)) {
        for provider in ["lab", "deepseek"] {
            let mut items: Vec<Item> = (0..system).map(|n| Item::message(Role::Developer, NASTY[n])).collect();
            items.push(Item::message(Role::User, NASTY[first]));
            let mut sent = bodies(provider, &items);
            for step in &steps {
                match step {
                    Step::User(texts) => items.extend(texts.iter().map(|n| Item::message(Role::User, NASTY[*n]))),
                    Step::Developer(n) => items.push(Item::message(Role::Developer, NASTY[*n])),
                    Step::Unknown => items.push(Item::parse(r#"{"type":"from_the_future"}"#).unwrap()),
                    Step::Reply { thinks, text, calls } => {
                        let noted = read(&items, Wire::Messages, "lab").noted;
                        // Reasoning is given out with what follows it only.
                        if *thinks && (text.is_some() || !calls.is_empty()) {
                            items.extend(thoughts(noted));
                        }
                        items.extend(text.map(|n| Item::message(Role::Assistant, NASTY[n])));
                        let calls: Vec<Item> = calls.iter().map(|(id, custom)| call(*id, *custom, NASTY[*id])).collect();
                        items.extend(calls.iter().cloned());
                        items.extend(calls.iter().map(|call| output(call, NASTY[calls.len()])));
                    }
                }
                let next = bodies(provider, &items);
                for (before, after) in sent.iter().zip(&next) {
                    prop_assert!(
                        after.json.starts_with(&before.json[..before.kept]),
                        "kept {}\nbefore {}\nafter  {}", &before.json[..before.kept], before.json, after.json
                    );
                    prop_assert!(after.kept >= before.kept);
                    // All that is not kept closes the body, or is the note.
                    let rest = &before.json[before.kept..];
                    let note = [rest.find(",{\"role\":\"user\""), rest.find("},{\"role\":\"user\"")];
                    let closing = note.into_iter().flatten().next().map_or(rest, |at| &rest[..at]);
                    // What the model's turn says beside its text stands behind it, and may still grow.
                    let closing = closing.replace("h\\\"m", "").replace("\\n\\n", "");
                    let closing = closing.replace(",\"reasoning_content\":\"\"", "");
                    prop_assert!(closing.chars().all(|c| "\"]}".contains(c)), "{rest}");
                }
                sent = next;
            }
        }
    }

    #[test]
    fn any_items_make_a_conversation(kinds in vec((0..8_usize, 0..3_usize, 0..NASTY.len()), 0..14)) {
        let items: Vec<Item> = kinds.iter().flat_map(|(kind, id, text)| match kind {
            0 => vec![Item::message(Role::Developer, NASTY[*text])],
            1 => vec![Item::message(Role::User, NASTY[*text])],
            2 => vec![Item::message(Role::Assistant, NASTY[*text])],
            3 | 4 => vec![call(*id, *kind == 4, NASTY[*text])],
            5 => vec![output(&call(*id, false, ""), NASTY[*text])],
            6 => thoughts(*text == 0),
            _ => vec![Item::parse(r#"{"type":"x"}"#).unwrap()],
        }).collect();
        let [chat, messages] = bodies("lab", &items);
        check_chat(&serde_json::from_str(&chat.json).unwrap())?;
        check_messages(&serde_json::from_str(&messages.json).unwrap())?;
    }
}

fn ids<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    list.as_array().into_iter().flatten().filter_map(|entry| entry[name].as_str()).collect()
}

/// Who speaks alternates, calls are answered right behind, each once, and somebody else has the last word.
fn check_chat(body: &Value) -> Result<(), TestCaseError> {
    let messages = body["messages"].as_array().unwrap();
    let mut before = "";
    let mut open: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        prop_assert!(role != "system" || n == 0, "{body}");
        if role == "tool" {
            let at = open.iter().position(|id| message["tool_call_id"] == *id);
            prop_assert!(at.is_some(), "{body}");
            open.remove(at.unwrap());
        } else {
            prop_assert!(open.is_empty() && role != before, "{body}");
        }
        if role == "assistant" {
            prop_assert!(matches!(before, "user" | "tool"), "{body}");
            open = ids(&message["tool_calls"], "id");
            prop_assert!(open.iter().all(|id| seen.insert(*id)), "{body}");
            prop_assert!(message["content"].is_string() || !open.is_empty(), "{body}");
        }
        before = role;
    }
    prop_assert!(open.is_empty() && matches!(before, "user" | "tool"), "{body}");
    Ok(())
}

fn check_messages(body: &Value) -> Result<(), TestCaseError> {
    let messages = body["messages"].as_array().unwrap();
    let mut open: Vec<&str> = Vec::new();
    let mut seen = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        prop_assert_eq!(message["role"].as_str().unwrap(), ["user", "assistant"][n % 2]);
        let blocks = message["content"].as_array().unwrap();
        prop_assert!(!blocks.is_empty(), "{body}");
        // Results come first, and all of them.
        let mut answered = ids(&message["content"], "tool_use_id");
        answered.sort_unstable();
        open.sort_unstable();
        prop_assert_eq!(answered, open);
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        prop_assert!(blocks[results..].iter().all(|block| block["type"] != "tool_result"), "{body}");
        open = ids(&message["content"], "id");
        let fits = |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        prop_assert!(open.iter().all(|id| fits(id) && seen.insert(*id)), "{body}");
        for block in blocks {
            prop_assert!(block["type"] != "text" || !block["text"].as_str().unwrap().trim().is_empty(), "{body}");
            prop_assert!(block["type"] != "tool_use" || block["input"].is_object(), "{body}");
        }
        prop_assert!(blocks.last().unwrap()["type"] != "thinking", "{body}");
    }
    prop_assert!(open.is_empty() && messages.len() % 2 == 1, "{body}");
    Ok(())
}

#[test]
fn what_is_said_between_calls_and_outputs_waits() {
    let items = [
        Item::message(Role::User, "hi"),
        Item::function_call("a", "f", "{}"),
        Item::function_call("b", "f", "{}"),
        Item::message(Role::User, "wait"),
        output(&call(0, false, ""), "stray"),
        Item::output(&Call { call_id: "b".to_owned(), ..no_call() }, "2"),
        Item::output(&Call { call_id: "a".to_owned(), ..no_call() }, "1"),
    ];
    let turns = read(&items, Wire::Chat, "lab").turns;
    let [Turn::User(_), Turn::Assistant(parts), Turn::Results(answers), Turn::User(texts)] = turns.as_slice() else {
        panic!("{turns:?}")
    };
    assert_eq!(parts.len(), 2);
    assert_eq!(answers.iter().map(|answer| &*answer.id).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(texts, &["wait", "[output of an earlier call]\\nstray"]);
}

fn no_call() -> Call {
    Call { call_id: String::new(), name: String::new(), arguments: String::new(), custom: false }
}
