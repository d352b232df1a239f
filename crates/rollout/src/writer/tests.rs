use std::io::ErrorKind;
use std::sync::Arc;

use futures::future::{join_all, poll_immediate};
use protocol::ThreadId;

use crate::fixture::{Fault, FaultDisk, Home, Op, birth, id, meta, turn, words};
use crate::{Error, Store, Writer};

fn faulty() -> (FaultDisk, Home) {
    let disk = FaultDisk::default();
    (disk.clone(), Home::on(Arc::new(disk)))
}

async fn root(home: &Home) -> Writer {
    home.store.create(meta(1), birth()).await.unwrap()
}

fn texts(store: &Store) -> Vec<String> {
    let loaded = store.load(id(1)).unwrap();
    assert_eq!((loaded.skipped, loaded.torn), (0, 0));
    loaded.state.transcript.iter().map(protocol::Item::text).collect()
}

fn size(writer: &Writer) -> u64 {
    std::fs::metadata(writer.file()).unwrap().len()
}

#[tokio::test]
async fn ordinals_go_on() {
    let home = Home::new();
    let writer = root(&home).await;
    assert_eq!(writer.thread(), id::<ThreadId>(1));
    let none = writer.append(&[]).unwrap();
    assert_eq!((none.first, none.last), (4, 3));
    let two = writer.append(&[words("a"), words("b")]).unwrap();
    assert_eq!((two.first, two.last), (4, 5));
    assert_eq!(writer.append_synced(&[words("c")]).await.unwrap().first, 6);
    let lines = home.store.read(id(1)).unwrap();
    assert!(crate::check(&lines.lines).is_empty());
    let parts: Vec<_> = lines.lines.iter().map(|line| line.part).collect();
    assert_eq!(parts, [Some([1, 3]), Some([2, 3]), Some([3, 3]), Some([1, 2]), Some([2, 2]), None]);
}

#[tokio::test]
async fn a_failed_write_leaves_the_file_as_it_was() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append(&[words("a")]).unwrap();
    let before = size(&writer);
    disk.fail(Op::Write, Fault::Short(17, ErrorKind::StorageFull));
    let error = writer.append(&[words("b"), words("c")]).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("the disk is full: "), "{error}");
    assert_eq!(size(&writer), before);
    disk.fail(Op::Write, Fault::Error(ErrorKind::Other));
    assert!(matches!(writer.append(&[words("d")]), Err(Error::Io { .. })));
    // There is room again: ordinals have no gap.
    assert_eq!(writer.append_synced(&[words("e")]).await.unwrap().first, 5);
    assert_eq!(texts(&home.store), ["a", "e"]);
}

#[tokio::test]
async fn a_failed_write_that_cannot_be_put_back_stops_the_writer() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append(&[words("a")]).unwrap();
    disk.fail(Op::Write, Fault::Short(17, ErrorKind::Other));
    // When it is written, when the next one is, and when what was before is synced.
    for _ in 0..3 {
        disk.fail(Op::SetLen, Fault::Error(ErrorKind::Other));
    }
    writer.append(&[words("b")]).unwrap_err();
    let error = writer.append(&[words("c")]).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    // What was written before is still acknowledged, and the next opening repairs the file.
    writer.sync().await.unwrap();
    drop(writer);
    let opened = home.store.open(id(1)).unwrap();
    assert_eq!(opened.loaded.torn, 17);
    opened.writer.append(&[words("d")]).unwrap();
    assert_eq!(texts(&home.store), ["a", "d"]);
}

/// Whatever comes next, an append or a sync, cuts off what could not be cut off before.
#[tokio::test]
async fn a_writer_that_stopped_goes_on_when_it_can() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append(&[words("a")]).unwrap();
    for (round, text) in [(0, "c"), (1, "d")] {
        let good = size(&writer);
        disk.fail(Op::Write, Fault::Short(17, ErrorKind::Other));
        disk.fail(Op::SetLen, Fault::Error(ErrorKind::Other));
        writer.append(&[words("b")]).unwrap_err();
        assert_eq!(size(&writer), good + 17);
        if round == 1 {
            writer.sync().await.unwrap();
            assert_eq!(size(&writer), good);
        }
        writer.append(&[words(text)]).unwrap();
        assert_eq!(texts(&home.again()), ["a", "c", "d"][..round + 2]);
    }
    assert!(crate::check(&home.again().read(id(1)).unwrap().lines).is_empty());
}

