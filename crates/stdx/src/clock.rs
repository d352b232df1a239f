//! The wall clock, read in one place. Order is never taken from it: lines are ordered by ordinal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment in UTC, written in RFC 3339 with milliseconds (`2026-11-30T15:13:02.123Z`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

/// The current time, in whole milliseconds: what is read back from a file is what was there.
#[expect(clippy::disallowed_methods, reason = "this is the clock that everybody else must use")]
pub fn now() -> Timestamp {
    let now = jiff::Timestamp::now();
    Timestamp(jiff::Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now))
}

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// A moment as the file system has it; none when it is out of range.
    pub fn of(time: std::time::SystemTime) -> Option<Self> {
        jiff::Timestamp::try_from(time).ok().map(Self)
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Milliseconds from `earlier` to `self`; negative when the clock went back.
    pub fn millis_since(self, earlier: Self) -> i64 {
        self.as_millis() - earlier.as_millis()
    }

    /// This much later; the last moment there is when that would be beyond it.
    #[must_use]
    pub fn after(self, time: std::time::Duration) -> Self {
        let millis = i64::try_from(time.as_millis()).ok().and_then(|more| self.as_millis().checked_add(more));
        let later = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        Self(later.unwrap_or(jiff::Timestamp::MAX))
    }

    /// How long it is from `now` until then; nothing when it is past.
    pub fn until(self, now: Self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.millis_since(now)).unwrap_or(0))
    }

    /// The UTC date as `(year, month, day)`.
    pub fn date(self) -> (i16, i8, i8) {
        let day = jiff::tz::Offset::UTC.to_datetime(self.0).date();
        (day.year(), day.month(), day.day())
    }

    /// The time in a form that is safe in a file name on every system: `2026-11-30T15-13-02`.
    pub fn for_file_name(self) -> String {
        let text = self.to_string();
        text.get(..19).unwrap_or(&text).replace(':', "-")
    }

    /// Parses RFC 3339.
    ///
    /// # Errors
    /// When the text is not such a time.
    pub fn parse(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_written() {
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::EPOCH.for_file_name(), "1970-01-01T00-00-00");
        assert_eq!(Timestamp::EPOCH.date(), (1970, 1, 1));
    }

    #[test]
    fn there_and_back() {
        let hour = std::time::Duration::from_hours(1);
        let later = Timestamp::EPOCH.after(hour);
        assert_eq!(later.to_string(), "1970-01-01T01:00:00.000Z");
        assert_eq!((later.until(Timestamp::EPOCH), Timestamp::EPOCH.until(later)), (hour, std::time::Duration::ZERO));
        assert_eq!(later.after(std::time::Duration::MAX).date().0, 9999);
    }

    #[test]
    fn round_trip() {
        let time = Timestamp::parse("2026-11-30T15:13:02.120Z").unwrap();
        let json = serde_json::to_string(&time).unwrap();
        assert_eq!(json, "\"2026-11-30T15:13:02.120Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), time);
    }
}
