//! Where a tree's socket is, and whether that place is safe.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use protocol::TreeId;
use stdx::AbsPath;

use crate::BindError;
use crate::limits::MAX_SOCKET_PATH;

/// Where the owner of a tree listens: `control.sock` in the tree's folder. The system takes only short paths (108 bytes
/// on Linux, 104 elsewhere); when that one is longer, it is `agent-<user id>/<hash>.sock` in the runtime folder
/// (`XDG_RUNTIME_DIR` or `TMPDIR`), or in `/tmp` when there is none or its path is too long as well.
pub fn socket_path(tree_folder: &AbsPath, runtime_dir: Option<&AbsPath>, tree: TreeId) -> AbsPath {
    let usual = tree_folder.join("control.sock");
    if fits(&usual) {
        return usual;
    }
    // The folder is in it too: a copied home has trees of the same ids.
    let hash = protocol::digest(&format!("{:?} {tree}", tree_folder.as_os_str().as_bytes())).simple();
    let below = |folder: &Path| folder.join(shared_folder()).join(format!("{hash}.sock"));
    let short = runtime_dir.map(|folder| below(folder)).filter(|path| fits(path));
    // An absolute path replaces the one it is joined to.
    tree_folder.join(short.unwrap_or_else(|| below(Path::new("/tmp"))))
}

fn fits(path: &Path) -> bool {
    path.as_os_str().as_bytes().len() < MAX_SOCKET_PATH
}

/// The name of this user's folder among those of others.
fn shared_folder() -> String {
    format!("agent-{}", own_uid())
}

/// The user that this process acts for.
pub(crate) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the folder of a socket if it is not there, and checks that nobody else can put something else in its place.
///
/// The folder in a runtime folder may stand beside those of strangers, who know its name: nobody else may even look
/// into it. A tree's own folder is only refused when others may write to it.
pub(crate) fn prepare(socket: &AbsPath) -> Result<(), BindError> {
    let Some(folder) = socket.parent() else {
        return Err(BindError::NotASocket { path: socket.clone() });
    };
    let io = |source| BindError::Io { doing: "make", path: folder.clone(), source };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error)),
    }
    let shared = folder.file_name().is_some_and(|name| name == shared_folder().as_str());
    // Of the folder itself: a link could be changed by whoever made it.
    let found = fs::symlink_metadata(&folder).map_err(io)?;
    let why = check(found.is_dir(), found.uid(), found.mode(), own_uid(), shared);
    why.map_or(Ok(()), |why| Err(BindError::Folder { path: folder, why }))
}

/// Why a folder is not safe for a socket.
fn check(is_dir: bool, owner: u32, mode: u32, own: u32, shared: bool) -> Option<String> {
    if !is_dir {
        return Some("it is not a folder; move it away".to_owned());
    }
    if owner != own {
        return Some(format!("it belongs to user {owner}, and this is user {own}; remove it or have it removed"));
    }
    let (open, words) = if shared { (0o077, "others may look into it") } else { (0o022, "others may write to it") };
    (mode & open != 0).then(|| format!("{words} (mode {:03o}); run `chmod 700` on it", mode & 0o777))
}

#[cfg(test)]
mod tests;
