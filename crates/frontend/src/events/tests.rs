use futures::FutureExt as _;

use super::*;
use crate::tests::{warning, within};

fn log(to: u64) -> EventLog {
    let log = EventLog::new();
    for seq in 1..=to {
        log.push(warning(seq, "careful"));
    }
    log
}

fn seqs(log: &EventLog, after: u64) -> Result<Vec<u64>, Gap> {
    log.since(after).map(|events| events.iter().map(|event| event.seq).collect())
}

/// What is there without waiting: sequences, and how it ends.
fn ready(events: &mut Subscription) -> (Vec<u64>, Option<Delivery>) {
    let mut seen = Vec::new();
    loop {
        match events.next().now_or_never().flatten() {
            Some(Delivery::Event(event)) => seen.push(event.seq),
            other => return (seen, other),
        }
    }
}

#[test]
fn events_after_a_sequence() {
    let log = log(4);
    assert_eq!(seqs(&log, 0), Ok(vec![1, 2, 3, 4]));
    assert_eq!(seqs(&log, 3), Ok(vec![4]));
    assert_eq!(seqs(&log, 4), Ok(vec![]));
    assert_eq!(seqs(&log, 5), Err(Gap { after: 5, first: 1 }));
    assert_eq!(seqs(&EventLog::new(), 0), Ok(vec![]));
    assert_eq!(seqs(&EventLog::new(), 1), Err(Gap { after: 1, first: 1 }));
}

#[test]
fn old_events_leave_by_number() {
    let max = MAX_EVENTS as u64;
    let log = log(max);
    assert_eq!(log.since(0).unwrap().len(), MAX_EVENTS);
    log.push(warning(max + 1, "careful"));
    assert_eq!(seqs(&log, 0), Err(Gap { after: 0, first: 2 }));
    assert_eq!(log.since(1).unwrap().len(), MAX_EVENTS);
}

#[test]
fn old_events_leave_by_size() {
    let log = EventLog::new();
    let words = "x".repeat(MAX_EVENT_BYTES / 4);
    for seq in 1..=20 {
        log.push(warning(seq, &words));
        assert!(lock(&log.ring).bytes <= MAX_EVENT_BYTES);
    }
    // Four do not fit, because an event is more than its words.
    assert_eq!(seqs(&log, 17), Ok(vec![18, 19, 20]));
    assert_eq!(seqs(&log, 16), Err(Gap { after: 16, first: 18 }));
    // The newest is there however large it is: somebody waits for it.
    log.push(warning(21, &"x".repeat(2 * MAX_EVENT_BYTES)));
    assert_eq!(seqs(&log, 20), Ok(vec![21]));
    log.push(warning(22, "careful"));
    assert_eq!(seqs(&log, 21), Ok(vec![22]));
    let ring = lock(&log.ring);
    assert_eq!(ring.bytes, ring.events.iter().map(|(event, _)| estimate(event)).sum::<usize>());
}

#[test]
fn an_event_out_of_order_is_not_taken() {
    let log = log(3);
    log.push(warning(3, "again"));
    log.push(warning(2, "again"));
    assert_eq!(seqs(&log, 0), Ok(vec![1, 2, 3]));
}

#[test]
fn a_subscription_has_its_own_place() {
    let log = log(3);
    let (mut all, mut new, mut some) = (log.subscribe(Some(0)), log.subscribe(None), log.subscribe(Some(2)));
    log.push(warning(4, "careful"));
    assert_eq!(ready(&mut all), (vec![1, 2, 3, 4], None));
    assert_eq!(ready(&mut new), (vec![4], None));
    assert_eq!(ready(&mut some), (vec![3, 4], None));
    log.push(warning(5, "careful"));
    assert_eq!(ready(&mut all), (vec![5], None));
}

#[test]
fn a_gap_is_told_once_and_reading_goes_on() {
    let log = log(MAX_EVENTS as u64 + 2);
    let mut events = log.subscribe(Some(1));
    assert_eq!(events.next().now_or_never().flatten(), Some(Delivery::Gap(Gap { after: 1, first: 3 })));
    let (seen, end) = ready(&mut events);
    assert_eq!((seen.len(), seen[0], end), (MAX_EVENTS, 3, None));
}

#[test]
fn who_is_overtaken_is_cut_off_and_may_come_back() {
    let max = MAX_EVENTS as u64;
    let log = log(1);
    let mut events = log.subscribe(Some(0));
    assert_eq!(ready(&mut events), (vec![1], None));
    for seq in 2..=max + 1 {
        log.push(warning(seq, "careful"));
    }
    // Exactly as many as may be waiting: the next one is not too late.
    let mut other = log.subscribe(Some(1));
    log.push(warning(max + 2, "careful"));
    let lagged = Some(Delivery::Lagged(Lagged { resume_after: 1 }));
    assert_eq!(ready(&mut events), (vec![], lagged.clone()));
    assert_eq!(ready(&mut other), (vec![], lagged));
    assert_eq!(events.next().now_or_never(), Some(None), "and then it is over");
    assert_eq!(ready(&mut log.subscribe(Some(2))).0.len(), MAX_EVENTS);
}

#[tokio::test]
async fn subscriptions_end_with_the_log_and_get_all_of_it() {
    let log = log(2);
    let mut events = log.subscribe(Some(1));
    let mut idle = log.subscribe(None);
    assert_eq!(idle.next().now_or_never(), None, "it waits");
    log.push(warning(3, "careful"));
    drop(log);
    assert_eq!(ready(&mut events), (vec![2, 3], None));
    assert_eq!(within(idle.next()).await, Some(Delivery::Event(warning(3, "careful"))));
    assert_eq!(within(idle.next()).await, None);
    assert_eq!(within(events.next()).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_miss_nothing_while_others_push() {
    let log = Arc::new(EventLog::new());
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let mut events = log.subscribe(Some(0));
            tokio::spawn(async move {
                let mut seen = 0;
                while let Some(delivery) = events.next().await {
                    let Delivery::Event(event) = delivery else { panic!("{delivery:?}") };
                    seen += 1;
                    assert_eq!(event.seq, seen);
                }
                seen
            })
        })
        .collect();
    let last = MAX_EVENTS as u64;
    for seq in 1..=last {
        log.push(warning(seq, "careful"));
    }
    drop(log);
    for reader in readers {
        assert_eq!(within(reader).await.unwrap(), last);
    }
}
