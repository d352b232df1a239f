//! Whole trees: who runs, who is in memory, who gets what mail when.

use protocol::Outcome;
use rollout::Budgets;
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::Rng as _;

use super::scene::{Deed, Scene, path};
use crate::checked::close::By;
use crate::checked::one::play::play;

/// Schedules of each kind for each test: a few seconds in all.
const ROUNDS: usize = 25;

/// For a race that shows in one schedule of a hundred.
const RARE: usize = 150;

/// Steps of a pause at most: those of about two turns.
const LONGEST_PAUSE: u32 = 150;

async fn pause() {
    pause_of(LONGEST_PAUSE).await;
}

/// Lets others take up to as many steps.
async fn pause_of(longest: u32) {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..longest) {
        yield_now().await;
    }
}

fn family(path: &str) -> &'static [Deed] {
    match path {
        "/root" => &[Deed::Spawn("a"), Deed::Spawn("b"), Deed::Wait, Deed::Wait],
        "/root/a" => &[Deed::Spawn("x"), Deed::Wait],
        _ => &[],
    }
}

/// A parent that waits gives its slot to its children, however few there are.
#[test]
fn one_slot_and_one_place_are_enough_for_three_generations() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (1, 1)).await;
            scene.tree.go().await;
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            assert_eq!(scene.tree.reachable().len(), 4);
            scene.finish(&[]).await;
        });
    });
}

/// Agents are loaded and unloaded while mail comes in for them: all of it is read, and all edges stay.
#[test]
fn mail_finds_everybody_asleep_or_not() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (2, 1)).await;
            scene.tree.go().await;
            let clients = ["/root/a", "/root/b", "/root/a", "/root"].map(|to| {
                let tree = scene.tree.clone();
                spawn(async move {
                    pause().await;
                    // Before it is spawned there is nobody.
                    let Ok(pending) = tree.send(&path(to), "more", true).await else { return };
                    assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
                })
            });
            for client in clients {
                client.await.unwrap();
            }
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            scene.finish(&[]).await;
        });
    });
}

#[test]
fn two_mails_to_a_sleeping_agent_load_it_once() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (2, 1)).await;
            scene.tree.go().await;
            pending.answer().await;
            // It goes to sleep when another one is used.
            scene.tree.send(&path("/root/b"), "you", true).await.unwrap().answer().await;
            scene.calm().await;
            let before = scene.loads("/root/a");
            let clients = [0, 1].map(|_| {
                let tree = scene.tree.clone();
                spawn(async move {
                    let pending = tree.send(&path("/root/a"), "more", true).await.unwrap();
                    assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
                })
            });
            for client in clients {
                client.await.unwrap();
            }
            scene.calm().await;
            assert_eq!(scene.loads("/root/a"), before + 1);
            scene.finish(&[]).await;
        });
    });
}

#[test]
fn whose_processes_run_stays() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (2, 2)).await;
            scene.shop.pinned.lock().unwrap().insert("/root/b".to_owned());
            scene.tree.go().await;
            pending.answer().await;
            scene.calm().await;
            for to in ["/root/a", "/root/a/x", "/root"] {
                scene.tree.send(&path(to), "you", true).await.unwrap().answer().await;
            }
            scene.calm().await;
            assert_eq!(scene.loads("/root/b"), 1);
            scene.finish(&[]).await;
        });
    });
}

/// Whatever an interrupt meets, a turn, a queue or a start, mail stays and the next wake gets it read.
#[test]
fn interrupts_keep_what_waits() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (1, 1)).await;
            scene.tree.go().await;
            let stoppers = ["/root/a", "/root/b", "/root/a"].map(|target| {
                let tree = scene.tree.clone();
                spawn(async move {
                    pause().await;
                    let _not_there_yet = tree.interrupt(&path(target), &By::User).await;
                })
            });
            let client = spawn({
                let tree = scene.tree.clone();
                async move {
                    pause().await;
                    if let Ok(pending) = tree.send(&path("/root/a"), "more", true).await {
                        pending.answer().await;
                    }
                }
            });
            for stopper in stoppers {
                stopper.await.unwrap();
            }
            client.await.unwrap();
            pending.answer().await;
            scene.calm().await;
            for node in scene.tree.reachable() {
                let pending = scene.tree.send(&node.address.path, "go on", true).await.unwrap();
                assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            }
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            scene.finish(&[]).await;
        });
    });
}

/// A close meets spawns, sends, loads and turns below it: everybody there ends at rest, and nothing they owe or were
/// sent is lost.
#[test]
fn a_close_ends_whoever_is_below_and_whatever_they_do() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(family, (2, 1)).await;
            scene.tree.go().await;
            let closer = spawn({
                let tree = scene.tree.clone();
                async move {
                    pause().await;
                    tree.close(&path("/root/a"), "enough", &By::User).await.is_ok()
                }
            });
            let clients = ["/root/a", "/root/a/x", "/root/b"].map(|to| {
                let tree = scene.tree.clone();
                spawn(async move {
                    pause().await;
                    if let Ok(pending) = tree.send(&path(to), "more", true).await {
                        pending.answer().await;
                    }
                })
            });
            for client in clients {
                client.await.unwrap();
            }
            let closed = closer.await.unwrap();
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            if closed {
                scene.ended_below("/root/a");
            }
            scene.finish(if closed { &["/root/a"] } else { &[] }).await;
        });
    });
}

fn parents(path: &str) -> &'static [Deed] {
    match path {
        "/root" => &[Deed::Spawn("a"), Deed::Wait],
        "/root/a" => &[Deed::Spawn("x"), Deed::Spawn("y"), Deed::Wait],
        _ => &[],
    }
}

