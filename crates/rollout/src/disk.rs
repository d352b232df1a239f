//! Every effect on the file system, one method each, so that a test can fail or stop between any two.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::unlinked;

/// A file system. Calls block.
pub trait Disk: Send + Sync {
    /// Makes a file for appending that must not exist yet.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for appending.
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Writes `bytes` over what an existing file has at `offset`, through a descriptor of its own.
    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes a folder and those above it; one that exists is fine.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Renames a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The whole of a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The first `max` bytes of a file, or all when there are fewer.
    fn read_head(&self, path: &Path, max: u64) -> io::Result<Vec<u8>>;

    /// A file from `offset` on; nothing when it is shorter.
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>>;

    /// At most `len` bytes of a file from `offset` on; fewer when it ends before.
    fn read_part(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.read_from(path, offset)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// What a folder holds, ordered by name. Entries that vanish meanwhile are left out; a link that leads nowhere is
    /// listed as neither file nor folder.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// Whether something is there.
    fn exists(&self, path: &Path) -> bool;
}

/// A file open for appending. Calls block.
pub trait DiskFile: Send + Sync {
    /// Which file it is.
    fn path(&self) -> &Path;

    /// Appends all of `bytes`, or fails with any part of them written.
    fn write_all(&self, bytes: &[u8]) -> io::Result<()>;

    /// Makes bytes and length durable. Fails when the file is in no folder any more: what is durable in it is lost all
    /// the same.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
}

/// One entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it is a folder.
    pub folder: bool,
    /// Whether it is an ordinary file; opening anything else may block.
    pub file: bool,
    /// How long it is.
    pub bytes: u64,
    /// When it was last written.
    pub modified: SystemTime,
}

/// The file system of the machine. Files it makes are readable by their owner only.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

struct RealFile {
    path: PathBuf,
    file: File,
}

/// Options for files that only their owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether a file that is open is in some folder.
fn is_linked(facts: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::nlink(facts) > 0;
    #[cfg(not(unix))]
    return facts.is_file();
}

impl Disk for RealDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = private().append(true).create_new(true).open(path)?;
        Ok(Arc::new(RealFile { path: path.to_path_buf(), file }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = private().append(true).open(path)?;
        Ok(Arc::new(RealFile { path: path.to_path_buf(), file }))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = private().write(true).open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_head(&self, path: &Path, max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn read_part(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::with_capacity(len);
        file.take(len as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            let Ok(facts) = fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path)) else { continue };
            let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let (folder, file) = (facts.is_dir(), facts.is_file());
            entries.push(Entry { path, folder, file, bytes: facts.len(), modified });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}

impl DiskFile for RealFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // After the sync: whoever is told of it must find the file.
        if is_linked(&self.file.metadata()?) { Ok(()) } else { Err(unlinked()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|facts| facts.len())
    }
}
