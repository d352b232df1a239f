//! What may be sent at all.

use protocol::{Address, MailKind, Party};

use crate::Refused;

/// Checks mail before it is made: words must be there, nobody writes to itself, and the root takes tasks from people
/// only (a child that could task the root would make the tree run in a circle).
///
/// # Errors
/// With a text for the sender that says what to do instead.
pub fn check_new(kind: MailKind, from: &Party, to: &Address, body: &str) -> Result<(), Refused> {
    if body.trim().is_empty() {
        return Err(Refused::Empty(kind));
    }
    let Some(thread) = from.thread() else { return Ok(()) };
    if thread == to.thread {
        return Err(Refused::ToItself(to.path.clone()));
    }
    if to.path.is_root() && kind.is_task() {
        return Err(Refused::TaskForRoot);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