/// A close comes while a child's file is being written: the child ends with everybody else, not in the next process.
#[test]
fn whoever_is_born_below_a_closed_edge_ends_at_once() {
    play(RARE, || {
        block_on(async {
            let (scene, pending) = Scene::new(parents, (2, 4)).await;
            scene.tree.go().await;
            let mut changes = scene.tree.0.changes.subscribe();
            while scene.loads("/root/a") == 0 {
                changes.changed().await.unwrap();
            }
            pause_of(25).await;
            scene.tree.close(&path("/root/a"), "enough", &By::User).await.unwrap();
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            scene.ended_below("/root/a");
            scene.finish(&["/root/a"]).await;
        });
    });
}

/// A close comes while the agent is being loaded for mail: no session is left behind, and the mail has an end.
#[test]
fn a_load_does_not_outlive_a_close() {
    play(RARE, || {
        block_on(async {
            let (scene, pending) = Scene::new(parents, (1, 1)).await;
            scene.tree.go().await;
            pending.answer().await;
            scene.tree.send(&path("/root"), "you", true).await.unwrap().answer().await;
            scene.calm().await;
            let client = spawn({
                let tree = scene.tree.clone();
                async move {
                    if let Ok(pending) = tree.send(&path("/root/a"), "more", true).await {
                        pending.answer().await;
                    }
                }
            });
            // The load is a few steps away.
            pause_of(4).await;
            scene.tree.close(&path("/root/a"), "enough", &By::User).await.unwrap();
            client.await.unwrap();
            scene.calm().await;
            scene.ended_below("/root/a");
            scene.finish(&["/root/a"]).await;
        });
    });
}

/// Tokens with which one request at a time has room, and all of them together have.
const ONE_REQUEST: u64 = 20_000;

/// Whoever waits for room while others have reserved it goes on when they settle, and an interrupt ends its wait.
#[test]
fn room_for_one_request_is_enough_for_all() {
    play(ROUNDS, || {
        block_on(async {
            let budgets = Budgets { tokens: Some(ONE_REQUEST), ..Budgets::default() };
            let (scene, pending) = Scene::within(budgets, family, (3, 3)).await;
            scene.tree.go().await;
            let stopper = spawn({
                let tree = scene.tree.clone();
                async move {
                    pause().await;
                    let _not_there_yet = tree.interrupt(&path("/root/a"), &By::User).await;
                }
            });
            let client = spawn({
                let tree = scene.tree.clone();
                async move {
                    pause().await;
                    let Ok(pending) = tree.send(&path("/root/b"), "more", true).await else { return };
                    assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
                }
            });
            stopper.await.unwrap();
            client.await.unwrap();
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            for node in scene.tree.reachable() {
                let pending = scene.tree.send(&node.address.path, "go on", true).await.unwrap();
                assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            }
            scene.finish(&[]).await;
        });
    });
}

fn hasty(path: &str) -> &'static [Deed] {
    match path {
        "/root" => &[Deed::Due("a"), Deed::Wait],
        "/root/a" => &[Deed::Spawn("x"), Deed::Wait],
        _ => &[],
    }
}

/// A deadline passes anywhere in the life of a task, seen by two, while others write to those who have it and below:
/// each task has one end, and nobody who wrote waits for ever.
#[test]
fn a_deadline_ends_its_task_once() {
    play(ROUNDS, || {
        block_on(async {
            let (scene, pending) = Scene::new(hasty, (2, 1)).await;
            scene.tree.go().await;
            let mut changes = scene.tree.0.changes.subscribe();
            while scene.tree.at(&path("/root/a")).is_err() {
                changes.changed().await.unwrap();
            }
            let clocks = [0, 1].map(|_| {
                let tree = scene.tree.clone();
                spawn(async move {
                    pause().await;
                    let node = tree.at(&path("/root/a")).unwrap();
                    node.facts().tasks.hasten();
                    tree.expire(&node).await;
                })
            });
            let clients = ["/root/a", "/root/a/x"].map(|to| {
                let tree = scene.tree.clone();
                spawn(async move {
                    pause().await;
                    if let Ok(pending) = tree.send(&path(to), "more", true).await {
                        pending.answer().await;
                    }
                })
            });
            for task in clocks.into_iter().chain(clients) {
                task.await.unwrap();
            }
            assert_eq!(pending.answer().await.end.outcome, Outcome::Completed);
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            scene.finish(&[]).await;
        });
    });
}

/// A deadline calls off whoever works for it while somebody else gives one of them work: that is done.
#[test]
fn whoever_is_called_off_goes_on_with_other_work() {
    play(RARE, || {
        block_on(async {
            let (scene, pending) = Scene::new(hasty, (1, 3)).await;
            scene.tree.go().await;
            let mut changes = scene.tree.0.changes.subscribe();
            while scene.tree.at(&path("/root/a/x")).is_err() {
                changes.changed().await.unwrap();
            }
            let client = spawn({
                let tree = scene.tree.clone();
                async move {
                    pause_of(30).await;
                    tree.send(&path("/root/a/x"), "more", true).await.unwrap().answer().await;
                }
            });
            let node = scene.tree.at(&path("/root/a")).unwrap();
            node.facts().tasks.hasten();
            scene.tree.expire(&node).await;
            client.await.unwrap();
            pending.answer().await;
            scene.calm().await;
            scene.nobody_sleeps_over_mail();
            scene.finish(&[]).await;
        });
    });
}
