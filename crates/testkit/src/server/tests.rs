use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};
use serde_json::json;

use crate::client::{Answer, Client, End};
use crate::{Ended, Gate, Reply, Server, brains};

const BODY: &str = r#"{"model":"m","tools":[{"type":"function","name":"exec_command"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#;

/// The answer that a bare client gets when the brain says `reply`.
fn answer(reply: Reply) -> Answer {
    let server = Server::start(move |_| reply.clone());
    Client::new(&server).ask(BODY)
}

/// The events of a reply, one a line.
fn check(reply: Reply, expect: Expect) {
    let answer = answer(reply);
    assert_eq!((answer.status, answer.end), (200, End::Whole));
    let bytes = answer.chunks.concat();
    expect.assert_eq(&String::from_utf8(bytes).unwrap().replace("\n\n", "\n"));
}

#[test]
fn events_of_a_reply() {
    check(
        Reply::new().text("Grüße").usage(7, 5, 3),
        expect![[r#"
            event: response.created
            data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":0,"model":"m","status":"in_progress","output":[]}}
            event: response.output_item.added
            data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"content":[],"id":"item_1_0","role":"assistant","status":"in_progress","type":"message"}}
            event: response.content_part.added
            data: {"type":"response.content_part.added","sequence_number":2,"item_id":"item_1_0","output_index":0,"content_index":0,"part":{"annotations":[],"text":"","type":"output_text"}}
            event: response.output_text.delta
            data: {"type":"response.output_text.delta","sequence_number":3,"item_id":"item_1_0","output_index":0,"content_index":0,"delta":"Grüße"}
            event: response.output_text.done
            data: {"type":"response.output_text.done","sequence_number":4,"item_id":"item_1_0","output_index":0,"content_index":0,"text":"Grüße"}
            event: response.content_part.done
            data: {"type":"response.content_part.done","sequence_number":5,"item_id":"item_1_0","output_index":0,"content_index":0,"part":{"annotations":[],"text":"Grüße","type":"output_text"}}
            event: response.output_item.done
            data: {"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":{"content":[{"annotations":[],"text":"Grüße","type":"output_text"}],"id":"item_1_0","role":"assistant","status":"completed","type":"message"}}
            event: response.completed
            data: {"type":"response.completed","sequence_number":7,"response":{"id":"resp_1","object":"response","created_at":0,"model":"m","status":"completed","output":[{"content":[{"annotations":[],"text":"Grüße","type":"output_text"}],"id":"item_1_0","role":"assistant","status":"completed","type":"message"}],"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":5},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}}}
        "#]],
    );
}

