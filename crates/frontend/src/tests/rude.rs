//! Clients that do not keep to the protocol.

use super::*;
use crate::serve::may_speak;
use crate::{MAX_LINE, RequestError};

/// What the owner says to a line, and whether it goes on listening.
async fn check(line: &str, code: &str, goes_on: bool) {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say(line).await;
    let said = raw.hear().await.unwrap();
    if goes_on {
        assert_eq!(said["err"]["code"], code, "{line}: {said}");
        raw.say(r#"{"id":7,"op":"ping"}"#).await;
        assert_eq!(raw.hear().await.unwrap()["id"], 7);
    } else {
        assert_eq!(said["fault"]["code"], code, "{line}: {said}");
        assert_eq!(raw.hear().await, None);
    }
    assert_eq!(scene.stop().await.calls().len(), usize::from(goes_on));
}

#[tokio::test]
async fn garbage_ends_the_connection() {
    for line in ["GET / HTTP/1.1", "{", "[]", "7", "\u{0}\u{1}", r#"{"op":"ping"}"#, r#"{"id":-1,"op":"ping"}"#] {
        check(line, "usage", false).await;
    }
}

#[tokio::test]
async fn a_wrong_request_is_one_failed_request() {
    for line in [
        r#"{"id":1}"#,
        r#"{"id":1,"op":"fly"}"#,
        r#"{"id":1,"op":"send","path":"/root"}"#,
        r#"{"id":1,"op":"interrupt","path":"worker"}"#,
        r#"{"id":1,"op":"answer","task":"x"}"#,
        r#"{"id":1,"op":"send","path":"/root","body":"b","request":"01939d5e-0000-7000-8000-000000000002","mode":"x"}"#,
    ] {
        check(line, "usage", true).await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_end_the_connection() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.write.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(raw.hear().await.unwrap()["fault"]["code"], "usage");
    assert_eq!(raw.hear().await, None);
}

#[tokio::test]
async fn hello_comes_first() {
    let scene = Scene::new().await;
    for (line, code) in [
        (r#"{"id":1,"op":"ping"}"#, "usage"),
        (r#"{"hello":{"protocol":2,"version":"9.0.0"}}"#, "version"),
        (r#"{"hello":{}}"#, "usage"),
    ] {
        let mut raw = Raw::connect(&scene.path).await;
        raw.say(line).await;
        let said = raw.hear().await.unwrap();
        assert_eq!(said["fault"]["code"], code, "{line}: {said}");
        assert_eq!(raw.hear().await, None);
    }
    // Fields that are not known do not matter.
    let mut raw = Raw::connect(&scene.path).await;
    raw.say(r#"{"hello":{"protocol":1,"colour":"red"},"more":[]}"#).await;
    raw.say(r#"{"id":1,"op":"ping","when":"now"}"#).await;
    assert_eq!(raw.hear().await.unwrap()["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_sent_away() {
    let scene = Scene::new().await;
    let mut raw = Raw::connect(&scene.path).await;
    assert_eq!(raw.hear().await.unwrap()["fault"]["code"], "usage");
    assert_eq!(raw.hear().await, None);
}

#[tokio::test]
async fn a_line_may_come_in_pieces() {
    let scene = Scene::new().await;
    let mut raw = Raw::connect(&scene.path).await;
    let lines = "{\"hello\":{\"protocol\":1}}\n\n \r\n{\"id\":1,\"op\":\"ping\"}\r\n{\"id\":2,\"op\":\"tree\"}\n";
    for byte in lines.as_bytes() {
        raw.write.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut ids = [raw.hear().await.unwrap()["id"].as_u64(), raw.hear().await.unwrap()["id"].as_u64()];
    ids.sort_unstable();
    assert_eq!(ids, [Some(1), Some(2)]);
}

#[tokio::test]
async fn half_a_line_is_nothing() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    // Whole JSON, but nobody has said that it ends here.
    raw.write.write_all(br#"{"id":1,"op":"continue"}"#).await.unwrap();
    drop(raw);
    let mut other = scene.raw().await;
    other.say(r#"{"id":1,"op":"ping"}"#).await;
    assert_eq!(other.hear().await.unwrap()["id"], 1);
    assert_eq!(scene.stop().await.calls(), [Op::Ping]);
}

#[tokio::test]
async fn who_closes_its_writing_side_still_gets_its_answers() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say(r#"{"id":1,"op":"tree"}"#).await;
    raw.write.shutdown().await.unwrap();
    assert_eq!(raw.hear().await.unwrap()["ok"]["reply"], "tree");
    assert_eq!(raw.hear().await, None);
}

/// A request whose line has exactly so many bytes.
fn long(bytes: usize) -> String {
    let line =
        |body: &str| format!(r#"{{"id":1,"op":"send","path":"/root","body":"{body}","request":"{}"}}"#, request());
    line(&"x".repeat(bytes - line("").len()))
}

#[tokio::test]
async fn the_longest_line_is_taken_and_one_byte_more_is_not() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say(&long(MAX_LINE)).await;
    assert_eq!(raw.hear().await.unwrap()["ok"]["state"], "started");
    let too_long = long(MAX_LINE + 1);
    // The other side closes in the middle of it.
    let _ = raw.write.write_all(too_long.as_bytes()).await;
    assert_eq!(raw.hear().await.unwrap()["fault"]["code"], "too_long");
    assert_eq!(raw.hear().await, None);
    assert_eq!(scene.stop().await.calls().len(), 1);
}

#[tokio::test]
async fn our_own_client_does_not_even_send_it() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let error = within(client.request(send(&"x".repeat(MAX_LINE)))).await.unwrap_err();
    assert!(matches!(error, RequestError::TooLong { bytes } if bytes > MAX_LINE), "{error}");
    assert_eq!(within(client.request(Op::Ping)).await.unwrap(), Reply::Pong);
}

#[tokio::test]
async fn who_asks_and_does_not_read_is_cut_off() {
    let scene = Scene::with(House { stall: Duration::from_millis(50), spare: SPARE, admits: |_| true }).await;
    let mut raw = scene.raw().await;
    // Writes until the other side has had enough.
    let asks = "{\"id\":1,\"op\":\"tree\"}\n".repeat(1000);
    within(async { while raw.write.write_all(asks.as_bytes()).await.is_ok() {} }).await;
    scene.stop().await;
}

#[tokio::test]
async fn strangers_are_refused() {
    let scene = Scene::with(House { stall: STALL, spare: SPARE, admits: |_| false }).await;
    match within(Client::connect(&scene.path, || true)).await {
        Err(crate::ConnectError::Refused(fault)) => assert_eq!(fault.code, Code::Forbidden),
        other => panic!("{:?}", other.err()),
    }
    assert!(scene.stop().await.calls().is_empty());
    assert!(may_speak(1000, 1000) && may_speak(0, 1000));
    assert!(!may_speak(1001, 1000) && !may_speak(1000, 0));
}
