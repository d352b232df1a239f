use std::fs;
use std::sync::Arc;

use protocol::{MailKind, ThreadId};

use super::*;
use crate::fixture::{Fault, FaultDisk, Home, Op, accepted, birth, id, mail, meta, turn, words};
use crate::{Problem, RealDisk, Record, SessionMeta, is_packed};

/// A root and a child below it, each with a few lines.
async fn family() -> Home {
    let home = Home::new();
    let child = SessionMeta { depth: 1, parent_thread_id: Some(id(1)), ..meta(2) };
    for meta in [child, meta(1)] {
        let writer = home.store.create(meta, birth()).await.unwrap();
        let lines: Vec<Record> = (0..40).map(|n| words(&format!("line {n} of many that are much alike"))).collect();
        writer.append_synced(&lines).await.unwrap();
        writer.append_synced(&[turn(7), accepted(mail(5, 2, MailKind::Message))]).await.unwrap();
    }
    home
}

/// The text of both agents, read as anybody would.
fn texts(store: &Store) -> Vec<Vec<u8>> {
    let text = |n| {
        let file = store.file(id(n)).unwrap();
        let source = crate::source::Source::open(&RealDisk, &file).unwrap();
        let mut bytes = vec![0; usize::try_from(source.len()).unwrap()];
        assert_eq!(source.fill(0, &mut bytes).unwrap(), bytes.len());
        assert_eq!(store.read(id(n)).unwrap().lines.len(), store.load(id(n)).unwrap().end.ordinal as usize);
        bytes
    };
    vec![text(1), text(2)]
}

fn archive_all(store: &Store) -> Result<(), Error> {
    let pieces = store.pieces(id(1))?;
    // The root last, so that it is archived only when all of the tree is.
    pieces.pieces.iter().rev().try_for_each(|piece| store.archive(piece).map(drop))?;
    store.settle(&pieces)
}

fn unarchive_all(store: &Store) -> Result<(), Error> {
    let pieces = store.pieces(id(1))?;
    pieces.pieces.iter().try_for_each(|piece| store.unarchive(piece).map(drop))?;
    store.settle(&pieces)
}

/// Names below the home, without the folders of the days.
fn names(home: &Home) -> Vec<String> {
    let mut names = Vec::new();
    for place in ["sessions", "archived_sessions"] {
        let folder = home.store.home().join(place).join("2026/11/30");
        let entries = fs::read_dir(&*folder).into_iter().flatten().flatten();
        names.extend(entries.map(|entry| format!("{place}/{}", entry.file_name().to_string_lossy())));
    }
    names.sort();
    names
}

fn is_whole(home: &Home, archived: bool) {
    let names = names(home);
    assert_eq!(names.len(), 2, "{names:?}");
    let (place, ending) = if archived { ("archived_sessions/", ".jsonl.zst") } else { ("sessions/", ".jsonl") };
    assert!(names.iter().all(|name| name.starts_with(place) && name.ends_with(ending)), "{names:?}");
}

#[tokio::test]
async fn there_and_back_it_is_the_same_to_the_last_byte() {
    let home = family().await;
    let before = texts(&home.again());
    archive_all(&home.again()).unwrap();
    is_whole(&home, true);
    let store = home.again();
    assert_eq!(texts(&store), before);
    let (scan, files, pieces) = (store.scan().unwrap(), store.files().unwrap(), store.pieces(id(1)).unwrap());
    let order: Vec<ThreadId> = pieces.pieces.iter().map(|piece| piece.meta.id).collect();
    assert_eq!((scan.heads.len(), files.files.len(), order), (2, 2, vec![id(1), id(2)]));
    assert!(pieces.any_archived() && pieces.all_archived());
    assert!(pieces.bytes() < before.concat().len() as u64 / 2, "{} of {}", pieces.bytes(), before.concat().len());
    // Nobody writes to it, and nobody makes it anew.
    assert!(matches!(store.writer(id(1)), Err(Error::Archived { .. })));
    unarchive_all(&home.again()).unwrap();
    is_whole(&home, false);
    assert_eq!(texts(&home.again()), before);
    home.again().writer(id(1)).unwrap().append(&[turn(8)]).unwrap();
}

