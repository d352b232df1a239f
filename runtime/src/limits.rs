//! The limits of one agent.

use std::time::Duration;

/// Operations that may wait for an agent; a sender waits when it is full. The reference uses the same number.
pub const OPS_QUEUE: usize = 512;

/// How long tools may wind down after an interrupt before they are dropped. Long enough for a tool to notice its
/// token and hand over what it has, short enough not to be felt.
pub const INTERRUPT_GRACE: Duration = Duration::from_millis(100);

/// Calls that one reply may make. More than any model means to; a server that never ends is stopped here.
pub const MAX_CALLS: usize = 2_000;

/// Running calls that are named to whoever wonders what an agent waits for; more would fill the screen.
pub(crate) const MAX_LABELS: usize = 8;

/// The most bytes that one tool output may put into the context, about 10,000 tokens. Tools cut for themselves and
/// cut better; this holds whatever they do.
pub const MAX_OUTPUT_BYTES: usize = 40_000;
