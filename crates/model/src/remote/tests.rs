use std::sync::Arc;

use expect_test::{Expect, expect};
use futures::StreamExt as _;
use protocol::{Item, Role};
use serde_json::Value;
use tokio::sync::Notify;

use super::*;
use crate::Transcript;
use crate::lab::{self, Act, Lab, answer, answered, chunk, end, head, sse, stream};

const WIRES: [Wire; 3] = [Wire::Responses, Wire::Chat, Wire::Messages];

/// A reply of text and calls as the events of a wire.
fn reply(wire: Wire, text: &str, calls: &[(&str, &str, &str)]) -> Vec<Act> {
    let quote = crate::json::quote;
    let mut events = Vec::new();
    match wire {
        Wire::Responses => {
            events.push(r#"{"type":"response.created"}"#.to_owned());
            events.push(format!(r#"{{"type":"response.output_text.delta","delta":{}}}"#, quote(text)));
            let calls = calls.iter().map(|(id, name, arguments)| Item::function_call(id, name, arguments));
            for (n, item) in [Item::message(Role::Assistant, text)].into_iter().chain(calls).enumerate() {
                let raw = item.raw();
                events.push(format!(r#"{{"type":"response.output_item.done","output_index":{n},"item":{raw}}}"#));
            }
            events.push(
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}}}"#.to_owned(),
            );
        }
        Wire::Chat => {
            events.push(format!(r#"{{"choices":[{{"delta":{{"role":"assistant","content":{}}}}}]}}"#, quote(text)));
            for (n, (id, name, arguments)) in calls.iter().enumerate() {
                events.push(format!(
                    r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{n},"id":"{id}","function":{{"name":"{name}","arguments":{}}}}}]}}}}]}}"#,
                    quote(arguments)
                ));
            }
            events.push(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned());
            events.push(
                r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}"#.to_owned(),
            );
            events.push("[DONE]".to_owned());
        }
        Wire::Messages => {
            events.push(
                r#"{"type":"message_start","message":{"usage":{"input_tokens":4,"cache_creation_input_tokens":1,"cache_read_input_tokens":4}}}"#.to_owned(),
            );
            events.push(
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
            );
            events.push(format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{}}}}}"#,
                quote(text)
            ));
            events.push(r#"{"type":"content_block_stop","index":0}"#.to_owned());
            for (n, (id, name, arguments)) in (1..).zip(calls) {
                events.push(format!(
                    r#"{{"type":"content_block_start","index":{n},"content_block":{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}}}"#
                ));
                events.push(format!(
                    r#"{{"type":"content_block_delta","index":{n},"delta":{{"type":"input_json_delta","partial_json":{}}}}}"#,
                    quote(arguments)
                ));
                events.push(format!(r#"{{"type":"content_block_stop","index":{n}}}"#));
            }
            events.push(
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#.to_owned(),
            );
            events.push(r#"{"type":"message_stop"}"#.to_owned());
        }
    }
    stream(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Who says what in a body, one thing a line, whatever the wire.
fn said(wire: Wire, body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n\n"),
        other => other.to_string(),
    };
    let mut lines = Vec::new();
    let mut say = |who: &str, what: String| lines.push(format!("{who}: {}", what.replace('\n', "|")));
    match wire {
        Wire::Responses => {
            for item in body["input"].as_array().unwrap() {
                match item["type"].as_str().unwrap() {
                    "message" => {
                        say(&item["role"].as_str().unwrap().replace("developer", "system"), text(&item["content"]));
                    }
                    "function_call" => {
                        say("call", format!("{} {} {}", item["call_id"], item["name"], text(&item["arguments"])));
                    }
                    _ => say("output", format!("{} {}", item["call_id"], text(&item["output"]))),
                }
            }
        }
        Wire::Chat => {
            for message in body["messages"].as_array().unwrap() {
                match message["role"].as_str().unwrap() {
                    "tool" => say("output", format!("{} {}", message["tool_call_id"], text(&message["content"]))),
                    role => say(role, text(&message["content"])),
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    say("call", format!("{} {} {}", call["id"], function["name"], text(&function["arguments"])));
                }
            }
        }
        Wire::Messages => {
            say("system", text(&body["system"]));
            for message in body["messages"].as_array().unwrap() {
                for block in message["content"].as_array().unwrap() {
                    match block["type"].as_str().unwrap() {
                        "text" => say(message["role"].as_str().unwrap(), text(&block["text"])),
                        "tool_use" => say("call", format!("{} {} {}", block["id"], block["name"], block["input"])),
                        _ => say("output", format!("{} {}", block["tool_use_id"], text(&block["content"]))),
                    }
                }
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Text, two parallel calls, their outputs, mail, and a follow-up, over one wire: the events, and what the server
/// of the last request reads.
async fn conversation(wire: Wire) -> (String, String) {
    let lab = Lab::start().await;
    let model = lab::model(&lab::provider(wire, &lab.base_url));
    let mut transcript = Transcript::default();
    transcript.push(Item::message(Role::Developer, "be brief"));
    transcript.push(Item::message(Role::User, "look around"));
    let calls = [("a", "exec_command", r#"{"cmd":"ls \"é\""}"#), ("b", "exec_command", "{}")];
    lab.answer(reply(wire, "looking", &calls));
    lab.answer(reply(wire, "all is well", &[]));
    lab.answer(reply(wire, "bye", &[]));
    let mut seen = String::new();
    for round in 0..3 {
        let mut request = lab::request(&*model, &[]);
        request.input = transcript.clone();
        let events: Vec<_> = model.stream(request).collect().await;
        seen += &lab::show(&events);
        let items: Vec<Item> = events
            .into_iter()
            .filter_map(|event| match event.unwrap() {
                ModelEvent::Item(item) => Some(item),
                _ => None,
            })
            .collect();
        for item in &items {
            transcript.push(item.clone());
        }
        for call in items.iter().filter_map(Item::call) {
            transcript.push(Item::output(&call, &format!("output of {}\n", call.call_id)));
        }
        match round {
            0 => transcript.push(Item::message(Role::User, "<agent_mail kind=\"result\">\nfound it\n</agent_mail>")),
            _ => transcript.push(Item::message(Role::User, "thanks")),
        }
    }
    let got = lab.got();
    (seen, said(wire, &got[2].body))
}

#[tokio::test]
async fn one_conversation_is_the_same_on_every_wire() {
    let events = expect![[r#"
        started
        text "looking"
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"looking"}]}
        item {"type":"function_call","call_id":"a","name":"exec_command","arguments":"{\"cmd\":\"ls \\\"é\\\"\"}"}
        item {"type":"function_call","call_id":"b","name":"exec_command","arguments":"{}"}
        done 9/4/3/0 None
        started
        text "all is well"
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"all is well"}]}
        done 9/4/3/0 None
        started
        text "bye"
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"bye"}]}
        done 9/4/3/0 None
    "#]];
    let read = expect![[r#"
        system: be brief
        user: look around
        assistant: looking
        call: "a" "exec_command" {"cmd":"ls \"é\""}
        call: "b" "exec_command" {}
        output: "a" output of a|
        output: "b" output of b|
        user: <agent_mail kind="result">|found it|</agent_mail>
        assistant: all is well
        user: thanks
    "#]];
    for wire in WIRES {
        let (seen, said) = conversation(wire).await;
        events.assert_eq(&seen);
        read.assert_eq(&said);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_interrupted() {
    let check = async |wire, event: &str, expect: Expect| {
        let acts = vec![head(), Act::Send(chunk(sse(&[event]).as_bytes())), Act::Close];
        expect.assert_eq(&answered(wire, acts).await);
        let acts = vec![head(), Act::Send(chunk(sse(&[event]).as_bytes())), end()];
        let seen = answered(wire, acts).await;
        assert!(seen.ends_with("Interrupted: lab ended the stream before its reply was complete\n"), "{seen}");
    };
    check(
        Wire::Chat,
        r#"{"choices":[{"delta":{"content":"hi"}}]}"#,
        expect![[r#"
            started
            text "hi"
            Interrupted: lab broke off its reply: unexpected EOF during chunk size line
        "#]],
    )
    .await;
    check(
        Wire::Messages,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
        expect![[r#"
            started
            text "hi"
            Interrupted: lab broke off its reply: unexpected EOF during chunk size line
        "#]],
    )
    .await;
}

/// A reply that is complete but for its end mark.
fn almost(wire: Wire) -> Vec<u8> {
    chunk(
        match wire {
            Wire::Messages => sse(&[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}"#,
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            ]),
            _ => sse(&[r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#]),
        }
        .as_bytes(),
    )
}

const HI: &str = "started\ntext \"hi\"\nitem \
                  {\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}\n\
                  done 0/0/0/0 None\n";

#[tokio::test]
async fn a_complete_reply_needs_no_end_mark() {
    for wire in [Wire::Chat, Wire::Messages] {
        for last in [end(), Act::Close] {
            assert_eq!(answered(wire, vec![head(), Act::Send(almost(wire)), last]).await, HI);
        }
    }
}

#[tokio::test]
async fn a_complete_reply_does_not_wait_for_a_server_that_holds_the_line() {
    let held = async |wire| {
        let lab = Lab::start().await;
        let mut provider = lab::provider(wire, &lab.base_url);
        provider.idle_timeout = Duration::from_hours(1);
        let hung_up = Arc::new(Notify::new());
        lab.answer([head(), Act::Send(almost(wire)), Act::Stall(Arc::clone(&hung_up))]);
        assert_eq!(lab::show(&lab::ask(&*lab::model(&provider)).await), HI);
        hung_up.notified().await;
    };
    let both = futures::future::join(held(Wire::Chat), held(Wire::Messages));
    tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();
}

#[tokio::test]
async fn silence_and_refusals_are_the_same_on_every_wire() {
    for wire in WIRES {
        let lab = Lab::start().await;
        let mut provider = lab::provider(wire, &lab.base_url);
        provider.idle_timeout = Duration::from_millis(50);
        let hung_up = Arc::new(Notify::new());
        lab.answer([Act::Stall(Arc::clone(&hung_up))]);
        let seen = lab::show(&lab::ask(&*lab::model(&provider)).await);
        assert_eq!(seen, "Interrupted: lab did not begin to answer within 0.1 s\n");
        hung_up.notified().await;

        let refused = async |status, headers: &str, body: &str| {
            let seen = answered(wire, vec![answer(status, headers, body)]).await;
            seen.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(refused(401, "", "").await, "Refused: lab answered 401");
        assert_eq!(refused(429, "retry-after: 7\r\n", "").await, "RateLimited { after: Some(7s) }: lab answered 429");
        assert_eq!(refused(503, "", r#"{"error":"busy"}"#).await, "Server { after: None }: lab answered 503: busy");
        assert_eq!(refused(413, "", "").await, "WindowExceeded: lab answered 413");
        assert_eq!(
            refused(200, "content-type: text/html\r\n", "<h1>").await,
            format!("Nonsense: lab answered something that is not the {} protocol: <h1>", wire.protocol())
        );
    }
}

/// What a server of this wire sends to show that it lives: a comment, and an event with nothing in it.
fn beat(wire: Wire) -> String {
    let empty: &[&str] = match wire {
        Wire::Responses => {
            &[r#"{"type":"response.in_progress"}"#, r#"{"type":"response.output_text.delta","delta":""}"#]
        }
        Wire::Chat => &[r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#, r#"{"choices":[]}"#],
        Wire::Messages => &[
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#,
        ],
    };
    format!(": beat\n\n{}", sse(empty))
}

#[tokio::test]
async fn a_server_that_only_beats_is_left() {
    for wire in WIRES {
        let lab = Lab::start().await;
        let mut provider = lab::provider(wire, &lab.base_url);
        provider.progress_timeout = Duration::from_millis(200);
        lab.answer([head(), Act::Beat(chunk(beat(wire).as_bytes()))]);
        let seen = lab::show(&lab::ask(&*lab::model(&provider)).await);
        let said = "Interrupted: lab kept its stream open for 0.2 s and sent nothing of a reply\n";
        assert!(seen.ends_with(said), "{wire:?}: {seen}");
    }
}

#[tokio::test]
async fn a_document_that_never_begins_is_left_too() {
    for wire in WIRES {
        let lab = Lab::start().await;
        let mut provider = lab::provider(wire, &lab.base_url);
        provider.progress_timeout = Duration::from_millis(200);
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        lab.answer([Act::Send(head.to_vec()), Act::Beat(chunk(b"\n"))]);
        let seen = lab::show(&lab::ask(&*lab::model(&provider)).await);
        assert!(seen.contains("sent nothing of a reply"), "{wire:?}: {seen}");
    }
}

#[tokio::test]
async fn a_complete_reply_does_not_wait_for_a_server_that_beats_on() {
    for wire in [Wire::Chat, Wire::Messages] {
        let acts = [head(), Act::Send(almost(wire)), Act::Beat(chunk(b": beat\n\n"))];
        // Not a measure of speed: without the rule it would never end.
        let seen = tokio::time::timeout(Duration::from_mins(1), answered(wire, acts.into())).await.unwrap();
        assert_eq!(seen, HI);
    }
}

/// Whether something of a reply comes with each of these events.
fn moves(wire: Wire, events: &[&str]) -> Vec<bool> {
    fn all<D: Dialect>(dialect: D, events: &[&str]) -> Vec<bool> {
        let provider = lab::provider(D::WIRE, "http://x");
        let origin = lab::origin(D::WIRE);
        let (_, mut normaliser) = dialect.prepare(&origin, &lab::request(&*lab::model(&provider), &[]));
        let mut moves = Vec::new();
        for event in events {
            let mut out = Events::new();
            normaliser
                .take(&origin, &Event { name: String::new(), data: event.as_bytes().to_vec() }, &mut out)
                .unwrap();
            moves.push(out.iter().flatten().any(ModelEvent::is_progress));
        }
        moves
    }
    let provider = lab::provider(wire, "http://x");
    match wire {
        Wire::Responses => all(crate::responses::Responses::new(&provider), events),
        Wire::Chat => all(crate::chat::Chat::new(&provider), events),
        Wire::Messages => all(crate::messages::Messages::new(&provider), events),
    }
}

#[test]
fn pieces_of_a_call_are_something_of_a_reply_and_empty_ones_are_not() {
    let responses = [
        r#"{"type":"response.output_item.added","item":{}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":""}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{\"a"}"#,
        r#"{"type":"response.custom_tool_call_input.delta","delta":"x"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"h"}"#,
    ];
    assert_eq!(moves(Wire::Responses, &responses), [false, false, true, true, true]);
    let chat = [
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"","reasoning_content":""}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}}]}"#,
    ];
    assert_eq!(moves(Wire::Chat, &chat), [false, true, false, true]);
    let messages = [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
        r#"{"type":"ping"}"#,
    ];
    assert_eq!(moves(Wire::Messages, &messages), [false, false, true, true, false]);
}

#[tokio::test]
async fn one_connection_for_requests_in_a_row() {
    for wire in WIRES {
        let lab = Lab::start().await;
        let model = lab::model(&lab::provider(wire, &lab.base_url));
        for _ in 0..3 {
            lab.answer(reply(wire, "hi", &[]));
            lab::ask(&*model).await;
        }
        let connections: Vec<usize> = lab.got().iter().map(|got| got.connection).collect();
        assert_eq!(connections, [0; 3], "{wire:?}");
    }
}

#[test]
fn what_another_wire_wrapped_up_is_not_sent_over_responses() {
    let block = serde_json::value::RawValue::from_string(r#"{"type":"thinking"}"#.to_owned()).unwrap();
    let opaque = crate::opaque::Opaque { block: Some(&block), ..Default::default() };
    let own = Item::parse(r#"{"type":"reasoning","encrypted_content":"Zz"}"#).unwrap();
    let items = [opaque.item(Wire::Messages, "a\"b").unwrap(), own.clone(), opaque.item(Wire::Chat, "c").unwrap()];
    let provider = lab::provider(Wire::Responses, "http://x");
    let (body, _) = crate::responses::Responses::new(&provider)
        .prepare(&lab::origin(Wire::Responses), &lab::request(&*lab::model(&provider), &items));
    assert!(body.ends_with(&format!(r#""input":[{}]}}"#, own.raw())), "{body}");
    let read = |wire, provider| crate::opaque::read(&items[0], wire, provider).is_some();
    assert!(read(Wire::Messages, "a\"b") && !read(Wire::Messages, "c") && !read(Wire::Chat, "a\"b"));
}
