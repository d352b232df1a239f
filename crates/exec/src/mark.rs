//! The second mark of a process, beside the one in its environment.
//!
//! A command can clear the environment of what it starts, give it a session of its own and close every file: `env -i
//! setsid …` does all of that on one line. What it hands on all the same, from process to process until somebody means
//! to change it, are the kernel's limits. One of them does nothing here: how long a process may run under real-time
//! scheduling without a pause. We give every command a number of its own as that limit, tens of thousands of years long,
//! and so find what it started: whoever its parent is now, and in a later process of ours too. Everybody may read it,
//! also of processes of other users.

use protocol::Token;

/// Bits of a token that make its number. The last bits of a token are random.
const RANDOM: u32 = 61;

/// The number of a token: no limit that a person would set, and below "unlimited".
pub(crate) fn number(token: Token) -> u64 {
    let low = token.uuid().as_u128() & ((1 << RANDOM) - 1);
    u64::try_from(low).unwrap_or_default() | (1 << RANDOM)
}

/// Starts a process that carries the number of `token`. One at a time: what is started takes over the limit of this
/// process as it is at that moment.
#[cfg(target_os = "linux")]
pub(crate) fn starting<T>(token: Token, start: impl FnOnce() -> T) -> T {
    use std::sync::{Mutex, PoisonError};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = getrlimit(Resource::Rttime);
    let marked = Rlimit { current: Some(number(token)), maximum: before.maximum };
    // Where somebody has set a hard limit below it, the mark in the environment has to do.
    let set = setrlimit(Resource::Rttime, marked).is_ok();
    let started = start();
    if set {
        // To what it was a moment ago, which is always allowed.
        let _restored = setrlimit(Resource::Rttime, before);
    }
    started
}

/// Where that limit does not exist, the mark in the environment has to do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn starting<T>(_: Token, start: impl FnOnce() -> T) -> T {
    start()
}
