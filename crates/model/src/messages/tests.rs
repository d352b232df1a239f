use expect_test::{Expect, expect};
use protocol::{Call, Item, Role};
use serde_json::{Value, json};

use super::*;
use crate::lab::{self, Lab, answer, answered, header, request, show, sse, stream};
use crate::remote::{Events, Normalise as _};
use crate::sse::Event;
use crate::{ModelEvent, ToolKind};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":60,"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn new() -> normal::Normaliser {
    normal::Normaliser::new(false)
}

#[track_caller]
fn check(events: &[&str], expect: Expect) {
    check_bytes(&sse(events), expect);
}

#[track_caller]
fn check_bytes(stream: &str, expect: Expect) {
    expect.assert_eq(&lab::everywhere(new, Wire::Messages, stream));
}

#[test]
fn everything_that_a_reply_may_have() {
    check(
        &[
            START,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":"","later":1}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h\u00e9, "}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"so"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqoB+/="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{ "type":"redacted_thinking", "data":"Zz\/=" }}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"hé"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"llo 😀"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_a","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"x\": "}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"é\"}"}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_b","name":"g"}}"#,
            r#"{"type":"content_block_stop","index":4}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"output_tokens":15}}"#,
            r#"{"type":"from_the_future","x":1}"#,
            STOP,
        ],
        expect![[r#"
            started
            reasoning "hé, "
            reasoning "so"
            text "hé"
            text "llo 😀"
            item {"type":"reasoning","wire":"messages","provider":"lab","block":{"later":1,"signature":"EqoB+/=","thinking":"hé, so","type":"thinking"}}
            item {"type":"reasoning","wire":"messages","provider":"lab","block":{ "type":"redacted_thinking", "data":"Zz\/=" }}
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"héllo 😀"}]}
            item {"type":"function_call","call_id":"toolu_a","name":"f","arguments":"{\"x\": \"é\"}"}
            item {"type":"function_call","call_id":"toolu_b","name":"g","arguments":"{}"}
            done 90/60/15/0 None
        "#]],
    );
}

fn text(events: &[&str]) -> Vec<String> {
    let mut all = vec![
        START.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#.to_owned(),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
    ];
    all.extend(events.iter().map(|event| (*event).to_owned()));
    all
}

