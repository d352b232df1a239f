//! Failing a test. A kit that returned errors would have every test write `unwrap`; the only place that panics is here.

use std::fmt::Display;

/// Fails the test that runs.
#[track_caller]
#[expect(clippy::panic, reason = "a panic is how a test fails")]
pub(crate) fn fail(why: impl Display) -> ! {
    panic!("{why}")
}

/// The value, or the end of the test with `what` was being done.
#[track_caller]
pub(crate) fn must<T, E: Display>(what: impl Display, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fail(format_args!("{what}: {error}")),
    }
}
