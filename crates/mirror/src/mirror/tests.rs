use std::fs;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rollout::Writer;
use rusqlite::Connection;

use super::*;
use crate::fixture::{Home, closed, id, split, summaries, turn};
use crate::limits::{MAX_DAMAGED, MAX_WAITING, PATIENCE};
use crate::schema::VERSION;

/// Far more than one wait for a lock takes, far less than two would if they added up to anything a person notices.
const SOON: Duration = Duration::from_secs(2);

/// Three agents, noted and written, and nobody who has the database open.
async fn settled(home: &Home) -> Vec<Writer> {
    let writers = home.tree(1, 3).await;
    let mirror = home.mirror();
    for writer in &writers {
        mirror.note(writer.summary());
    }
    mirror.flush().await.unwrap();
    writers
}

/// Databases that were moved aside, without what SQLite keeps beside them.
fn damaged(home: &Home) -> Vec<String> {
    let ours = |name: &String| name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm");
    home.names().into_iter().filter(ours).collect()
}

/// Whatever was done to the database: the catalogue is right at once, and quick again afterwards.
async fn recovers(home: &Home) -> Option<Trouble> {
    let (mirror, trouble) = home.open();
    let catalogue = home.catalogue(&mirror);
    let trouble = trouble.or(catalogue.trouble);
    if mirror.trouble().is_none() {
        mirror.flush().await.unwrap();
        let mut again = home.catalogue(&mirror);
        if again.read > 0 {
            // The check that the first listing brought about found more, so all rows are made anew.
            mirror.flush().await.unwrap();
            again = home.catalogue(&mirror);
        }
        assert_eq!((split(&again), again.trouble), ((catalogue.agents.len(), 0), None), "after {trouble:?}");
    }
    trouble
}

#[tokio::test]
async fn what_was_noted_is_there_for_the_next() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    let mirror = home.mirror();
    assert!(mirror.rows(None).unwrap().is_empty());
    for writer in &writers {
        mirror.note(writer.synced_summary().unwrap());
    }
    mirror.clone().flush().await.unwrap();
    assert_eq!(mirror.rows(None).unwrap().len(), 3);
    #[cfg(unix)]
    for name in home.names().iter().filter(|name| name.starts_with("state.sqlite")) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(home.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(mirror.rows(Some(TreeId::from(id::<ThreadId>(9)))).unwrap().is_empty());
    // Nobody flushes: dropping does.
    writers[0].append_synced(&[turn(7)]).await.unwrap();
    mirror.note(writers[0].summary());
    drop(mirror);
    let rows = home.mirror().rows(Some(TreeId::from(id::<ThreadId>(1)))).unwrap();
    let root = rows.iter().find(|row| row.summary.meta.id == id(1)).unwrap();
    assert_eq!((rows.len(), &root.summary), (3, &writers[0].summary()));
}

#[tokio::test]
async fn nothing_is_made_in_a_home_that_is_not_there() {
    let home = Home::new();
    fs::remove_dir(home.path()).unwrap();
    let mirror = home.mirror();
    assert!(mirror.rows(None).unwrap().is_empty());
    assert_eq!(split(&home.catalogue(&mirror)), (0, 0));
    assert!(!home.path().exists());
    // The first rollout makes the home, its note the database.
    let writer = home.agent(1, 1).await;
    mirror.note(writer.summary());
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (1, 0));
}

#[tokio::test]
async fn a_mirror_that_is_off_says_so() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    let mirror = Mirror::off();
    mirror.note(writers[0].summary());
    assert_eq!(mirror.flush().await, Err(Trouble::Off));
    assert_eq!(mirror.rows(None).unwrap_err(), Trouble::Off);
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.trouble), ((0, 3), Some(Trouble::Off)));
    assert_eq!(home.names(), ["sessions"]);
}

#[tokio::test]
async fn a_deleted_mirror_is_made_anew() {
    let home = Home::new();
    settled(&home).await;
    fs::remove_file(home.database()).unwrap();
    assert_eq!(recovers(&home).await, None);
    assert!(damaged(&home).is_empty());
}

