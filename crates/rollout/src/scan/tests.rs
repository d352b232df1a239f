use protocol::{EffectId, ThreadId};

use crate::fixture::{FaultDisk, Home, accepted, birth, id, mail, meta, opened, time, words};
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
        it begins with a `later` line, not with `session_meta`; move it away
        it is named like a rollout and is a folder; move it away
        its first line, which should be `session_meta`, cannot be read (expected value at line 1 column 1), so neither its agent nor its tree can be told; mend that line or put the file back from a copy
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
    assert!(files.problems.is_empty() && files.complete);
    let listed: Vec<(ThreadId, u64)> = files.files.iter().map(|facts| (facts.thread, facts.bytes)).collect();
    assert_eq!(listed, [(id(1), lengths[1]), (id(2), lengths[0]), (id(3), 1)]);
    let identity = |n: usize| home.store.identify(&files.files[n]).unwrap();
    assert_eq!(identity(0), Identity::Agent(Box::new(meta(1))));
    assert_eq!(identity(2), Identity::Unborn(Unborn { file: odd, thread: id(3), tree: None }));
    assert_eq!(home.store.summarise(&files.files[1]).unwrap().meta, meta(2));
}

/// One byte of the first write is damaged, and a line follows it: the agent is there, whoever looks. Only a first line
/// that is damaged itself leaves nobody to name, and that is said.
#[tokio::test]
async fn a_damaged_byte_in_the_first_write_hides_no_agent() {
    let home = Home::new();
    let writer = home.store.create(meta(1), birth()).await.unwrap();
    writer.append_synced(&[words("later")]).await.unwrap();
    let file = writer.file().clone();
    let whole = std::fs::read(&file).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at).collect();
    for at in 0..ends[2] {
        let mut bytes = whole.clone();
        bytes[at] = 0xff;
        std::fs::write(&file, &bytes).unwrap();
        let store = home.again();
        let (scan, files) = (store.scan().unwrap(), store.files().unwrap());
        let identity = store.identify(&files.files[0]).unwrap();
        assert_eq!((scan.unborn.len(), scan.heads.len() + scan.problems.len()), (0, 1), "at {at}");
        if at <= ends[0] {
            assert_eq!(identity, Identity::Odd(scan.problems[0].clone()), "at {at}");
            let errors = [store.load(id(1)).unwrap_err(), store.open(id(1)).unwrap_err()];
            for error in errors {
                assert!(
                    matches!(&error, Error::Headless { why, .. } if *why == scan.problems[0].why),
                    "at {at}: {error}"
                );
            }
            continue;
        }
        assert_eq!(identity, Identity::Agent(Box::new(meta(1))), "at {at}");
        let opened = store.open(id(1)).unwrap().loaded;
        // A line break that is damaged takes two lines along.
        assert_eq!((opened.skipped, opened.torn), (1, 0), "at {at}");
        assert_eq!(opened.summary(), store.summarise(&files.files[0]).unwrap());
        let task = if at < ends[1] { Some("mail 100\nwith two lines") } else { None };
        assert_eq!(opened.state.first_task.as_deref(), task, "at {at}");
        assert_eq!((opened.state.transcript.len(), opened.state.last_ordinal), (1, 4), "at {at}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "at {at}");
    }
    let scan = || home.again().scan().unwrap().problems.remove(0).why;
    std::fs::write(&file, [b"\xff", &whole[1..]].concat()).unwrap();
    expect_test::expect!["its first line, which should be `session_meta`, cannot be read (expected value at line 1 column 1), so neither its agent nor its tree can be told; mend that line or put the file back from a copy"]
        .assert_eq(&scan());
}

/// The first page never reached the disk, so nobody was told of the agent.
#[tokio::test]
async fn a_first_write_without_its_beginning_is_unborn() {
    let home = Home::new();
    let file = home.store.create(meta(1), birth()).await.unwrap().file().clone();
    let whole = std::fs::read(&file).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    for zeros in [first, first + 1, first + 2, whole.len()] {
        std::fs::write(&file, [&vec![0; zeros][..], &whole[zeros..]].concat()).unwrap();
        let store = home.again();
        assert_eq!(store.scan().unwrap().unborn.len(), 1, "{zeros}");
        assert!(matches!(store.load(id(1)), Err(Error::Unborn { .. })), "{zeros}");
    }
}

#[tokio::test]
async fn what_is_only_named_like_a_rollout_is_told() {
    let home = Home::new();
    let file = home.store.create(meta(1), birth()).await.unwrap().file().clone();
    let day = file.parent().unwrap();
    let name = |n: u64| format!("rollout-2026-11-30T15-13-02-{}.jsonl", id::<ThreadId>(n));
    std::fs::create_dir(day.join(name(2))).unwrap();
    std::fs::create_dir(home.store.home().join("sessions").join(name(3))).unwrap();
    std::fs::write(day.join(name(4)), "").unwrap();
    std::fs::write(day.join(name(5)), "{\"timest").unwrap();
    for n in [4, 5] {
        let file = std::fs::File::options().write(true).open(day.join(name(n))).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    // Somebody may be making this one at this moment.
    std::fs::write(day.join(name(6)), "").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", day.join(name(7))).unwrap();
    #[cfg(target_os = "linux")]
    crate::fixture::pipe(&day.join(name(8)));
    let scan = home.again().scan().unwrap();
    assert_eq!((scan.heads.len(), scan.unborn.len()), (1, 3));
    let listed = home.again().files().unwrap();
    assert_eq!((listed.files.len(), listed.complete), (4, true));
    let told = |problem: &crate::Problem| {
        let name = problem.file.file_stem().unwrap().to_str().unwrap();
        format!("{}: {}", &name[name.len() - 1..], problem.why)
    };
    let mut whys: Vec<_> = scan.problems.iter().map(told).collect();
    whys.sort();
    expect_test::expect![[r#"
        2: it is named like a rollout and is a folder; move it away
        3: it is named like a rollout and is a folder; move it away
        4: it is empty, so it is no agent's; it may be deleted
        5: it breaks off in its first line, so it is no agent's; it may be deleted
        7: it is named like a rollout and is a link that leads nowhere, a pipe or a device; move it away
        8: it is named like a rollout and is a link that leads nowhere, a pipe or a device; move it away"#]]
    .assert_eq(&whys.join("\n"));
    assert!(matches!(home.again().load(id(8)), Err(Error::Missing { .. })));
}

/// What cannot be read for want of a descriptor is neither damaged nor absent.
#[tokio::test]
async fn a_shortage_is_not_taken_for_damage() {
    let disk = FaultDisk::default();
    let home = Home::on(std::sync::Arc::new(disk.clone()));
    drop(home.store.create(meta(1), birth()).await.unwrap());
    let files = home.store.files().unwrap();
    disk.starve(true);
    for error in [
        home.store.identify(&files.files[0]).unwrap_err(),
        home.store.summarise(&files.files[0]).unwrap_err(),
        home.store.writer(id(1)).unwrap_err(),
        home.store.scan().unwrap_err(),
    ] {
        assert!(error.is_shortage() && error.to_string().contains("ulimit -n"), "{error}");
    }
    disk.starve(false);
    home.store.writer(id(1)).unwrap();
}
