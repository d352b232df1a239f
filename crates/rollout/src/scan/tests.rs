use protocol::{EffectId, ThreadId};

use crate::fixture::{Home, accepted, birth, id, mail, meta, opened, time};
use crate::{Error, Identity, SessionMeta, SpawnedBy, Unborn};

fn child(n: u64, depth: usize, ordinal: u64, second: u32) -> SessionMeta {
    let spawned_by = Some(SpawnedBy { effect: id::<EffectId>(n), ordinal });
    SessionMeta { depth, spawned_by, timestamp: time(second), parent_thread_id: Some(id(1)), ..meta(n) }
}

#[tokio::test]
async fn a_tree_is_listed_in_the_order_of_its_making() {
    let home = Home::new();
    // The clock went back between the first and the second child.
    for meta in [child(4, 2, 3, 1), child(3, 1, 9, 0), child(2, 1, 5, 30), meta(1)] {
        home.store.create(meta, birth()).await.unwrap();
    }
    let other = SessionMeta { session_id: id(50), ..meta(50) };
    home.store.create(other, birth()).await.unwrap();
    let store = home.again();
    let seen: Vec<_> = store.tree(id(1)).unwrap().iter().map(|head| head.meta.id).collect();
    assert_eq!(seen, [id(1), id(2), id(3), id(4)]);
    assert_eq!(store.scan().unwrap().heads.len(), 5);
    // What was seen once is found without looking again.
    assert_eq!(store.file(id(3)).unwrap(), store.load(id(3)).unwrap().file);
}

#[test]
fn a_new_home_is_empty() {
    let scan = Home::new().store.scan().unwrap();
    assert!(scan.heads.is_empty() && scan.unborn.is_empty() && scan.problems.is_empty());
}

#[tokio::test]
async fn a_first_write_longer_than_one_read_is_found() {
    let home = Home::new();
    let mut task = mail(100, 0, protocol::MailKind::Input);
    task.body = "x".repeat(100_000);
    home.store.create(meta(1), vec![opened(), accepted(task)]).await.unwrap();
    assert_eq!(home.again().scan().unwrap().heads.len(), 1);
}

#[tokio::test]
async fn unfinished_first_writes_are_unborn() {
    let home = Home::new();
    let file = home.store.create(meta(1), birth()).await.unwrap().file().clone();
    let whole = std::fs::read(&file).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    for cut in 0..whole.len() {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let scan = home.again().scan().unwrap();
        assert_eq!((scan.heads.len(), scan.unborn.len(), scan.problems.len()), (0, 1, 0), "at {cut}");
        assert_eq!(scan.unborn[0].thread, id(1));
        assert_eq!(scan.unborn[0].tree, (cut > first).then(|| id(1)), "at {cut}");
    }
    let store = home.again();
    let aside = store.set_aside(&file).unwrap();
    assert!(aside.to_string_lossy().ends_with(".jsonl.unborn"));
    assert!(store.scan().unwrap().unborn.is_empty());
    assert!(matches!(store.load(id(1)), Err(Error::Missing { .. })));
    // The bytes are kept for whoever wants to know.
    assert_eq!(std::fs::read(&aside).unwrap(), whole[..whole.len() - 1]);
    store.create(meta(1), birth()).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_read_is_listed_and_not_fatal() {
    let home = Home::new();
    let file = home.store.create(meta(1), birth()).await.unwrap().file().clone();
    let day = file.parent().unwrap();
    let name = |n: u64| day.join(format!("rollout-2026-11-30T15-13-02-{}.jsonl", id::<ThreadId>(n)));
    std::fs::write(name(2), b"\xff\xfe\n").unwrap();
    std::fs::write(name(3), b"{\"timestamp\":\"2026-11-30T15:13:00Z\",\"type\":\"later\",\"payload\":{}}\n").unwrap();
    std::fs::copy(&file, name(4)).unwrap();
    std::fs::write(day.join("notes.txt"), b"not ours").unwrap();
    std::fs::write(day.join("rollout-ü.jsonl"), b"not ours").unwrap();
    std::fs::create_dir(name(5)).unwrap();
    let twin = home.store.home().join("sessions/2027");
    std::fs::create_dir(&twin).unwrap();
    std::fs::copy(&file, twin.join(file.file_name().unwrap())).unwrap();
    let scan = home.again().scan().unwrap();
    assert_eq!(scan.heads.iter().map(|head| &head.file).collect::<Vec<_>>(), [&file]);
    let mut whys: Vec<_> = scan.problems.iter().map(|problem| problem.why.as_str()).collect();
    whys.sort_unstable();
    expect_test::expect![[r#"
        another file carries the same id 01939d5e-0000-7000-8000-000000000001
        expected value at line 1 column 1
        it begins with a `later` line, not with `session_meta`
        its name does not carry its id 01939d5e-0000-7000-8000-000000000001"#]]
    .assert_eq(&whys.join("\n"));
}

#[tokio::test]
async fn files_are_listed_without_being_opened() {
    let home = Home::new();
    assert!(home.store.files().unwrap().files.is_empty());
    let mut lengths = Vec::new();
    for n in [2, 1] {
        let writer = home.store.create(meta(n), birth()).await.unwrap();
        lengths.push(std::fs::metadata(writer.file()).unwrap().len());
    }
    let day = home.store.home().join("sessions/2026/11/30");
    for name in ["notes.txt", "rollout-x.jsonl", "rollout-2026-11-30T15-13-02-nobody.jsonl"] {
        std::fs::write(day.join(name), "x").unwrap();
    }
    // What nobody could read is listed all the same.
    let odd = day.join(format!("rollout-x-{}.jsonl", id::<ThreadId>(3)));
    std::fs::write(&odd, "\0").unwrap();
    let files = home.store.files().unwrap();
    assert!(files.problems.is_empty());
    let listed: Vec<(ThreadId, u64)> = files.files.iter().map(|facts| (facts.thread, facts.bytes)).collect();
    assert_eq!(listed, [(id(1), lengths[1]), (id(2), lengths[0]), (id(3), 1)]);
    let identity = |n: usize| home.store.identify(&files.files[n]);
    assert_eq!(identity(0), Ok(Identity::Agent(Box::new(meta(1)))));
    assert_eq!(identity(2), Ok(Identity::Unborn(Unborn { file: odd, thread: id(3), tree: None })));
    assert_eq!(home.store.load_listed(&files.files[1]).unwrap().state.meta, meta(2));
}
