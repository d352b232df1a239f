use expect_test::{Expect, expect};
use protocol::{Item, Role};
use serde_json::{Value, json};
use stdx::Secret;

use super::*;
use crate::lab::{self, Lab, answer, answered, header, request, show, sse, stream};
use crate::remote::Normalise as _;
use crate::{ToolKind, Wire};

mod quirks;

#[track_caller]
fn check(events: &[&str], expect: Expect) {
    check_bytes(&sse(events), expect);
}

#[track_caller]
fn check_bytes(stream: &str, expect: Expect) {
    expect.assert_eq(&lab::everywhere(normal::Normaliser::default, Wire::Chat, stream));
}

#[test]
fn everything_that_a_reply_may_have() {
    check(
        &[
            r#"{"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm, "}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"é"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"h\u00e9"},"logprobs":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"llo 😀"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" 1}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":7,"total_tokens":97,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":3}}}"#,
            "[DONE]",
        ],
        expect![[r#"
            started
            reasoning "hm, "
            reasoning "é"
            text "hé"
            text "llo 😀"
            item {"type":"reasoning","wire":"chat","provider":"lab","field":"reasoning_content","text":"hm, é"}
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"héllo 😀"}]}
            item {"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\": 1}"}
            item {"type":"function_call","call_id":"b","name":"g","arguments":"{}"}
            done 90/60/7/3 None
        "#]],
    );
}

