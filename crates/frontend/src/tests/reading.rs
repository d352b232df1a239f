//! Events over a socket, fast and slow.

use super::*;
use crate::{Delivery, Gap, Lagged, MAX_EVENTS, RequestError};

async fn next(events: &mut Subscription) -> Delivery {
    within(events.next()).await.expect("the stream ended")
}

/// Reads events up to a sequence, each exactly once.
async fn read_to(events: &mut Subscription, from: u64, to: u64) {
    for seq in from..=to {
        assert_eq!(next(events).await, Delivery::Event(warning(seq, "careful")));
    }
}

#[tokio::test]
async fn events_come_from_now_on_or_after_a_sequence() {
    let scene = Scene::new().await;
    scene.desk.push(1..=3);
    let client = scene.client().await;
    let mut all = within(client.subscribe(Some(0))).await.unwrap();
    let mut some = within(client.subscribe(Some(2))).await.unwrap();
    let mut new = within(client.subscribe(None)).await.unwrap();
    scene.desk.push(4..=5);
    read_to(&mut all, 1, 5).await;
    read_to(&mut some, 3, 5).await;
    read_to(&mut new, 4, 5).await;
    // The owner stops after one more: that one still comes, and then a proper end.
    scene.desk.push(6..=6);
    scene.stop().await;
    for events in [&mut all, &mut some, &mut new] {
        read_to(events, 6, 6).await;
        assert_eq!(within(events.next()).await, None);
        assert_eq!(events.skipped(), 0);
    }
    let error = within(client.subscribe(None)).await.unwrap_err();
    assert!(matches!(error, RequestError::Connect(crate::ConnectError::Nobody { .. })), "{error}");
}

