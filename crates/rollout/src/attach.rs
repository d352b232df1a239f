//! Texts that are too long for a line: the whole body of a mail that was cut.

use protocol::{Mail, MailId, TreeId};
use stdx::AbsPath;

use crate::{Error, Store};

/// Folder of such texts below a tree's own.
const FOLDER: &str = "mail";

/// How the name of one ends that is not whole yet.
const UNFINISHED: &str = ".tmp";

impl Store {
    /// Where the whole body of a mail is, if its line does not hold it: in this home, whatever home it was written in.
    pub fn whole(&self, mail: &Mail) -> Option<AbsPath> {
        let written = mail.whole.as_ref()?;
        let here = written.file_name().map(|name| self.tree_folder(mail.tree).join(FOLDER).join(name));
        Some(here.filter(|here| self.disk().exists(here)).unwrap_or_else(|| written.clone()))
    }

    /// What is wrong with the file that holds the whole body of a mail, if there has to be one.
    pub fn lacks_whole(&self, mail: &Mail) -> Option<String> {
        let file = self.whole(mail)?;
        let head = self.disk().open_read(&file).and_then(|source| {
            let mut head = vec![0; mail.body.len() + 1];
            let mut filled = 0;
            while filled < head.len() {
                match source.read_at(filled as u64, &mut head[filled..])? {
                    0 => break,
                    read => filled += read,
                }
            }
            head.truncate(filled);
            Ok(head)
        });
        match head {
            Ok(head) if head.len() > mail.body.len() && head.starts_with(mail.body.as_bytes()) => None,
            Ok(_) => {
                Some(format!("the whole text of mail {} is not what `{file}` holds; put it back from a copy", mail.id))
            }
            Err(error) => Some(format!("the whole text of mail {} cannot be read from `{file}`: {error}", mail.id)),
        }
    }

    /// Writes the whole body of a mail into a file of its own, on the disk with its folder when this returns. The same
    /// id again is the same text, and leaves the file as it is. Blocks.
    ///
    /// # Errors
    /// When the disk did not take it.
    pub fn attach(&self, tree: TreeId, mail: MailId, text: &str) -> Result<AbsPath, Error> {
        let disk = self.disk();
        let folder = self.tree_folder(tree).join(FOLDER);
        let file = folder.join(format!("{mail}.txt"));
        // The way to it as well: a path in a mail must not lead nowhere after a power loss.
        let sync_way = || {
            let mut way = Some(folder.clone());
            while let Some(at) = way.filter(|at| at.starts_with(self.home().as_path())) {
                disk.sync_dir(&at)?;
                way = at.parent();
            }
            Ok(())
        };
        if disk.exists(&file) {
            // Whoever wrote it may have been killed before it synced the way.
            sync_way().map_err(|error| Error::io("sync", &*file, error))?;
            return Ok(file);
        }
        if !disk.exists(&folder) {
            disk.create_dir_all(&folder).map_err(|error| Error::io("make", &*folder, error))?;
        }
        // A name of its own first: a file that is there under the final name is whole.
        let unfinished = folder.join(format!("{mail}.{}{UNFINISHED}", protocol::Token::new()));
        let written = (|| {
            let handle = disk.create_new(&unfinished)?;
            handle.write_all(text.as_bytes())?;
            handle.sync_data()?;
            disk.rename(&unfinished, &file)?;
            sync_way()
        })();
        if let Err(error) = written {
            // What is left of it is a stray temporary file; the error that matters is the first one.
            let _ = disk.remove(&unfinished);
            return Err(Error::io("write", &*file, error));
        }
        Ok(file)
    }

    /// Removes what a killed process left of texts that it had not written whole; nothing points to them. Only the
    /// owner of the tree may do so.
    ///
    /// # Errors
    /// When the folder cannot be listed, or a file not be removed.
    pub fn sweep_attachments(&self, tree: TreeId) -> Result<(), Error> {
        let disk = self.disk();
        let folder = self.tree_folder(tree).join(FOLDER);
        if !disk.exists(&folder) {
            return Ok(());
        }
        let entries = disk.list(&folder).map_err(|error| Error::io("list", &*folder, error))?;
        let unfinished = |path: &std::path::Path| path.to_string_lossy().ends_with(UNFINISHED);
        for entry in entries.iter().filter(|entry| entry.file && unfinished(&entry.path)) {
            disk.remove(&entry.path).map_err(|error| Error::io("remove", &entry.path, error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealDisk;
    use crate::fixture::{FaultDisk, Home, Op};
    use protocol::ThreadId;
    use std::sync::Arc;

    #[test]
    fn a_text_is_written_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(AbsPath::new(folder.path()).unwrap(), Arc::new(RealDisk));
        let (tree, mail) = (TreeId::from(ThreadId::new()), MailId::new());
        let text = "ä".repeat(100_000);
        let file = store.attach(tree, mail, &text).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(store.attach(tree, mail, "another").unwrap(), file);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_kill_left_of_a_text_is_swept_and_whole_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(AbsPath::new(folder.path()).unwrap(), Arc::new(RealDisk));
        let (tree, mail) = (TreeId::from(ThreadId::new()), MailId::new());
        store.sweep_attachments(tree).unwrap();
        let file = store.attach(tree, mail, "whole").unwrap();
        std::fs::write(file.with_extension("0198.tmp"), "who").unwrap();
        store.sweep_attachments(tree).unwrap();
        let left: Vec<_> =
            std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [file.to_path_buf()]);
    }

    #[test]
    fn a_text_that_is_there_is_made_reachable_again() {
        let disk = FaultDisk::default();
        let home = Home::on(Arc::new(disk.clone()));
        let (tree, mail) = (TreeId::from(ThreadId::new()), MailId::new());
        home.store.attach(tree, mail, "text").unwrap();
        // Its folder, the tree's, that of all trees, and the home.
        assert_eq!(disk.count(Op::SyncDir), 4);
        home.store.attach(tree, mail, "text").unwrap();
        assert_eq!((disk.count(Op::SyncDir), disk.count(Op::Write)), (8, 1));
    }
}