/// A conversation with everything that may be in one, from this wire and others.
fn conversation(provider: &str) -> Vec<Item> {
    let raw = |json: &str| Item::parse(json).unwrap();
    let own = format!(
        r#"{{"type":"reasoning","wire":"chat","provider":"{provider}","field":"reasoning_content","text":"own \"thought\""}}"#
    );
    vec![
        Item::message(Role::Developer, "be brief"),
        Item::message(Role::Developer, "be \"kind\""),
        Item::message(Role::User, "<environment_context>\ncwd: /\n</environment_context>"),
        Item::message(Role::User, "hi"),
        raw(&own),
        Item::message(Role::Assistant, "hello"),
        Item::message(Role::User, "look\n"),
        raw(r#"{"type":"reasoning","id":"rs_1","encrypted_content":"Zz=="}"#),
        raw(r#"{"type":"reasoning","wire":"messages","provider":"anthropic","block":{"type":"thinking"}}"#),
        raw(&own),
        Item::message(Role::Assistant, "looking"),
        Item::function_call("a", "exec_command", r#"{"cmd":"ls"}"#),
        raw(r#"{"type":"custom_tool_call","call_id":"b","name":"apply_patch","input":"*** Begin\n\"x\""}"#),
        raw(r#"{"type":"function_call_output","call_id":"a","output":"é\nb"}"#),
        raw(r#"{"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"done"}]}"#),
        raw(&own),
        Item::message(Role::Assistant, "that was it"),
        Item::message(Role::User, "<agent_mail kind=\"result\">\nx\n</agent_mail>"),
        Item::message(Role::Developer, "later"),
        raw(r#"{"type":"from_the_future","x":1}"#),
    ]
}

fn messages(provider: &Provider, items: &[Item]) -> String {
    let model = lab::model(provider);
    let built = body::build(
        &Origin { provider: provider.name.clone(), ..lab::origin(Wire::Chat) },
        Chat::new(provider).habits,
        &request(&*model, items),
        usize::MAX,
    );
    let body: Value = serde_json::from_str(&built.json).unwrap();
    let lines: Vec<String> = body["messages"].as_array().unwrap().iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn a_conversation() {
    let lab = lab::provider(Wire::Chat, "http://x");
    expect![[r#"
        {"content":"be brief\n\nbe \"kind\"","role":"system"}
        {"content":"<environment_context>\ncwd: /\n</environment_context>\n\nhi","role":"user"}
        {"content":"hello","role":"assistant"}
        {"content":"look\n","role":"user"}
        {"content":"looking","reasoning_content":"own \"thought\"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"cmd\":\"ls\"}","name":"exec_command"},"id":"a","type":"function"},{"function":{"arguments":"{\"input\":\"*** Begin\\n\\\"x\\\"\"}","name":"apply_patch"},"id":"b","type":"function"}]}
        {"content":"é\nb","role":"tool","tool_call_id":"a"}
        {"content":"done","role":"tool","tool_call_id":"b"}
        {"content":"that was it","reasoning_content":"own \"thought\"","role":"assistant"}
        {"content":"<agent_mail kind=\"result\">\nx\n</agent_mail>\n\n<system_note>\nlater\n</system_note>","role":"user"}
    "#]]
    .assert_eq(&messages(&lab, &conversation("lab")));
}

#[test]
fn reasoning_goes_back_to_its_sender_only() {
    let seen = messages(&lab::provider(Wire::Chat, "http://x"), &conversation("deepseek"));
    assert!(!seen.contains("reasoning"), "{seen}");
    // DeepSeek refuses messages without the field; an empty one stands where it needs nothing.
    let deepseek = Provider::new("deepseek", "https://api.deepseek.com/v1", Wire::Chat);
    let filled = |seen: &str| -> Vec<Value> {
        let messages = seen.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        messages.filter(|message| message["role"] == "assistant").map(|mut m| m["reasoning_content"].take()).collect()
    };
    let own = json!("own \"thought\"");
    assert_eq!(filled(&messages(&deepseek, &conversation("deepseek"))), [json!(""), own.clone(), own]);
    assert_eq!(filled(&messages(&deepseek, &conversation("openai"))), [json!(""), json!(""), json!("")]);
}

#[test]
fn what_the_provider_attached_goes_back_in_place() {
    let events = [
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"a ","format":"x"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"a b","reasoning_details":[{"type":"reasoning.text","index":0,"text":"b"},{"type":"reasoning.text","index":0,"signature":"S"}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"Zz=="}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"T"}}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#,
    ];
    let mut normaliser = normal::Normaliser::default();
    let mut out = crate::remote::Events::new();
    let origin = lab::origin(Wire::Chat);
    for data in events {
        let event = crate::sse::Event { name: String::new(), data: data.into() };
        assert!(normaliser.take(&origin, &event, &mut out).unwrap().is_none());
    }
    normaliser.end(&origin, &mut out).unwrap();
    let mut items = vec![Item::message(Role::User, "hi")];
    items.extend(out.into_iter().filter_map(|event| match event.unwrap() {
        crate::ModelEvent::Item(item) => Some(item),
        _ => None,
    }));
    for id in ["a", "b"] {
        let call =
            protocol::Call { call_id: id.to_owned(), name: String::new(), arguments: String::new(), custom: false };
        items.push(Item::output(&call, "ok"));
    }
    expect![[r#"
        {"content":"hi","role":"user"}
        {"content":null,"reasoning":"a b","reasoning_details":[{"format":"x","index":0,"signature":"S","text":"a b","type":"reasoning.text"},{"data":"Zz==","index":1,"type":"reasoning.encrypted"}],"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"T"}},"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"},{"function":{"arguments":"{}","name":"g"},"id":"b","type":"function"}]}
        {"content":"ok","role":"tool","tool_call_id":"a"}
        {"content":"ok","role":"tool","tool_call_id":"b"}
    "#]]
    .assert_eq(&messages(&lab::provider(Wire::Chat, "http://x"), &items));
}

#[tokio::test]
async fn what_is_sent() {
    let lab = Lab::start().await;
    let provider = lab::provider(Wire::Chat, &lab.base_url).with_key("LAB_KEY", Some(Secret::new("sk-1")));
    let model = lab::model(&provider);
    assert_eq!((model.id(), model.window()), ("lab/m-1", Some(1000)));
    lab.answer(stream(&[r#"{"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}"#, "[DONE]"]));
    let items = [Item::message(Role::Developer, "be brief"), Item::message(Role::User, "hi")];
    let mut request = request(&*model, &items);
    request.effort = Some("low".to_owned());
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
    assert!(show(&events).ends_with("done 0/0/0/0 None\n"), "{}", show(&events));
    let got = &lab.got()[0];
    expect![[r#"{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f","description":"does","parameters":{"type":"object"}}},{"type":"function","function":{"name":"apply_patch","description":"patches","parameters":{"fallback":true}}}],"parallel_tool_calls":true,"reasoning_effort":"low","max_tokens":99,"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}]}"#]]
    .assert_eq(&got.body);
    assert!(got.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", got.head);
    assert_eq!(header(&got.head, "authorization"), Some("Bearer sk-1"));
    assert_eq!(header(&got.head, "accept"), Some("text/event-stream"));
    assert!(header(&got.head, "x-client-request-id").is_some());
}

#[test]
fn habits_of_providers() {
    let body = |provider: &Provider| {
        let model = lab::model(provider);
        let mut request = request(&*model, &[Item::message(Role::User, "hi")]);
        request.max_output = Some(99);
        request.head = model.head(&[ToolWire {
            name: "f".to_owned(),
            description: String::new(),
            kind: ToolKind::Function(json!({})),
        }]);
        Chat::new(provider).prepare(&lab::origin(Wire::Chat), &request).0
    };
    let openai = body(&Provider::new("mine", "https://api.openai.com/v1", Wire::Chat));
    assert!(openai.contains(r#","max_completion_tokens":99,"prompt_cache_key":"01939d5e-"#), "{openai}");
    assert!(openai.contains(r#""parallel_tool_calls":true"#), "{openai}");
    let gemini = body(&Provider::new("gemini", "http://x", Wire::Chat));
    assert!(gemini.contains(r#","max_tokens":99,"messages""#), "{gemini}");
    assert!(!gemini.contains("parallel_tool_calls"), "{gemini}");
}

#[tokio::test]
async fn without_tools_and_key() {
    let lab = Lab::start().await;
    lab.answer(stream(&["[DONE]"]));
    lab::ask(&*lab::model(&lab::provider(Wire::Chat, &lab.base_url))).await;
    let got = &lab.got()[0];
    assert_eq!(header(&got.head, "authorization"), None);
    expect![[r#"{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}"#]]
        .assert_eq(&got.body);
}

#[tokio::test]
async fn faults_over_http() {
    let check = async |acts, expect: Expect| expect.assert_eq(&answered(Wire::Chat, acts).await);
    check(
        vec![answer(404, "", r#"{"error":{"message":"model \"m-1\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#)],
        expect![[r#"
            Rejected: lab answered 404: model "m-1" not found, try pulling it first
              check that `BASE` serves `/chat/completions` (often the address must end in /v1) and knows the model `m-1`
        "#]],
    )
    .await;
    check(
        vec![answer(429, "", r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 34.07s.","status":"RESOURCE_EXHAUSTED"}}]"#)],
        expect![[r"
            RateLimited { after: Some(34.07s) }: lab answered 429: You exceeded your current quota. Please retry in 34.07s.
        "]],
    )
    .await;
    check(
        vec![answer(400, "", r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#)],
        expect![[r#"
            WindowExceeded: lab answered 400: This model's maximum context length is 4096 tokens.
              give the rest of the task to a new agent, or use a model with a larger window
        "#]],
    )
    .await;
    check(
        vec![answer(200, "content-type: text/html\r\n", "<!doctype html>")],
        expect![[r#"
            Nonsense: lab answered something that is not the Chat Completions protocol: <!doctype html>
              check that `BASE` is the address of the API itself (often it must end in /v1) and serves `/chat/completions`
        "#]],
    )
    .await;
    check(
        vec![answer(404, "", "")],
        expect![[r#"
            Rejected: lab answered 404
              check that `BASE` serves `/chat/completions` (often the address must end in /v1) and knows the model `m-1`
        "#]],
    )
    .await;
}
