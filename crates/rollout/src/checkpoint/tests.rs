use expect_test::expect;
use protocol::{MailKind, Outcome, Role};
use serde_json::json;

use super::*;
use crate::fixture::{Home, accepted, birth, delivers, id, item, mail, meta, task_done, time, turn, turn_end, words};
use crate::{Error, encode};

fn text(record: &Record) -> String {
    let mut out = Vec::new();
    encode(&mut out, time(0), 7, Some([1, 4]), record).unwrap();
    String::from_utf8(out).unwrap()
}

/// These bytes are in files: they may never change.
#[test]
fn the_lines_of_a_compaction() {
    let mut state = State::new(meta(1));
    let records =
        [accepted(mail(5, 2, MailKind::Spawn)), turn(7), delivers(&[5]), accepted(mail(6, 0, MailKind::Input))];
    for (record, ordinal) in records.iter().zip(2..) {
        state.apply_record(time(3), ordinal, record);
    }
    state.see(&WorldState { full: true, state: json!({ "cwd": "/tmp" }) });
    // Blanks and the order of the keys stay as the server had them.
    let history = vec![Item::parse(r#"{"type":"message", "role":"user","content":"short"}"#).unwrap()];
    let lines: Vec<String> = state.compaction("Short.".to_owned(), history).iter().map(text).collect();
    expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"compacted","part":[1,4],"payload":{"message":"Short.","window_number":2,"replacement_history":[{"type":"message", "role":"user","content":"short"}]}}
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"checkpoint","part":[1,4],"payload":{"edge":{"status":"open"},"open_turn":"01939d5e-0000-7000-8000-000000000007","turns":1,"first_task":"mail 5\nwith two lines","pending":[{"id":"01939d5e-0000-7000-8000-000000000006","tree":"01939d5e-0000-7000-8000-000000000001","from":{"client":"01939d5e-0000-7000-8000-000000000006"},"to":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000001"},"kind":"input","trigger_turn":true,"sequence":6,"body":"mail 6\nwith two lines"}],"tasks_taken":[{"id":"01939d5e-0000-7000-8000-000000000005","giver":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000002"},"kind":"spawn"}],"taken_mail":[{"id":"01939d5e-0000-7000-8000-000000000005","tree":"01939d5e-0000-7000-8000-000000000001","from":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000002"},"to":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000001"},"kind":"spawn","trigger_turn":true,"sequence":5,"body":"mail 5\nwith two lines"}],"sequences":[{"highest":6},{"from":"01939d5e-0000-7000-8000-000000000002","highest":5}],"known":["01939d5e-0000-7000-8000-000000000005","01939d5e-0000-7000-8000-000000000006"],"known_complete":true,"usage":{"input":0,"cached_input":0,"output":0,"reasoning":0},"cost_usd":0.0}}
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"world_state","part":[1,4],"payload":{"full":true,"state":{"cwd":"/tmp"}}}
    "#]]
    .assert_eq(&lines.concat());
}

/// RFC 7396 has these, and more.
#[test]
fn a_patch_of_the_world() {
    fn check(target: Value, patch: Value, expect: Value) {
        let mut state = State::new(meta(1));
        state.see(&WorldState { full: true, state: target });
        state.see(&WorldState { full: false, state: patch });
        assert_eq!(state.world_state, Some(expect));
    }
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
    check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
    check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
    check(json!(null), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
}

/// The writer's own state is what is written down: mail that came in meanwhile is in it.
#[tokio::test]
async fn a_compaction_loses_nothing() {
    let home = Home::new();
    let writer = home.store.create(meta(1), birth()).await.unwrap();
    writer
        .append(&[
            turn(7),
            delivers(&[100]),
            words("a long answer"),
            turn_end(7, Outcome::Completed),
            task_done(100, mail(100, 0, MailKind::Input).from, Outcome::Completed),
            accepted(mail(8, 2, MailKind::Message)),
        ])
        .unwrap();
    let short = vec![Item::message(Role::User, "short")];
    let placed = writer.compact("Short.".to_owned(), short.clone()).unwrap();
    // No world and no settings were told of.
    assert_eq!(placed.last - placed.first, 1);
    writer.append_synced(&[accepted(mail(9, 2, MailKind::Message)), item(short[0].clone())]).await.unwrap();
    let loaded = home.again().load(id(1)).unwrap();
    assert!(loaded.from > 0);
    assert_eq!(writer.summary(), loaded.summary());
    let state = loaded.state;
    assert_eq!(state.transcript, [short[0].clone(), short[0].clone()]);
    assert_eq!((state.window, state.turns, state.unread()), (2, 1, 2));
    assert_eq!((state.known.len(), state.known_complete), (3, true));
    // How an old task ended is in the lines before.
    assert_eq!((state.done.len(), state.done_complete), (0, false));
    let end = home.again().ended(id(1), id(100)).unwrap().unwrap();
    assert_eq!(end.outcome, Outcome::Completed);
    assert_eq!(home.again().ended(id(1), id(8)).unwrap(), None);
    assert_eq!(home.again().known(id(1)).unwrap(), state.known);
}

#[test]
fn very_much_mail_is_named_by_its_lines_alone() {
    let mut state = State::new(meta(1));
    for n in 0..=MAX_KNOWN as u64 {
        state.known.insert(id(n + 1));
    }
    let checkpoint = state.checkpoint();
    assert_eq!((checkpoint.known.len(), checkpoint.known_complete), (0, false));
    let mut read = State::resumed(meta(1));
    read.restore(&checkpoint);
    assert!(!read.known_complete);
    state.known.remove(&id(1));
    assert!(state.checkpoint().known_complete);
}

#[tokio::test]
async fn a_line_that_no_reader_would_take_is_not_written() {
    let home = Home::new();
    let writer = home.store.create(meta(1), birth()).await.unwrap();
    let before = writer.summary();
    let long = Item::message(Role::User, &"x".repeat(crate::source::MAX_LINE));
    assert!(matches!(writer.append(&[turn(1), item(long.clone())]), Err(Error::LongLine { .. })));
    assert!(matches!(writer.compact(String::new(), vec![long]), Err(Error::LongLine { .. })));
    assert_eq!((writer.summary(), home.again().load(id(1)).unwrap().summary()), (before.clone(), before));
}
