//! When an agent is stalled. A pure rule: times are handed in.
//!
//! Time counts while the agent works, or waits for its model or a tool. It does not while it rests, queues for a slot
//! (which has a position of its own to show) or waits for other agents (who are watched themselves).

use std::time::Duration;

use tokio::time::Instant;

/// The watch over one agent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// Since when nothing has come of its work; none while time does not count.
    quiet: Option<Instant>,
    /// Whether this silence was told.
    told: bool,
    /// How often a silence was told.
    stalls: u64,
}

/// What a look at an agent shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing to wait for: time does not count, or the silence is told already.
    Nothing,
    /// It stalls then, unless something comes of it before.
    Due(Instant),
    /// It has stalled, and this look is the one to tell it: nothing has come for so long.
    Stalls(Duration),
}

impl Watch {
    /// Whether time counts from now on. Saying the same again changes nothing.
    pub(crate) fn counts(&mut self, counts: bool, now: Instant) {
        match (counts, self.quiet) {
            (true, None) => self.quiet = Some(now),
            (false, Some(_)) => {
                self.quiet = None;
                self.told = false;
            }
            _ => {}
        }
    }

    /// Something has come of its work.
    pub(crate) fn progress(&mut self, now: Instant) {
        if let Some(quiet) = &mut self.quiet {
            *quiet = now;
            self.told = false;
        }
    }

    /// Looks whether it has stalled `after` this long.
    pub(crate) fn look(&mut self, now: Instant, after: Duration) -> Look {
        match self.quiet {
            Some(_) if self.told => Look::Nothing,
            Some(quiet) if now.saturating_duration_since(quiet) >= after => {
                self.told = true;
                self.stalls += 1;
                Look::Stalls(now.saturating_duration_since(quiet))
            }
            Some(quiet) => Look::Due(quiet + after),
            None => Look::Nothing,
        }
    }

    /// For how long nothing has come of it, when that was told.
    pub(crate) fn stalled(&self, now: Instant) -> Option<Duration> {
        self.quiet.filter(|_| self.told).map(|quiet| now.saturating_duration_since(quiet))
    }

    /// Which of its stalls this is, when it is stalled.
    pub(crate) fn stall(&self) -> Option<u64> {
        self.told.then_some(self.stalls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Beat {
        Works,
        Rests,
        Comes,
    }
    use Beat::{Comes, Rests, Works};

    /// What happens at which second, and at which seconds a stall of after how long is told, when somebody looks every
    /// second for a minute. An agent stalls after ten.
    #[track_caller]
    fn check(beats: &[(u64, Beat)], expect: &[(u64, u64)]) {
        let begin = Instant::now();
        let mut watch = Watch::default();
        let mut told = Vec::new();
        for second in 0..60 {
            let now = begin + Duration::from_secs(second);
            for (_, beat) in beats.iter().filter(|(at, _)| *at == second) {
                match beat {
                    Works => watch.counts(true, now),
                    Rests => watch.counts(false, now),
                    Comes => watch.progress(now),
                }
            }
            if let Look::Stalls(quiet) = watch.look(now, Duration::from_secs(10)) {
                told.push((second, quiet.as_secs()));
            }
            assert_eq!(watch.stall().is_some(), watch.stalled(now).is_some());
        }
        assert_eq!(told, expect);
    }

    #[test]
    fn a_stall_is_told_once_and_again_only_after_progress() {
        check(&[], &[]);
        check(&[(1, Works)], &[(11, 10)]);
        check(&[(1, Works), (8, Comes), (15, Comes), (24, Rests)], &[]);
        check(&[(1, Works), (8, Comes), (30, Comes)], &[(18, 10), (40, 10)]);
        // Another try of the same is no progress, and neither is what comes while nobody works.
        check(&[(1, Works), (5, Works), (9, Works)], &[(11, 10)]);
        check(&[(5, Comes), (9, Works)], &[(19, 10)]);
    }

    #[test]
    fn time_counts_only_while_it_works() {
        check(&[(1, Works), (9, Rests), (20, Works), (29, Rests)], &[]);
        check(&[(1, Works), (9, Rests), (20, Works)], &[(30, 10)]);
        // What was stalled and is not any more may stall again.
        check(&[(1, Works), (15, Rests), (16, Works)], &[(11, 10), (26, 10)]);
    }

    #[test]
    fn a_look_says_when_the_next_is_due() {
        let begin = Instant::now();
        let second = |n| begin + Duration::from_secs(n);
        let after = Duration::from_secs(10);
        let mut watch = Watch::default();
        assert_eq!(watch.look(second(0), after), Look::Nothing);
        watch.counts(true, second(1));
        watch.progress(second(4));
        assert_eq!(watch.look(second(5), after), Look::Due(second(14)));
        assert_eq!(watch.look(second(17), after), Look::Stalls(Duration::from_secs(13)));
        assert_eq!((watch.look(second(18), after), watch.stall()), (Look::Nothing, Some(1)));
        watch.progress(second(19));
        assert_eq!((watch.stall(), watch.stalled(second(19))), (None, None));
    }
}