/// A file without a name takes every byte and every sync, and keeps none of them.
#[tokio::test]
async fn what_goes_into_a_removed_file_is_not_acknowledged() {
    let home = Home::new();
    let writer = root(&home).await;
    let (file, bytes) = (writer.file().clone(), std::fs::read(writer.file()).unwrap());
    std::fs::remove_dir_all(home.store.home().join("sessions")).unwrap();
    let error = writer.append_synced(&[words("a")]).await.unwrap_err();
    expect_test::expect!["was removed while it was in use, so what its agent does can no longer be kept; put the file back from a copy and resume the tree, or give the task to a new agent"]
        .assert_eq(error.to_string().split("` ").last().unwrap());
    assert!(error.to_string().contains(&file.to_string()));
    // From then on everything is refused, in the same words; also whoever opens it anew hears them.
    for error in [
        writer.append(&[words("b")]).unwrap_err(),
        writer.sync().await.unwrap_err(),
        home.store.writer(id(1)).unwrap_err(),
        home.store.open(id(1)).unwrap_err(),
        home.store.load(id(1)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Removed { .. }), "{error}");
    }
    // A copy in its place is another file: the old writer stays away from it, a new one goes on with it.
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, &bytes).unwrap();
    assert!(matches!(writer.append(&[words("c")]), Err(Error::Removed { .. })));
    home.store.writer(id(1)).unwrap().append_synced(&[words("d")]).await.unwrap();
    assert_eq!(texts(&home.again()), ["d"]);
}

/// The same when the copy is there before anybody noticed, and when the sync had failed for another reason.
#[tokio::test]
async fn a_file_that_was_replaced_was_removed() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    let copy = home.folder.path().join("copy");
    std::fs::copy(writer.file(), &copy).unwrap();
    std::fs::rename(&copy, writer.file()).unwrap();
    assert!(matches!(writer.append_synced(&[words("a")]).await, Err(Error::Removed { .. })));
    let second = home.store.create(meta(2), birth()).await.unwrap();
    std::fs::remove_file(second.file()).unwrap();
    disk.fail(Op::Sync, Fault::Error(ErrorKind::Other));
    assert!(matches!(second.append_synced(&[words("a")]).await, Err(Error::Removed { .. })));
}

#[tokio::test]
async fn a_failed_sync_is_never_tried_again_on_the_same_descriptor() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append_synced(&[words("kept")]).await.unwrap();
    let synced = size(&writer);
    writer.append(&[words("a"), words("b")]).unwrap();
    disk.fail(Op::Sync, Fault::Loses(synced));
    writer.sync().await.unwrap();
    // Handle 1 made the file; the one whose sync failed is not asked again.
    assert_eq!(disk.handles(Op::Sync), [1, 1, 1, 2]);
    assert_eq!(disk.count(Op::Overwrite), 1);
    assert_eq!(texts(&home.store), ["kept", "a", "b"]);
    writer.append_synced(&[words("c")]).await.unwrap();
    assert_eq!(disk.handles(Op::Sync), [1, 1, 1, 2, 2]);
    assert_eq!(texts(&home.store), ["kept", "a", "b", "c"]);
}

#[tokio::test]
async fn nothing_is_acknowledged_until_the_disk_works_again() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    let synced = size(&writer);
    writer.append(&[words("a")]).unwrap();
    disk.fail(Op::Sync, Fault::Loses(synced));
    disk.fail(Op::Overwrite, Fault::Error(ErrorKind::Other));
    let error = writer.sync().await.unwrap_err();
    assert!(matches!(error, Error::Unsynced { .. }), "{error}");
    // Lines are still taken; their acknowledgement is refused in every step that fails.
    writer.append(&[words("b")]).unwrap();
    for op in [Op::Open, Op::Overwrite, Op::Sync] {
        disk.fail(op, Fault::Error(ErrorKind::Other));
        writer.sync().await.unwrap_err();
    }
    writer.sync().await.unwrap();
    assert_eq!(texts(&home.store), ["a", "b"]);
    assert!(writer.append_synced(&[words("c")]).await.is_ok());
    let handles = disk.handles(Op::Sync);
    assert_eq!(handles[..2], [1, 1]);
    assert!(!handles[2..].contains(&1), "{handles:?}");
}

