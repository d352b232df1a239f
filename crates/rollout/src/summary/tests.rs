use std::fs;
use std::io::Write as _;

use expect_test::expect;
use proptest::prelude::*;
use protocol::{MailKind, Outcome};

use super::*;
use crate::fixture::{Home, accepted, birth, closed, delivers, id, mail, meta, turn, turn_end, words};
use crate::state::tests::any_record;
use crate::{FileFacts, Loaded, Writer};

fn facts(home: &Home) -> FileFacts {
    home.again().files().unwrap().files.remove(0)
}

fn read_back(home: &Home) -> Loaded {
    home.again().load(id(1)).unwrap()
}

async fn root(home: &Home) -> Writer {
    home.store.create(meta(1), birth()).await.unwrap()
}

#[test]
fn the_checksum_is_the_published_one() {
    // The vectors for 64 bits that come with the algorithm's description.
    assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
}

#[tokio::test]
async fn a_summary_as_text() {
    let home = Home::new();
    let writer = root(&home).await;
    writer.append_synced(&[turn(7), delivers(&[100]), turn_end(7, Outcome::Completed), closed()]).await.unwrap();
    let mut summary = writer.summary();
    // What depends on the clock and the folder.
    summary.file = AbsPath::new("/srv/agent/rollout.jsonl").unwrap();
    (summary.last_activity, summary.checksum) = (Timestamp::EPOCH, 0);
    summary.edge = Edge::Closed { reason: "enough".to_owned(), by: "/root".to_owned(), at: Timestamp::EPOCH };
    let text = serde_json::to_string_pretty(&summary).unwrap();
    expect![[r#"
        {
          "version": 2,
          "meta": {
            "id": "01939d5e-0000-7000-8000-000000000001",
            "session_id": "01939d5e-0000-7000-8000-000000000001",
            "timestamp": "2026-11-30T15:13:02.000Z",
            "agent_path": "/root",
            "incarnation": 1,
            "agent_role": "default",
            "depth": 0,
            "cwd": "/tmp/project",
            "model": "test/one",
            "sandbox": "workspace-write",
            "approval": "never",
            "originator": "agent",
            "cli_version": "0.1.0",
            "format": 1
          },
          "file": "/srv/agent/rollout.jsonl",
          "bytes": 1718,
          "ordinal": 7,
          "last_line_bytes": 141,
          "checksum": 0,
          "skipped": 0,
          "unknown": 0,
          "status": "completed",
          "at_rest": false,
          "edge": {
            "status": "closed",
            "reason": "enough",
            "by": "/root",
            "at": "1970-01-01T00:00:00.000Z"
          },
          "sequences": [
            {
              "highest": 100
            }
          ],
          "first_task": "mail 100\nwith two lines",
          "tasks_taken": [
            {
              "id": "01939d5e-0000-7000-8000-000000000064",
              "giver": {
                "client": "01939d5e-0000-7000-8000-000000000064"
              },
              "kind": "input"
            }
          ],
          "taken_mail": [
            {
              "id": "01939d5e-0000-7000-8000-000000000064",
              "tree": "01939d5e-0000-7000-8000-000000000001",
              "from": {
                "client": "01939d5e-0000-7000-8000-000000000064"
              },
              "to": {
                "path": "/root",
                "thread": "01939d5e-0000-7000-8000-000000000001"
              },
              "kind": "input",
              "trigger_turn": true,
              "sequence": 100,
              "body": "mail 100\nwith two lines"
            }
          ],
          "turns": 1,
          "last_end": {
            "outcome": "completed",
            "text": "done"
          },
          "usage": {
            "input": 0,
            "cached_input": 0,
            "output": 0,
            "reasoning": 0
          },
          "window_used": 0,
          "cost_usd": 0.0,
          "estimated": {
            "input": 0,
            "cached_input": 0,
            "output": 0,
            "reasoning": 0
          },
          "estimated_usd": 0.0,
          "window": 1,
          "last_activity": "1970-01-01T00:00:00.000Z"
        }"#]]
    .assert_eq(&text);
    let newer = text.replacen('{', r#"{"a_field_of_tomorrow": [1, {}],"#, 1);
    assert_eq!(serde_json::from_str::<Summary>(&newer).unwrap(), summary);
}

#[tokio::test]
async fn a_summary_is_told_when_it_is_on_the_disk() {
    let home = Home::new();
    let writer = root(&home).await;
    assert_eq!(writer.synced_summary(), Some(writer.summary()));
    writer.append(&[words("a")]).unwrap();
    assert_eq!(writer.synced_summary(), None);
    assert_eq!(writer.summary(), read_back(&home).summary());
    writer.sync().await.unwrap();
    assert_eq!(writer.synced_summary(), Some(writer.summary()));
    // What was found may not be on the disk either.
    drop(writer);
    let writer = home.store.writer(id(1)).unwrap();
    assert_eq!(writer.synced_summary(), None);
    writer.sync().await.unwrap();
    assert_eq!(writer.synced_summary(), Some(read_back(&home).summary()));
}

#[tokio::test]
async fn a_file_that_changed_does_not_match() {
    let home = Home::new();
    let writer = root(&home).await;
    writer.append_synced(&[turn(7), words("one"), words("two")]).await.unwrap();
    let summary = writer.summary();
    let matches = |summary: &Summary| home.store.tail_matches(&facts(&home), summary);
    assert!(matches(&summary));
    for odd in [
        Summary { version: Summary::VERSION + 1, ..summary.clone() },
        Summary { bytes: summary.bytes - 1, ..summary.clone() },
        Summary { ordinal: summary.ordinal + 1, ..summary.clone() },
        Summary { last_line_bytes: summary.last_line_bytes - 1, ..summary.clone() },
        Summary { last_line_bytes: 0, ..summary.clone() },
        Summary { last_line_bytes: summary.bytes + 1, ..summary.clone() },
        Summary { last_line_bytes: u64::MAX, ..summary.clone() },
        Summary { checksum: !summary.checksum, ..summary.clone() },
        Summary { meta: meta(2), ..summary.clone() },
    ] {
        assert!(!matches(&odd), "{odd:?}");
    }
    // As long as before, another last line.
    let whole = fs::read(writer.file()).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    fs::write(writer.file(), text.replace("two", "six")).unwrap();
    assert!(!matches(&summary));
    fs::write(writer.file(), &whole).unwrap();
    assert!(matches(&summary));
    // It grew after it was listed: it still is what it was then, but not what it is now.
    let before = facts(&home);
    writer.append(&[words("three")]).unwrap();
    assert!(home.store.tail_matches(&before, &summary));
    assert!(!matches(&summary));
    assert!(matches(&writer.summary()));
    fs::remove_file(writer.file()).unwrap();
    assert!(!home.store.tail_matches(&before, &summary));
}

#[tokio::test]
async fn what_could_not_be_read_is_counted_live_as_well() {
    let home = Home::new();
    let writer = root(&home).await;
    let file = writer.file().clone();
    drop(writer);
    let mut handle = fs::OpenOptions::new().append(true).open(&file).unwrap();
    handle.write_all(b"not a line\n{\"half\":").unwrap();
    // Unfinished bytes belong to no summary, so it does not match before they are cut off.
    let found = read_back(&home).summary();
    assert_eq!((found.skipped, found.bytes + 8), (1, facts(&home).bytes));
    assert!(!home.store.tail_matches(&facts(&home), &found));
    let writer = home.store.writer(id(1)).unwrap();
    assert_eq!(writer.summary(), found);
    let payload = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
    let newer = Record::Other { kind: "of_tomorrow".to_owned(), payload };
    writer.append_synced(&[newer]).await.unwrap();
    let summary = writer.summary();
    assert_eq!((summary.skipped, summary.unknown), (1, 1));
    assert_eq!(summary, read_back(&home).summary());
    assert!(home.store.tail_matches(&facts(&home), &summary));
}

#[tokio::test]
async fn a_place_is_learnt_once_and_only_if_it_can_be_true() {
    let home = Home::new();
    let file = root(&home).await.file().clone();
    let store = home.again();
    store.learn(id(2), file.clone());
    assert!(store.file(id(2)).is_err());
    store.learn(id(1), file.clone());
    store.learn(id(1), AbsPath::new("/elsewhere").unwrap().join(file.file_name().unwrap()));
    // No folder is listed any more.
    assert_eq!(store.file(id(1)).unwrap(), file);
    assert_eq!(store.load(id(1)).unwrap().state.meta, meta(1));
}

#[tokio::test]
async fn what_comes_from_a_summary_is_marked_as_incomplete() {
    let home = Home::new();
    let writer = root(&home).await;
    let waits = mail(5, 2, MailKind::Message);
    writer.append_synced(&[words("a"), delivers(&[100]), accepted(waits.clone())]).await.unwrap();
    let state = read_back(&home).state;
    assert!(state.transcript_complete && state.known_complete && state.known.contains(&id(100)));
    let looked_at = State::from_summary(&writer.summary());
    assert!(!looked_at.transcript_complete && !looked_at.known_complete);
    assert!(looked_at.transcript.is_empty());
    assert_eq!((looked_at.pending, looked_at.known.len()), (vec![waits], 2));
}

/// What a summary leaves out.
fn thinned(state: &State) -> State {
    State {
        transcript: Vec::new(),
        transcript_complete: false,
        known: HashSet::new(),
        known_complete: false,
        returned: HashSet::new(),
        done: HashMap::new(),
        done_complete: false,
        ended: HashSet::new(),
        ..state.clone()
    }
}

fn anything() -> impl Strategy<Value = Record> {
    let other = "[a-z]{1,9}_x".prop_map(|kind| Record::Other {
        kind,
        payload: serde_json::value::RawValue::from_string("[0]".to_owned()).unwrap(),
    });
    let limits = (0_usize..9, prop::option::of(0.0..100.0)).prop_map(|(n, usd)| {
        let budgets = crate::Budgets { usd, ..crate::Budgets::default() };
        let roles = vec!["explorer".to_owned()];
        Record::Limits(Box::new(Limits {
            max_running: n,
            max_resident: n,
            max_depth: n,
            max_agents: n,
            roles,
            budgets,
        }))
    });
    let context = "\\PC{0,20}".prop_map(|model| {
        let SessionMeta { cwd, sandbox, approval, .. } = meta(1);
        Record::TurnContext(Box::new(TurnContext {
            turn_id: id(7),
            cwd,
            model,
            effort: None,
            sandbox_policy: sandbox,
            approval_policy: approval,
            tools: Vec::new(),
            tools_digest: String::new(),
        }))
    });
    let lost = (0_u64..12).prop_map(|n| crate::fixture::task_done(n, mail(n, 2, MailKind::Spawn).from, Outcome::Lost));
    prop_oneof![8 => any_record(), 1 => other, 1 => limits, 1 => context, 2 => lost]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was written, and whoever wrote it before: the writer says what the file says.
    #[test]
    fn the_live_summary_is_that_of_the_file(
        lives in prop::collection::vec(prop::collection::vec(prop::collection::vec(anything(), 0..5), 0..6), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let home = Home::new();
        // A time finer than a line has it.
        let born = SessionMeta {
            timestamp: Timestamp::parse("2026-11-30T15:13:02.123456789Z").unwrap(),
            ..meta(1)
        };
        let mut writer = runtime.block_on(home.store.create(born, birth())).unwrap();
        for life in &lives {
            for write in life {
                if write.is_empty() {
                    writer.compact("shorter".to_owned(), Vec::new()).unwrap();
                }
                writer.append(write).unwrap();
                let loaded = read_back(&home);
                prop_assert_eq!(writer.summary(), loaded.summary());
            }
            drop(writer);
            writer = home.store.writer(id(1)).unwrap();
        }
        let (summary, loaded) = (writer.summary(), read_back(&home));
        prop_assert_eq!(&summary, &loaded.summary());
        prop_assert!(home.store.tail_matches(&facts(&home), &summary));
        let text = serde_json::to_string(&summary).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Summary>(&text).unwrap(), &summary);
        let state = State::from_summary(&summary);
        prop_assert_eq!(thinned(&state), thinned(&loaded.state));
        prop_assert_eq!((state.status(), state.is_at_rest()), (summary.status, summary.at_rest));
        let end = loaded.end;
        prop_assert_eq!(state.summary(&end), summary);
    }
}