#[tokio::test]
async fn items_keep_their_bytes_on_the_way() {
    let scene = Scene::new().await;
    let item = protocol::Item::parse(r#"{"type":"reasoning", "z":1.50,"a":[ ]}"#).unwrap();
    let sent = event(1, EventKind::ItemCompleted { turn: None, item });
    scene.desk.log.push(Arc::clone(&sent));
    let mut events = scene.client().await.events(Some(0));
    assert_eq!(next(&mut events).await, Delivery::Event(sent));
}

#[tokio::test]
async fn who_comes_back_goes_on_where_it_was() {
    let scene = Scene::new().await;
    scene.desk.push(1..=MAX_EVENTS as u64);
    let client = scene.client().await;
    let mut events = within(client.subscribe(Some(0))).await.unwrap();
    read_to(&mut events, 1, 10).await;
    drop(events);
    scene.desk.readers_over.reaches(1).await;
    let last = MAX_EVENTS as u64 + 10;
    scene.desk.push(MAX_EVENTS as u64 + 1..=last);
    let mut events = within(client.subscribe(Some(10))).await.unwrap();
    read_to(&mut events, 11, last).await;
    // One less far, and something is missing.
    let mut events = within(client.subscribe(Some(9))).await.unwrap();
    assert_eq!(next(&mut events).await, Delivery::Gap(Gap { after: 9, first: 11 }));
    read_to(&mut events, 11, last).await;
}

#[tokio::test]
async fn a_sequence_of_another_owner_is_a_gap() {
    let scene = Scene::new().await;
    scene.desk.push(1..=2);
    let mut events = within(scene.client().await.subscribe(Some(500))).await.unwrap();
    assert_eq!(next(&mut events).await, Delivery::Gap(Gap { after: 500, first: 1 }));
    read_to(&mut events, 1, 2).await;
}

/// Reads what is under way: events without a hole, then the notice that names the last of them.
async fn read_to_lag(raw: &mut Raw, mut seq: u64) -> u64 {
    loop {
        let line = raw.hear().await.expect("cut off without a word");
        if let Some(event) = line.get("event") {
            seq += 1;
            assert_eq!(event["seq"], seq);
        } else {
            assert_eq!(line, serde_json::json!({"lagged": Lagged { resume_after: seq }}));
            return seq;
        }
    }
}

#[tokio::test]
async fn a_slow_reader_is_cut_off_and_resumes() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say(r#"{"id":1,"op":"subscribe"}"#).await;
    assert_eq!(raw.hear().await.unwrap(), serde_json::json!({"id": 1, "ok": {"reply": "subscribed"}}));
    scene.desk.push(1..=5);
    for seq in 1..=5 {
        assert_eq!(raw.hear().await.unwrap()["event"]["seq"], seq);
    }
    // It stops reading while more happens than is kept.
    let last = 5 + 2 * MAX_EVENTS as u64;
    scene.desk.push(6..=last);
    let seen = read_to_lag(&mut raw, 5).await;
    assert!(seen < last - MAX_EVENTS as u64, "{seen}");
    assert_eq!(scene.desk.readers_over.get(), 1, "it holds nothing any more");
    // The connection goes on, and so may the subscription: with what is still there, and a word about the rest.
    raw.say(&format!(r#"{{"id":2,"op":"subscribe","after":{seen}}}"#)).await;
    assert_eq!(raw.hear().await.unwrap()["id"], 2);
    let first = last - MAX_EVENTS as u64 + 1;
    assert_eq!(raw.hear().await.unwrap(), serde_json::json!({"gap": {"after": seen, "first": first}}));
    for seq in first..=last {
        assert_eq!(raw.hear().await.unwrap()["event"]["seq"], seq);
    }
    raw.say(r#"{"id":3,"op":"ping"}"#).await;
    assert_eq!(raw.hear().await.unwrap()["ok"]["reply"], "pong");
}

#[tokio::test]
async fn a_client_that_stops_reading_is_cut_off() {
    let scene = Scene::with(House { stall: Duration::from_millis(50), spare: SPARE, admits: |_| true }).await;
    let mut raw = scene.raw().await;
    raw.say(r#"{"id":1,"op":"subscribe"}"#).await;
    assert_eq!(raw.hear().await.unwrap()["id"], 1);
    // More than the system and the outgoing queue take together, less than makes a reader lag.
    let words = "x".repeat(10_000);
    for seq in 1..=500 {
        scene.desk.log.push(warning(seq, &words));
    }
    scene.desk.readers_over.reaches(1).await;
    scene.stop().await;
    let mut seen = 0;
    let mut bytes = String::new();
    while within(raw.read.read_line(&mut bytes)).await.is_ok_and(|n| n > 0) {
        // The last line may be half a line.
        let Ok(line) = serde_json::from_str::<Value>(&bytes) else { break };
        seen += 1;
        assert_eq!(line["event"]["seq"], seen);
        bytes.clear();
    }
    assert!(seen < 500, "{seen}");
}

#[tokio::test]
async fn a_client_that_never_reads_does_not_hold_up_the_end() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say(r#"{"id":1,"op":"subscribe"}"#).await;
    scene.desk.readers_begun.reaches(1).await;
    let words = "x".repeat(10_000);
    for seq in 1..=500 {
        scene.desk.log.push(warning(seq, &words));
    }
    let begun = std::time::Instant::now();
    scene.stop().await;
    assert!(begun.elapsed() < STALL, "it took as long as for a living client");
}

#[tokio::test]
async fn one_connection_has_one_subscription() {
    let scene = Scene::new().await;
    let mut raw = scene.raw().await;
    raw.say("{\"id\":1,\"op\":\"subscribe\"}\n{\"id\":2,\"op\":\"subscribe\"}").await;
    assert_eq!(raw.hear().await.unwrap()["ok"]["reply"], "subscribed");
    assert_eq!(raw.hear().await.unwrap()["err"]["code"], "usage");
}

#[tokio::test]
async fn a_local_reader_may_be_slow_too() {
    let desk = Fake::new();
    let mut events = desk.events(Some(0));
    desk.push(1..=MAX_EVENTS as u64);
    read_to(&mut events, 1, 2).await;
    desk.push(MAX_EVENTS as u64 + 1..=MAX_EVENTS as u64 + 3);
    assert_eq!(next(&mut events).await, Delivery::Lagged(Lagged { resume_after: 2 }));
    assert_eq!(within(events.next()).await, None);
}
