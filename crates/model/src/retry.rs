//! What is tried again, when, and how often. A pure rule: time and chance are handed in.

use std::time::Duration;

use crate::{ErrorKind, ModelError, UNREACHABLE_FOR};

/// Retries of one kind of trouble without any progress in between. With [`FIRST_WAIT`] that is about six seconds: a
/// server that restarts or drops connections is back by then, one that is not needs a person.
const RETRIES: u32 = 5;
/// Retries when the server does not speak its protocol: once may be a proxy's hiccup, twice is a wrong address.
const NONSENSE_RETRIES: u32 = 2;
/// Retries when we are told to slow down: the server is well and has said so, so we are patient.
const LIMITED_RETRIES: u32 = 10;
/// Longest time spent on being told to slow down, and the longest single wait we accept. A person who comes back
/// after it should find an answer, not a clock.
const LIMITED_FOR: Duration = Duration::from_mins(10);
/// The first wait; doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait that we choose ourselves.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Retries in one sampling, progress or not: a stream that breaks after every item must end some day.
const TOTAL_RETRIES: u32 = 20;
/// Largest part added to a wait that the server asked for, so that its clients do not all come back at once.
const ASKED_JITTER: f64 = 0.1;
/// Our own waits vary by this part in both directions.
const OWN_JITTER: f64 = 0.2;

/// The numbers of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Retries of broken streams and server errors without progress in between.
    pub retries: u32,
    /// Retries of answers that are not the protocol.
    pub nonsense: u32,
    /// Retries of "slow down".
    pub limited: u32,
    /// Longest time spent on "slow down", and the longest wait accepted.
    pub limited_for: Duration,
    /// How long nobody may answer, from the first refusal on.
    pub unreachable_for: Duration,
    /// The first wait.
    pub first_wait: Duration,
    /// The longest wait of our own.
    pub longest_wait: Duration,
    /// Retries of all kinds in one sampling, whatever progress it makes.
    pub total: u32,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            retries: RETRIES,
            nonsense: NONSENSE_RETRIES,
            limited: LIMITED_RETRIES,
            limited_for: LIMITED_FOR,
            unreachable_for: UNREACHABLE_FOR,
            first_wait: FIRST_WAIT,
            longest_wait: LONGEST_WAIT,
            total: TOTAL_RETRIES,
        }
    }
}

/// The state of the rule during one sampling.
#[derive(Clone, Debug)]
pub struct Retry {
    limits: RetryLimits,
    /// Broken streams and server errors since the last progress.
    failures: u32,
    nonsense: u32,
    limited: u32,
    limited_since: Option<Duration>,
    refusals: u32,
    refused_since: Option<Duration>,
    total: u32,
    /// Why the last error is not tried again.
    ended: Option<String>,
}

impl Retry {
    /// A fresh start.
    pub fn new(limits: RetryLimits) -> Self {
        Self {
            limits,
            failures: 0,
            nonsense: 0,
            limited: 0,
            limited_since: None,
            refusals: 0,
            refused_since: None,
            total: 0,
            ended: None,
        }
    }

    /// Says how long to wait before the request is sent again, or that it is not (`None`; then
    /// [`Retry::conclude`] puts the reason into the error).
    ///
    /// `now` is the time since the sampling began; `random` lies in `0..1` and spreads the waits.
    pub fn next(&mut self, error: &ModelError, now: Duration, random: f64) -> Option<Duration> {
        let decided = self.decide(error.kind, now, random.clamp(0.0, 1.0));
        match decided {
            Ok(wait) => {
                self.total += 1;
                Some(wait)
            }
            Err(why) => {
                self.ended = why;
                None
            }
        }
    }

    /// Says that an item was received: counts of attempts begin anew, except for the total.
    pub fn progress(&mut self) {
        self.failures = 0;
        self.nonsense = 0;
        self.limited = 0;
        self.limited_since = None;
        self.refusals = 0;
        self.refused_since = None;
    }

    /// The error as it should be shown once [`Retry::next`] has said no: with the reason, if retrying was an option.
    #[must_use]
    pub fn conclude(&self, mut error: ModelError) -> ModelError {
        if let Some(why) = &self.ended {
            error.message = format!("{}; {why}", error.message);
        }
        error
    }

