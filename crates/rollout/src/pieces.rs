//! Where the rollouts of a tree are: in use below `sessions`, or packed below `archived_sessions`.
//!
//! A kill while a tree is archived or brought back leaves some of its files here and some there, and perhaps one in
//! both places. Then the one in use counts, because only that may have grown; the other is a copy of it, or was.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use protocol::{ThreadId, TreeId};
use stdx::AbsPath;

use crate::packed::{ENDING, Place, is_packed};
use crate::read::Begin;
use crate::{Entry, Error, FileFacts, Files, Identity, Problem, Scan, SessionMeta, Store, packed, scan};

/// What the name of a file ends in that was set aside, after that of a rollout.
const ASIDE: &str = ".jsonl.unborn";

/// The files of one agent.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Who it is.
    pub meta: SessionMeta,
    /// Its rollout in use.
    pub plain: Option<FileFacts>,
    /// Its packed rollout. Where there is a plain one too, that one counts.
    pub packed: Option<FileFacts>,
}

/// The files of one tree, in both places.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// Parents before children, siblings as they were spawned.
    pub pieces: Vec<Piece>,
    /// Packed files of this tree, by their labels, whose beginning cannot be unpacked.
    pub damaged: Vec<FileFacts>,
    /// Files that were to be agents of this tree and never became any.
    pub scraps: Vec<AbsPath>,
    /// What could not be read, of whatever tree.
    pub problems: Vec<Problem>,
}

impl Piece {
    /// Whether it is packed and nowhere in use.
    pub fn is_archived(&self) -> bool {
        self.plain.is_none()
    }

    /// Bytes on the disk.
    pub fn bytes(&self) -> u64 {
        self.plain.iter().chain(&self.packed).map(|facts| facts.bytes).sum()
    }
}

impl Pieces {
    /// Whether any agent's rollout is packed and nowhere in use: nobody may drive this tree.
    pub fn any_archived(&self) -> bool {
        !self.damaged.is_empty() || self.pieces.iter().any(Piece::is_archived)
    }

    /// Whether nothing is left to be packed.
    pub fn all_archived(&self) -> bool {
        self.pieces.iter().all(Piece::is_archived)
    }

    /// Bytes on the disk.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(Piece::bytes).sum()
    }
}

/// Adds what only the second place has.
fn joined(used: Files, mut archived: Files) -> Files {
    let here: HashSet<ThreadId> = used.files.iter().map(|facts| facts.thread).collect();
    archived.files.retain(|facts| !here.contains(&facts.thread));
    let Files { mut files, mut problems, complete } = used;
    files.append(&mut archived.files);
    files.sort_by(|a, b| a.file.cmp(&b.file));
    problems.append(&mut archived.problems);
    Files { files, problems, complete: complete && archived.complete }
}

impl Store {
    /// Where the rollouts of archived trees are.
    pub(crate) fn archive_place(&self) -> Place {
        Place { folder: self.home().join("archived_sessions"), packed: true }
    }

    /// The name of the same rollout in the other place.
    pub(crate) fn other_place(&self, file: &AbsPath) -> Option<AbsPath> {
        let (used, archived) = (self.sessions().folder, self.archive_place().folder);
        if is_packed(file) {
            let name = file.strip_prefix(&*archived).ok()?.to_str()?.strip_suffix(ENDING)?;
            Some(used.join(name))
        } else {
            let mut name = file.strip_prefix(&*used).ok()?.as_os_str().to_owned();
            name.push(ENDING);
            Some(archived.join(name))
        }
    }

    /// Where a file that was listed is now: whoever archives its tree, or brings it back, may just have moved it.
    pub(crate) fn present(&self, file: &AbsPath) -> AbsPath {
        let moved = || self.other_place(file).filter(|other| self.disk().exists(other));
        if self.disk().exists(file) { file.clone() } else { moved().unwrap_or_else(|| file.clone()) }
    }

    pub(crate) fn present_facts(&self, facts: &FileFacts) -> FileFacts {
        FileFacts { file: self.present(&facts.file), ..facts.clone() }
    }

    /// Whose a packed file says it is in its label, also when nothing of it can be unpacked.
    pub fn labelled(&self, packed: &FileFacts) -> Option<TreeId> {
        let label = if is_packed(&packed.file) { packed::label(&**self.disk(), packed) } else { None };
        label.map(|label| TreeId::from(uuid::Uuid::from_u128(label.owner)))
    }

