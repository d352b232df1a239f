//! Where an agent lives: `/root`, `/root/explore_auth`, `/root/explore_auth/check_2`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest name of an agent, in bytes. A name is in every prompt of its neighbours, so it stays short.
pub const MAX_NAME: usize = 64;

/// Deepest path, in levels below the root. Configuration may ask for less, never for more.
pub const MAX_DEPTH_HARD: usize = 16;

/// The name of one agent below its parent: `[a-z0-9_]{1,64}`, not `root`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Box<str>);

/// The absolute path of an agent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentPath(Box<str>);

/// Why a text is not a path or a name. Each message shows a valid example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing was given.
    #[error("an agent path must not be empty; use a name such as `worker_a` or a path such as `/root/worker_a`")]
    Empty,
    /// A segment has a character outside the alphabet, or none at all.
    #[error("`{0}` is not an agent name: use 1 to 64 of a-z, 0-9 and _, for example `worker_a`")]
    Name(String),
    /// A segment is `.`, `..` or `root`.
    #[error("`{0}` is reserved and cannot name an agent; use a name such as `worker_a`")]
    Reserved(String),
    /// An absolute path that does not start at the root agent.
    #[error("`{0}` does not start at the root agent; absolute paths look like `/root/worker_a`")]
    NotRoot(String),
    /// More levels than a path may have.
    #[error("`{0}` is deeper than {MAX_DEPTH_HARD} levels below `/root`")]
    TooDeep(String),
}

