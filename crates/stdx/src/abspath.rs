//! An absolute path. Whoever holds one need not know a working directory.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that starts at the root of the file system. It is not canonical: links and `..` may be inside.
///
/// On the wire it is a string; a path that is not UTF-8 is an array of its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AbsPath(PathBuf);

/// The path given was relative.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not an absolute path", .0.display())]
pub struct NotAbsolute(pub PathBuf);

impl AbsPath {
    /// Takes a path that is already absolute.
    ///
    /// # Errors
    /// When the path is relative.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, NotAbsolute> {
        let path = path.into();
        if path.is_absolute() { Ok(Self(path)) } else { Err(NotAbsolute(path)) }
    }

    /// `path` below `self`; an absolute `path` replaces it.
    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        Self(self.0.join(path))
    }

    /// The folder that holds this path, if it is not the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_path_buf()))
    }

    /// The path for functions of the standard library.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl std::ops::Deref for AbsPath {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Wire {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => s.serialize_str(text),
            None => s.collect_seq(self.0.as_os_str().as_encoded_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let path = match Wire::deserialize(d)? {
            Wire::Text(text) => PathBuf::from(text),
            Wire::Bytes(bytes) => from_bytes(bytes),
        };
        Self::new(path).map_err(serde::de::Error::custom)
    }
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_is_refused() {
        assert!(AbsPath::new("a/b").is_err());
        assert!(AbsPath::new("").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn any_bytes_survive_the_wire() {
        use std::os::unix::ffi::OsStringExt as _;
        for raw in [&b"/a b\nc"[..], b"/caf\xc3\xa9", b"/bad\xff\xfe"] {
            let path = AbsPath::new(std::ffi::OsString::from_vec(raw.to_vec())).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<AbsPath>(&json).unwrap(), path, "{json}");
        }
    }
}