    fn decide(&mut self, kind: ErrorKind, now: Duration, random: f64) -> Result<Duration, Option<String>> {
        let retried = !matches!(
            kind,
            ErrorKind::Refused
                | ErrorKind::WindowExceeded
                | ErrorKind::Quota
                | ErrorKind::Rejected
                | ErrorKind::Unscripted
        );
        if !retried {
            return Err(None);
        }
        if self.total >= self.limits.total {
            return Err(Some(format!("gave up after {} retries in all", self.total)));
        }
        if kind != ErrorKind::Unreachable {
            // Somebody answered: the clock of silence starts anew.
            self.refusals = 0;
            self.refused_since = None;
        }
        match kind {
            ErrorKind::Unreachable => self.unreachable(now, random),
            ErrorKind::RateLimited { after } => self.slow_down(after, now, random),
            ErrorKind::Nonsense => {
                let wait = self.own_wait(self.nonsense, random);
                count(&mut self.nonsense, self.limits.nonsense)?;
                Ok(wait)
            }
            ErrorKind::Server { after } => {
                let own = self.own_wait(self.failures, random);
                let wait = after.map_or(Ok(own), |after| self.asked_wait(after, random).map(|asked| asked.max(own)))?;
                count(&mut self.failures, self.limits.retries)?;
                Ok(wait)
            }
            _ => {
                let wait = self.own_wait(self.failures, random);
                count(&mut self.failures, self.limits.retries)?;
                Ok(wait)
            }
        }
    }

    fn unreachable(&mut self, now: Duration, random: f64) -> Result<Duration, Option<String>> {
        let since = *self.refused_since.get_or_insert(now);
        let left = self.limits.unreachable_for.saturating_sub(now.saturating_sub(since));
        if left.is_zero() {
            return Err(Some(format!("gave up after {} without an answer", seconds(self.limits.unreachable_for))));
        }
        // The last wait is cut so that the last attempt falls on the end of the stated time.
        let wait = self.own_wait(self.refusals, random).min(left);
        self.refusals += 1;
        Ok(wait)
    }

    fn slow_down(&mut self, after: Option<Duration>, now: Duration, random: f64) -> Result<Duration, Option<String>> {
        let since = *self.limited_since.get_or_insert(now);
        let wait = match after {
            Some(after) => self.asked_wait(after, random)?,
            None => self.own_wait(self.limited, random),
        };
        if now.saturating_sub(since).saturating_add(after.unwrap_or(wait)) > self.limits.limited_for {
            return Err(Some(format!("gave up: it would take longer than {}", seconds(self.limits.limited_for))));
        }
        count(&mut self.limited, self.limits.limited)?;
        Ok(wait)
    }

    /// The wait that a server asked for, and a little more, so that its clients spread.
    fn asked_wait(&self, after: Duration, random: f64) -> Result<Duration, Option<String>> {
        if after > self.limits.limited_for {
            return Err(Some(format!(
                "it asks to wait {}, longer than the {} we are ready to; run it again later",
                seconds(after),
                seconds(self.limits.limited_for)
            )));
        }
        Ok(after.mul_f64(1.0 + ASKED_JITTER * random))
    }

    fn own_wait(&self, earlier: u32, random: f64) -> Duration {
        let doubled = self.limits.first_wait.saturating_mul(2_u32.saturating_pow(earlier));
        let spread = 1.0 + OWN_JITTER * (2.0 * random - 1.0);
        doubled.min(self.limits.longest_wait).mul_f64(spread).min(self.limits.longest_wait)
    }
}

fn count(so_far: &mut u32, most: u32) -> Result<(), Option<String>> {
    if *so_far >= most {
        return Err(Some(match most {
            1 => "gave up after one retry".to_owned(),
            _ => format!("gave up after {most} retries"),
        }));
    }
    *so_far += 1;
    Ok(())
}

fn seconds(time: Duration) -> String {
    if time.as_secs() >= 60 && time.as_secs().is_multiple_of(60) {
        format!("{} min", time.as_secs() / 60)
    } else if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests;
