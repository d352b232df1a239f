//! Numbers of this crate, each with its reason.

use std::time::Duration;

/// Events that are kept for readers. A reader further behind than this is cut off.
pub const MAX_EVENTS: usize = 10_000;

/// Bytes of events that are kept for readers, as [`EventLog`](crate::EventLog) estimates them. Items of 10,000 events
/// could be gigabytes otherwise.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

/// Bytes of a line that a client sends: a message of 1 MiB and what stands around it. A longer message belongs in a
/// file that the agent reads.
pub const MAX_LINE: usize = (1 << 20) + (32 << 10);

/// Bytes of a line that a client reads. Its owner is trusted, so this only stops what cannot be meant.
pub(crate) const MAX_ANSWER_LINE: usize = 256 << 20;

/// Requests of one connection that are worked on at once. What comes after them is not read until one is done.
pub const MAX_AT_ONCE: usize = 32;

/// Tasks that one connection waits for at once. They have a number of their own, because they last: an interrupt must
/// get past them. One more is refused.
pub const MAX_WAITS: usize = 128;

/// Connections at once: file descriptors are for agents first. For one more the longest idle one makes room; when none
/// is idle, it is turned away.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a connection must have asked for nothing before it has to make room: whoever has just come is about to ask.
pub(crate) const SPARE: Duration = Duration::from_secs(1);

/// Lines that wait to be written to one client.
pub(crate) const OUTGOING: usize = 32;

/// How long a client may take to read one line before it counts as stuck and is cut off.
pub(crate) const STALL: Duration = Duration::from_secs(10);

/// How long the other side may take to say hello.
pub(crate) const GREETING: Duration = Duration::from_secs(5);

/// How long an owner that stops goes on writing to its clients.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// How long a client tries to reach an owner that lives but does not listen: it takes its tree over first.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// Between two such attempts.
pub(crate) const CONNECT_PAUSE: Duration = Duration::from_millis(25);

/// After an `accept` that failed, mostly for want of file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes of a socket's path that the system takes, its terminating zero included.
pub(crate) const MAX_SOCKET_PATH: usize = if cfg!(any(target_os = "linux", target_os = "android")) { 108 } else { 104 };
