use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::client::{Answer, Client, End};
use crate::{Reply, Server, Wire};

const CHAT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"exec_command"}}]}"#;
const MESSAGES: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"name":"exec_command"}]}"#;

/// The wires that have other events than the Responses wire, with a request for each.
const WIRES: [(Wire, &str); 2] = [(Wire::Chat, CHAT), (Wire::Messages, MESSAGES)];

fn ask(wire: Wire, reply: Reply) -> Answer {
    let body = WIRES.iter().find(|(known, _)| *known == wire).unwrap().1;
    let server = Server::start(move |_| reply.clone());
    let mut client = Client::new(&server);
    client.send_over(wire, body);
    let answer = client.answer();
    let request = &server.requests()[0];
    assert_eq!((request.wire(), request.thread(), request.session()), (wire, "t1", "s1"));
    assert_eq!((request.told().as_str(), request.tools()), ("hi", vec!["exec_command"]));
    answer
}

/// The events of a reply that says and does a bit of everything.
fn check(wire: Wire, expect: Expect) {
    let reply = Reply::new().reasoning("seal=").text("Grüße").call("run", json!({"cmd": "true"})).custom("patch", "x");
    let answer = ask(wire, reply.usage(7, 5, 3));
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    expect.assert_eq(&answer.text().replace("\n\n", "\n"));
}

#[test]
fn events_of_the_chat_wire() {
    check(
        Wire::Chat,
        expect![[r#"
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"seal="},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"content":"Grüße"},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"","name":"run"},"id":"call_1_2","index":0,"type":"function"}]},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{\"cmd\":\"true\"}"},"index":0}]},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"","name":"patch"},"id":"call_1_3","index":1,"type":"function"}]},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{\"input\":\"x\"}"},"index":1}]},"finish_reason":null}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
        data: {"id":"chatcmpl_1","object":"chat.completion.chunk","created":0,"model":"m","choices":[],"usage":{"completion_tokens":3,"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":5},"total_tokens":10}}
        data: [DONE]
    "#]],
    );
}