#[tokio::test]
async fn a_mirror_may_be_deleted_while_it_is_used() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    let mirror = home.mirror();
    for (round, ends) in [&["-wal", "-shm", ""][..], &[""], &["", "-wal"]].iter().enumerate() {
        for writer in &writers {
            writer.append_synced(&[turn(round as u64)]).await.unwrap();
            mirror.note(writer.summary());
        }
        mirror.flush().await.unwrap();
        assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
        for end in *ends {
            fs::remove_file(home.path().join(format!("state.sqlite{end}"))).unwrap();
        }
        mirror.note(writers[0].summary());
        mirror.flush().await.unwrap();
        assert_eq!(split(&home.catalogue(&mirror)), (1, 2), "round {round}");
        mirror.flush().await.unwrap();
        assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
    }
}

#[tokio::test]
async fn a_truncated_mirror_is_moved_aside() {
    let home = Home::new();
    settled(&home).await;
    let whole = fs::read(home.database()).unwrap();
    let len = whole.len();
    assert!(len > 8 * 4096, "{len}");
    let mut found = 0;
    for cut in [2, 16, 99, 100, 512, 1000, 4095, 4096, 4097, 8192, len / 2, len / 2 + 4096, len - 4096, len - 1] {
        fs::write(home.database(), &whole[..cut]).unwrap();
        match recovers(&home).await {
            Some(Trouble::Damaged { file, aside, .. }) => {
                found += 1;
                assert_eq!(file, home.database());
                assert!(fs::read(&aside).unwrap() == whole[..cut], "at {cut}");
                fs::remove_file(&aside).unwrap();
            }
            // SQLite takes a last page that is short for one that ends in zeros; the rows on it are not as written.
            None if cut == len - 1 => {}
            other => panic!("at {cut}: {other:?}"),
        }
        assert!(damaged(&home).is_empty());
    }
    assert!(found >= 13, "{found}");
    // Nothing in it is as good as none; SQLite takes a single byte for nothing too.
    for len in [0, 1] {
        fs::write(home.database(), &whole[..len]).unwrap();
        assert_eq!(recovers(&home).await, None);
    }
}

#[tokio::test]
async fn what_is_not_a_mirror_is_moved_aside() {
    let home = Home::new();
    settled(&home).await;
    let noise: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let foreign = home.path().join("foreign");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE things (a); INSERT INTO things VALUES (1)")
        .unwrap();
    let no_tables = home.path().join("no_tables");
    Connection::open(&no_tables).unwrap().pragma_update(None, "user_version", VERSION).unwrap();
    for odd in [noise, b"hello\n".to_vec(), fs::read(foreign).unwrap(), fs::read(no_tables).unwrap()] {
        fs::write(home.database(), &odd).unwrap();
        let Some(Trouble::Damaged { aside, .. }) = recovers(&home).await else { panic!("{} bytes", odd.len()) };
        assert!(fs::read(aside).unwrap() == odd, "{} bytes", odd.len());
    }
}

/// Every page of it, replaced by three kinds of rubbish.
#[tokio::test]
async fn no_page_can_make_the_catalogue_wrong() {
    let home = Home::new();
    settled(&home).await;
    let whole = fs::read(home.database()).unwrap();
    let mut found = 0;
    for page in 0..whole.len() / 4096 {
        let at = page * 4096..(page + 1) * 4096;
        let another = (page * 7 + 3) % (whole.len() / 4096) * 4096;
        for rubbish in [vec![0; 4096], vec![0xff; 4096], whole[another..another + 4096].to_vec()] {
            let mut bytes = whole.clone();
            bytes[at.clone()].copy_from_slice(&rubbish);
            fs::write(home.database(), bytes).unwrap();
            found += usize::from(matches!(recovers(&home).await, Some(Trouble::Damaged { .. })));
        }
    }
    // Told at once; more is found by the check behind.
    assert!(found > 0);
    assert_eq!(damaged(&home).len(), MAX_DAMAGED);
}

#[tokio::test]
async fn no_flipped_bit_can_make_the_catalogue_wrong() {
    /// A prime, so that every place within a page is met.
    const STEP: usize = 211;
    let home = Home::new();
    settled(&home).await;
    let whole = fs::read(home.database()).unwrap();
    for at in (0..whole.len()).step_by(STEP) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(home.database(), bytes).unwrap();
        let (mirror, _) = home.open();
        home.catalogue(&mirror);
        drop(mirror);
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(home.path().join(format!("state.sqlite{end}")));
        }
    }
}

