use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{Agent, Home, child_value};

/// Effects of [`work`].
const EFFECTS: usize = 8;

/// Makes a file in a new folder, with a synced line and one that is not.
fn work(disk: &FaultDisk, home: &Path) -> io::Result<()> {
    let folder = home.join("day");
    disk.create_dir_all(&folder)?;
    let file = disk.create_new(&folder.join("a"))?;
    file.write_all(b"{\"type\":\"mail\"}\n")?;
    file.sync_data()?;
    disk.sync_dir(&folder)?;
    disk.sync_dir(home)?;
    file.write_all(b"{\"type\":\"usage\"}\n")?;
    let again = disk.open_append(&folder.join("a"))?;
    assert_eq!(again.len()?, 33);
    Ok(())
}

fn text(home: &Home) -> Option<String> {
    fs::read_to_string(home.path().join("day/a")).ok()
}

#[test]
fn effects_are_counted_and_matched() {
    let (home, disk) = (Home::new(), FaultDisk::new());
    work(&disk, home.path()).unwrap();
    let ops: Vec<Op> = disk.effects().iter().map(|effect| effect.op).collect();
    assert_eq!(ops, [Op::CreateDir, Op::Create, Op::Write, Op::Sync, Op::SyncDir, Op::SyncDir, Op::Write, Op::Open]);
    assert_eq!(disk.count(&On::any()), EFFECTS);
    assert_eq!(disk.count(&On::line("mail")), 1);
    assert_eq!(disk.count(&On::op(Op::Write).path("day/a")), 2);
    assert_eq!(disk.count(&On::op(Op::Write).path("day/b")), 0);
    assert_eq!(disk.count(&On::any().bytes("usage")), 1);
}

