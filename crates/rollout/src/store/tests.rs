use std::io::ErrorKind;

use expect_test::expect;
use futures::future::{join_all, poll_immediate};
use protocol::MailKind;

use super::*;
use crate::fixture::{Fault, FaultDisk, Home, Op, accepted, birth, id, mail, meta, turn, words};

async fn two_turns(home: &Home) -> AbsPath {
    let writer = home.store.create(meta(1), birth()).await.unwrap();
    writer.append(&[turn(7), words("é")]).unwrap();
    writer.append_synced(&[accepted(mail(5, 2, MailKind::Message))]).await.unwrap();
    writer.file().clone()
}

#[tokio::test]
async fn files_lie_by_day_and_belong_to_their_owner() {
    let home = Home::new();
    let file = two_turns(&home).await;
    let inside = file.strip_prefix(&**home.store.home()).unwrap();
    expect!["sessions/2026/11/30/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000001.jsonl"]
        .assert_eq(&inside.to_string_lossy());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        for folder in file.ancestors().skip(1).take_while(|folder| folder.starts_with(home.folder.path().join("home")))
        {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
    }
}

#[tokio::test]
async fn one_agent_has_one_writer() {
    let home = Home::new();
    let made = home.store.create(meta(1), birth()).await.unwrap();
    assert!(matches!(home.store.create(meta(1), birth()).await, Err(Error::Exists { .. })));
    let again = home.store.writer(id(1)).unwrap();
    assert!(Arc::ptr_eq(&made.log, &again.log));
    drop((made, again));
    // Nobody holds one: many threads that ask at once get the same.
    let barrier = std::sync::Barrier::new(8);
    let logs: Vec<Arc<Log>> = std::thread::scope(|scope| {
        let open = || {
            barrier.wait();
            home.store.writer(id(1)).unwrap().log
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(logs.iter().all(|log| Arc::ptr_eq(log, &logs[0])));
    let opened = home.store.open(id(1)).unwrap();
    assert!(Arc::ptr_eq(&opened.writer.log, &logs[0]));
}

#[tokio::test]
async fn an_unknown_agent_is_missing() {
    let home = Home::new();
    for error in [
        home.store.load(id(9)).unwrap_err(),
        home.store.writer(id(9)).unwrap_err(),
        home.store.read(id(9)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
}

/// A cut at every byte: reading never fails and never writes, nothing whole is lost, and opening goes on from there.
#[tokio::test]
async fn a_torn_tail_at_every_byte() {
    let home = Home::new();
    let file = two_turns(&home).await;
    let whole = std::fs::read(&file).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    // Ends of whole writes: of the birth (3 lines), of the group of two, of the mail.
    let writes = [ends[2], ends[4], ends[5]];
    assert_eq!(ends.len(), 6);
    // Junk behind the cut stands for a page that never reached the disk.
    for junk in [&b""[..], b"\0\0\0\0", b"\xff\n"] {
        for cut in 0..=whole.len() {
            let bytes = [&whole[..cut], junk].concat();
            std::fs::write(&file, &bytes).unwrap();
            let store = home.again();
            let Some(good) = writes.iter().rfind(|end| **end <= cut).copied() else {
                assert!(matches!(store.load(id(1)), Err(Error::Unborn { .. } | Error::Headless { .. })), "at {cut}");
                assert!(matches!(store.writer(id(1)), Err(Error::Unborn { .. } | Error::Headless { .. })));
                assert_eq!(std::fs::read(&file).unwrap(), bytes);
                continue;
            };
            let lines = ends.iter().filter(|end| **end <= good).count();
            let loaded = store.load(id(1)).unwrap();
            assert_eq!(loaded.state.last_ordinal, lines as u64, "at {cut}");
            assert_eq!(std::fs::read(&file).unwrap(), bytes, "reading wrote");
            let opened = store.open(id(1)).unwrap();
            assert_eq!(opened.loaded.state, loaded.state);
            assert_eq!(opened.loaded.torn, loaded.torn);
            assert_eq!(opened.writer.append(&[words("next")]).unwrap().first, lines as u64 + 1);
            let after = std::fs::read(&file).unwrap();
            assert_eq!(after[..good], whole[..good]);
            let read = store.read(id(1)).unwrap();
            assert_eq!((read.lines.len(), read.torn), (lines + 1, 0), "at {cut}");
            assert!(crate::check(&read.lines).is_empty());
        }
    }
}

#[tokio::test]
async fn a_bad_line_in_the_middle_is_skipped_and_counted() {
    let home = Home::new();
    let file = two_turns(&home).await;
    let whole = std::fs::read(&file).unwrap();
    let at = whole.iter().rposition(|b| *b == "é".as_bytes()[0]).unwrap();
    let mut bytes = whole.clone();
    bytes[at] = 0xff;
    std::fs::write(&file, &bytes).unwrap();
    let opened = home.again().open(id(1)).unwrap();
    assert_eq!((opened.loaded.skipped, opened.loaded.torn, opened.loaded.state.unread()), (1, 0, 2));
    assert_eq!(opened.writer.append(&[words("next")]).unwrap().first, 7);
    assert_eq!(std::fs::read(&file).unwrap()[..bytes.len()], bytes[..]);
}

/// The process is gone after every number of effects: what was acknowledged is there, and what is there is whole.
#[tokio::test]
async fn a_stop_between_any_two_effects() {
    async fn life(store: &Store) -> (bool, u64) {
        let Ok(writer) = store.create(meta(1), birth()).await else { return (false, 0) };
        let mut acknowledged = 3;
        for text in ["a", "b", "c"] {
            match writer.append_synced(&[words(text), turn(7)]).await {
                Ok(appended) => acknowledged = appended.last,
                Err(_) => break,
            }
        }
        (true, acknowledged)
    }
    let disk = FaultDisk::default();
    let home = Home::on(Arc::new(disk.clone()));
    assert_eq!(life(&home.store).await, (true, 9));
    let effects = disk.total();
    assert!(effects > 10, "{effects}");
    for stop in 0..effects {
        let disk = FaultDisk::default();
        disk.stop_after(stop);
        let home = Home::on(Arc::new(disk));
        let (made, acknowledged) = life(&home.store).await;
        let store = home.again();
        match store.open(id(1)) {
            Ok(opened) => {
                let last = opened.loaded.state.last_ordinal;
                assert!(last >= acknowledged && last % 2 == 1, "stop {stop}: {last}");
                assert_eq!(opened.writer.append(&[words("next")]).unwrap().first, last + 1);
                assert!(crate::check(&store.read(id(1)).unwrap().lines).is_empty());
            }
            Err(error) => assert!(!made && matches!(error, Error::Missing { .. } | Error::Unborn { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_spawn_that_fails_leaves_nothing() {
    for (op, fault) in [
        (Op::CreateDir, Fault::Error(ErrorKind::PermissionDenied)),
        (Op::Create, Fault::Error(ErrorKind::Other)),
        (Op::Write, Fault::Short(200, ErrorKind::StorageFull)),
    ] {
        let disk = FaultDisk::default();
        let home = Home::on(Arc::new(disk.clone()));
        disk.fail(op, fault);
        home.store.create(meta(1), birth()).await.unwrap_err();
        assert!(matches!(home.store.load(id(1)), Err(Error::Missing { .. })), "{op:?}");
        // The same agent can be made as soon as the disk allows.
        home.store.create(meta(1), birth()).await.unwrap();
    }
    let disk = FaultDisk::default();
    let home = Home::on(Arc::new(disk.clone()));
    disk.fail(Op::Sync, Fault::Error(ErrorKind::Other));
    disk.fail(Op::Overwrite, Fault::Error(ErrorKind::Other));
    assert!(matches!(home.store.create(meta(1), birth()).await, Err(Error::Unsynced { .. })));
    assert!(matches!(home.store.load(id(1)), Err(Error::Missing { .. })));
    home.store.create(meta(1), birth()).await.unwrap();
}

/// Folders that were removed meanwhile are made anew, and durable anew.
#[tokio::test]
async fn an_agent_can_be_made_where_everything_was_removed() {
    let disk = FaultDisk::default();
    let home = Home::on(Arc::new(disk.clone()));
    home.store.create(meta(1), birth()).await.unwrap();
    let before = disk.count(Op::SyncDir);
    std::fs::remove_dir_all(home.store.home().join("sessions")).unwrap();
    home.store.create(meta(2), birth()).await.unwrap();
    // As for the first: the folder above the home, the home, sessions, year, month and day.
    assert_eq!(disk.count(Op::SyncDir), before + 6);
    // And one that goes while it is made is not there, and nothing is left to be taken back.
    let folder = home.store.home().join("sessions");
    disk.hold();
    let mut spawn = Box::pin(home.store.create(meta(3), birth()));
    assert!(poll_immediate(&mut spawn).await.is_none());
    let wait = disk.clone();
    tokio::task::spawn_blocking(move || wait.await_held()).await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    disk.release();
    assert!(matches!(spawn.await, Err(Error::Removed { .. })));
}

#[tokio::test]
async fn children_made_side_by_side_share_syncs_of_folders() {
    let disk = FaultDisk::default();
    let home = Home::on(Arc::new(disk.clone()));
    home.store.create(meta(1), birth()).await.unwrap();
    // The folder above the home, the home, sessions, year, month and day.
    assert_eq!(disk.count(Op::SyncDir), 6);
    disk.hold();
    let mut first = Box::pin(home.store.create(meta(2), birth()));
    assert!(poll_immediate(&mut first).await.is_none());
    let wait = disk.clone();
    tokio::task::spawn_blocking(move || wait.await_held()).await.unwrap();
    let mut rest = Vec::new();
    for n in 3..66 {
        let mut spawn = Box::pin(home.store.create(meta(n), birth()));
        assert!(poll_immediate(&mut spawn).await.is_none());
        rest.push(spawn);
    }
    disk.release();
    first.await.unwrap();
    assert!(join_all(rest).await.iter().all(Result::is_ok));
    assert_eq!(disk.count(Op::SyncDir), 6 + 2);
}

#[tokio::test]
async fn what_was_found_is_held_with_its_way() {
    let disk = FaultDisk::default();
    let home = Home::on(Arc::new(disk.clone()));
    let made = home.again().create(meta(1), birth()).await.unwrap();
    let opened = home.store.open(made.thread()).unwrap();
    home.store.hold(&opened.writer).await.unwrap();
    // The file, then day, month, year, sessions and the home.
    assert_eq!((disk.count(Op::Sync), disk.count(Op::SyncDir)), (1, 5));
}

/// Nobody waits for the other end of a pipe that has taken a rollout's place.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_in_the_place_of_a_rollout_is_an_error_at_once() {
    let home = Home::new();
    let file = two_turns(&home).await;
    std::fs::remove_file(&file).unwrap();
    crate::fixture::pipe(&file);
    // Its place is known, so that nobody looks for it again.
    let again = home.again();
    again.learn(id(1), file);
    for error in [again.open(id(1)).err(), again.load(id(1)).err(), again.read(id(1)).err()] {
        let error = error.unwrap().to_string();
        assert!(error.contains("no ordinary file"), "{error}");
    }
}
