use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use futures::StreamExt as _;
use protocol::{Item, Role, Usage};
use serde_json::{Value, json};
use stdx::Secret;
use tokio::sync::Notify;

use super::*;
use crate::lab::{Act, Lab, answer, ask, chunk, end, head, header, model, origin, request, show, sse, stream};
use crate::remote::Normalise as _;
use crate::sse::MAX_EVENT;
use crate::{ErrorKind, MAX_ERROR_BODY, MAX_REPLY, ModelEvent, ToolKind, Transcript};

const COMPLETED: &str = r#"{"type":"response.completed","response":{}}"#;

fn provider(base_url: &str) -> Provider {
    crate::lab::provider(Wire::Responses, base_url)
}

/// What a model makes of one answer.
async fn check(acts: Vec<Act>, expect: impl Borrow<Expect>) {
    let lab = Lab::start().await;
    lab.answer(acts);
    let seen = show(&ask(&*model(&provider(&lab.base_url))).await);
    expect.borrow().assert_eq(&seen.replace(&lab.base_url, "BASE"));
}

#[tokio::test]
async fn everything_that_a_reply_may_have() {
    let events = [
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        r#"{"type":"response.in_progress","response":{"id":"r"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning"}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{ "type":"reasoning", "id":"rs_1", "encrypted_content":"Zz==", "later":[1, 2.50] }}"#,
        r#"{"type":"response.output_text.delta","delta":"h\u00e9","logprobs":[]}"#,
        r#"{"type":"response.output_text.delta","delta":{"odd":1}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"h\u00e9"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"call_0","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"call_0","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.done","output_index":4,"item":{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin"}}"#,
        r#"{"type":"response.output_item.done","output_index":5,"item":{"type":"from_the_future","x":{"y":null}}}"#,
        r#"{"type":"response.from_the_future","x":1}"#,
        r#"{"type":"response.completed","response":{"end_turn":false,"output":[],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":60},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3}}}}"#,
    ];
    let expect = expect![[r#"
        started
        reasoning "hm"
        item { "type":"reasoning", "id":"rs_1", "encrypted_content":"Zz==", "later":[1, 2.50] }
        text "hé"
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"h\u00e9"}]}
        item {"type":"function_call","call_id":"call_0","name":"f","arguments":"{}"}
        item {"type":"function_call","call_id":"call_0","name":"f","arguments":"{}"}
        item {"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin"}
        item {"type":"from_the_future","x":{"y":null}}
        done 90/60/7/3 Some(true)
    "#]];
    check(stream(&events), &expect).await;
    // The same in pieces of three bytes, which cuts every line and every character somewhere.
    let mut acts = vec![head()];
    acts.extend(sse(&events).as_bytes().chunks(3).map(|piece| Act::Send(chunk(piece))));
    acts.push(end());
    check(acts, expect).await;
}