#[tokio::test]
async fn a_file_that_somebody_else_changed_is_refused() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append(&[words("a")]).unwrap();
    std::fs::OpenOptions::new()
        .append(true)
        .open(writer.file())
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"stranger\n"))
        .unwrap();
    disk.fail(Op::Sync, Fault::Error(ErrorKind::Other));
    let error = writer.sync().await.unwrap_err();
    assert!(error.to_string().contains("somebody else changed it"), "{error}");
    assert!(matches!(writer.append(&[words("b")]), Err(Error::Refused { .. })));
    assert!(matches!(writer.sync().await, Err(Error::Refused { .. })));
}

#[tokio::test]
async fn what_was_found_is_synced_before_it_counts() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    writer.append(&[words("never synced")]).unwrap();
    drop(writer);
    let writer = home.store.writer(id(1)).unwrap();
    let before = disk.count(Op::Sync);
    writer.sync().await.unwrap();
    assert_eq!(disk.count(Op::Sync), before + 1);
    writer.sync().await.unwrap();
    assert_eq!(disk.count(Op::Sync), before + 1, "nothing new, nothing to sync");
    // A writer that never got a good sync cannot tell what is on the disk; opening again can.
    drop(writer);
    let writer = home.store.writer(id(1)).unwrap();
    disk.fail(Op::Sync, Fault::Error(ErrorKind::Other));
    assert!(matches!(writer.sync().await, Err(Error::Refused { .. })));
    drop(writer);
    home.store.writer(id(1)).unwrap().sync().await.unwrap();
}

/// Many callers, two files: the first sync is held until all have appended and asked; one more a file covers them.
#[tokio::test]
async fn callers_share_syncs() {
    const CALLERS: usize = 64;
    let (disk, home) = faulty();
    let one = root(&home).await;
    let two = home.store.create(meta(2), birth()).await.unwrap();
    let before = disk.count(Op::Sync);
    disk.hold();
    let records = [words("first")];
    let mut first = Box::pin(one.append_synced(&records));
    assert!(poll_immediate(&mut first).await.is_none());
    let wait = disk.clone();
    tokio::task::spawn_blocking(move || wait.await_held()).await.unwrap();
    let mut callers = Vec::new();
    for n in 0..CALLERS {
        let writer = if n % 2 == 0 { &one } else { &two };
        let records = [words("x"), turn(n as u64)];
        let mut caller = Box::pin(async move { writer.append_synced(&records).await });
        assert!(poll_immediate(&mut caller).await.is_none());
        callers.push(caller);
    }
    disk.release();
    first.await.unwrap();
    assert!(join_all(callers).await.iter().all(Result::is_ok));
    assert_eq!(disk.count(Op::Sync), before + 3);
}

#[tokio::test]
async fn a_long_tail_is_synced_without_being_asked() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    let before = disk.count(Op::Sync);
    disk.hold();
    writer.append(&[words(&"x".repeat(super::MAX_UNSYNCED))]).unwrap();
    let wait = disk.clone();
    tokio::task::spawn_blocking(move || wait.await_held()).await.unwrap();
    assert_eq!(disk.count(Op::Sync), before + 1);
    disk.release();
}

#[tokio::test]
async fn the_thread_ends_with_the_last_writer() {
    /// Far more than a thread needs to end.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
    let (disk, home) = faulty();
    let writer = root(&home).await;
    let gone = disk.until_dropped();
    let Home { folder: _folder, store } = home;
    drop((disk, store));
    // A writer outlives its store, and still syncs.
    writer.append_synced(&[words("a")]).await.unwrap();
    assert_eq!(gone.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty));
    drop(writer);
    assert_eq!(gone.recv_timeout(PATIENCE), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
}

#[tokio::test]
async fn what_waits_for_a_broken_disk_is_bounded() {
    let (disk, home) = faulty();
    let writer = root(&home).await;
    let synced = size(&writer);
    disk.fail(Op::Sync, Fault::Loses(synced));
    disk.fail(Op::Open, Fault::Error(ErrorKind::Other));
    writer.append(&[turn(1)]).unwrap();
    writer.sync().await.unwrap_err();
    disk.stop_opening();
    let big = [words(&"x".repeat(8 << 20))];
    let taken = (0..20).take_while(|_| writer.append(&big).is_ok()).count();
    // Eight texts of 8 MiB and their envelopes are just over 64 MiB.
    assert_eq!(taken, 8);
    assert!(matches!(writer.append(&[turn(1)]), Err(Error::Refused { .. })));
    disk.open_again();
    writer.sync().await.unwrap();
    writer.append(&[turn(1)]).unwrap();
}
