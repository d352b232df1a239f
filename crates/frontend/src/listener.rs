//! The socket of an owner: made whole, private to the user, gone when the owner has gone.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};

use protocol::TreeId;
use stdx::AbsPath;
use tokio::net::{UnixListener, UnixStream};

use crate::place;
use crate::wire::Hello;

/// Why an owner cannot listen. The tree can be driven all the same; others just cannot speak to it.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Something that is no socket has its name.
    #[error("`{path}` is not a socket; move it away, so that other processes can reach this tree")]
    NotASocket {
        /// The path.
        path: AbsPath,
    },
    /// Somebody listens there.
    #[error("another process already listens on `{path}`; end it, or let it drive the tree")]
    InUse {
        /// The path.
        path: AbsPath,
    },
    /// The folder is not safe.
    #[error("the folder `{path}` is not safe for a socket: {why}")]
    Folder {
        /// The folder.
        path: AbsPath,
        /// Why, and what to do.
        why: String,
    },
    /// The system refused something.
    #[error("cannot {doing} `{path}`: {source}; check that the folder exists and belongs to you")]
    Io {
        /// What was being done: a verb.
        doing: &'static str,
        /// With what.
        path: AbsPath,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket on which [`serve`](crate::serve) answers. Its file goes when this is dropped.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: UnixListener,
    pub(crate) hello: Hello,
    path: AbsPath,
    /// Device and number of our file, so that we never remove somebody else's.
    file: (u64, u64),
}

impl Listener {
    /// Listens at a path, with mode 0600, for a tree that this process drives. The caller holds the tree's
    /// `owner.lock`: a socket that is there already was left by a dead owner and is replaced.
    ///
    /// # Errors
    /// When the folder is not safe, when something else has the name, or when somebody listens there after all.
    pub async fn bind(path: &AbsPath, tree: TreeId) -> Result<Self, BindError> {
        let io = |doing| move |source| BindError::Io { doing, path: path.clone(), source };
        place::prepare(path)?;
        check_stale(path).await?;
        // It gets its name when its mode is right, so that nobody ever meets it with another one; and what was there
        // before is replaced in the same moment. The name is shorter than the final one, so it fits too.
        let new = path.join(path.with_extension("new"));
        if kind(&new)? == Kind::Socket {
            fs::remove_file(&new).map_err(io("replace"))?;
        }
        let socket = UnixListener::bind(&new).map_err(io("listen on"))?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).map_err(io("protect"))?;
        let found = fs::symlink_metadata(&new).map_err(io("look at"))?;
        fs::rename(&new, path).map_err(io("listen on"))?;
        let hello = Hello::ours(Some(tree), Some(stdx::now()));
        Ok(Self { socket, hello, path: path.clone(), file: (found.dev(), found.ino()) })
    }

    /// Where it listens.
    pub fn path(&self) -> &AbsPath {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path, %error, "the socket stays behind; the next owner replaces it");
        }
    }
}

#[derive(PartialEq, Eq)]
enum Kind {
    Nothing,
    Socket,
}

/// What has the name of a socket.
fn kind(path: &AbsPath) -> Result<Kind, BindError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(Kind::Socket),
        Ok(_) => Err(BindError::NotASocket { path: path.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Kind::Nothing),
        Err(source) => Err(BindError::Io { doing: "look at", path: path.clone(), source }),
    }
}

/// Whether the name is free to be taken. The lock says that no other owner lives; a socket that answers all the same
/// is not taken away.
async fn check_stale(path: &AbsPath) -> Result<(), BindError> {
    if kind(path)? == Kind::Nothing {
        return Ok(());
    }
    match UnixStream::connect(path).await {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(()),
        // Another user's, root's for example, in our folder: whoever made it does not hold the lock any more.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        Ok(_) | Err(_) => Err(BindError::InUse { path: path.clone() }),
    }
}

#[cfg(test)]
mod tests;