#[tokio::test]
async fn a_mirror_from_the_future_is_left_as_it_is() {
    let home = Home::new();
    let writers = settled(&home).await;
    home.sql().pragma_update(None, "user_version", VERSION + 1).unwrap();
    let before = fs::read(home.database()).unwrap();
    let (mirror, trouble) = home.open();
    let future = Trouble::Future { file: home.database(), found: VERSION + 1, known: VERSION };
    assert_eq!((trouble.as_ref(), mirror.trouble().as_ref()), (Some(&future), Some(&future)));
    mirror.note(writers[0].summary());
    assert_eq!(mirror.flush().await, Err(future.clone()));
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.trouble), ((0, 3), Some(future)));
    drop(mirror);
    assert!(fs::read(home.database()).unwrap() == before);
    assert!(damaged(&home).is_empty());
}

#[tokio::test]
async fn a_newer_program_may_come_while_it_is_used() {
    let home = Home::new();
    let writers = settled(&home).await;
    let mirror = home.mirror();
    home.sql().pragma_update(None, "user_version", VERSION + 1).unwrap();
    writers[0].append_synced(&[turn(7)]).await.unwrap();
    mirror.note(writers[0].summary());
    assert!(matches!(mirror.flush().await, Err(Trouble::Future { .. })));
    assert!(matches!(mirror.trouble(), Some(Trouble::Future { .. })));
    assert_eq!(home.count("SELECT count(*) FROM threads WHERE ordinal > 3"), 0);
    assert_eq!(split(&home.catalogue(&mirror)), (0, 3));
}

/// Somebody holds the database so that not even reading is possible.
fn held(home: &Home) -> Connection {
    let other = home.sql();
    let mode: String = other.query_row("PRAGMA locking_mode = exclusive", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "exclusive");
    other.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE IF NOT EXISTS theirs (a)").unwrap();
    other
}

#[tokio::test]
async fn a_held_mirror_is_waited_for_only_so_long() {
    let home = Home::new();
    let writers = settled(&home).await;
    let other = held(&home);
    let begin = Instant::now();
    let (mirror, trouble) = home.open();
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    assert_eq!(trouble, Some(Trouble::Busy { file: home.database() }));
    assert_eq!(mirror.trouble(), None, "it is not off");

    let begin = Instant::now();
    let catalogue = home.catalogue(&mirror);
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    assert_eq!((split(&catalogue), catalogue.trouble), ((0, 3), trouble.clone()));

    // Thousands of notes wait for nobody, and take no more room than there is.
    let begin = Instant::now();
    let summary = writers[0].summary();
    for n in 0..10_000 {
        let mut other = summary.clone();
        other.meta.id = id(n);
        mirror.note(other);
    }
    assert!(begin.elapsed() < PATIENCE * 100, "{:?}", begin.elapsed());
    assert!(mirror.waiting().0 <= MAX_WAITING);
    assert_eq!(mirror.flush().await.err(), trouble);

    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    mirror.flush().await.unwrap();
    let catalogue = mirror.catalogue(&home.store, None).unwrap();
    assert_eq!((summaries(&catalogue), catalogue.trouble), (home.truth(), None));
    // The many that were noted have no rollout: one sentence for all of them.
    assert_eq!(catalogue.problems.len(), 1);
}

#[tokio::test]
async fn who_only_writes_keeps_nobody_from_reading() {
    let home = Home::new();
    let writers = settled(&home).await;
    let mirror = home.mirror();
    let other = home.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    writers[0].append_synced(&[turn(7)]).await.unwrap();
    mirror.note(writers[0].summary());
    assert_eq!(mirror.flush().await, Err(Trouble::Busy { file: home.database() }));
    assert_eq!(split(&home.catalogue(&mirror)), (2, 1));
    // The note was kept and is written as soon as that is possible.
    other.execute_batch("ROLLBACK").unwrap();
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
}

#[tokio::test]
async fn an_end_waits_for_nobody_either() {
    let home = Home::new();
    let writers = settled(&home).await;
    let mirror = home.mirror();
    let other = home.sql();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    mirror.note(writers[0].summary());
    let begin = Instant::now();
    drop(mirror);
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn where_no_database_can_be_everything_is_read() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    // What a system that refuses looks like, also to a user who may do everything.
    fs::create_dir(home.database()).unwrap();
    let (mirror, trouble) = home.open();
    assert!(matches!(&trouble, Some(Trouble::Unusable { .. })), "{trouble:?}");
    assert_eq!(mirror.trouble(), trouble);
    mirror.note(writers[0].summary());
    assert_eq!(mirror.flush().await.err(), trouble);
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.trouble), ((0, 3), trouble));
    assert!(home.database().is_dir());
}

