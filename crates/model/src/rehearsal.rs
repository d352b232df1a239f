//! `rehearsal`: a built-in script that needs no key and no network and says that it cannot think.

use crate::OpenError;
use crate::script::Script;

/// Its name as a model.
pub(crate) const NAME: &str = "rehearsal";

const TEXT: &str = include_str!("rehearsal.toml");

/// Opens it.
pub(crate) fn open() -> Result<Script, OpenError> {
    Script::parse(NAME, "rehearsal.toml (built in)", TEXT)
}

#[cfg(test)]
mod tests;