#[tokio::test]
async fn a_summary_is_believed_by_the_label_alone() {
    let home = family().await;
    let store = home.again();
    let summaries = [1, 2].map(|n| store.load(id(n)).unwrap().summary());
    archive_all(&store).unwrap();
    let files = home.again().files().unwrap().files;
    for facts in &files {
        for summary in &summaries {
            let its_own = facts.thread == summary.meta.id;
            assert_eq!(home.again().tail_matches(facts, summary), its_own);
            let older = crate::Summary { ordinal: summary.ordinal - 1, ..summary.clone() };
            assert!(!home.again().tail_matches(facts, &older));
        }
    }
}

/// Stopped before each effect of both ways: everybody reads everything, and doing it again finishes it.
#[tokio::test]
async fn a_stop_between_any_two_effects() {
    for back in [false, true] {
        let act = if back { unarchive_all } else { archive_all };
        let mut stops = 0;
        loop {
            let home = family().await;
            let before = texts(&home.again());
            if back {
                archive_all(&home.again()).unwrap();
            }
            let disk = FaultDisk::default();
            disk.stop_after(stops);
            let stopped = act(&Store::new(home.store.home().clone(), Arc::new(disk.clone()))).is_err();
            assert_eq!(texts(&home.again()), before, "stopped after {stops}");
            let pieces = home.again().pieces(id(1)).unwrap();
            let [root, child] = pieces.pieces.as_slice() else { panic!("{pieces:?}") };
            assert!(!root.is_archived() || child.is_archived(), "an archived root means that all are: {stops}");
            // The other way is open from anywhere, too.
            let other = if back { archive_all } else { unarchive_all };
            let copy = Home::new();
            copy_folder(home.store.home(), copy.store.home());
            other(&copy.again()).unwrap();
            is_whole(&copy, back);
            assert_eq!(texts(&copy.again()), before);
            act(&home.again()).unwrap();
            is_whole(&home, !back);
            assert_eq!(texts(&home.again()), before);
            if !stopped {
                break;
            }
            stops += 1;
        }
        assert!(stops > 15, "{stops} effects");
    }
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A tree that went on after a kill left a packed copy: the copy is old, and is never what is read or brought back.
#[tokio::test]
async fn of_two_the_one_in_use_counts() {
    let home = family().await;
    archive_all(&home.again()).unwrap();
    let archived = home.again().file(id(1)).unwrap();
    let old = fs::read(&*archived).unwrap();
    unarchive_all(&home.again()).unwrap();
    home.again().writer(id(1)).unwrap().append(&[words("what came later")]).unwrap();
    let newer = texts(&home.again());
    fs::write(&*archived, &old).unwrap();
    assert_eq!(texts(&home.again()), newer);
    let store = home.again();
    assert_eq!((store.files().unwrap().files.len(), store.scan().unwrap().heads.len()), (2, 2));
    assert!(!store.pieces(id(1)).unwrap().any_archived());
    unarchive_all(&home.again()).unwrap();
    is_whole(&home, false);
    assert_eq!(texts(&home.again()), newer);
    fs::write(&*archived, &old).unwrap();
    archive_all(&home.again()).unwrap();
    is_whole(&home, true);
    assert_eq!(texts(&home.again()), newer);
}

/// The copy is older, but it may be the one that is whole: then neither goes.
#[tokio::test]
async fn of_two_that_differ_neither_goes() {
    let home = family().await;
    archive_all(&home.again()).unwrap();
    let packed = home.again().file(id(1)).unwrap();
    let old = fs::read(&*packed).unwrap();
    unarchive_all(&home.again()).unwrap();
    let plain = home.again().file(id(1)).unwrap();
    let good = fs::read(&*plain).unwrap();
    fs::write(&*packed, &old).unwrap();
    let changed: Vec<u8> = good.iter().enumerate().map(|(at, byte)| if at == 700 { b'?' } else { *byte }).collect();
    for bad in [&good[..good.len() - 1], &good[..10], b"", &changed] {
        fs::write(&*plain, bad).unwrap();
        for act in [archive_all, unarchive_all] {
            let error = act(&home.again()).unwrap_err();
            assert!(matches!(error, Error::Differs { .. }), "{error:?}");
            assert!(error.to_string().contains("move the other away"), "{error}");
            assert!(fs::read(&*plain).unwrap() == bad && fs::read(&*packed).unwrap() == old);
        }
    }
    // A copy that is of no use keeps nobody.
    fs::write(&*plain, &good).unwrap();
    fs::write(&*packed, &old[..9]).unwrap();
    unarchive_all(&home.again()).unwrap();
    is_whole(&home, false);
}

#[tokio::test]
async fn a_full_disk_leaves_everything_where_it_was() {
    for back in [false, true] {
        for fault in [
            (Op::Write, Fault::Short(9, io::ErrorKind::StorageFull)),
            (Op::Sync, Fault::Error(io::ErrorKind::StorageFull)),
        ] {
            let home = family().await;
            let before = texts(&home.again());
            if back {
                archive_all(&home.again()).unwrap();
            }
            let there = names(&home);
            let disk = FaultDisk::default();
            disk.fail(fault.0, fault.1);
            let store = Store::new(home.store.home().clone(), Arc::new(disk));
            let act = if back { unarchive_all } else { archive_all };
            let error = act(&store).unwrap_err();
            assert!(matches!(error, Error::Kept { .. }), "{error:?}");
            let text = error.to_string();
            assert!(text.contains("stays as it is: the disk is full"), "{text}");
            assert_eq!(names(&home), there, "nothing half written is left either");
            act(&store).unwrap();
            assert_eq!(texts(&home.again()), before);
        }
    }
}

#[tokio::test]
async fn a_damaged_file_is_told_and_stays() {
    let home = family().await;
    archive_all(&home.again()).unwrap();
    let file = home.again().file(id(2)).unwrap();
    let good = fs::read(&*file).unwrap();
    let told = |error: Error, words: &str| {
        assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains(words), "{error}");
    };
    // In the middle, cut short, and all of it gone.
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 0x55;
    for bad in [&changed[..], &good[..good.len() / 2], b""] {
        fs::write(&*file, bad).unwrap();
        let store = home.again();
        let pieces = store.files().unwrap().files;
        let facts = pieces.iter().find(|facts| facts.thread == id(2)).unwrap();
        told(store.summarise(facts).unwrap_err(), "is damaged (");
        told(store.walk(&file, 0, |_| std::ops::ControlFlow::Continue(())).unwrap_err(), "put it back from a copy");
        told(store.verify_packed(facts).unwrap_err(), "is damaged (");
        let piece = Piece { meta: meta(2), plain: None, packed: Some(facts.clone()) };
        told(store.unarchive(&piece).unwrap_err(), "is damaged (");
        assert_eq!(fs::read(&*file).unwrap(), bad);
        is_whole(&home, true);
    }
    // Whose it is cannot be told without its label, but that it is there.
    let Problem { why, .. } = &home.again().scan().unwrap().problems[0];
    assert!(why.starts_with("it is damaged ("), "{why}");
}