fn stopped(reason: &str) -> String {
    let delta = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}},"usage":{{}}}}"#);
    sse(&text(&[&delta, STOP]).iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn reasons_to_end() {
    for reason in ["end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "later"] {
        let seen = lab::everywhere(new, Wire::Messages, &stopped(reason));
        assert!(seen.ends_with("done 90/60/1/0 None\n"), "{reason}: {seen}");
    }
    check_bytes(
        &stopped("pause_turn"),
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            done 90/60/1/0 Some(true)
        "#]],
    );
    check_bytes(
        &stopped("refusal"),
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            Rejected: the model of lab declined to answer
              word the task differently, or use another model
        "#]],
    );
}

#[test]
fn ends_without_the_end_mark() {
    let events = text(&[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}"#]);
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    check(
        &events,
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            done 90/60/4/0 None
        "#]],
    );
    check(
        &events[..4],
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            no end
        "#]],
    );
}

#[test]
fn blocks_that_are_not_opened_closed_or_numbered() {
    check(
        &[
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_stop"}"#,
            r#"{"type":"content_block_start","content_block":{"type":"text","text":"b"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"c"}}"#,
            r#"{"type":"content_block_stop"}"#,
            r#"{"type":"content_block_start","content_block":{"type":"text","text":" \n"}}"#,
            r#"{"type":"content_block_stop"}"#,
            r#"{"type":"content_block_delta","index":7,"delta":{"type":"citations_delta","citation":{}}}"#,
            r#"{"type":"content_block_start","index":8,"content_block":{"type":"tool_use","name":"f","input":{"x":1}}}"#,
            r#"{"type":"content_block_start","index":9,"content_block":{"type":"tool_use","id":"t","name":"g","input":{}}}"#,
            r#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":{"y":2}}}"#,
            STOP,
        ],
        expect![[r#"
            started
            text "a"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}
            text "b"
            text "c"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"bc"}]}
            text " \n"
            item {"type":"function_call","call_id":"MADE-UP","name":"f","arguments":"{\"x\":1}"}
            item {"type":"function_call","call_id":"t","name":"g","arguments":"{\"y\":2}"}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn reasoning_that_nothing_follows_is_not_given() {
    check(
        &[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"S"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
            STOP,
        ],
        expect![[r#"
            started
            reasoning "hm"
            done 90/60/1/0 None
        "#]],
    );
}

#[test]
fn names_of_events_and_line_ends() {
    check_bytes(
        "event: message_start\r\ndata: {\"message\":{\"usage\":{\"input_tokens\":0}}}\r\n\r\nevent: \
         content_block_start\r\ndata: {\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"é\"}}\r\n\r\nevent: \
         content_block_stop\r\ndata: {\"index\":0}\r\n\r\nevent: message_delta\r\ndata: \
         {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}\r\n\r\nevent: \
         message_stop\r\ndata: {}",
        expect![[r#"
            started
            text "é"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"é"}]}
            done 5/0/2/0 None
        "#]],
    );
}

#[test]
fn faults_in_the_stream() {
    let fault = |kind: &str, message: &str| {
        lab::everywhere(
            new,
            Wire::Messages,
            &sse(&[
                START,
                &format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#),
            ]),
        )
    };
    for (kind, message, expect) in [
        ("overloaded_error", "Overloaded", "Server { after: None }"),
        ("api_error", "Internal", "Server { after: None }"),
        ("rate_limit_error", "slow down", "RateLimited { after: None }"),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "WindowExceeded"),
        ("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 9 > 10", "WindowExceeded"),
        ("invalid_request_error", "messages.1: no such block", "Rejected"),
        ("authentication_error", "invalid x-api-key", "Refused"),
    ] {
        let seen = fault(kind, message);
        let line = format!("started\n{expect}: lab ended its reply with an error: {message}\n");
        assert!(seen.starts_with(&line), "{kind}: {seen}");
    }
}

#[tokio::test]
async fn faults_over_http() {
    let check = async |status, body: &str, expect: Expect| {
        expect.assert_eq(&answered(Wire::Messages, vec![answer(status, "retry-after: 3\r\n", body)]).await);
    };
    check(
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        expect![[r#"
            Server { after: Some(3s) }: lab answered 529: Overloaded
        "#]],
    )
    .await;
    check(
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
        expect![[r#"
            RateLimited { after: Some(3s) }: lab answered 429: slow down
        "#]],
    )
    .await;
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
        expect![[r#"
            WindowExceeded: lab answered 400: prompt is too long: 9 tokens > 8 maximum
              give the rest of the task to a new agent, or use a model with a larger window
        "#]],
    )
    .await;
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
        expect![[r#"
            Quota: lab answered 400: Your credit balance is too low to access the API.
              look at the plan and billing page of lab, or use another provider
        "#]],
    )
    .await;
    check(
        404,
        r#"{"type":"error","error":{"type":"not_found_error","message":"model: m-1"}}"#,
        expect![[r#"
            Rejected: lab answered 404: model: m-1
              check that `BASE` serves `/messages` (often the address must end in /v1) and knows the model `m-1`
        "#]],
    )
    .await;
    check(
        401,
        r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
        expect![[r#"
            Refused: lab answered 401: invalid x-api-key
              this provider is used without a key; name the variable that holds one: `api_key_env = "…"` in [providers.lab]
        "#]],
    )
    .await;
}

#[test]
fn a_document_instead_of_a_stream() {
    expect![[r#"
        started
        item {"type":"reasoning","wire":"messages","provider":"lab","block":{"type":"thinking","thinking":"hm","signature":"S"}}
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
        item {"type":"function_call","call_id":"t","name":"f","arguments":"{\"x\":1}"}
        done 4/0/2/0 None
    "#]]
    .assert_eq(&lab::document(
        new(),
        Wire::Messages,
        r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":4,"output_tokens":2}}"#,
    ));
    expect![[r#"
        Server { after: None }: lab ended its reply with an error: Overloaded
    "#]]
    .assert_eq(&lab::document(
        new(),
        Wire::Messages,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ));
    assert_eq!(lab::document(new(), Wire::Messages, r#"{"hello":1}"#), "no reply\n");
}

/// The items of a reply, read by a normaliser for a request that ended with the note or not.
fn items(noted: bool, events: &[&str]) -> Vec<Item> {
    let mut normaliser = normal::Normaliser::new(noted);
    let mut out = Events::new();
    for data in events {
        let event = Event { name: String::new(), data: (*data).into() };
        normaliser.take(&lab::origin(Wire::Messages), &event, &mut out).unwrap();
    }
    let item = |event| match event {
        Ok(ModelEvent::Item(item)) => Some(item),
        _ => None,
    };
    out.into_iter().filter_map(item).collect()
}

fn body(items: &[Item]) -> (String, bool) {
    let provider = lab::provider(Wire::Messages, "http://x");
    let (body, noted) =
        body::build(&lab::origin(Wire::Messages), false, &request(&*lab::model(&provider), items), usize::MAX);
    (body.json, noted)
}

/// The messages of a body, one a line.
fn messages(items: &[Item]) -> String {
    let body: Value = serde_json::from_str(&body(items).0).unwrap();
    let lines: Vec<String> = body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

fn output(id: &str, text: &str) -> Item {
    let call = Call { call_id: id.to_owned(), name: String::new(), arguments: String::new(), custom: false };
    Item::output(&call, text)
}

#[test]
fn a_conversation() {
    let raw = |json: &str| Item::parse(json).unwrap();
    let conversation = [
        Item::message(Role::Developer, "be brief"),
        Item::message(Role::User, "<environment_context>\ncwd: /\n</environment_context>"),
        Item::message(Role::User, "hi"),
        raw(r#"{"type":"reasoning","id":"rs_1","encrypted_content":"Zz=="}"#),
        raw(r#"{"type":"reasoning","wire":"messages","provider":"other","block":{"type":"thinking"}}"#),
        Item::message(Role::Assistant, "looking "),
        Item::function_call("call_1|a.b", "f", "{ \"x\": 1 }"),
        raw(r#"{"type":"custom_tool_call","call_id":"b","name":"apply_patch","input":"*** Begin\n\"x\""}"#),
        Item::function_call("c", "g", ""),
        Item::function_call("c", "h", "{\"broken\":"),
        output("call_1|a.b", "é"),
        output("b", ""),
        output("c", "1"),
        output("c", "2"),
        Item::message(Role::User, "<agent_mail kind=\"result\">\nx\n</agent_mail>"),
        Item::message(Role::Developer, "later"),
        Item::message(Role::Assistant, "done"),
        output("gone", "lost"),
    ];
    expect![[r#"
        {"content":[{"text":"<environment_context>\ncwd: /\n</environment_context>","type":"text"},{"text":"hi","type":"text"}],"role":"user"}
        {"content":[{"text":"looking ","type":"text"},{"id":"call_1_a_b","input":{"x":1},"name":"f","type":"tool_use"},{"id":"b","input":{"input":"*** Begin\n\"x\""},"name":"apply_patch","type":"tool_use"},{"id":"c","input":{},"name":"g","type":"tool_use"},{"id":"c_2","input":{"input":"{\"broken\":"},"name":"h","type":"tool_use"}],"role":"assistant"}
        {"content":[{"content":"é","tool_use_id":"call_1_a_b","type":"tool_result"},{"content":"","tool_use_id":"b","type":"tool_result"},{"content":"1","tool_use_id":"c","type":"tool_result"},{"content":"2","tool_use_id":"c_2","type":"tool_result"},{"text":"<agent_mail kind=\"result\">\nx\n</agent_mail>","type":"text"},{"text":"<system_note>\nlater\n</system_note>","type":"text"}],"role":"user"}
        {"content":[{"text":"done","type":"text"}],"role":"assistant"}
        {"content":[{"text":"[output of an earlier call]\nlost","type":"text"}],"role":"user"}
    "#]]
    .assert_eq(&messages(&conversation));
}

#[test]
fn signed_reasoning_goes_back_byte_for_byte_and_in_place() {
    let redacted = r#"{ "type":"redacted_thinking", "data":"Zz\/=" }"#;
    let reply = [
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a \"b\"\n"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S+/="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &format!(r#"{{"type":"content_block_start","index":1,"content_block":{redacted}}}"#),
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\": 1.50}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
    ];
    let mut conversation = vec![Item::message(Role::User, "hi")];
    // Through a rollout and back.
    let written = serde_json::to_string(&items(false, &reply)).unwrap();
    conversation.extend(serde_json::from_str::<Vec<Item>>(&written).unwrap());
    conversation.push(output("t", "ok"));
    let (body, _) = body(&conversation);
    let thinking = r#"{"signature":"S+/=","thinking":"a \"b\"\n","type":"thinking"}"#;
    let turn = format!(
        r#"{{"role":"assistant","content":[{thinking},{redacted},{{"type":"tool_use","id":"t","name":"f","input":{{"n": 1.50}}}}]}}"#
    );
    assert!(body.contains(&turn), "{body}");
}

#[test]
fn the_note_stays_before_reasoning_that_it_led_to() {
    let said = [Item::message(Role::User, "hi"), Item::message(Role::Assistant, "so far")];
    let (first, noted) = body(&said);
    assert!(noted);
    expect![[r#"
        {"content":[{"text":"hi","type":"text"}],"role":"user"}
        {"content":[{"text":"so far","type":"text"}],"role":"assistant"}
        {"content":[{"text":"<system_note>\nGo on.\n</system_note>","type":"text"}],"role":"user"}
    "#]]
    .assert_eq(&messages(&said));
    let thinking = [
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"S"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ];
    let text = [
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"and more"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
    ];
    // With reasoning whatever was sent stays as it was, the note included.
    let mut after: Vec<Item> = said.to_vec();
    after.extend(items(true, &[&thinking[..], &text[..]].concat()));
    after.push(Item::message(Role::User, "thanks"));
    let (second, noted) = body(&after);
    assert!(!noted && second.starts_with(first.strip_suffix("]}]}").unwrap()), "{first}\n{second}");
    // Without any, the model's words are one turn, and the note is gone.
    let mut after: Vec<Item> = said.to_vec();
    after.extend(items(true, &text));
    after.push(Item::message(Role::User, "thanks"));
    expect![[r#"
        {"content":[{"text":"hi","type":"text"}],"role":"user"}
        {"content":[{"text":"so far","type":"text"},{"text":"and more","type":"text"}],"role":"assistant"}
        {"content":[{"text":"thanks","type":"text"}],"role":"user"}
    "#]]
    .assert_eq(&messages(&after));
}

#[tokio::test]
async fn what_is_sent() {
    let lab = Lab::start().await;
    let provider = lab::provider(Wire::Messages, &lab.base_url).with_key("LAB_KEY", Some(Secret::new("sk-1")));
    let model = lab::model(&provider);
    lab.answer(stream(&[START, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, STOP]));
    let items = [
        Item::message(Role::Developer, "be brief"),
        Item::message(Role::Developer, "be kind"),
        Item::message(Role::User, "hi"),
    ];
    let mut request = request(&*model, &items);
    request.max_output = Some(99);
    request.head = model.head(&[
        ToolWire {
            name: "f".to_owned(),
            description: "does".to_owned(),
            kind: ToolKind::Function(json!({"type": "object"})),
        },
        ToolWire {
            name: "apply_patch".to_owned(),
            description: "patches".to_owned(),
            kind: ToolKind::Freeform {
                syntax: "lark".to_owned(),
                definition: "start: \"x\"".to_owned(),
                fallback: json!({"fallback": true}),
            },
        },
    ]);
    let events: Vec<_> = futures::StreamExt::collect(model.stream(request)).await;
    assert_eq!(show(&events), "started\ndone 90/60/1/0 None\n");
    let got = &lab.got()[0];
    expect![[r#"{"model":"m-1","max_tokens":99,"stream":true,"tools":[{"name":"f","description":"does","input_schema":{"type":"object"}},{"name":"apply_patch","description":"patches","input_schema":{"fallback":true}}],"system":[{"type":"text","text":"be brief"},{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#]]
    .assert_eq(&got.body);
    assert!(got.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", got.head);
    assert_eq!(header(&got.head, "x-api-key"), Some("sk-1"));
    assert_eq!(header(&got.head, "authorization"), None);
    assert_eq!(header(&got.head, "anthropic-version"), Some("2023-06-01"));
}

#[test]
fn the_official_server_caches_by_itself() {
    let provider = Provider::new("anthropic", "https://api.anthropic.com/v1", Wire::Messages);
    let mut request = request(&*lab::model(&provider), &[Item::message(Role::User, "hi")]);
    request.effort = Some("high".to_owned());
    let origin = Origin { model: "claude-sonnet-5".to_owned(), ..lab::origin(Wire::Messages) };
    let (body, _) = Messages::new(&provider).prepare(&origin, &request);
    expect![[r#"{"model":"claude-sonnet-5","max_tokens":32000,"stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#]]
    .assert_eq(&body);
}
