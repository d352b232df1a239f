//! The files that a patch edits.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use patch::{Files, FilesError};
use stdx::AbsPath;

/// Bytes of a file that can be patched. Larger ones are data; a patch needs several copies of them in memory.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// What a new file may be at most; the user's umask takes away from it.
const NEW_FILE: u32 = 0o666;

/// Files below a folder, each written as a whole or not at all.
#[derive(Debug)]
pub(crate) struct Disk {
    cwd: AbsPath,
}

impl Disk {
    pub(crate) fn new(cwd: AbsPath) -> Self {
        Self { cwd }
    }

    fn path(&self, path: &str) -> AbsPath {
        self.cwd.join(path)
    }
}

impl Files for Disk {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.path(path);
        // Looked at before it is opened: opening a named pipe would wait for somebody at its other end.
        let Some(about) = there(fs::metadata(&path))? else { return Ok(None) };
        regular(&about)?;
        let mut content = Vec::new();
        File::open(&path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE {
            return Err(FilesError::new(format!("it is larger than {} MiB; edit it with a command", MAX_FILE >> 20)));
        }
        Ok(Some(content))
    }

    fn write(&mut self, path: &str, content: &[u8], like: Option<&str>) -> Result<(), FilesError> {
        let path = self.path(path);
        // A link stays a link; what it points to is edited.
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.as_path().to_path_buf());
        let folder = target.parent().map_or_else(PathBuf::new, Path::to_path_buf);
        fs::create_dir_all(&folder)?;
        let like = like.map(|like| fs::metadata(self.path(like))).transpose()?;
        let mut file = tempfile::Builder::new()
            .prefix(".apply_patch-")
            .permissions(fs::Permissions::from_mode(NEW_FILE))
            .tempfile_in(&folder)?;
        file.write_all(content)?;
        if let Some(like) = like {
            let made = file.as_file().metadata()?;
            if (made.uid(), made.gid()) != (like.uid(), like.gid()) {
                // Only the superuser can give a file away; for everybody else it stays the writer's.
                let _not_allowed = std::os::unix::fs::fchown(file.as_file(), Some(like.uid()), Some(like.gid()));
            }
            file.as_file().set_permissions(like.permissions())?;
        }
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        let path = self.path(path);
        let Some(about) = there(fs::symlink_metadata(&path))? else { return Ok(false) };
        if about.is_dir() {
            return Err(FilesError::new("it is a folder; remove it with a command"));
        }
        fs::remove_file(&path)?;
        Ok(true)
    }
}

/// Nothing there is an answer, not an error. A path that goes on below a file leads nowhere, too.
fn there(about: io::Result<Metadata>) -> io::Result<Option<Metadata>> {
    match about {
        Ok(about) => Ok(Some(about)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

fn regular(about: &Metadata) -> Result<(), FilesError> {
    match () {
        () if about.is_dir() => Err(FilesError::new("it is a folder; name a file in it")),
        () if !about.is_file() => Err(FilesError::new("it is not a regular file; use a command for it")),
        () => Ok(()),
    }
}