#[test]
fn items_of_every_kind() {
    let odd = r#"{ "type":"weather_call",  "new": [1, 2] }"#;
    let reply = Reply::new()
        .reasoning("b64==")
        .commentary("looking")
        .call("exec_command", json!({"cmd": "true"}))
        .raw_call("exec_command", "{not json")
        .custom("apply_patch", "*** Begin Patch")
        .raw_item(odd);
    assert!(reply.has_calls());
    let answer = answer(reply);
    assert!(answer.text().contains(&format!(r#""item":{odd}}}"#)), "the bytes are kept");
    let items = answer.items();
    assert_eq!(items[0]["encrypted_content"], "b64==");
    assert_eq!((&items[1]["phase"], &items[1]["content"][0]["text"]), (&json!("commentary"), &json!("looking")));
    assert_eq!((&items[2]["type"], &items[2]["call_id"]), (&json!("function_call"), &json!("call_1_2")));
    assert_eq!(items[2]["arguments"], r#"{"cmd":"true"}"#);
    assert_eq!((&items[3]["arguments"], &items[3]["call_id"]), (&json!("{not json"), &json!("call_1_3")));
    assert_eq!((&items[4]["type"], &items[4]["input"]), (&json!("custom_tool_call"), &json!("*** Begin Patch")));
    let deltas: String = answer
        .events()
        .iter()
        .filter(|event| event["type"] == "response.function_call_arguments.delta" && event["output_index"] == 2)
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(deltas, r#"{"cmd":"true"}"#);
}

#[test]
fn call_ids_repeat_or_are_missing() {
    let calls = || Reply::new().call("a", json!({})).custom("b", "");
    let ids = |reply| answer(reply).items().iter().map(|item| item.get("call_id").cloned()).collect::<Vec<_>>();
    assert_eq!(ids(calls()), [Some(json!("call_1_0")), Some(json!("call_1_1"))]);
    assert_eq!(ids(calls().repeat_call_ids()), [Some(json!("call_0")), Some(json!("call_0"))]);
    assert_eq!(ids(calls().missing_call_id()), [None, None]);
}

#[test]
fn a_long_text_comes_in_few_pieces_that_make_it_whole() {
    let text = "äöü€".repeat(5_000);
    let answer = answer(Reply::new().text(&text));
    let deltas: Vec<_> =
        answer.events().iter().filter_map(|event| event["delta"].as_str().map(str::to_owned)).collect();
    assert_eq!(deltas.concat(), text);
    assert!((20..=32).contains(&deltas.len()), "{}", deltas.len());
}

#[test]
fn endings_other_than_completed() {
    let last = |reply| answer(reply).events().pop().unwrap();
    let text = || Reply::new().text("a");
    let incomplete = last(text().incomplete("max_output_tokens"));
    assert_eq!(incomplete["type"], "response.incomplete");
    assert_eq!(incomplete["response"]["incomplete_details"]["reason"], "max_output_tokens");
    let failed = last(text().failed("context_length_exceeded", "too long"));
    assert_eq!(failed["type"], "response.failed");
    assert_eq!(failed["response"]["error"], json!({"code": "context_length_exceeded", "message": "too long"}));
    let open = answer(text().no_completed());
    assert_eq!((open.end, open.types().last().unwrap().as_str()), (End::Whole, "response.output_item.done"));
}

#[test]
fn other_shapes_say_the_same() {
    let text = || Reply::new().text("Grüße, 世界");
    let plain = answer(text());
    for (name, reply) in [
        ("crlf", text().crlf()),
        ("comments", text().comments()),
        ("nameless", text().nameless()),
        ("done", text().done_line()),
        ("split", text().split_bytes(7)),
        ("all", text().crlf().comments().nameless().done_line().split_bytes(1)),
    ] {
        let other = answer(reply);
        assert_ne!(other.chunks, plain.chunks, "{name}");
        assert_eq!(other.events(), plain.events(), "{name}");
    }
    assert!(answer(text().crlf()).text().contains("\r\ndata: "));
    assert!(!answer(text().crlf()).text().replace("\r\n", "").contains('\n'));
    assert!(answer(text().comments()).text().starts_with(": "));
    assert!(!answer(text().nameless()).text().contains("event: "));
    assert!(answer(text().done_line()).text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn splitting_cuts_characters() {
    let split = answer(Reply::new().text("世界").split_bytes(1));
    assert!(split.chunks.iter().all(|chunk| chunk.len() == 1));
    assert!(split.chunks.iter().any(|chunk| std::str::from_utf8(chunk).is_err()));
}

#[test]
fn a_huge_event() {
    let events = answer(Reply::new().text("a").huge_event(3_000_000)).events();
    assert_eq!(events[1]["type"], "response.padding");
    assert_eq!(events[1]["padding"].as_str().unwrap().len(), 3_000_000);
    assert_eq!(events.last().unwrap()["type"], "response.completed");
}

#[test]
fn unannounced_items_and_whole_objects() {
    let reply = || Reply::new().text("a").call("b", json!({}));
    let items = answer(reply()).items();
    let late = answer(reply().unannounced());
    assert_eq!(late.types(), ["response.created", "response.completed"]);
    assert_eq!(late.events()[1]["response"]["output"], json!(items));
    let whole = answer(reply().whole());
    assert!(whole.head.contains("content-type: application/json"));
    let object: serde_json::Value = serde_json::from_slice(&whole.bytes()).unwrap();
    assert_eq!((&object["output"], &object["status"]), (&json!(items), &json!("completed")));
}

#[test]
fn statuses_and_bodies() {
    let limited = answer(Reply::new().status_with_headers(429, [("retry-after", "1")]));
    assert_eq!((limited.status, limited.end), (429, End::Whole));
    assert!(limited.head.contains("\r\nretry-after: 1\r\n"));
    assert!(limited.text().contains(r#""message":"scripted status 429""#));
    let page = answer(Reply::new().status(502).body("<html>no</html>"));
    assert_eq!((page.status, page.text().as_str()), (502, "<html>no</html>"));
    assert!(page.head.contains("content-type: text/html"));
    assert_eq!(answer(Reply::new().body("{}")).status, 200);
}

#[test]
fn a_cut_ends_the_connection_in_the_middle_of_the_body() {
    let cut = answer(Reply::new().text("a").cut_after(2));
    assert_eq!((cut.types().len(), cut.end), (2, End::Closed));
    let reset = answer(Reply::new().text("a").reset_after(2));
    assert_eq!((reset.types().len(), reset.end), (2, End::Reset));
    let whole = answer(Reply::new().text("a"));
    let inside = answer(Reply::new().text("a").cut_inside_event(1));
    assert_eq!((inside.types().len(), inside.end), (1, End::Closed));
    assert!(whole.bytes().starts_with(&inside.bytes()));
    assert!(inside.text().contains("event: response.output_item.added\ndata: {"));
    let late = answer(Reply::new().text("a").cut_after(1_000));
    assert_eq!((late.types(), late.end), (whole.types(), End::Closed));
}

#[test]
fn garbage_is_garbage() {
    let garbage = answer(Reply::new().text("a").garbage());
    assert_eq!((garbage.status, garbage.end), (200, End::Whole));
    assert!(std::str::from_utf8(&garbage.bytes()).is_err());
    assert!(garbage.head.contains("text/event-stream"));
}

#[test]
fn a_stall_lasts_until_the_client_leaves() {
    for (reply, events) in [(Reply::new().stall_before_headers(), 0), (Reply::new().text("a").stall_after(3), 3)] {
        let stalled = Gate::new();
        let reply = reply.then(&stalled);
        let server = Server::start(move |_| reply.clone());
        let mut client = Client::new(&server);
        client.send(BODY);
        stalled.wait();
        client.impatient();
        let answer = client.answer();
        assert_eq!((answer.types().len(), answer.end), (events, End::Stalled));
        assert_eq!((server.running(), server.requests()[0].ended()), (1, None));
        drop(client);
        server.wait_until(|requests| requests[0].ended().is_some_and(|(how, _)| how == Ended::ClientLeft));
        assert_eq!(server.running(), 0);
    }
}

#[test]
fn how_requests_end_is_on_record() {
    let server = Server::start(|_| Reply::new().text("a").cut_after(1));
    Client::new(&server).ask(BODY);
    server.wait_until(|requests| requests[0].ended().is_some());
    assert_eq!(server.requests()[0].ended().unwrap().0, Ended::Cut);
    server.set_brain(|_| "b");
    Client::new(&server).ask(BODY);
    server.wait_until(|requests| requests.len() == 2 && requests[1].ended().is_some());
    assert_eq!(server.requests()[1].ended().unwrap().0, Ended::Sent);
}

#[test]
fn gates_hold_requests_open() {
    let (go, done) = (Gate::new(), Gate::new());
    let reply = Reply::new().text("a").wait_for(&go).then(&done);
    let server = Server::start(move |_| reply.clone());
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&server)).collect();
    for client in &mut clients {
        client.send(BODY);
    }
    server.wait_until(|requests| requests.len() == 3);
    assert_eq!((server.running(), server.most_at_once()), (3, 3));
    assert!(!done.is_open());
    go.open();
    done.wait();
    for mut client in clients {
        assert_eq!(client.answer().types().last().unwrap(), "response.completed");
    }
    server.wait_until(|requests| requests.iter().all(|request| request.ended().is_some()));
    assert_eq!((server.running(), server.most_at_once(), server.connections()), (0, 3, 3));
}

#[test]
fn a_gate_in_the_middle_of_a_reply() {
    let go = Gate::new();
    let reply = Reply::new().text("a").wait_after(2, &go);
    let server = Server::start(move |_| reply.clone());
    let mut client = Client::new(&server);
    client.send(BODY);
    let opener = std::thread::spawn(move || {
        server.wait_until(|requests| requests.len() == 1);
        assert_eq!(server.running(), 1);
        go.open();
        server.wait_until(|requests| requests[0].ended().is_some());
    });
    assert_eq!(client.answer().end, End::Whole);
    opener.join().unwrap();
}

#[test]
fn delays_take_their_time() {
    let millis = Duration::from_millis;
    let began = Instant::now();
    let slow = answer(Reply::new().text("a").delay_first(millis(20)).delay_each(millis(5)));
    assert_eq!(slow.types().len(), 8);
    assert!(began.elapsed() >= millis(20 + 8 * 5));
}

#[test]
fn connections_are_kept_and_numbered() {
    let server = Server::start(brains::echo);
    let mut client = Client::new(&server);
    for _ in 0..2 {
        assert!(client.ask(BODY).text().contains("echo: hi"));
    }
    client.write("GET /v1/models HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer().status, 404);
    assert_eq!(client.ask(BODY).end, End::Whole);
    Client::new(&server).ask(BODY);
    let seen: Vec<_> = server.requests().iter().map(|r| (r.sequence(), r.connection())).collect();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 1), (4, 2)]);
    let request = &server.requests()[0];
    assert_eq!((request.thread(), request.session(), request.tools()), ("t1", "s1", vec!["exec_command"]));
    assert_eq!((request.raw(), server.requests_of("t1").len()), (BODY.as_bytes(), 4));
    assert!(server.requests_of("t2").is_empty());
}

#[test]
fn chunked_bodies_are_read_and_broken_ones_refused() {
    let server = Server::start(brains::echo);
    let mut client = Client::new(&server);
    let (a, b) = BODY.split_at(20);
    client.write("POST /v1/responses HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.write(&format!("{:x}\r\n{a}\r\n{:x};x=y\r\n{b}\r\n0\r\n\r\n", a.len(), b.len()));
    assert!(client.answer().text().contains("echo: hi"));
    for broken in ["{", "[]", r#"{"input":"hi"}"#, r#"{"input":[7]}"#] {
        let answer = client.ask(broken);
        assert_eq!(answer.status, 400, "{broken}");
        assert!(answer.text().contains("the body is not a request"), "{broken}");
    }
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_panic_of_the_brain_fails_the_test() {
    let server = Server::start(|request| {
        assert!(request.contains("no such thing"), "told {}", request.told());
        Reply::new()
    });
    let answer = Client::new(&server).ask(BODY);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("the brain panicked: told hi"));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(server)));
    let message = dropped.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*message, "the brain of the model server panicked: told hi");
}

#[test]
fn dropping_ends_everything() {
    let server = Server::start(|_| Reply::new().stall_before_headers());
    let address = server.address();
    let mut client = Client::new(&server);
    client.send(BODY);
    server.wait_until(|requests| requests.len() == 1);
    drop(server);
    assert!(client.closed());
    assert!(std::net::TcpStream::connect(address).is_err());
    // The address can be taken again, as for a provider that comes back.
    let again = Server::start_at(address, |_| "back");
    assert!(Client::new(&again).ask(BODY).text().contains("back"));
    let nowhere = Server::nowhere();
    let address = nowhere.strip_prefix("http://").unwrap().strip_suffix("/v1").unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn it_works_inside_a_runtime() {
    let (go, done) = (Gate::new(), Gate::new());
    let reply = Reply::new().text("a").wait_for(&go).then(&done);
    let server = Server::start(move |_| reply.clone());
    let mut client = Client::new(&server);
    client.send(BODY);
    server.until(|requests| requests.len() == 1).await;
    go.open();
    done.opened().await;
    assert_eq!(client.answer().end, End::Whole);
}
