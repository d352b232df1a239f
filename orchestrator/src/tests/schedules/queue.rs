//! The queue for running slots. Where schedules are few enough all of them are played.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use protocol::ThreadId;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::scheduler::DfsScheduler;
use shuttle::{Config, Runner};
use tokio_util::sync::CancellationToken;

use crate::checked::one::play::play;
use crate::checked::slots::{Place, Slots};

/// Schedules of each kind where there are too many for all.
const ROUNDS: usize = 500;

/// Plays every schedule there is.
fn exhaust(test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.silence_warnings = true;
    let played = Runner::new(DfsScheduler::new(None, false), config).run(test);
    assert!(played > 10, "{played} schedules are those of one task");
}

/// A house of slots that counts who works in it.
#[derive(Clone)]
struct House {
    slots: Arc<Slots>,
    max: usize,
    working: Arc<AtomicUsize>,
}

impl House {
    fn new(max: usize) -> Self {
        Self { slots: Arc::new(Slots::new(max)), max, working: Arc::default() }
    }

    async fn work(&self) {
        assert!(self.working.fetch_add(1, Ordering::SeqCst) < self.max, "never more than the limit");
        yield_now().await;
        self.working.fetch_sub(1, Ordering::SeqCst);
    }

    fn turn(&self, place: Place) -> JoinHandle<()> {
        let house = self.clone();
        spawn(async move {
            house.slots.enter(ThreadId::new(), place, |_| ()).await;
            house.work().await;
            house.slots.leave();
        })
    }

    /// A turn that may be called off before it has its slot. Whether it had one.
    fn fickle(&self, cancel: &CancellationToken) -> JoinHandle<bool> {
        let (house, cancel) = (self.clone(), cancel.clone());
        spawn(async move {
            let entered = tokio::select! {
                biased;
                () = cancel.cancelled() => false,
                () = house.slots.enter(ThreadId::new(), Place::Back, |_| ()) => true,
            };
            if entered {
                house.work().await;
                house.slots.leave();
            }
            entered
        })
    }

    /// Nobody works and nobody queues.
    fn empty(&self) {
        assert_eq!(self.slots.in_use(), (0, 0));
    }
}

#[test]
fn all_schedules_of_two_turns_and_one_that_is_called_off() {
    exhaust(|| {
        block_on(async {
            let house = House::new(1);
            let cancel = CancellationToken::new();
            let fickle = house.fickle(&cancel);
            let turn = house.turn(Place::Back);
            cancel.cancel();
            fickle.await.unwrap();
            turn.await.unwrap();
            house.empty();
        });
    });
}

#[test]
fn no_slot_is_lost_or_made_up() {
    play(ROUNDS, || {
        block_on(async {
            let house = House::new(2);
            let cancel = CancellationToken::new();
            let turns = [house.turn(Place::Back), house.turn(Place::Back), house.turn(Place::Head)];
            let fickle = [house.fickle(&cancel), house.fickle(&cancel)];
            yield_now().await;
            cancel.cancel();
            for turn in turns {
                turn.await.unwrap();
            }
            for turn in fickle {
                turn.await.unwrap();
            }
            house.empty();
        });
    });
}

/// A turn that gives its slot to its child and goes on at the head: nobody waits for ever.
#[test]
fn all_schedules_of_a_turn_that_waits_for_another() {
    exhaust(|| {
        block_on(async {
            let house = House::new(1);
            let parent = spawn({
                let house = house.clone();
                async move {
                    house.slots.enter(ThreadId::new(), Place::Back, |_| ()).await;
                    let child = house.turn(Place::Back);
                    house.slots.leave();
                    child.await.unwrap();
                    house.slots.enter(ThreadId::new(), Place::Head, |_| ()).await;
                    house.work().await;
                    house.slots.leave();
                }
            });
            parent.await.unwrap();
            house.empty();
        });
    });
}

/// Whatever the order in which slots come free: first come, first served.
#[test]
fn the_queue_is_fair() {
    play(ROUNDS, || {
        block_on(async {
            let house = House::new(1);
            house.slots.enter(ThreadId::new(), Place::Back, |_| ()).await;
            let order = Arc::new(Mutex::new(Vec::new()));
            let mut turns = Vec::new();
            for n in 0..4 {
                let (place, who) = (if n == 3 { Place::Head } else { Place::Back }, ThreadId::new());
                let (theirs, house) = (Arc::clone(&order), house.clone());
                let slots = Arc::clone(&house.slots);
                turns.push(spawn(async move {
                    house.slots.enter(who, place, |_| ()).await;
                    theirs.lock().unwrap().push(n);
                    house.work().await;
                    house.slots.leave();
                }));
                while slots.position(who).is_none() {
                    yield_now().await;
                }
            }
            house.slots.leave();
            for turn in turns {
                turn.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), [3, 0, 1, 2]);
            house.empty();
        });
    });
}