    /// Whether an agent's rollout, which was `file`, is in either place.
    pub fn is_somewhere(&self, thread: ThreadId, file: &AbsPath) -> bool {
        // A row that came with a copied home names the file of the original.
        file.starts_with(self.home())
            && scan::thread_of(file) == Some(thread)
            && self.disk().exists(&self.present(file))
    }

    pub(crate) fn find_anywhere(&self, thread: ThreadId) -> Result<Option<AbsPath>, Error> {
        match scan::find(&**self.disk(), &self.sessions(), thread)? {
            Some(file) => Ok(Some(file)),
            None => scan::find(&**self.disk(), &self.archive_place(), thread),
        }
    }

    pub(crate) fn files_anywhere(&self) -> Result<Files, Error> {
        let used = scan::files(&**self.disk(), &self.sessions())?;
        Ok(joined(used, scan::files(&**self.disk(), &self.archive_place())?))
    }

    pub(crate) fn scan_anywhere(&self) -> Result<Scan, Error> {
        let mut scan = scan::scan(&**self.disk(), &self.sessions())?;
        let archived = scan::scan(&**self.disk(), &self.archive_place())?;
        let odd = scan.problems.iter().filter_map(|problem| scan::thread_of(&problem.file));
        let unborn = scan.unborn.iter().map(|unborn| unborn.thread);
        let here: HashSet<ThreadId> = scan.heads.iter().map(|head| head.meta.id).chain(unborn).chain(odd).collect();
        scan.heads.extend(archived.heads.into_iter().filter(|head| !here.contains(&head.meta.id)));
        scan.heads.sort_by(|a, b| a.file.cmp(&b.file));
        scan.unborn.extend(archived.unborn);
        scan.problems.extend(archived.problems);
        Ok(scan)
    }

    /// The files of a tree, by their first lines, wherever they are. Files are read, no mirror is asked. Under the lock
    /// of the tree nothing about this changes, but for files that its owner makes.
    ///
    /// # Errors
    /// As [`Store::scan`].
    pub fn pieces(&self, tree: TreeId) -> Result<Pieces, Error> {
        let mut found = Pieces::default();
        let mut both: BTreeMap<ThreadId, [Option<FileFacts>; 2]> = BTreeMap::new();
        for (place, at) in [(self.sessions(), 0), (self.archive_place(), 1)] {
            let Files { files, problems, .. } = scan::files(&**self.disk(), &place)?;
            found.problems.extend(problems);
            for facts in files {
                let files = both.entry(facts.thread).or_default();
                files[at] = Some(facts);
            }
        }
        for [plain, away] in both.into_values() {
            let mut whose = None;
            for facts in plain.iter().chain(&away) {
                match scan::identify(&**self.disk(), facts)? {
                    Identity::Agent(meta) => {
                        whose = Some(meta);
                        break;
                    }
                    Identity::Unborn(unborn) if unborn.tree == Some(tree) => found.scraps.push(unborn.file),
                    Identity::Unborn(_) => {}
                    Identity::Odd(problem) => {
                        found.damaged.extend((self.labelled(facts) == Some(tree)).then(|| facts.clone()));
                        found.problems.push(problem);
                    }
                }
            }
            if let Some(meta) = whose.filter(|meta| meta.session_id == tree) {
                found.pieces.push(Piece { meta: *meta, plain, packed: away });
            }
        }
        found.pieces.sort_by_cached_key(|piece| piece.meta.rank());
        self.set_aside_of(tree, &mut found.scraps)?;
        Ok(found)
    }

    /// Files of this tree that were set aside.
    fn set_aside_of(&self, tree: TreeId, into: &mut Vec<AbsPath>) -> Result<(), Error> {
        for entry in self.below(&self.sessions().folder)? {
            let Ok(file) = AbsPath::new(entry.path) else { continue };
            let named = file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(ASIDE));
            if named
                && entry.file
                && let Ok(Begin::Unborn(Some(of))) = scan::head(&**self.disk(), &file)
                && of == tree
            {
                into.push(file);
            }
        }
        Ok(())
    }

    /// Everything in the folders of the days.
    fn below(&self, sessions: &Path) -> Result<Vec<Entry>, Error> {
        /// Year, month and day.
        const LEVELS: usize = 3;
        let mut level: Vec<Entry> = Vec::new();
        let mut folders = vec![sessions.to_path_buf()];
        for _ in 0..=LEVELS {
            level.clear();
            for folder in folders.drain(..) {
                match self.disk().list(&folder) {
                    Ok(entries) => level.extend(entries),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(Error::io("list", folder, error)),
                }
            }
            folders.extend(level.iter().filter(|entry| entry.folder).map(|entry| entry.path.clone()));
        }
        Ok(level)
    }
}
