use std::fmt::Write as _;

use expect_test::expect;
use rusqlite::types::ValueRef;

use super::*;
use crate::fixture::{Home, closed, id, turn, turn_end, words};

fn put(home: &Home, changes: &[Change]) {
    let mut database = Database::open(&home.database()).unwrap();
    for change in changes {
        let thread = change.summary.as_ref().map_or(id(1), |summary| summary.meta.id);
        apply(&mut database, home.path(), [(&thread, change)]).unwrap();
    }
}

fn note(summary: &Summary) -> Change {
    Change::noted(summary.clone())
}

/// A table as text: a line a row, `column=value`.
fn table(home: &Home, query: &str) -> String {
    let connection = home.sql();
    let mut statement = connection.prepare(query).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([]).unwrap();
    let mut text = String::new();
    while let Some(row) = rows.next().unwrap() {
        for (at, name) in names.iter().enumerate() {
            let value = match row.get_ref(at).unwrap() {
                ValueRef::Null => "-".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            };
            writeln!(text, "{name}={value}").unwrap();
        }
    }
    text
}

#[tokio::test]
async fn a_row_has_what_lists_need() {
    let home = Home::new();
    let root = home.agent(1, 1).await;
    let child = home.agent(1, 2).await;
    child.append_synced(&[turn(7), words("a"), turn_end(7), closed()]).await.unwrap();
    let mut ended = child.summary();
    ended.last_activity = ended.meta.timestamp;
    ended.edge = Edge::Closed { reason: "enough".to_owned(), by: "/root".to_owned(), at: ended.meta.timestamp };
    put(&home, &[note(&root.summary()), note(&ended)]);
    let threads = table(
        &home,
        "SELECT thread, tree, parent, path, incarnation, role, cwd, model, title, file, ordinal, status, unread,
         tokens_input, tokens_cached_input, tokens_output, updated_at FROM threads WHERE parent IS NOT NULL",
    );
    expect![[r#"
        thread=01939d5e-0000-7000-8000-000000000002
        tree=01939d5e-0000-7000-8000-000000000001
        parent=01939d5e-0000-7000-8000-000000000001
        path=/root/agent_2
        incarnation=1
        role=default
        cwd=/tmp/project
        model=test/one
        title=Task 2: look into it
        file=sessions/2026/11/30/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000002.jsonl
        ordinal=7
        status=completed
        unread=1
        tokens_input=0
        tokens_cached_input=0
        tokens_output=0
        updated_at=2026-11-30T15:13:02.000Z
    "#]]
    .assert_eq(&threads);
    expect![[r#"
        child_thread_id=01939d5e-0000-7000-8000-000000000001
        parent_thread_id=-
        status=open
        path=/root
        opened_at=2026-11-30T15:13:02.000Z
        closed_at=-
        close_reason=-
        child_thread_id=01939d5e-0000-7000-8000-000000000002
        parent_thread_id=01939d5e-0000-7000-8000-000000000001
        status=closed
        path=/root/agent_2
        opened_at=2026-11-30T15:13:02.000Z
        closed_at=2026-11-30T15:13:02.000Z
        close_reason=enough
    "#]]
    .assert_eq(&table(&home, "SELECT * FROM thread_spawn_edges ORDER BY child_thread_id"));
    expect![[r#"
        thread=01939d5e-0000-7000-8000-000000000001
        id=01939d5e-0000-7000-8000-000000000001
        kind=input
        sender=user
        state=pending
    "#]]
    .assert_eq(&table(&home, "SELECT * FROM mail WHERE thread LIKE '%1'"));
    let (bytes, line, sum): (u32, u32, i64) = home
        .sql()
        .query_row("SELECT bytes, last_line_bytes, checksum FROM threads WHERE parent IS NOT NULL", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let facts = fs::read(child.file()).unwrap();
    let last = facts.split_inclusive(|b| *b == b'\n').next_back().unwrap();
    assert_eq!((bytes as usize, line as usize), (facts.len(), last.len()));
    assert_eq!(sum.cast_unsigned(), checksum(last));
}

#[tokio::test]
async fn an_older_note_never_overwrites_a_newer_one() {
    let home = Home::new();
    let writer = home.agent(1, 1).await;
    let mut history = vec![writer.summary()];
    for n in 1..5 {
        writer.append_synced(&[turn(n)]).await.unwrap();
        history.push(writer.summary());
    }
    let last = history[4].ordinal;
    for first in 0..history.len() {
        history.rotate_left(1);
        for backwards in [false, true] {
            history.reverse();
            let other = Home::new();
            put(&other, &history.iter().map(note).collect::<Vec<_>>());
            assert_eq!(other.count("SELECT ordinal FROM threads"), last, "{first} {backwards}");
        }
    }
}

/// A closed edge stays closed, whoever comes late: an older note, a hand that writes SQL, a spawn that is told twice.
#[tokio::test]
async fn a_late_back_fill_never_reopens_a_closed_edge() {
    let home = Home::new();
    let child = home.agent(1, 2).await;
    let open = child.summary();
    child.append_synced(&[closed()]).await.unwrap();
    let over = child.summary();
    let status = || table(&home, "SELECT status, close_reason FROM thread_spawn_edges");
    put(&home, &[note(&open)]);
    assert_eq!(status(), "status=open\nclose_reason=-\n");
    put(&home, &[note(&over), note(&open)]);
    assert_eq!(status(), "status=closed\nclose_reason=enough\n");
    // The same place of the file, but open: what a back-fill by a program that knows less would say.
    put(&home, &[note(&Summary { edge: Edge::Open, ..over.clone() })]);
    assert_eq!(status(), "status=closed\nclose_reason=enough\n");
    // The statement itself, without the rest of a note.
    let thread = child.thread().to_string();
    let by_hand = params![
        thread,
        Option::<String>::None,
        "open",
        "/root/agent_2",
        "",
        Option::<String>::None,
        Option::<String>::None
    ];
    home.sql().execute(EDGE, by_hand).unwrap();
    home.sql().execute("UPDATE thread_spawn_edges SET status = 'open', close_reason = NULL", []).unwrap();
    assert_eq!(status(), "status=closed\nclose_reason=enough\n");
    // What is closed may be described better.
    home.sql().execute("UPDATE thread_spawn_edges SET close_reason = 'more'", []).unwrap();
    assert_eq!(status(), "status=closed\nclose_reason=more\n");
}

#[tokio::test]
async fn the_mirror_is_never_ahead_of_its_file() {
    let home = Home::new();
    let writer = home.agent(1, 1).await;
    let before = writer.summary();
    put(&home, &[note(&Summary { bytes: before.bytes + 1, ..before.clone() })]);
    put(&home, &[note(&Summary { file: home.path().join("gone.jsonl"), ..before.clone() })]);
    assert_eq!(home.count("SELECT count(*) FROM threads"), 0);
    put(&home, &[note(&before)]);
    assert_eq!(home.count("SELECT count(*) FROM threads"), 1);
}

#[tokio::test]
async fn only_the_row_that_was_disproved_goes() {
    let home = Home::new();
    let writer = home.agent(1, 1).await;
    let before = writer.summary();
    writer.append_synced(&[turn(7), closed()]).await.unwrap();
    let after = writer.summary();
    let disproved = |summary: &Summary, then: Option<Summary>| Change::listed(Some(Mark::from(summary)), then);
    put(&home, &[note(&after), disproved(&before, None)]);
    assert_eq!(home.count("SELECT count(*) FROM threads"), 1);
    put(&home, &[disproved(&after, Some(before.clone()))]);
    assert_eq!(home.count("SELECT bytes FROM threads"), before.bytes);
    // With it went its edge, so the truth can say that it is open.
    assert_eq!(home.count("SELECT count(*) FROM thread_spawn_edges WHERE status = 'open'"), 1);
    assert_eq!(home.count("SELECT count(*) FROM mail"), 1);
    put(&home, &[disproved(&before, None)]);
    for table in ["threads", "thread_spawn_edges", "mail"] {
        assert_eq!(home.count(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
}

#[tokio::test]
async fn a_summary_beyond_the_limit_is_left_out() {
    let home = Home::new();
    let writer = home.agent(1, 1).await;
    let long = Summary { warnings: vec!["x".repeat(MAX_SUMMARY)], ..writer.summary() };
    put(&home, &[note(&long)]);
    assert_eq!(home.count("SELECT count(*) FROM threads"), 0);
}

/// A batch counts whole or not at all.
#[tokio::test]
async fn tables_that_are_not_ours_are_damage() {
    let home = Home::new();
    let writer = home.agent(1, 1).await;
    let mut database = Database::open(&home.database()).unwrap();
    home.sql().execute("ALTER TABLE mail RENAME TO post", []).unwrap();
    let change = note(&writer.summary());
    let fault = apply(&mut database, home.path(), [(&writer.thread(), &change)]).unwrap_err();
    assert!(matches!(fault, Fault::Damaged(_)), "{fault:?}");
    assert_eq!(home.count("SELECT count(*) FROM threads"), 0);
    home.sql().pragma_update(None, "user_version", VERSION + 1).unwrap();
    let fault = apply(&mut database, home.path(), [(&writer.thread(), &change)]).unwrap_err();
    assert_eq!(fault, Fault::Future(VERSION + 1));
}
