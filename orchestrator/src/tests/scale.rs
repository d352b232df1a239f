//! A tree of many agents: nothing that is held grows with them.

use std::path::Path;
use std::time::Duration;

use protocol::MailKind;
use rollout::Record;
use serde_json::json;
use testkit::{Agent, Home, child_value};

use super::house::House;
use super::player::{Asked, Step, say};

/// Agents that one reply spawns.
const BATCH: usize = 100;
/// Of each batch, so many are sent a message when they have ended; nobody wakes them to read it.
const UNREAD: usize = 10;
const RESIDENT: usize = 16;
/// Files that may be open or not by chance: a journal of the mirror, a file that is being synced.
const SPARE_FILES: usize = 8;

/// Spawns a batch each time it is asked, and leaves words for some of the batch before.
fn plays(asked: &Asked, batches: usize) -> Vec<Step> {
    if asked.path != "/root" {
        return say("done");
    }
    if asked.before == batches {
        return say("all of them");
    }
    let name = |batch: usize, n: usize| format!("n{batch}_{n}");
    let spawn = |n| Step::Call("spawn_agent", json!({ "task_name": name(asked.before, n), "message": "work" }));
    let tell = |n| Step::Call("send_message", json!({ "target": name(asked.before - 1, n), "message": "unread" }));
    let told = if asked.before == 0 { 0..0 } else { 0..UNREAD };
    (0..BATCH).map(spawn).chain(told.map(tell)).collect()
}

fn open_files() -> usize {
    std::fs::read_dir(Path::new("/proc/self/fd")).unwrap().count()
}

/// A tree with so many batches; the files that are open when it is quiet, and when it has been let go of.
async fn grown(batches: usize) -> [usize; 2] {
    let mut house = House::new(move |asked: &Asked| plays(asked, batches));
    house.options.limits.max_agents = 2_000;
    house.options.limits.max_resident = RESIDENT;
    let (tree, pending) = house.tree("grow").await;
    tree.go().await;
    assert_eq!(pending.answer().await.end.text.as_deref(), Some("all of them"));
    tree.quiet().await;
    assert_eq!(tree.0.slots.in_use(), (0, 0), "slots");
    let resident = tree.nodes().iter().filter(|node| node.facts().resident).count();
    assert!(resident <= RESIDENT, "{resident} agents are in memory");
    let unread: usize = tree.nodes().iter().map(|node| node.pending().len()).sum();
    assert!(unread >= UNREAD * (batches - 1), "{unread} mails wait");
    let quiet = open_files();
    assert_eq!(house.agents(), 1 + BATCH * batches);
    let result = |record: &&Record| matches!(record, Record::Mail(mail) if mail.kind == MailKind::Result);
    assert_eq!(house.records("/root").iter().filter(result).count(), BATCH * batches);
    house.finish(tree).await;
    [quiet, open_files()]
}

/// In a process of its own, because other tests of this one open files too.
#[test]
fn fifteen_hundred_agents_cost_no_slot_and_no_open_file() {
    if child_value().is_none() {
        let name = "tests::scale::fifteen_hundred_agents_cost_no_slot_and_no_open_file";
        Agent::this_test(name, "alone", &Home::new()).timeout(Duration::from_mins(3)).run_ok();
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let [few, _] = grown(2).await;
        let before = open_files();
        let [many, after] = grown(15).await;
        assert!(many <= few + SPARE_FILES, "{few} files are open with 200 agents, {many} with 1,500");
        assert!(after <= before + SPARE_FILES, "{before} files were open before, {after} after");
    });
}
