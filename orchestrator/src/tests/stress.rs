//! Everything at once, in an order that a seed decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::{AgentPath, MailId, Outcome};
use rollout::Record;
use serde_json::json;

use super::house::{House, path};
use super::player::{Asked, Step, say};

/// A small generator of our own, so that a seed means the same for ever: xorshift, 64 bits.
struct Dice(AtomicU64);

impl Dice {
    fn throw(&self, sides: u64) -> u64 {
        let mut state = self.0.load(Ordering::SeqCst);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0.store(state, Ordering::SeqCst);
        state % sides
    }
}

const NAMES: [&str; 7] = ["a", "b", "c", "a/d", "a/e", "b/f", "b/g"];

fn spawn(name: &str) -> Step {
    Step::Call("spawn_agent", json!({ "task_name": name, "message": "work" }))
}

/// The tree of eight first, then whatever the dice say.
fn plays(asked: &Asked, dice: &Dice) -> Vec<Step> {
    match (asked.path.as_str(), asked.before) {
        ("/root", 0) => return vec![spawn("a"), spawn("b"), spawn("c")],
        ("/root/a", 0) => return vec![spawn("d"), spawn("e")],
        ("/root/b", 0) => return vec![spawn("f"), spawn("g")],
        ("/root" | "/root/a" | "/root/b", 1) => return vec![Step::Call("wait_agent", json!({}))],
        _ => {}
    }
    let target = format!("/root/{}", NAMES[dice.throw(NAMES.len() as u64) as usize]);
    match dice.throw(12) {
        0 => vec![Step::Call("send_message", json!({ "target": target, "message": "by the way" }))],
        1 => vec![Step::Call("followup_task", json!({ "target": target, "message": "one more" }))],
        2 => vec![Step::Call("wait_agent", json!({ "targets": [target], "timeout_ms": 1000 }))],
        3 => vec![Step::Call("list_agents", json!({})), Step::Call("nothing", json!({}))],
        4 => vec![Step::Fail],
        5 => vec![Step::Panic],
        _ => say("done"),
    }
}

/// How many slots and residents there are, and whether agents are closed.
struct Weather {
    max_running: usize,
    max_resident: usize,
    closes: bool,
}

async fn storm(seed: u64, iterations: usize, weather: Weather) {
    let dice = Arc::new(Dice(AtomicU64::new(seed)));
    let theirs = Arc::clone(&dice);
    let mut house = House::new(move |asked: &Asked| plays(asked, &theirs));
    house.options.limits.max_running = weather.max_running;
    house.options.limits.max_resident = weather.max_resident;
    let (tree, first) = house.tree("go").await;
    tree.go().await;
    first.answer().await;
    let mut asked = Vec::new();
    for _ in 0..iterations {
        let to = match dice.throw(8) {
            7 => AgentPath::root(),
            n => path(NAMES[n as usize]),
        };
        // A child of a turn that broke down in time may not be there.
        let Ok(node) = tree.at(&to) else { continue };
        if weather.closes && !to.is_root() && dice.throw(40) == 0 {
            tree.close(&to, "enough of it", &crate::By::User).await.unwrap();
            continue;
        }
        match dice.throw(10) {
            0..=4 => asked.push(tree.send(&to, "task", true).await.unwrap()),
            5 => drop(tree.send(&to, "note", false).await.unwrap()),
            6 => {
                let stop = runtime::Stop {
                    outcome: Outcome::Interrupted,
                    reason: "enough".to_owned(),
                    goes_on: false,
                    only: Vec::new(),
                };
                crate::life::interrupt(&node, stop).await;
            }
            7 => tree.wake(&node).await,
            8 => tree.interrupt_all("all of you").await,
            _ => tokio::task::yield_now().await,
        }
    }
    // Interrupted agents hold their mail until somebody wakes them; each task ends then.
    loop {
        tree.quiet().await;
        let waiting: Vec<_> = tree.nodes().into_iter().filter(|node| node.inbox.lock().wakes()).collect();
        if waiting.is_empty() {
            break;
        }
        for node in waiting {
            tree.wake(&node).await;
        }
    }
    let mut answered = 0;
    for pending in asked {
        pending.answer().await;
        answered += 1;
    }
    assert!(answered > 0);
    assert_eq!(tree.0.slots.in_use(), (0, 0), "seed {seed}");
    // Every result that an agent owed lies in its giver's file, or further up when the giver is closed; once in a file.
    let all: Vec<(String, Vec<Record>)> = tree
        .nodes()
        .iter()
        .map(|node| (node.address.path.to_string(), house.records(node.address.path.as_str())))
        .collect();
    let results = |of: MailId, records: &[Record]| {
        records.iter().filter(|record| matches!(record, Record::Mail(mail) if mail.answers == Some(of))).count()
    };
    for done in all.iter().flat_map(|(_, records)| records).filter_map(|record| match record {
        Record::TaskDone(done) if done.giver.thread().is_some() => Some(done),
        _ => None,
    }) {
        let counts: Vec<usize> = all.iter().map(|(_, records)| results(done.task, records)).collect();
        assert!(counts.iter().all(|count| *count <= 1), "seed {seed}: twice in one file");
        let somewhere = counts.iter().sum::<usize>();
        assert!(if weather.closes { somewhere >= 1 } else { somewhere == 1 }, "seed {seed}: {counts:?} for {done:?}");
    }
    for node in tree.unreachable() {
        assert_eq!(node.pending(), [], "seed {seed}: {} is closed", node.address.path);
        assert!(!node.facts().resident);
    }
    house.finish(tree).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_with_few_slots_and_few_residents_ends_quiet() {
    storm(0x9e37_79b9_7f4a_7c15, 300, Weather { max_running: 2, max_resident: 3, closes: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_with_one_slot_and_one_resident_ends_quiet() {
    storm(0x2545_f491_4f6c_dd1d, 100, Weather { max_running: 1, max_resident: 1, closes: false }).await;
}

#[tokio::test]
async fn a_storm_on_one_thread_ends_quiet() {
    storm(0xd1b5_4a32_d192_ed03, 200, Weather { max_running: 3, max_resident: 2, closes: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_that_closes_agents_ends_quiet() {
    for seed in [0x8cb9_2ba7_2f3d_8dd7, 0xaef1_7502_108e_f2d9, 0x1b87_3593_cc9e_2d51] {
        storm(seed, 120, Weather { max_running: 2, max_resident: 3, closes: true }).await;
    }
}
