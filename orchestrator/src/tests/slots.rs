//! The queue for running slots, a step at a time.

use std::pin::pin;
use std::task::Poll;

use protocol::ThreadId;

use crate::slots::{Place, Slots};

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    matches!(future.poll(&mut context), Poll::Ready(_))
}

#[test]
fn first_come_first_served_and_the_head_goes_first() {
    let slots = Slots::new(1);
    let who: Vec<ThreadId> = (0..4).map(|_| ThreadId::new()).collect();
    assert!(poll(pin!(slots.enter(who[0], Place::Back, |_| ()))));
    let mut places = Vec::new();
    let mut second = Box::pin(slots.enter(who[1], Place::Back, |n| places.push(n)));
    assert!(!poll(second.as_mut()));
    let mut third = Box::pin(slots.enter(who[2], Place::Back, |_| ()));
    assert!(!poll(third.as_mut()));
    let mut back = Box::pin(slots.enter(who[3], Place::Head, |_| ()));
    assert!(!poll(back.as_mut()));
    assert_eq!([slots.position(who[3]), slots.position(who[1]), slots.position(who[2])], [Some(1), Some(2), Some(3)]);
    slots.leave();
    assert!(!poll(second.as_mut()));
    assert!(poll(back.as_mut()));
    slots.leave();
    assert!(poll(second.as_mut()));
    drop(second);
    assert_eq!(places, [1]);
    slots.leave();
    assert!(poll(third.as_mut()));
    drop(third);
    slots.leave();
    assert!(poll(pin!(slots.enter(who[0], Place::Back, |_| ()))));
}

#[test]
fn a_dropped_waiter_neither_keeps_nor_loses_a_slot() {
    let slots = Slots::new(1);
    let [a, b, c] = [ThreadId::new(), ThreadId::new(), ThreadId::new()];
    assert!(poll(pin!(slots.enter(a, Place::Back, |_| ()))));
    let mut gone = Box::pin(slots.enter(b, Place::Back, |_| ()));
    assert!(!poll(gone.as_mut()));
    let mut waits = Box::pin(slots.enter(c, Place::Back, |_| ()));
    assert!(!poll(waits.as_mut()));
    // Granted, but its future is dropped before it sees the grant: the next one gets the slot.
    slots.leave();
    drop(gone);
    assert!(poll(waits.as_mut()));
    drop(waits);
    slots.leave();
    assert!(poll(pin!(slots.enter(a, Place::Back, |_| ()))));
}
