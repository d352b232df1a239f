//! Who drives a tree. The kernel's file lock decides: it dies with its holder. What the file says is only a hint.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stdx::AbsPath;

use crate::error::told;

/// The file. It goes with its tree only, by the hand of whoever holds its lock: two owners could otherwise hold locks on
/// two files of one name. Whoever had opened it by then gets the lock of a file without a name, and looks for another.
const NAME: &str = "owner.lock";

/// How often a lock is looked for whose file goes away meanwhile: a tree is deleted once.
const TRIES: usize = 8;

/// Bytes that are read of a hint.
const MAX_HINT: u64 = 16 << 10;

/// What an owner says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnerHint {
    /// Its process; 0 when it has not said so yet.
    pub pid: u32,
    /// When the kernel started that process, in clock ticks since boot.
    pub start_time: u64,
    /// Where it listens, once it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<AbsPath>,
}

/// This process owns a tree as long as this lives.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
    path: AbsPath,
}

/// Why a tree could not be owned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LockError {
    /// Another process owns it.
    #[error("{} drives this tree", who(.0))]
    Owned(OwnerHint),
    /// The lock could not be made.
    #[error("cannot lock `{}`: {}", .file.display(), told(.source))]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Something else has the lock's name.
    #[error("`{}` is {what}, where a lock should be; move it away, then give this command again", .file.display())]
    Odd {
        /// Its path.
        file: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
}

impl LockError {
    fn io(file: &AbsPath, source: io::Error) -> Self {
        Self::Io { file: file.to_path_buf(), source: Arc::new(source) }
    }
}

/// The owner, as far as it has said who it is.
fn who(owner: &OwnerHint) -> String {
    match owner.pid {
        0 => "another process".to_owned(),
        pid => format!("process {pid}"),
    }
}

pub(crate) fn lock(folder: &AbsPath, hint: &OwnerHint) -> Result<OwnerLock, LockError> {
    for _ in 0..TRIES {
        if let Some(lock) = try_lock(folder, hint)? {
            return Ok(lock);
        }
    }
    Err(LockError::Owned(self::hint(folder).unwrap_or_default()))
}

/// The lock; none when its file went away before it was ours.
fn try_lock(folder: &AbsPath, hint: &OwnerHint) -> Result<Option<OwnerLock>, LockError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(|error| LockError::io(folder, error))?;
    let path = folder.join(NAME);
    // Looked at first, because a folder cannot be opened and a device may do something when it is.
    if let Ok(facts) = fs::metadata(&path) {
        ordinary(&path, &facts)?;
    }
    let opened = options().write(true).create(true).truncate(false).open(&path);
    if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && !folder.exists() {
        return Ok(None);
    }
    let file = opened.map_err(|error| LockError::io(&path, error))?;
    ordinary(&path, &file.metadata().map_err(|error| LockError::io(&path, error))?)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LockError::Owned(self::hint(folder).unwrap_or_default())),
        Err(TryLockError::Error(error)) => return Err(LockError::io(&path, error)),
    }
    // Whoever deleted the tree held this lock until now, and has taken the file's name away.
    if !is_at(&file, &path) {
        return Ok(None);
    }
    let lock = OwnerLock { file, path };
    lock.say(hint)?;
    Ok(Some(lock))
}

/// Whether a file that was opened is still the one at its path.
fn is_at(file: &File, path: &AbsPath) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |facts: &fs::Metadata| (facts.dev(), facts.ino());
        let (held, there) = (file.metadata().ok(), fs::metadata(path).ok());
        held.as_ref().map(identity).is_some_and(|held| there.as_ref().map(identity) == Some(held))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Whether somebody has the lock at this moment. Leaves no trace.
pub(crate) fn is_held(folder: &AbsPath) -> bool {
    let path = folder.join(NAME);
    let ordinary = fs::metadata(&path).is_ok_and(|facts| facts.is_file());
    let file = if ordinary { options().open(&path).ok() } else { None };
    file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Opens to be read, for its owner only when it is made, and at once: nobody waits for the other end of a pipe.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

/// Refuses what is no ordinary file.
fn ordinary(path: &AbsPath, facts: &fs::Metadata) -> Result<(), LockError> {
    let kind = facts.file_type();
    #[cfg(unix)]
    let pipe = std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    let pipe = false;
    let what = match (kind.is_file(), kind.is_dir()) {
        (true, _) => return Ok(()),
        (_, true) => "a folder",
        _ if pipe => "a pipe",
        _ => "a socket or a device",
    };
    Err(LockError::Odd { file: path.to_path_buf(), what })
}

/// What the lock's file says; nothing when it says nothing yet, or is no file.
pub(crate) fn hint(folder: &AbsPath) -> Option<OwnerHint> {
    let path = folder.join(NAME);
    ordinary(&path, &fs::metadata(&path).ok()?).ok()?;
    let mut bytes = Vec::new();
    let file = options().open(&path).ok()?;
    ordinary(&path, &file.metadata().ok()?).ok()?;
    file.take(MAX_HINT).read_to_end(&mut bytes).ok()?;
    // A longer hint may just be being replaced by a shorter one: what follows the first value is passed over.
    serde_json::Deserializer::from_slice(&bytes).into_iter().next()?.ok()
}

impl OwnerLock {
    /// Replaces what the owner says about itself, for example when it begins to listen.
    ///
    /// # Errors
    /// When the file cannot be written. The lock holds all the same.
    pub fn say(&self, hint: &OwnerHint) -> Result<(), LockError> {
        self.write(hint).map_err(|error| LockError::io(&self.path, error))
    }

    fn write(&self, hint: &OwnerHint) -> io::Result<()> {
        let bytes = serde_json::to_vec(hint)?;
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(&bytes)?;
        file.set_len(bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests;