#[test]
fn errors_come_before_in_the_middle_and_after() {
    for (when, left) in [(When::Before, 0), (When::Middle, 8), (When::After, 16)] {
        let (home, disk) = (Home::new(), FaultDisk::new());
        disk.at(On::line("mail"), 1, when, Act::Full);
        assert_eq!(work(&disk, home.path()).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(text(&home).unwrap().len(), left, "{when:?}");
    }
}

#[test]
fn a_fault_strikes_once_or_lasts() {
    let (home, disk) = (Home::new(), FaultDisk::new());
    work(&disk, home.path()).unwrap();
    let file = disk.open_append(&home.path().join("day/a")).unwrap();
    disk.at(On::op(Op::Sync), 2, When::Before, Act::Broken);
    file.sync_data().unwrap();
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    file.sync_data().unwrap();
    disk.from(On::op(Op::Sync), 2, When::Before, Act::Broken);
    file.sync_data().unwrap();
    assert!(file.sync_data().is_err() && file.sync_data().is_err());
    disk.heal();
    file.sync_data().unwrap();
}

#[test]
fn a_call_is_made_and_the_effect_goes_on() {
    let (home, disk) = (Home::new(), FaultDisk::new());
    let seen = Arc::new(AtomicUsize::new(usize::MAX));
    let (ours, file) = (seen.clone(), home.path().join("day/a"));
    let look = move || ours.store(fs::metadata(&file).map_or(0, |facts| facts.len() as usize), Ordering::SeqCst);
    disk.at(On::line("mail"), 1, When::Middle, Act::Call(Arc::new(look)));
    work(&disk, home.path()).unwrap();
    assert_eq!((seen.load(Ordering::SeqCst), text(&home).unwrap().len()), (8, 33));
}

#[test]
fn power_leaves_what_was_synced() {
    let (home, disk) = (Home::new(), FaultDisk::new());
    work(&disk, home.path()).unwrap();
    disk.lose_power();
    assert_eq!(text(&home).as_deref(), Some("{\"type\":\"mail\"}\n"));
    for op in [Op::Sync, Op::SyncDir, Op::Write] {
        let (home, disk) = (Home::new(), FaultDisk::new());
        disk.at(On::op(op), 1, When::Before, Act::Broken);
        work(&disk, home.path()).unwrap_err();
        disk.lose_power();
        assert!(!home.path().join("day").exists(), "{op:?}: its entry was never synced");
    }
}

/// The kit reads files by their look from outside; this holds it against the crate that writes them.
#[tokio::test]
async fn rollouts_are_what_the_kit_takes_them_for() {
    let (home, disk) = (Home::new(), FaultDisk::new());
    let folder = stdx::AbsPath::new(home.path()).unwrap();
    let store = rollout::Store::new(folder, Arc::new(disk.clone()));
    let meta = serde_json::json!({
        "id": "01939d5e-0000-7000-8000-000000000001", "session_id": "01939d5e-0000-7000-8000-000000000001",
        "timestamp": "2026-11-30T15:13:02.000Z", "agent_path": "/root", "agent_role": "default", "depth": 0,
        "cwd": "/", "model": "mock/model", "sandbox": "read-only", "approval": "never", "originator": "agent",
        "cli_version": "0"
    });
    let item = protocol::Item::parse(r#"{"type":"message", "role":"user", "content":"hi"}"#).unwrap();
    let item = rollout::ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: None };
    let edge = rollout::EdgeRecord { status: rollout::EdgeStatus::Open, reason: "spawned".into(), by: "user".into() };
    let writer = store.create(serde_json::from_value(meta).unwrap(), vec![rollout::Record::Edge(edge)]).await.unwrap();
    writer.append_synced(&[rollout::Record::Item(item.clone())]).await.unwrap();
    writer.append(&[rollout::Record::Item(item.clone())]).unwrap();
    assert_eq!((disk.count(&On::line("session_meta")), disk.count(&On::line("response_item"))), (1, 2));
    let seen = home.rollout("/root");
    assert_eq!(seen.raw("response_item"), [item.item.raw(), item.item.raw()]);
    disk.lose_power();
    assert_eq!((seen.count("session_meta"), seen.count("response_item")), (1, 1), "what was acknowledged is kept");
}

#[test]
fn the_process_is_killed_at_every_effect() {
    if let Some(value) = child_value() {
        let mut words = value.split(' ');
        let n: usize = words.next().unwrap().parse().unwrap();
        let when = [When::Before, When::Middle, When::After][words.next().unwrap().parse::<usize>().unwrap()];
        let act = if words.next() == Some("power") { Act::PowerLoss } else { Act::Kill };
        let disk = FaultDisk::new();
        disk.at(On::any(), n, when, act);
        work(&disk, Path::new(words.next().unwrap())).unwrap();
        return;
    }
    let run = |n: usize, when: usize, act: &str| {
        let home = Home::new();
        let value = format!("{n} {when} {act} {}", home.path().display());
        let run = Agent::this_test("fault::tests::the_process_is_killed_at_every_effect", &value, &home).run();
        (run.code, text(&home).map_or(-1, |text| i64::try_from(text.len()).unwrap()))
    };
    // Bytes in the file after a kill before, in the middle of and after each effect; -1 where there is no file.
    let killed: Vec<[i64; 3]> = (1..=EFFECTS)
        .map(|n| {
            [0, 1, 2].map(|when| {
                let (code, len) = run(n, when, "kill");
                assert_eq!(code, 137);
                len
            })
        })
        .collect();
    assert_eq!(
        killed,
        [[-1, -1, -1], [-1, -1, 0], [0, 8, 16], [16, 16, 16], [16, 16, 16], [16, 16, 16], [16, 24, 33], [33, 33, 33]]
    );
    assert_eq!(run(EFFECTS + 1, 0, "kill"), (0, 33));
    // The folder's own entry is synced by the sixth effect; before that the power takes everything.
    assert_eq!(run(6, 0, "power"), (137, -1));
    assert_eq!(run(6, 2, "power"), (137, 16));
    assert_eq!(run(EFFECTS, 2, "power"), (137, 16));
}