impl AgentName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is empty, too long, reserved, or has a character outside `[a-z0-9_]`.
    pub fn new(name: &str) -> Result<Self, PathError> {
        if name.is_empty() {
            return Err(PathError::Empty);
        }
        if matches!(name, "." | ".." | "root") {
            return Err(PathError::Reserved(name.to_owned()));
        }
        let fits = name.len() <= MAX_NAME && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if fits { Ok(Self(name.into())) } else { Err(PathError::Name(stdx::one_line(name, 80))) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentPath {
    /// `/root`.
    pub fn root() -> Self {
        Self("/root".into())
    }

    /// The child called `name`.
    ///
    /// # Errors
    /// When the path would be deeper than [`MAX_DEPTH_HARD`].
    pub fn join(&self, name: &AgentName) -> Result<Self, PathError> {
        let path = format!("{}/{}", self.0, name.0);
        if self.depth() == MAX_DEPTH_HARD {
            return Err(PathError::TooDeep(path));
        }
        Ok(Self(path.into()))
    }

    /// What `reference` means to the agent at `self`: a path that starts with `/` is absolute, anything else
    /// hangs below `self`. A sibling therefore needs its absolute path.
    ///
    /// # Errors
    /// As [`AgentName::new`], or when the path is too deep or does not start at `/root`.
    pub fn resolve(&self, reference: &str) -> Result<Self, PathError> {
        let reference = reference.trim();
        if reference.is_empty() {
            return Err(PathError::Empty);
        }
        let (mut path, rest) = if reference == "/root" {
            return Ok(Self::root());
        } else if let Some(rest) = reference.strip_prefix("/root/") {
            (Self::root(), rest)
        } else if reference.starts_with('/') {
            return Err(PathError::NotRoot(stdx::one_line(reference, 80)));
        } else {
            (self.clone(), reference)
        };
        for segment in rest.split('/') {
            if segment.is_empty() {
                return Err(PathError::Name(stdx::one_line(reference, 80)));
            }
            path = path.join(&AgentName::new(segment)?)?;
        }
        Ok(path)
    }

    /// Levels below the root: 0 for `/root`.
    pub fn depth(&self) -> usize {
        self.0.bytes().filter(|b| *b == b'/').count() - 1
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The path of the parent; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }

    /// Whether this is `/root`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/root"
    }

    /// Whether `self` is `prefix` or lies below it. Segments are compared whole.
    pub fn is_at_or_below(&self, prefix: &Self) -> bool {
        self.0.strip_prefix(&*prefix.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentPath {
    type Err = PathError;
    /// Takes an absolute path; relative ones need [`AgentPath::resolve`].
    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.starts_with('/') || text.trim().is_empty() {
            Self::root().resolve(text)
        } else {
            Err(PathError::NotRoot(stdx::one_line(text, 80)))
        }
    }
}

macro_rules! text {
    ($name:ident, $parse:expr) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                $parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
text!(AgentName, AgentName::new);
text!(AgentPath, AgentPath::from_str);

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(from: &str, reference: &str, expect: Expect) {
        let from: AgentPath = from.parse().unwrap();
        let seen = match from.resolve(reference) {
            Ok(path) => path.to_string(),
            Err(error) => format!("error: {error}"),
        };
        expect.assert_eq(&seen);
    }

    #[test]
    fn references() {
        check("/root", "/root", expect!["/root"]);
        check("/root/a", "b", expect!["/root/a/b"]);
        check("/root/a", " b/c ", expect!["/root/a/b/c"]);
        check("/root/a", "/root/b", expect!["/root/b"]);
        check(
            "/root/a",
            "",
            expect![
                "error: an agent path must not be empty; use a name such as `worker_a` or a path such as `/root/worker_a`"
            ],
        );
        check(
            "/root/a",
            "..",
            expect!["error: `..` is reserved and cannot name an agent; use a name such as `worker_a`"],
        );
        check(
            "/root/a",
            "./b",
            expect!["error: `.` is reserved and cannot name an agent; use a name such as `worker_a`"],
        );
        check(
            "/root/a",
            "root",
            expect!["error: `root` is reserved and cannot name an agent; use a name such as `worker_a`"],
        );
        check(
            "/root/a",
            "b/",
            expect!["error: `b/` is not an agent name: use 1 to 64 of a-z, 0-9 and _, for example `worker_a`"],
        );
        check(
            "/root/a",
            "/",
            expect!["error: `/` does not start at the root agent; absolute paths look like `/root/worker_a`"],
        );
        check(
            "/root/a",
            "/rooty",
            expect!["error: `/rooty` does not start at the root agent; absolute paths look like `/root/worker_a`"],
        );
        check(
            "/root",
            "Worker",
            expect!["error: `Worker` is not an agent name: use 1 to 64 of a-z, 0-9 and _, for example `worker_a`"],
        );
        check(
            "/root",
            "wörk",
            expect!["error: `wörk` is not an agent name: use 1 to 64 of a-z, 0-9 and _, for example `worker_a`"],
        );
    }

    #[test]
    fn bounds() {
        assert!(AgentName::new(&"a".repeat(MAX_NAME)).is_ok());
        assert!(AgentName::new(&"a".repeat(MAX_NAME + 1)).is_err());
        let deep = vec!["a"; MAX_DEPTH_HARD].join("/");
        let path = AgentPath::root().resolve(&deep).unwrap();
        assert_eq!(path.depth(), MAX_DEPTH_HARD);
        assert!(matches!(path.resolve("b"), Err(PathError::TooDeep(_))));
    }

    #[test]
    fn prefixes_are_whole_segments() {
        let at = |text: &str| text.parse::<AgentPath>().unwrap();
        assert!(at("/root/ab").is_at_or_below(&at("/root")));
        assert!(at("/root/ab").is_at_or_below(&at("/root/ab")));
        assert!(!at("/root/ab").is_at_or_below(&at("/root/a")));
        assert_eq!(at("/root/a/b").parent(), Some(at("/root/a")));
        assert_eq!(at("/root").parent(), None);
        assert_eq!(at("/root/a").name(), "a");
    }

    proptest::proptest! {
        #[test]
        fn whatever_parses_prints_the_same(text in "(/root)?(/[a-z0-9_.]{0,5}){0,5}") {
            if let Ok(path) = text.parse::<AgentPath>() {
                proptest::prop_assert_eq!(path.as_str(), text.trim());
                let json = serde_json::to_string(&path).unwrap();
                proptest::prop_assert_eq!(serde_json::from_str::<AgentPath>(&json).unwrap(), path);
            }
        }
    }
}