#[tokio::test]
async fn an_item_is_given_out_once() {
    let a = r#"{"type":"message","id":"a","role":"assistant","content":"one"}"#;
    let a_again = r#"{"type":"message","id":"a","role":"assistant","content":"one","status":"completed"}"#;
    let b = r#"{"type":"function_call","id":"b","call_id":"x","name":"f","arguments":"{}"}"#;
    let done = |index: usize, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let completed = |output: &str| format!(r#"{{"type":"response.completed","response":{{"output":[{output}]}}}}"#);
    let both = expect![[r#"
        started
        item {"type":"message","id":"a","role":"assistant","content":"one"}
        item {"type":"function_call","id":"b","call_id":"x","name":"f","arguments":"{}"}
        done 0/0/0/0 None
    "#]];
    let all = completed(&format!("{a},{b}"));
    check(stream(&[&done(0, a), &done(0, a), &done(0, a_again), &done(1, b), &all]), &both).await;
    check(stream(&[&all]), &both).await;
    check(stream(&[&done(0, a), &completed(&format!("{a_again},{b}"))]), both).await;
}

#[tokio::test]
async fn a_call_always_has_an_id() {
    let lab = Lab::start().await;
    let items = [
        r#"{"type":"function_call","name":"f","later":[1,  2],"arguments":"{}"}"#,
        r#"{"type":"custom_tool_call","call_id":null,"name":"g","input":"x"}"#,
        r#"{"type":"function_call","name":"h","call_id":"","arguments":""}"#,
    ];
    let events: Vec<String> =
        items.iter().map(|item| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#)).collect();
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push(COMPLETED);
    lab.answer(stream(&events));
    let seen = ask(&*model(&provider(&lab.base_url))).await;
    let mut ids = std::collections::BTreeSet::new();
    let calls: Vec<Item> = seen
        .into_iter()
        .filter_map(|event| match event.unwrap() {
            ModelEvent::Item(item) => Some(item),
            _ => None,
        })
        .collect();
    let names: Vec<String> = calls.iter().map(|item| item.call().unwrap().name).collect();
    assert_eq!(names, ["f", "g", "h"]);
    for item in &calls {
        let call = item.call().unwrap();
        assert!(call.call_id.starts_with("call_") && call.call_id.len() > 20, "{}", item.raw());
        assert!(ids.insert(call.call_id));
    }
    assert!(calls[0].raw().ends_with(r#","type":"function_call","name":"f","later":[1,  2],"arguments":"{}"}"#));
}

#[tokio::test]
async fn ends_that_are_no_success() {
    check(
        stream(&[r#"{"type":"response.created"}"#]),
        expect![[r"
        started
        Interrupted: lab ended the stream before its reply was complete
    "]],
    )
    .await;
    check(
        stream(&[r#"{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Slow down. Please try again in 1.2s."}}}"#]),
        expect![[r"
            started
            RateLimited { after: Some(1.2s) }: lab ended its reply with an error: Slow down. Please try again in 1.2s.
        "]],
    )
    .await;
    check(
        stream(&[r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"too long"}}"#]),
        expect![[r"
            WindowExceeded: lab ended its reply with an error: too long
              give the rest of the task to a new agent, or use a model with a larger window
        "]],
    )
    .await;
    check(
        stream(&[r#"{"type":"error","code":"insufficient_quota","message":"nothing left"}"#]),
        expect![[r"
            Quota: lab ended its reply with an error: nothing left
              look at the plan and billing page of lab, or use another provider
        "]],
    )
    .await;
    check(
        stream(&[r#"{"error":{"code":500,"message":"loading"}}"#]),
        expect![[r"
        Server { after: None }: lab ended its reply with an error: loading
    "]],
    )
    .await;
    check(
        stream(&[r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}"#]),
        expect![[r"
            started
            Rejected: lab cut the reply off: its content filter stepped in
              word the task differently, or use another model
        "]],
    )
    .await;
    check(
        stream(&[r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"output_tokens":5}}}"#]),
        expect![[r"
            started
            done 0/0/5/0 None
        "]],
    )
    .await;
}

#[tokio::test]
async fn what_came_before_a_fault_counts() {
    let item = r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"x","name":"f"}}"#;
    let cut = [head(), Act::Send(chunk(sse(&[item]).as_bytes())), Act::Close];
    check(
        cut.to_vec(),
        expect![[r#"
        started
        item {"type":"function_call","call_id":"x","name":"f"}
        Interrupted: lab broke off its reply: unexpected EOF during chunk size line
    "#]],
    )
    .await;
}

#[tokio::test]
async fn no_last_blank_line_and_no_content_type() {
    let body = "data: {\"type\":\"response.created\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{}}";
    check(
        vec![answer(200, "", body)],
        expect![[r"
        started
        done 0/0/0/0 None
    "]],
    )
    .await;
    check(
        vec![answer(200, "content-type: text/event-stream\r\n", "data: [DONE]\n\n")],
        expect![[r#"
        Nonsense: lab answered something that is not the Responses protocol: data: [DONE]
          check that `BASE` is the address of the API itself (often it must end in /v1) and serves `/responses`
    "#]],
    )
    .await;
}

#[tokio::test]
async fn statuses() {
    check(
        vec![answer(401, "", r#"{"error":{"message":"bad\n key","code":"invalid_api_key"}}"#)],
        expect![[r#"
        Refused: lab answered 401: bad key
          this provider is used without a key; name the variable that holds one: `api_key_env = "…"` in [providers.lab]
    "#]],
    )
    .await;
    check(
        vec![answer(404, "content-type: text/html\r\n", "\n<html>\n<h1>Not here</h1>")],
        expect![[r"
        Rejected: lab answered 404: <html>
          check that `BASE` serves `/responses` (often the address must end in /v1) and knows the model `m-1`
    "]],
    )
    .await;
    check(
        vec![answer(429, "retry-after: 7\r\n", "")],
        expect![[r"
        RateLimited { after: Some(7s) }: lab answered 429
    "]],
    )
    .await;
    check(
        vec![answer(429, "retry-after-ms: 20\r\n", r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#)],
        expect![[r"
        Quota: lab answered 429: pay
          look at the plan and billing page of lab, or use another provider
    "]],
    )
    .await;
    check(
        vec![answer(503, "retry-after: 1\r\n", r#"{"error":"busy"}"#)],
        expect![[r"
        Server { after: Some(1s) }: lab answered 503: busy
    "]],
    )
    .await;
    check(
        vec![answer(413, "", "")],
        expect![[r"
        WindowExceeded: lab answered 413
          give the rest of the task to a new agent, or use a model with a larger window
    "]],
    )
    .await;
    check(
        vec![answer(400, "", r#"{"error":{"message":"no such field"}}"#)],
        expect![[r"
        Rejected: lab answered 400: no such field
    "]],
    )
    .await;
    // The sentence stands in front; the rest of a large body is not even read.
    let huge = format!("too bad\n{}", "x".repeat(2 * MAX_ERROR_BODY));
    check(
        vec![answer(500, "", &huge)],
        expect![[r"
        Server { after: None }: lab answered 500: too bad
    "]],
    )
    .await;
}

#[tokio::test]
async fn answers_that_are_no_stream() {
    let json = "content-type: application/json\r\n";
    check(
        vec![answer(200, json, r#"{"object":"response","status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":"hi"}],"usage":{"input_tokens":3,"output_tokens":1}}"#)],
        expect![[r#"
            started
            item {"type":"message","role":"assistant","content":"hi"}
            done 3/0/1/0 None
        "#]],
    )
    .await;
    check(
        vec![answer(200, json, r#"{"error":{"code":"model_not_found","message":"no such model"}}"#)],
        expect![[r"
        Rejected: lab ended its reply with an error: no such model
    "]],
    )
    .await;
    check(
        vec![answer(200, json, r#"{"status":"failed","output":[],"error":{"code":"server_error","message":"oh"}}"#)],
        expect![[r"
        Server { after: None }: lab ended its reply with an error: oh
    "]],
    )
    .await;
    let nonsense = |line: &str| {
        format!(
            "Nonsense: lab answered something that is not the Responses protocol: {line}\n  check that `BASE` is the \
             address of the API itself (often it must end in /v1) and serves `/responses`\n"
        )
    };
    for (kind, body, line) in [
        ("application/json", "{\"hello\":1}", "{\"hello\":1}"),
        ("application/json; charset=utf-8", "{broken", "{broken"),
        ("text/html", "\n  <!doctype html>\n<p>", "<!doctype html>"),
        ("text/event-stream", "what is this?\n\n", "what is this?"),
        ("text/event-stream", "data: {\"type\":\n\n", "{\"type\":"),
        ("text/plain", "\u{fffd}garbage", "\u{fffd}garbage"),
    ] {
        let lab = Lab::start().await;
        lab.answer([answer(200, &format!("content-type: {kind}\r\n"), body)]);
        let seen = show(&ask(&*model(&provider(&lab.base_url))).await).replace(&lab.base_url, "BASE");
        assert_eq!(seen, nonsense(line));
    }
}

#[tokio::test]
async fn sizes_are_capped() {
    let lab = Lab::start().await;
    let model = model(&provider(&lab.base_url));
    let mib = vec![b'x'; 1024 * 1024];
    lab.answer([head(), Act::Send(chunk(b"data: ")), Act::Repeat(chunk(&mib), MAX_EVENT / mib.len() + 1), Act::Close]);
    expect![[r"
        Nonsense: lab sent a larger event than 8 MiB
    "]]
    .assert_eq(&show(&ask(&*model).await));
    let comment = [b":", &mib[..], b"\n"].concat();
    lab.answer([head(), Act::Repeat(chunk(&comment), MAX_REPLY / mib.len() + 1), Act::Close]);
    expect![[r"
        Nonsense: lab sent a larger reply than 64 MiB
    "]]
    .assert_eq(&show(&ask(&*model).await));
}

#[tokio::test]
async fn silence_ends_a_request() {
    let lab = Lab::start().await;
    let mut provider = provider(&lab.base_url);
    provider.idle_timeout = Duration::from_millis(100);
    let model = model(&provider);
    let hung_up = Arc::new(Notify::new());
    lab.answer([Act::Stall(Arc::clone(&hung_up))]);
    expect![[r"
        Interrupted: lab did not begin to answer within 0.1 s
    "]]
    .assert_eq(&show(&ask(&*model).await));
    hung_up.notified().await;

    let started = chunk(sse(&[r#"{"type":"response.created"}"#]).as_bytes());
    lab.answer([head(), Act::Send(started), Act::Stall(Arc::clone(&hung_up))]);
    expect![[r"
        started
        Interrupted: lab sent nothing for 0.1 s
    "]]
    .assert_eq(&show(&ask(&*model).await));
    hung_up.notified().await;
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let lab = Lab::start().await;
    let model = model(&provider(&lab.base_url));
    let hung_up = Arc::new(Notify::new());
    let started = chunk(sse(&[r#"{"type":"response.created"}"#]).as_bytes());
    lab.answer([head(), Act::Send(started), Act::Stall(Arc::clone(&hung_up))]);
    let mut events = model.stream(request(&*model, &[]));
    assert!(matches!(events.next().await, Some(Ok(ModelEvent::Started))));
    drop(events);
    hung_up.notified().await;
}

#[tokio::test]
async fn nobody_there() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let seen = ask(&*model(&provider(&base_url))).await;
    let error = seen[0].as_ref().unwrap_err();
    assert_eq!((seen.len(), error.kind), (1, ErrorKind::Unreachable));
    let address = base_url.trim_end_matches("/v1");
    assert!(error.message.starts_with(&format!("nobody answers for lab at {address}: ")), "{}", error.message);
    assert!(error.message.to_lowercase().contains("refused"), "{}", error.message);
    assert!(error.hints[0].contains("base_url"), "{:?}", error.hints);

    let seen = ask(&*model(&provider("htp://x"))).await;
    assert_eq!(seen[0].as_ref().unwrap_err().kind, ErrorKind::Rejected);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let there = Lab::start().await;
    there.answer(stream(&[COMPLETED]));
    check(
        vec![answer(307, &format!("location: {}/responses\r\n", there.base_url), "")],
        expect![[r"
        Rejected: lab answered 307
          redirects are not followed; set base_url of [providers.lab] to the final address
    "]],
    )
    .await;
    assert_eq!(there.got().len(), 0);
}

#[tokio::test]
async fn one_connection_for_requests_in_a_row() {
    let lab = Lab::start().await;
    let model = model(&provider(&lab.base_url));
    for _ in 0..5 {
        lab.answer(stream(&[r#"{"type":"response.created"}"#, COMPLETED]));
        let mut events = model.stream(request(&*model, &[]));
        while let Some(event) = events.next().await {
            // Like a sampling loop: away as soon as it is done.
            if matches!(event.unwrap(), ModelEvent::Done { .. }) {
                break;
            }
        }
        drop(events);
    }
    let connections: Vec<usize> = lab.got().iter().map(|got| got.connection).collect();
    assert_eq!(connections, [0; 5]);
}

#[tokio::test]
async fn what_is_sent() {
    let lab = Lab::start().await;
    let provider = provider(&lab.base_url).with_key("LAB_KEY", Some(Secret::new("sk-1")));
    let model = model(&provider);
    assert_eq!((model.id(), model.window()), ("lab/m-1", Some(1000)));
    lab.answer(stream(&[COMPLETED]));
    let mut request = request(&*model, &[Item::message(Role::Developer, "be brief"), Item::message(Role::User, "hi")]);
    request.effort = Some("low".to_owned());
    request.max_output = Some(99);
    request.head = model.head(&[
        ToolWire {
            name: "f".to_owned(),
            description: "does".to_owned(),
            kind: ToolKind::Function(json!({"type": "object"})),
        },
        patch(),
    ]);
    assert_eq!(request.head.names, ["f", "apply_patch"]);
    let events: Vec<_> = model.stream(request).collect().await;
    assert_eq!(show(&events), "started\ndone 0/0/0/0 None\n");
    let got = &lab.got()[0];
    expect![[r#"{"model":"m-1","stream":true,"store":false,"tools":[{"type":"function","name":"f","description":"does","parameters":{"type":"object"},"strict":false},{"type":"function","name":"apply_patch","description":"patches","parameters":{"fallback":true},"strict":false}],"tool_choice":"auto","parallel_tool_calls":true,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low"},"prompt_cache_key":"01939d5e-0000-7000-8000-000000000001","max_output_tokens":99,"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#]]
        .assert_eq(&got.body);
    serde_json::from_str::<Value>(&got.body).unwrap();
    assert!(got.head.starts_with("POST /v1/responses HTTP/1.1\r\n"), "{}", got.head);
    for (name, value) in [
        ("authorization", "Bearer sk-1"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("user-agent", concat!("agent/", env!("CARGO_PKG_VERSION"))),
        ("session-id", "01939d5e-0000-7000-8000-000000000001"),
        ("thread-id", "01939d5e-0000-7000-8000-000000000001"),
    ] {
        assert_eq!(header(&got.head, name), Some(value), "{name}");
    }
    assert!(header(&got.head, "x-client-request-id").is_some());
}

fn patch() -> ToolWire {
    ToolWire {
        name: "apply_patch".to_owned(),
        description: "patches".to_owned(),
        kind: ToolKind::Freeform {
            syntax: "lark".to_owned(),
            definition: "start: \"x\"".to_owned(),
            fallback: json!({"fallback": true}),
        },
    }
}

#[tokio::test]
async fn without_key_and_tools() {
    let lab = Lab::start().await;
    lab.answer(stream(&[COMPLETED]));
    ask(&*model(&provider(&lab.base_url))).await;
    let got = &lab.got()[0];
    assert_eq!(header(&got.head, "authorization"), None);
    expect![[r#"{"model":"m-1","stream":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"01939d5e-0000-7000-8000-000000000001","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#]]
        .assert_eq(&got.body);
}

#[test]
fn free_text_tools_only_where_they_are_known() {
    let head = |name: &str| model(&Provider::new(name, "http://x", Wire::Responses)).head(&[patch()]).tools.clone();
    expect![[r#"[{"type":"custom","name":"apply_patch","description":"patches","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}}]"#]]
        .assert_eq(&head("openai"));
    assert!(head("lab").starts_with(r#"[{"type":"function""#));
}

#[test]
fn calls_with_free_text_are_functions_where_those_are_unknown() {
    let call = Item::custom_call("c", "apply_patch", "*** \"x\"\n");
    let items = [call.clone(), Item::output(&call.call().unwrap(), "é\n"), Item::function_call("d", "f", "{}")];
    let input = |name: &str| {
        let provider = Provider::new(name, "http://x", Wire::Responses);
        let (body, _) =
            Responses::new(&provider).prepare(&origin(Wire::Responses), &request(&*model(&provider), &items));
        body.split_once("\"input\":").unwrap().1.to_owned()
    };
    expect![[r#"[{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** \"x\"\n"},{"type":"custom_tool_call_output","call_id":"c","output":"é\n"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}]}"#]]
    .assert_eq(&input("openai"));
    expect![[r#"[{"type":"function_call","call_id":"c","name":"apply_patch","arguments":"{\"input\":\"*** \\\"x\\\"\\n\"}"},{"type":"function_call_output","call_id":"c","output":"é\n"},{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}]}"#]]
    .assert_eq(&input("lab"));
}

#[tokio::test]
async fn a_reply_goes_back_as_it_came_and_bodies_share_a_prefix() {
    let lab = Lab::start().await;
    let model = model(&provider(&lab.base_url));
    let odd = [
        r#"{ "type":"reasoning","encrypted_content":"A\/B","n":1.0e2 }"#,
        r#"{"type":"function_call","call_id":"x","name":"f","arguments":"{\"a\" : 1}","later":{"b":[ ]}}"#,
        r#"{"type":"from_the_future","dup":1,"dup":2}"#,
    ];
    let events: Vec<String> =
        odd.iter().map(|item| format!(r#"{{"type":"response.output_item.done","item":{item}}}"#)).collect();
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push(COMPLETED);
    let mut transcript = Transcript::default();
    transcript.push(Item::message(Role::User, "hi"));
    for _ in 0..4 {
        lab.answer(stream(&events));
        let mut next = request(&*model, &[]);
        next.input = transcript.clone();
        let mut reply = model.stream(next);
        while let Some(event) = reply.next().await {
            if let ModelEvent::Item(item) = event.unwrap() {
                transcript.push(item);
            }
        }
    }
    let bodies: Vec<String> = lab.got().into_iter().map(|got| got.body).collect();
    for pair in bodies.windows(2) {
        let whole = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(whole), "{}\n{}", pair[0], pair[1]);
        assert!(pair[1][whole.len()..].starts_with(&format!(",{}", odd.join(","))), "{}", pair[1]);
    }
}

#[test]
fn usage_may_be_missing_or_odd() {
    let usage = |json: &str| {
        let mut out = std::collections::VecDeque::new();
        let origin = origin(Wire::Responses);
        let body = format!(r#"{{"output":[],"usage":{json}}}"#);
        match normal::Normaliser::default().whole(&origin, body.as_bytes(), &mut out).unwrap() {
            Some(ModelEvent::Done { usage, .. }) => usage,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(usage("null"), Usage::default());
    assert_eq!(usage("\"odd\""), Usage::default());
    assert_eq!(usage(r#"{"input_tokens":5,"input_tokens_details":null}"#), Usage { input: 5, ..Usage::default() });
}
