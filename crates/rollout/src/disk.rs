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

    /// Removes a file, or a folder that is empty.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Opens an existing file to be read at any place.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadAt>>;

    /// A file from `offset` on; nothing when it is shorter.
    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>>;

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

/// A file open to be read. Calls block.
pub trait ReadAt: Send + Sync {
    /// Reads from `offset` on into `into`: any number of bytes that are there, none only at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// How long it is now, in bytes.
    fn size(&self) -> io::Result<u64>;
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
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Nobody waits for the other end of a pipe that has taken a file's place.
        options.mode(0o600).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

/// A file that was opened, unless it is a pipe, a device or a folder.
fn ordinary(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no ordinary file")) }
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
        let file = ordinary(private().append(true).open(path)?)?;
        Ok(Arc::new(RealFile { path: path.to_path_buf(), file }))
    }

    fn overwrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = ordinary(private().write(true).open(path)?)?;
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
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir(path),
            done => done,
        }
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadAt>> {
        Ok(Box::new(ordinary(private().read(true).open(path)?)?))
    }

    fn read_from(&self, path: &Path, offset: u64) -> io::Result<Vec<u8>> {
        let mut file = ordinary(private().read(true).open(path)?)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let path = entry.path();
            // Relative to the folder, which is quicker than the whole way to it; but it does not follow a link.
            let Ok(mut facts) = entry.metadata() else { continue };
            if facts.is_symlink()
                && let Ok(there) = fs::metadata(&path)
            {
                facts = there;
            }
            let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let (folder, file) = (facts.is_dir(), facts.is_file());
            entries.push(Entry { path, folder, file, bytes: facts.len(), modified });
        }
        // All in one folder: their names alone differ.
        entries.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
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

impl ReadAt for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(self, into, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(self, into, offset);
    }

    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|facts| facts.len())
    }
}
