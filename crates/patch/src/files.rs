//! What a patch needs to know of files.

use std::fmt;

/// Where a patch reads and writes. Paths come as the patch spells them; resolving, confining and locking them is
/// the implementor's business.
pub trait Files {
    /// The content of the file at `path`; `None` when there is nothing at all.
    ///
    /// # Errors
    /// When there is something that cannot be read as a file (a folder, no permission, too large).
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError>;

    /// Creates or replaces the file at `path` as one step, so that a reader sees the old content or the new one;
    /// missing parent folders are made. With `like`, the new file has the mode bits of the file at that path,
    /// which is `path` itself for an edit and the old path for a move.
    ///
    /// # Errors
    /// When the file cannot be written; what was there before is then still there.
    fn write(&mut self, path: &str, content: &[u8], like: Option<&str>) -> Result<(), FilesError>;

    /// Removes the file at `path`; `false` when there is none.
    ///
    /// # Errors
    /// When there is something that cannot be removed (a folder, no permission).
    fn remove(&mut self, path: &str) -> Result<bool, FilesError>;
}

/// Why a file cannot be read, written or removed. The text stands on its own and does not repeat the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesError(String);

impl FilesError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FilesError {}

impl From<std::io::Error> for FilesError {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}