#[tokio::test]
async fn a_database_that_cannot_be_written_to_costs_its_rows() {
    let home = Home::new();
    let writers = settled(&home).await;
    let mirror = home.mirror();
    fs::remove_file(home.database()).unwrap();
    fs::create_dir(home.database()).unwrap();
    mirror.note(writers[0].summary());
    assert!(matches!(mirror.flush().await, Err(Trouble::Unusable { .. })));
    let catalogue = home.catalogue(&mirror);
    assert_eq!(split(&catalogue), (0, 3));
    assert!(matches!(catalogue.trouble, Some(Trouble::Unusable { .. })));
    // It is not given up: whoever made room is not told to start again.
    fs::remove_dir(home.database()).unwrap();
    mirror.note(writers[0].summary());
    mirror.flush().await.unwrap();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
}

/// All find the same damage at once. One moves it aside, and nobody moves the new one.
#[tokio::test]
async fn damage_is_put_right_once() {
    const PROGRAMS: usize = 8;
    let home = Home::new();
    settled(&home).await;
    for _ in 0..5 {
        fs::write(home.database(), b"this is no database at all").unwrap();
        let barrier = Barrier::new(PROGRAMS);
        let troubles: Vec<_> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                home.open()
            };
            let threads: Vec<_> = (0..PROGRAMS).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let told = troubles.iter().filter(|(_, trouble)| matches!(trouble, Some(Trouble::Damaged { .. }))).count();
        let others: Vec<_> = troubles.iter().filter(|(_, trouble)| trouble.is_some()).collect();
        assert_eq!((told, others.len()), (1, 1), "{others:?}");
        assert_eq!(damaged(&home).len(), 1);
        drop(troubles);
        assert_eq!(recovers(&home).await, None);
        fs::remove_file(home.path().join(damaged(&home).remove(0))).unwrap();
    }
}

/// What is said is one sentence that ends in comfort.
#[test]
fn troubles_are_sentences() {
    fn check(trouble: &Trouble, expect: &expect_test::Expect) {
        let text = trouble.to_string();
        assert!(text.contains("nothing is lost") && !text.contains(". ") && !text.ends_with('.'), "{text}");
        expect.assert_eq(&text);
    }
    let file = AbsPath::new("/srv/agent/state.sqlite").unwrap();
    let aside = AbsPath::new("/srv/agent/state.sqlite.damaged-2026-11-30T15-13-02").unwrap();
    check(
        &Trouble::Off,
        &expect_test::expect!["the mirror is switched off, so every rollout is read; nothing is lost"],
    );
    check(
        &Trouble::Damaged { file: file.clone(), aside, why: "file is not a database".to_owned() },
        &expect_test::expect![
            "`/srv/agent/state.sqlite` was damaged (file is not a database), so it was moved to `/srv/agent/state.sqlite.damaged-2026-11-30T15-13-02` and is made anew from the rollouts; nothing is lost, and the old file may be deleted"
        ],
    );
    check(
        &Trouble::Future { file: file.clone(), found: 2, known: 1 },
        &expect_test::expect![
            "`/srv/agent/state.sqlite` was made by a newer version (its format is 2, this version knows 1), so it is left as it is and every rollout is read; nothing is lost"
        ],
    );
    check(
        &Trouble::Busy { file: file.clone() },
        &expect_test::expect![
            "another program holds `/srv/agent/state.sqlite`, so rollouts are read instead this time; nothing is lost"
        ],
    );
    check(
        &Trouble::Unusable { file, why: "disk I/O error".to_owned() },
        &expect_test::expect![
            "`/srv/agent/state.sqlite` cannot be used (disk I/O error), so every rollout is read; nothing is lost"
        ],
    );
}

#[tokio::test]
async fn a_burst_is_one_row_an_agent() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    let mirror = home.mirror();
    for n in 0..300 {
        writers[n % 3].append(&[turn(n as u64)]).unwrap();
        mirror.note(writers[n % 3].summary());
    }
    for writer in &writers {
        writer.append_synced(&[closed()]).await.unwrap();
        mirror.note(writer.summary());
    }
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
    assert_eq!(home.count("SELECT count(*) FROM thread_spawn_edges WHERE status = 'closed'"), 3);
    assert_eq!(mirror.waiting(), (0, 0));
}
