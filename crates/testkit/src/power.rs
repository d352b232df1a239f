//! What survives when the power goes: the least that the file system has promised.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is durable of the files and folders that were touched.
#[derive(Debug, Default)]
pub(crate) struct Power {
    files: BTreeMap<PathBuf, Kept>,
    /// Folders whose entry in the folder above is not durable.
    loose: BTreeSet<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Bytes that are durable.
    len: u64,
    /// Whether its entry in its folder is durable.
    entry: bool,
}

impl Power {
    /// A new, empty file.
    pub(crate) fn created(&mut self, file: &Path) {
        self.files.insert(file.to_owned(), Kept { len: 0, entry: false });
    }

    /// A file that was opened; all that it had before anybody wrote to it counts as durable.
    pub(crate) fn opened(&mut self, file: &Path, len: u64) {
        self.files.entry(file.to_owned()).or_insert(Kept { len, entry: true });
    }

    /// A file was synced when it had `len` bytes.
    pub(crate) fn synced(&mut self, file: &Path, len: u64) {
        if let Some(kept) = self.files.get_mut(file) {
            kept.len = kept.len.max(len);
        }
    }

    /// A file was cut.
    pub(crate) fn cut(&mut self, file: &Path, len: u64) {
        if let Some(kept) = self.files.get_mut(file) {
            kept.len = kept.len.min(len);
        }
    }

    /// Folders that are to be made for `folder`: those that are not there.
    pub(crate) fn missing(folder: &Path) -> Vec<PathBuf> {
        folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
    }

    /// These folders are new.
    pub(crate) fn made(&mut self, folders: Vec<PathBuf>) {
        self.loose.extend(folders);
    }

    /// The entries of a folder were synced.
    pub(crate) fn synced_folder(&mut self, folder: &Path) {
        self.loose.retain(|loose| loose.parent() != Some(folder));
        for (file, kept) in &mut self.files {
            kept.entry |= file.parent() == Some(folder);
        }
    }

    /// A file has another name. Counted as durable at once: an old name that comes back is not modelled.
    pub(crate) fn renamed(&mut self, from: &Path, to: &Path) {
        if let Some(kept) = self.files.remove(from) {
            self.files.insert(to.to_owned(), kept);
        }
    }

    /// A file is gone.
    pub(crate) fn removed(&mut self, file: &Path) {
        self.files.remove(file);
    }

    /// Leaves on disk what is durable and nothing else.
    pub(crate) fn lose(&mut self) -> io::Result<()> {
        for (file, kept) in std::mem::take(&mut self.files) {
            if !kept.entry {
                gone(fs::remove_file(&file))?;
            } else if file.exists() {
                let open = fs::OpenOptions::new().write(true).open(&file)?;
                if open.metadata()?.len() > kept.len {
                    open.set_len(kept.len)?;
                }
            }
        }
        for folder in std::mem::take(&mut self.loose) {
            gone(fs::remove_dir_all(folder))?;
        }
        Ok(())
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