#[test]
fn events_of_the_messages_wire() {
    check(
        Wire::Messages,
        expect![[r#"
        event: message_start
        data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"cache_creation_input_tokens":0,"cache_read_input_tokens":5,"input_tokens":2,"output_tokens":1}}}
        event: content_block_start
        data: {"type":"content_block_start","index":0,"content_block":{"signature":"","thinking":"","type":"thinking"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"thinking":"Let me think: \"f","type":"thinking_delta"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"thinking":"irst\" things fir","type":"thinking_delta"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"thinking":"st…","type":"thinking_delta"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":0,"delta":{"signature":"seal=","type":"signature_delta"}}
        event: content_block_stop
        data: {"type":"content_block_stop","index":0}
        event: content_block_start
        data: {"type":"content_block_start","index":1,"content_block":{"text":"","type":"text"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":1,"delta":{"text":"Grüße","type":"text_delta"}}
        event: content_block_stop
        data: {"type":"content_block_stop","index":1}
        event: content_block_start
        data: {"type":"content_block_start","index":2,"content_block":{"id":"call_1_2","input":{},"name":"run","type":"tool_use"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":2,"delta":{"partial_json":"{\"cmd\":\"true\"}","type":"input_json_delta"}}
        event: content_block_stop
        data: {"type":"content_block_stop","index":2}
        event: content_block_start
        data: {"type":"content_block_start","index":3,"content_block":{"id":"call_1_3","input":{},"name":"patch","type":"tool_use"}}
        event: content_block_delta
        data: {"type":"content_block_delta","index":3,"delta":{"partial_json":"{\"input\":\"x\"}","type":"input_json_delta"}}
        event: content_block_stop
        data: {"type":"content_block_stop","index":3}
        event: message_delta
        data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":3}}
        event: message_stop
        data: {"type":"message_stop"}
    "#]],
    );
}

#[test]
fn other_shapes_say_the_same_on_every_wire() {
    for (wire, _) in WIRES {
        let reply = || Reply::new().text("Grüße, 世界").call("run", json!({"cmd": "true"}));
        let plain = ask(wire, reply());
        for other in [reply().crlf(), reply().comments(), reply().split_bytes(7), reply().crlf().split_bytes(1)] {
            let other = ask(wire, other);
            assert_ne!(other.chunks, plain.chunks, "{wire:?}");
            assert_eq!(other.events(), plain.events(), "{wire:?}");
        }
        let huge = ask(wire, reply().huge_event(5_000)).events();
        assert_eq!(huge[1]["padding"].as_str().unwrap().len(), 5_000);
        assert_eq!(huge.len(), plain.events().len() + 1);
    }
}

#[test]
fn faults_are_the_same_on_every_wire() {
    for (wire, _) in WIRES {
        let whole = ask(wire, "a".into()).events();
        let cut = ask(wire, Reply::new().text("a").cut_after(2));
        assert_eq!((cut.events().as_slice(), cut.end), (&whole[..2], End::Closed), "{wire:?}");
        assert_eq!(ask(wire, Reply::new().text("a").reset_after(1)).end, End::Reset, "{wire:?}");
        let limited = ask(wire, Reply::new().status_with_headers(429, [("retry-after", "1")]));
        assert_eq!((limited.status, limited.end), (429, End::Whole));
        assert!(limited.head.contains("\r\nretry-after: 1\r\n"));
    }
}

#[test]
fn endings_are_in_the_words_of_the_wire() {
    let last = |wire: Wire, reply: Reply, back: usize| {
        let mut events = ask(wire, reply.no_usage()).events();
        events.truncate(events.len() - back);
        events.pop().unwrap()
    };
    let text = || Reply::new().text("a");
    let chat = |reply| last(Wire::Chat, reply, 0);
    assert_eq!(chat(text())["choices"][0]["finish_reason"], "stop");
    assert_eq!(chat(text().call("b", json!({})))["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chat(text().incomplete("max_output_tokens"))["choices"][0]["finish_reason"], "length");
    assert_eq!(chat(text().failed("code", "why"))["error"], json!({"code": "code", "message": "why"}));
    assert_eq!(chat(text().no_completed())["choices"][0]["finish_reason"], Value::Null);
    let messages = |reply, back| last(Wire::Messages, reply, back);
    assert_eq!(messages(text(), 1)["delta"]["stop_reason"], "end_turn");
    assert_eq!(messages(text().call("b", json!({})), 1)["delta"]["stop_reason"], "tool_use");
    assert_eq!(messages(text().incomplete("max_output_tokens"), 1)["delta"]["stop_reason"], "max_tokens");
    assert_eq!(messages(text().failed("overloaded_error", "why"), 0)["error"]["type"], "overloaded_error");
    assert_eq!(messages(text().no_completed(), 0)["type"], "content_block_stop");
}

#[test]
fn calls_of_odd_servers() {
    let odd = Reply::new().call("a", json!({"x": 1})).missing_call_id().object_arguments().no_usage();
    let events = ask(Wire::Chat, odd.clone()).events();
    let call = &events[1]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(*call, json!({"index": 0, "type": "function", "function": {"name": "a", "arguments": {"x": 1}}}));
    assert!(events.iter().all(|event| event.get("usage").is_none()));
    let events = ask(Wire::Messages, odd.clone()).events();
    assert_eq!(events[1]["content_block"], json!({"type": "tool_use", "name": "a", "input": {}}));
    let whole = |wire, reply: Reply| serde_json::from_slice::<Value>(&ask(wire, reply.whole()).bytes()).unwrap();
    let chat = whole(Wire::Chat, Reply::new().text("a").call("b", json!({"c": 1})));
    let message = &chat["choices"][0]["message"];
    assert_eq!(
        (&message["content"], &message["tool_calls"][0]["function"]["arguments"]),
        (&json!("a"), &json!(r#"{"c":1}"#))
    );
    let messages = whole(Wire::Messages, odd);
    assert_eq!((&messages["content"][0]["input"], &messages["stop_reason"]), (&json!({"x": 1}), &json!("tool_use")));
}

#[test]
fn raw_items_are_what_the_wire_has_for_them() {
    let odd = r#"{ "type":"new_thing",  "content": null}"#;
    let chat = ask(Wire::Chat, Reply::new().raw_item(odd)).text();
    assert!(chat.contains(&format!(r#""delta":{odd},"#)), "{chat}");
    let messages = ask(Wire::Messages, Reply::new().raw_item(odd)).text();
    assert!(messages.contains(&format!(r#""content_block":{odd}}}"#)), "{messages}");
}

#[test]
fn items_come_in_turns() {
    let reply = Reply::new().call("a", json!({"of": "more than one piece is it up to the Z"})).call("b", json!({}));
    for (wire, _) in WIRES {
        let (plain, mixed) = (ask(wire, reply.clone()).text(), ask(wire, reply.clone().interleaved()).text());
        let at = |text: &str, what: &str| text.find(&format!("\"name\":\"{what}\"")).unwrap();
        let piece = |text: &str| text.find('Z').unwrap();
        assert!(at(&plain, "b") > piece(&plain), "{plain}");
        assert!(at(&mixed, "b") < piece(&mixed), "{mixed}");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&plain), sorted(&mixed), "nothing is lost");
    }
}
