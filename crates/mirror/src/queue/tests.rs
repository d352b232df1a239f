use std::sync::Arc;

use rollout::{FileEnd, State, Summary};
use stdx::AbsPath;

use super::*;
use crate::fixture::{id, meta};

/// Agent `n` when its file had so many bytes and lines.
fn at(n: u64, bytes: u64, ordinal: u64) -> Summary {
    let file = AbsPath::new("/nowhere").unwrap();
    let end = FileEnd { file, bytes, ordinal, last_line_bytes: 1, checksum: 0, skipped: 0, unknown: 0 };
    State::new(meta(1, n)).summary(&end)
}

fn note(queue: &Queue, summary: Summary) -> bool {
    queue.push(summary.meta.id, Change::noted(summary))
}

fn places(batch: &Batch) -> Vec<(u64, u64)> {
    let mut places: Vec<_> = batch
        .changes
        .values()
        .map(|change| change.summary.as_ref().map_or((0, 0), |summary| (summary.bytes, summary.ordinal)))
        .collect();
    places.sort_unstable();
    places
}

#[test]
fn the_newest_note_of_an_agent_stays_whatever_their_order() {
    for order in [[10, 20, 30], [30, 20, 10], [20, 30, 10], [10, 30, 20]] {
        let queue = Queue::default();
        for bytes in order {
            assert!(note(&queue, at(1, bytes, bytes / 10)));
        }
        assert_eq!(queue.size().0, 1);
        assert_eq!(places(&queue.take().unwrap()), [(30, 3)]);
        assert_eq!(queue.size(), (0, 0));
    }
    // As long, but one line further on; and the same place again, which is the later word.
    let queue = Queue::default();
    for (ordinal, turns) in [(4, 1), (5, 2), (5, 3), (3, 4)] {
        assert!(note(&queue, Summary { turns, ..at(1, 10, ordinal) }));
    }
    let batch = queue.take().unwrap();
    let kept = batch.changes[&id(1)].summary.as_ref().unwrap();
    assert_eq!((kept.ordinal, kept.turns), (5, 3));
}

#[test]
fn what_was_put_back_is_behind_what_came_meanwhile() {
    let queue = Queue::default();
    for n in [1, 2, 3] {
        note(&queue, at(n, 10, 1));
    }
    let taken = queue.take().unwrap();
    note(&queue, at(1, 30, 3));
    note(&queue, at(2, 5, 1));
    let before = queue.size();
    queue.put_back(taken.changes);
    assert_eq!(queue.size().0, 3);
    assert!(queue.size().1 > before.1);
    let (asker, _answer) = oneshot::channel();
    // Somebody asks, so nothing waits for the time of the next attempt.
    queue.ask(asker);
    assert_eq!(places(&queue.take().unwrap()), [(10, 1), (10, 1), (30, 3)]);
}

#[test]
fn a_disproved_row_is_remembered_through_later_notes() {
    let mark = |bytes| crate::change::Mark { bytes, ordinal: 1, checksum: 7 };
    let queue = Queue::default();
    queue.push(id(1), Change::listed(Some(mark(99)), None));
    note(&queue, at(1, 10, 1));
    queue.push(id(1), Change::noted(at(1, 5, 1)));
    let batch = queue.take().unwrap();
    assert_eq!(batch.changes[&id(1)].disproved, Some(mark(99)));
    assert_eq!(places(&batch), [(10, 1)]);
}

#[test]
fn what_waits_is_bounded() {
    let queue = Queue::default();
    let count = (0..2 * MAX_WAITING as u64).filter(|n| note(&queue, at(*n, 10, 1))).count();
    assert_eq!((count, queue.size().0), (MAX_WAITING, MAX_WAITING));
    // Those that wait already still get their newest word.
    assert!(note(&queue, at(1, 20, 2)));
    queue.take().unwrap();
    let long = |n, len| Summary { first_task: Some("x".repeat(len)), ..at(n, 10, 1) };
    assert!(!note(&queue, long(1, MAX_SUMMARY)));
    let count = (0..1_000).filter(|n| note(&queue, long(*n, 1 << 20))).count();
    // Texts of 1 MiB, each with a little more, in 64 MiB.
    assert_eq!(count, 63);
    assert!(queue.size().1 <= MAX_HELD);
    // A longer word of one that waits counts instead of the shorter, not beside it.
    assert!(note(&queue, at(1, 20, 2)));
    assert!(note(&queue, long(1_001, 1 << 20)));
}

#[test]
fn a_listing_waits_for_room() {
    let queue = Arc::new(Queue::default());
    for n in 0..MAX_WAITING as u64 {
        note(&queue, at(n, 10, 1));
    }
    std::thread::scope(|scope| {
        let listing = scope.spawn(|| queue.push_patiently(id(9_999), Change::noted(at(9_999, 10, 1))));
        assert_eq!(queue.take().unwrap().changes.len(), MAX_WAITING);
        assert!(listing.join().unwrap());
    });
    assert_eq!(queue.size().0, 1);
    // Nobody makes room: it gives up, and nothing is lost but time.
    for n in 0..MAX_WAITING as u64 {
        note(&queue, at(n, 10, 1));
    }
    let before = Instant::now();
    assert!(!queue.push_patiently(id(8_888), Change::noted(at(8_888, 10, 1))));
    assert!(before.elapsed() >= PATIENCE);
    assert_eq!(queue.size().0, MAX_WAITING);
}

#[test]
fn whoever_waits_is_told_when_the_writer_ends() {
    let queue = Queue::default();
    let (asker, answer) = oneshot::channel();
    queue.ask(asker);
    queue.end();
    assert!(answer.blocking_recv().is_err());
}

#[test]
fn a_closed_queue_hands_out_the_rest_and_ends() {
    let queue = Queue::default();
    note(&queue, at(1, 10, 1));
    queue.close();
    let batch = queue.take().unwrap();
    assert_eq!(batch.changes.len(), 1);
    queue.put_back(batch.changes);
    assert!(queue.take().is_none());
    // Nothing more comes in, and nobody waits for an answer that never comes.
    assert!(!note(&queue, at(1, 20, 2)));
    let (asker, answer) = oneshot::channel();
    queue.ask(asker);
    assert!(answer.blocking_recv().is_err());
}
