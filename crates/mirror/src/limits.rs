//! Every limit of the mirror.

use std::time::Duration;

/// How long one operation waits for another program that holds the database. Longer than any write of ours, shorter
/// than a person notices.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// How long the first note of a batch waits for others: a burst of syncs becomes one transaction.
pub(crate) const WINDOW: Duration = Duration::from_millis(4);

/// When a batch that found the database held is tried again, unless somebody asks earlier.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// Agents whose notes may wait: twice the most that a tree ever has.
pub(crate) const MAX_WAITING: usize = 4_096;

/// Bytes that waiting notes may hold, 64 MiB by estimate.
pub(crate) const MAX_HELD: usize = 64 << 20;

/// Bytes of one summary, 4 MiB. A longer one is left out, and its rollout is read instead.
pub(crate) const MAX_SUMMARY: usize = 4 << 20;

/// Bytes of a database that is checked through when it turns out to lag, 64 MiB: a moment's work beside the reading.
pub(crate) const MAX_CHECKED: u64 = 64 << 20;

/// Damaged databases that are kept; the oldest go first.
pub(crate) const MAX_DAMAGED: usize = 4;

/// Characters of a title.
pub(crate) const TITLE: usize = 120;
