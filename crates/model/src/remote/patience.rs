//! How long a reply is waited for. A pure rule: times are handed in.
//!
//! A server that sends nothing is dead sooner than one that only beats: comments and pings say that it lives, and a
//! model may think for long behind them. But a reply of which nothing comes is no reply, however much it beats.

use std::time::Duration;

use tokio::time::Instant;

/// How long to wait for more of a reply that is complete as far as we can tell. Some servers send the counts of
/// tokens after the last word and then end the stream, some leave it open for ever; counts come within milliseconds.
const GRACE: Duration = Duration::from_secs(1);

/// The two limits of one reply, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    idle: Duration,
    progress: Duration,
    /// When something of the reply came last.
    moved: Instant,
    /// Since when nothing that the reply needs is missing.
    complete: Option<Instant>,
}

/// What it means when the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Not a byte came.
    Silent,
    /// Bytes came, but nothing of the reply.
    Beats,
    /// Nothing was missing any more.
    Complete,
}

impl Patience {
    pub(super) fn new(idle: Duration, progress: Duration, now: Instant) -> Self {
        Self { idle, progress, moved: now, complete: None }
    }

    /// Something of the reply has come.
    pub(super) fn moved(&mut self, now: Instant) {
        self.moved = now;
    }

    /// Nothing of the reply is missing any more; said as often as one likes.
    pub(super) fn complete(&mut self, now: Instant) {
        self.complete.get_or_insert(now);
    }

    /// How long to wait for the next bytes, and what it means when they do not come.
    pub(super) fn left(&self, now: Instant) -> (Duration, Over) {
        let until = |from: Instant, limit: Duration| limit.saturating_sub(now.saturating_duration_since(from));
        if let Some(since) = self.complete {
            return (until(since, self.idle.min(GRACE)), Over::Complete);
        }
        let beats = until(self.moved, self.progress);
        if beats < self.idle { (beats, Over::Beats) } else { (self.idle, Over::Silent) }
    }

    /// How long nothing of the reply may come.
    pub(super) fn limit(&self, over: Over) -> Duration {
        if over == Over::Beats { self.progress } else { self.idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle after 10 s, without progress after 30. What is left at each second, after pieces at the seconds given:
    /// true for one that holds something of the reply.
    fn check(pieces: &[(u64, bool)], at: u64, expect: (u64, Over)) {
        let begin = Instant::now();
        let second = |n| begin + Duration::from_secs(n);
        let mut patience = Patience::new(Duration::from_secs(10), Duration::from_secs(30), begin);
        for (when, moves) in pieces {
            if *moves {
                patience.moved(second(*when));
            }
        }
        assert_eq!(patience.left(second(at)), (Duration::from_secs(expect.0), expect.1), "{pieces:?} at {at}");
    }

    #[test]
    fn silence_ends_sooner_than_beating() {
        check(&[], 0, (10, Over::Silent));
        check(&[(9, false)], 9, (10, Over::Silent));
        check(&[(9, false), (18, false)], 18, (10, Over::Silent));
        check(&[(9, false), (18, false), (27, false)], 27, (3, Over::Beats));
        check(&[(9, false), (18, true), (27, false)], 27, (10, Over::Silent));
        check(&[(9, false), (18, true), (45, false)], 45, (3, Over::Beats));
        check(&[(1, false)], 31, (0, Over::Beats));
    }

    #[tokio::test]
    async fn a_complete_reply_is_waited_for_a_moment_however_much_the_server_beats() {
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let mut patience = Patience::new(Duration::from_secs(10), Duration::from_secs(30), begin);
        patience.complete(after(100));
        patience.complete(after(700));
        patience.moved(after(700));
        assert_eq!(patience.left(after(700)), (Duration::from_millis(400), Over::Complete));
        assert_eq!(patience.left(after(2_000)), (Duration::ZERO, Over::Complete));
    }
}
