//! What servers do that the protocol does not say. Each case is one server's habit, cut at every place.

use super::*;

/// Events of one choice each.
fn choices(choices: &[&str]) -> String {
    let events: Vec<String> = choices.iter().map(|choice| format!(r#"{{"choices":[{choice}]}}"#)).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    sse(&events)
}

/// Pieces of calls, one an event, ended by `finish_reason`.
#[track_caller]
fn check_calls(pieces: &[&str], expect: Expect) {
    let mut events: Vec<String> =
        pieces.iter().map(|piece| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#)).collect();
    events.push(r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#.to_owned());
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let seen = lab::everywhere(normal::Normaliser::default, Wire::Chat, &sse(&events));
    let mut calls = String::new();
    for line in seen.lines().filter_map(|line| line.strip_prefix(r#"item {"type":"function_call","#)) {
        calls += line;
        calls.push('\n');
    }
    assert!(seen.ends_with("done 0/0/0/0 None\n"), "{seen}");
    expect.assert_eq(&calls);
}

#[test]
fn reasons_to_end_are_mixed_up() {
    let call = r#"{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}"#;
    for reason in ["stop", "tool_calls", "function_call", "eos", "end_turn"] {
        let end = format!(r#"{{"delta":{{}},"finish_reason":"{reason}"}}"#);
        let seen = lab::everywhere(normal::Normaliser::default, Wire::Chat, &choices(&[call, &end]));
        assert_eq!(
            seen,
            "started\nitem {\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}\ndone \
             0/0/0/0 None\n",
        );
    }
}

#[test]
fn no_reason_to_end() {
    let text = r#"{"delta":{"content":"hi"},"finish_reason":""}"#;
    // The end mark alone is enough, with and without the blank line after it, and so are counts on their own.
    for rest in [
        "data:[DONE]",
        "data: [DONE]\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":0}}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
    ] {
        check_bytes(
            &(choices(&[text]) + rest),
            expect![[r#"
                started
                text "hi"
                item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
                done 0/0/0/0 None
            "#]],
        );
    }
    // Nothing says that this is the end.
    check_bytes(
        &choices(&[text]),
        expect![[r#"
            started
            text "hi"
            no end
        "#]],
    );
    // Counts before the first word say nothing about the end.
    check_bytes(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4}}\n\n",
        expect![[r#"
            started
            no end
        "#]],
    );
}

#[test]
fn line_ends_comments_and_names_of_events() {
    check_bytes(
        ": OPENROUTER PROCESSING\r\n\r\nevent: chunk\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\r\n\r\n: \
         x\r\n\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"é😀\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata: \
         [DONE]\r\n\r\n",
        expect![[r#"
            started
            text "é😀"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"é😀"}]}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn a_character_cut_in_two_escapes() {
    check_bytes(
        &choices(&[r#"{"delta":{"content":"\ud83d"}}"#, r#"{"delta":{"content":"\ude00!"},"finish_reason":"stop"}"#]),
        expect![[r#"
            started
            text "�"
            text "�!"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"😀!"}]}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn empty_pieces_and_null() {
    check(
        &[
            r#"{"choices":[],"prompt_filter_results":[{}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":null,"reasoning_content":null}}],"usage":null,"error":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":" \n"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"another reply"}}]}"#,
            r#"{"choices":[{"index":0,"delta":null,"finish_reason":"stop"}]}"#,
            r#"{"x":1}"#,
        ],
        expect![[r#"
            started
            text " \n"
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn a_message_at_the_end_repeats_the_pieces() {
    check_bytes(
        &choices(&[
            r#"{"delta":{"content":"hi"}}"#,
            r#"{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn text_in_parts() {
    check_bytes(
        &choices(&[
            r#"{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}"#,
            r#"{"delta":{"content":[{"type":"text","text":"hi"},{"type":"image_url"}]},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            started
            reasoning "hm"
            text "hi"
            item {"type":"reasoning","wire":"chat","provider":"lab"}
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn reasoning_in_both_fields_counts_once() {
    check_bytes(
        &choices(&[
            r#"{"delta":{"reasoning":"a","reasoning_content":"a"}}"#,
            r#"{"delta":{"reasoning":"b","reasoning_content":"b","content":""},"finish_reason":"stop"}"#,
        ]),
        expect![[r#"
            started
            reasoning "a"
            reasoning "b"
            item {"type":"reasoning","wire":"chat","provider":"lab","field":"reasoning_content","text":"ab"}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn calls_in_the_usual_pieces() {
    check_calls(
        &[
            r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"x\""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
            // Back to the first, which nobody else does.
            r#"{"index":0,"function":{"name":"","arguments":":1}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
            "call_id":"b","name":"g","arguments":"{}"}
        "#]],
    );
}

#[test]
fn numbers_with_gaps_none_and_all_the_same() {
    check_calls(
        &[
            r#"{"index":3,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":7,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{}"}
            "call_id":"b","name":"g","arguments":"{}"}
        "#]],
    );
    check_calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"function":{"arguments":"1}"}}"#,
            r#"{"id":"b","function":{"name":"f","arguments":""}}"#,
            r#"{"id":"b","function":{"arguments":"{\"x\":2}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
            "call_id":"b","name":"f","arguments":"{\"x\":2}"}
        "#]],
    );
    // Two in one event.
    check_calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
            "call_id":"b","name":"f","arguments":"{\"x\":2}"}
        "#]],
    );
    // Every call is number nought, with an id, without one, and with one for all.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":2}"}}"#,
            r#"{"index":0,"id":"c","function":{"name":"g","arguments":"{}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
            "call_id":"b","name":"f","arguments":"{\"x\":2}"}
            "call_id":"c","name":"g","arguments":"{}"}
        "#]],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}"#,
            r#"{"index":0,"function":{"name":"g","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"name":"h","arguments":"{}"}}"#,
        ],
        expect![[r#"
            "call_id":"MADE-UP","name":"f","arguments":"{\"x\":1}"}
            "call_id":"MADE-UP","name":"f","arguments":"{\"x\":2}"}
            "call_id":"MADE-UP","name":"g","arguments":"{}"}
            "call_id":"MADE-UP","name":"h","arguments":"{}"}
        "#]],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"g","arguments":"{}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
            "call_id":"MADE-UP","name":"f","arguments":"{\"x\":2}"}
            "call_id":"MADE-UP","name":"g","arguments":"{}"}
        "#]],
    );
}

#[test]
fn names_and_ids_said_again() {
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":":1"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
        "#]],
    );
    // A new id for every piece.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"{\"x\""}}"#,
            r#"{"index":0,"id":"c","function":{"name":"f","arguments":":1}"}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\":1}"}
        "#]],
    );
}

#[test]
fn arguments_of_other_forms() {
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":{"x": "é\"\n"}}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g"}}"#,
            r#"{"index":2,"id":"c","function":{"name":"h","arguments":null}}"#,
            // A placeholder first.
            r#"{"index":3,"id":"d","function":{"name":"i","arguments":"{}"}}"#,
            r#"{"index":3,"function":{"arguments":"{\"x\":1}"}}"#,
            // Cut off: the model gets to see its own fault.
            r#"{"index":4,"id":"e","function":{"name":"j","arguments":"{\"x\":"}}"#,
            // Nothing at all.
            r#"{"index":5,"function":{"arguments":""}}"#,
        ],
        expect![[r#"
            "call_id":"a","name":"f","arguments":"{\"x\": \"é\\\"\\n\"}"}
            "call_id":"b","name":"g","arguments":"{}"}
            "call_id":"c","name":"h","arguments":"{}"}
            "call_id":"d","name":"i","arguments":"{\"x\":1}"}
            "call_id":"e","name":"j","arguments":"{\"x\":"}
        "#]],
    );
}

#[test]
fn the_old_form_of_a_call() {
    check_bytes(
        &choices(&[
            r#"{"delta":{"function_call":{"name":"f","arguments":""}}}"#,
            r#"{"delta":{"function_call":{"arguments":"{}"}},"finish_reason":"function_call"}"#,
        ]),
        expect![[r#"
            started
            item {"type":"function_call","call_id":"MADE-UP","name":"f","arguments":"{}"}
            done 0/0/0/0 None
        "#]],
    );
}

#[test]
fn counts_wherever_they_stand() {
    let check = |events: &[&str], expect: &str| {
        let stream = sse(events) + "data: [DONE]";
        let seen = lab::everywhere(normal::Normaliser::default, Wire::Chat, &stream);
        assert_eq!(seen.lines().last(), Some(expect), "{events:?}");
    };
    let text = r#"{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#;
    let more = r#"{"choices":[{"delta":{"content":"!"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    check(&[text, more], "done 5/0/2/0 None");
    check(&[text, r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#], "done 5/0/1/0 None");
    check(&[text, r#"{"usage":{"prompt_tokens":6,"prompt_cache_hit_tokens":4}}"#], "done 6/4/1/0 None");
    check(&[r#"{"choices":[{"delta":{},"usage":{"prompt_tokens":7}}]}"#], "done 7/0/0/0 None");
    check(&[r#"{"choices":[],"usage":"odd"}"#], "done 0/0/0/0 None");
    // Reasoning is in the total only.
    check(
        &[r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":112}}"#],
        "done 10/0/102/0 None",
    );
}

#[test]
fn faults_in_the_stream() {
    check(
        &[
            r#"{"choices":[{"delta":{"content":"hi"}}]}"#,
            r#"{"id":"x","error":{"code":"server_error","message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        ],
        expect![[r#"
            started
            text "hi"
            Server { after: None }: lab ended its reply with an error: Provider disconnected
        "#]],
    );
    check(
        &[
            r#"{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"slow down","provider_name":"Acme"}}}"#,
        ],
        expect![[r#"
            RateLimited { after: None }: lab ended its reply with an error: Provider returned error (Acme: slow down)
        "#]],
    );
    check(
        &[r#"{"error":"model runner has unexpectedly stopped"}"#],
        expect![[r#"
            Server { after: None }: lab ended its reply with an error: model runner has unexpectedly stopped
        "#]],
    );
    check(
        &[
            r#"{"object":"error","message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}"#,
        ],
        expect![[r#"
            WindowExceeded: lab ended its reply with an error: This model's maximum context length is 8 tokens
              give the rest of the task to a new agent, or use a model with a larger window
        "#]],
    );
    check_bytes(
        "event: error\ndata: {\"message\":\"Trying to keep the first 9 tokens when context the overflows\"}\n\n",
        expect![[r#"
            WindowExceeded: lab ended its reply with an error: Trying to keep the first 9 tokens when context the overflows
              give the rest of the task to a new agent, or use a model with a larger window
        "#]],
    );
    check_bytes(
        "error: {\"code\":500,\"message\":\"the slot is gone\",\"type\":\"server_error\"}\n\n",
        expect![[r#"
            Server { after: None }: lab ended its reply with an error: the slot is gone
        "#]],
    );
    check(
        &[r#"{"choices":[{"delta":{},"error":{"code":502,"message":"upstream"}}]}"#],
        expect![[r#"
            started
            Server { after: None }: lab ended its reply with an error: upstream
        "#]],
    );
}

#[test]
fn ends_that_are_no_success() {
    let ended = |reason: &str| {
        choices(&[&format!(r#"{{"delta":{{"content":"hi"}},"finish_reason":"{reason}"}}"#)]) + "data: [DONE]\n\n"
    };
    check_bytes(
        &ended("content_filter"),
        expect![[r#"
            started
            text "hi"
            Rejected: lab cut the reply off: its content filter stepped in
              word the task differently, or use another model
        "#]],
    );
    check_bytes(
        &ended("insufficient_system_resource"),
        expect![[r#"
            started
            text "hi"
            Server { after: None }: lab ended its reply with an error: insufficient_system_resource
        "#]],
    );
    check_bytes(
        &ended("function_call_filter: MALFORMED_FUNCTION_CALL"),
        expect![[r#"
            started
            text "hi"
            Interrupted: lab gave up its reply: function_call_filter: MALFORMED_FUNCTION_CALL
        "#]],
    );
    check_bytes(
        &ended("length"),
        expect![[r#"
            started
            text "hi"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
            done 0/0/0/0 None
        "#]],
    );
    check(
        &[r#"{"choices":[{"delta":{"refusal":"I will not"},"finish_reason":"stop"}]}"#],
        expect![[r#"
            started
            text "I will not"
            item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I will not"}]}
            done 0/0/0/0 None
        "#]],
    );
}

#[tokio::test]
async fn a_document_instead_of_a_stream() {
    let reply = r#"
        {"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm",
        "tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let expect = expect![[r#"
        started
        item {"type":"reasoning","wire":"chat","provider":"lab","field":"reasoning_content","text":"hm"}
        item {"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
        item {"type":"function_call","call_id":"a","name":"f","arguments":"{}"}
        done 3/0/1/0 None
    "#]];
    // Whatever it is called.
    for kind in ["content-type: application/json\r\n", "content-type: text/event-stream\r\n", ""] {
        expect.assert_eq(&answered(Wire::Chat, vec![answer(200, kind, reply)]).await);
    }
    expect![[r#"
        WindowExceeded: lab ended its reply with an error: too long
          give the rest of the task to a new agent, or use a model with a larger window
    "#]]
    .assert_eq(
        &answered(
            Wire::Chat,
            vec![answer(200, "", r#"[{"error":{"code":"context_length_exceeded","message":"too long"}}]"#)],
        )
        .await,
    );
    expect![[r#"
        Nonsense: lab answered something that is not the Chat Completions protocol: {"hello":1}
          check that `BASE` is the address of the API itself (often it must end in /v1) and serves `/chat/completions`
    "#]]
    .assert_eq(&answered(Wire::Chat, vec![answer(200, "", r#"{"hello":1}"#)]).await);
}
