//! The environment that processes get.

use std::ffi::{OsStr, OsString};

/// The variable that marks every process of an agent, and everything those start.
pub const TOKEN_VARIABLE: &str = "AGENT_PROCESS_TOKEN";

/// What every process sees: no terminal, no pager that would wait for a key, no colours.
const PINNED: [(&str, &str); 4] = [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("NO_COLOR", "1")];

/// An environment, captured once, with what must be so pinned in it.
#[derive(Clone, Debug)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Takes an environment over. `LANG` is kept when it is set, so that tools speak the user's language.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let ours = |name: &OsStr| name == TOKEN_VARIABLE || PINNED.iter().any(|(pinned, _)| name == *pinned);
        let mut variables: Vec<_> = variables
            .into_iter()
            .filter(|(name, _)| !ours(name))
            .filter(|(name, value)| name != "LANG" || !value.is_empty())
            .collect();
        if !variables.iter().any(|(name, _)| name == "LANG") {
            variables.push(("LANG".into(), "C.UTF-8".into()));
        }
        variables.extend(PINNED.map(|(name, value)| (name.into(), value.into())));
        Self { variables }
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// All variables; the mark of a process is not among them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[(&str, &str)], name: &str, expect: Option<&str>) {
        let given = given.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        assert_eq!(Environment::new(given).get(name), expect.map(OsStr::new), "{name}");
    }

    #[test]
    fn what_must_be_so_is_pinned() {
        check(&[("TERM", "xterm"), ("HOME", "/h")], "TERM", Some("dumb"));
        check(&[("TERM", "xterm"), ("HOME", "/h")], "HOME", Some("/h"));
        check(&[("PAGER", "less")], "PAGER", Some("cat"));
        check(&[], "NO_COLOR", Some("1"));
        check(&[("LANG", "de_DE.UTF-8")], "LANG", Some("de_DE.UTF-8"));
        check(&[("LANG", "")], "LANG", Some("C.UTF-8"));
        check(&[], "LANG", Some("C.UTF-8"));
        check(&[(TOKEN_VARIABLE, "somebody's")], TOKEN_VARIABLE, None);
    }
}
