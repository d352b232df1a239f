use std::fs;
use std::sync::Arc;

use super::*;
use crate::fixture::{FaultDisk, Home, birth, id, meta};
use crate::{OwnerHint, SessionMeta};

const HINT: OwnerHint = OwnerHint { pid: 7, start_time: 1, socket: None };

/// Two trees, each with a long mail; of the first one agent is archived, and two files never became agents.
async fn home() -> Home {
    let home = Home::new();
    let child = SessionMeta { depth: 1, parent_thread_id: Some(id(1)), ..meta(2) };
    for meta in [meta(1), child, meta(3), SessionMeta { session_id: id(50), ..meta(50) }] {
        home.store.create(meta, birth()).await.unwrap();
    }
    let store = home.again();
    let cut = |n: u64| {
        let file = store.file(id(n)).unwrap();
        let text = fs::read_to_string(&*file).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        fs::write(&*file, format!("{first}\n{}", &rest[..9])).unwrap();
        file
    };
    home.store.set_aside(&cut(3)).unwrap();
    store.archive(&store.pieces(id(1)).unwrap().pieces[1]).unwrap();
    for tree in [1, 50] {
        store.attach(id(tree), id(9), "a long text").unwrap();
        store.lock(id(tree), &HINT).unwrap();
    }
    home
}

fn delete(store: &Store) -> Result<(), Error> {
    let _lock = store.lock(id(1), &HINT).unwrap();
    let pieces = store.pieces(id(1))?;
    store.begin_deleting(id(1))?;
    pieces.pieces.iter().rev().try_for_each(|piece| store.remove_piece(piece))?;
    pieces.scraps.iter().try_for_each(|file| store.remove_scrap(file))?;
    store.settle(&pieces)?;
    store.end_deleting(id(1))
}

/// Paths below the home that name the tree or one of its agents.
fn left(folder: &std::path::Path, of: &[u64]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if of.iter().any(|n| name.contains(&id::<protocol::ThreadId>(*n).to_string())) {
            found.push(name);
        }
        found.extend(left(&entry.path(), of));
    }
    found
}

#[tokio::test]
async fn nothing_of_the_tree_is_left_and_all_of_others() {
    let home = home().await;
    let others = left(home.store.home(), &[50]);
    assert_eq!(left(home.store.home(), &[1, 2, 3]).len(), 4);
    delete(&home.again()).unwrap();
    assert_eq!(left(home.store.home(), &[1, 2, 3]), [""; 0]);
    assert_eq!(left(home.store.home(), &[50]), others);
    assert!(home.again().deleting().unwrap().is_empty());
}

/// Stopped before any effect: the tree is untouched, or marked and can be finished, or gone.
#[tokio::test]
async fn a_stop_between_any_two_effects() {
    let mut stops = 0;
    let mut marked = 0;
    loop {
        let home = home().await;
        let disk = FaultDisk::default();
        disk.stop_after(stops);
        let stopped = delete(&Store::new(home.store.home().clone(), Arc::new(disk))).is_err();
        let store = home.again();
        let pieces = store.pieces(id(1)).unwrap();
        let deleting = store.is_deleting(id(1));
        assert_eq!(store.deleting().unwrap(), if deleting { vec![id(1)] } else { Vec::new() });
        match pieces.pieces.len() {
            2 => assert_eq!(pieces.scraps.len(), if deleting { pieces.scraps.len() } else { 1 }),
            0 => {}
            _ => assert!(deleting, "a part of a tree without a mark, after {stops}"),
        }
        marked += usize::from(deleting);
        delete(&store).unwrap();
        assert_eq!(left(home.store.home(), &[1, 2, 3]), [""; 0], "after {stops}");
        if !stopped {
            break;
        }
        stops += 1;
    }
    assert!(marked > 8, "{marked} of {stops}");
}

#[cfg(unix)]
#[tokio::test]
async fn what_a_link_leads_to_stays() {
    let home = home().await;
    let outside = home.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    std::os::unix::fs::symlink(&outside, home.store.tree_folder(id(1)).join("link")).unwrap();
    delete(&home.again()).unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    assert!(!home.store.tree_folder(id(1)).exists());
}

/// Whoever had opened the lock's file before it went does not own the tree by it.
#[tokio::test]
async fn the_lock_of_a_deleted_tree_is_nobodys() {
    let home = home().await;
    let folder = home.store.tree_folder(id(1));
    let held = home.store.lock(id(1), &HINT).unwrap();
    assert!(home.store.is_owned(id(1)) && !home.store.is_owned(id(50)) && !home.store.is_owned(id(99)));
    let waiting = fs::File::open(folder.join("owner.lock")).unwrap();
    home.store.begin_deleting(id(1)).unwrap();
    home.store.end_deleting(id(1)).unwrap();
    drop(held);
    // The old file can be locked, and by another one at the same time a new one.
    waiting.try_lock().unwrap();
    let lock = home.store.lock(id(1), &HINT).unwrap();
    assert!(matches!(home.store.lock(id(1), &HINT), Err(crate::LockError::Owned(_))));
    drop(lock);
}