#[tokio::test]
async fn what_does_not_belong_there_is_told() {
    let home = family().await;
    let plain = home.again().file(id(2)).unwrap();
    archive_all(&home.again()).unwrap();
    let packed = home.again().file(id(2)).unwrap();
    assert!(is_packed(&packed) && !is_packed(&plain));
    let mut stray = plain.as_os_str().to_owned();
    stray.push(".zst");
    fs::rename(&*packed, &stray).unwrap();
    let files = home.again().files().unwrap();
    assert_eq!((files.files.len(), files.problems.len()), (1, 1));
    assert!(files.problems[0].why.contains("is packed; move it away"), "{}", files.problems[0]);
}

/// A file that was listed before its tree was archived is found where it is now.
#[tokio::test]
async fn who_looks_while_it_moves_sees_it() {
    let home = family().await;
    let looker = home.again();
    let listed = looker.files().unwrap().files;
    let _ = looker.scan().unwrap();
    let before = texts(&home.again());
    archive_all(&home.again()).unwrap();
    for (facts, text) in listed.iter().zip(&before) {
        assert!(matches!(looker.identify(facts).unwrap(), crate::Identity::Agent(_)));
        assert_eq!(looker.summarise(facts).unwrap().bytes, text.len() as u64);
        assert!(!looker.read(facts.thread).unwrap().lines.is_empty());
        assert!(looker.is_somewhere(facts.thread, &facts.file));
        assert!(!looker.is_somewhere(id(9), &facts.file));
    }
}
