//! Deleting a tree so that a kill in the middle leaves nothing that could be taken for a tree.
//!
//! First a mark is made in the tree's folder and synced: from then on the tree is deleted for everybody, and all that
//! can be done with it is to finish that. The folder goes last, and the mark last of all that is in it.
//!
//! With the folder goes `owner.lock`, while this process holds its lock. Whoever has opened it before notices when it
//! gets the lock of a file that has no name any more, and begins anew; see `lock`.

use std::io;
use std::sync::Arc;

use protocol::TreeId;
use stdx::AbsPath;

use crate::archive::remove;
use crate::{Error, Store, lock};

/// The mark.
const MARK: &str = "deleting";

impl Store {
    /// Whether somebody has begun to delete this tree.
    pub fn is_deleting(&self, tree: TreeId) -> bool {
        self.disk().exists(&self.tree_folder(tree).join(MARK))
    }

    /// Whether somebody owns this tree at this moment. To act on it, lock it.
    pub fn is_owned(&self, tree: TreeId) -> bool {
        lock::is_held(&self.tree_folder(tree))
    }

    /// The trees that somebody has begun to delete.
    ///
    /// # Errors
    /// When the folder of the trees cannot be listed.
    pub fn deleting(&self) -> Result<Vec<TreeId>, Error> {
        let folder = self.home().join("trees");
        let entries = match self.disk().list(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(|error| Error::io("list", &*folder, error))?,
        };
        let ids = entries.iter().filter_map(|entry| entry.path.file_name()?.to_str()?.parse::<TreeId>().ok());
        Ok(ids.filter(|tree| self.is_deleting(*tree)).collect())
    }

    /// Begins to delete a tree, for good. Only its owner may. Blocks.
    ///
    /// # Errors
    /// When the disk does not take the mark. Then the tree is as it was.
    pub fn begin_deleting(&self, tree: TreeId) -> Result<(), Error> {
        let mark = self.tree_folder(tree).join(MARK);
        let failed = |source| {
            let doing = "begin to delete the tree of";
            Error::Kept { doing, file: mark.to_path_buf(), source: Arc::new(source) }
        };
        match self.disk().create_new(&mark) {
            Ok(file) => file.sync_data().and_then(|()| self.sync_way(&mark)).map_err(|error| {
                // It is there and may not be durable. Nothing is removed yet, so it can go again.
                let _ = self.disk().remove(&mark);
                failed(error)
            }),
            // Whoever made it may have been killed before it was durable.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.sync_way(&mark).map_err(failed),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes the folder of a tree that is being deleted, whatever is in it, when nothing else is left of it. Blocks.
    ///
    /// # Errors
    /// When something in it cannot be removed. The mark is still there then.
    pub fn end_deleting(&self, tree: TreeId) -> Result<(), Error> {
        let folder = self.tree_folder(tree);
        let mark = folder.join(MARK);
        let cleared = || {
            for entry in self.disk().list(&folder)? {
                if entry.path != *mark {
                    self.clear(&entry.path)?;
                }
            }
            // What is gone is gone for good before the mark goes.
            self.disk().sync_dir(&folder)?;
            remove(&**self.disk(), &mark)?;
            match remove(&**self.disk(), &folder) {
                // Somebody wanted the tree just now and has made a lock of their own. They find that there is none.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                done => done?,
            }
            self.sync_way(&folder)
        };
        cleared().map_err(|error| Error::Kept { doing: "remove", file: folder.to_path_buf(), source: Arc::new(error) })
    }

    /// Removes a file, or a folder with all that is in it. A link goes and what it leads to stays.
    fn clear(&self, path: &std::path::Path) -> io::Result<()> {
        let gone = |done: io::Result<()>| match done {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        match gone(self.disk().remove(path)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                for entry in self.disk().list(path)? {
                    self.clear(&entry.path)?;
                }
                gone(self.disk().remove(path))
            }
            done => done,
        }
    }

    /// Removes a file that was to be an agent's and never became one. Not safe from a loss of power before
    /// [`Store::settle`].
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_scrap(&self, file: &AbsPath) -> Result<(), Error> {
        remove(&**self.disk(), file).map_err(|error| Error::io("remove", &**file, error))
    }
}

#[cfg(test)]
mod tests;
