//! Finding rollouts without reading more of them than their first write.

use std::path::Path;
use std::time::SystemTime;

use protocol::{ThreadId, TreeId};
use stdx::{AbsPath, Timestamp};

use crate::error::{is_shortage, told};
use crate::line::decode_envelope;
use crate::packed::Place;
use crate::read::Begin;
use crate::source::{MAX_LINE, Source};
use crate::{Disk, Entry, Error, SessionMeta, Summary, checksum, packed, read};

/// How long a file may say nothing while its agent is being made, in milliseconds: a minute, far more than two calls
/// to the system take.
const MAKING: i64 = 60_000;

/// All rollouts there are.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Agents, ordered by file name.
    pub heads: Vec<Head>,
    /// Files whose first write is not complete.
    pub unborn: Vec<Unborn>,
    /// Files and folders that could not be read, and what is named like a rollout and is none.
    pub problems: Vec<Problem>,
}

/// An agent, by the first line of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// Who it is.
    pub meta: SessionMeta,
    /// Its file.
    pub file: AbsPath,
    /// When the file was last written.
    pub modified: Timestamp,
}

/// A file whose agent never existed, or is being made by another process at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unborn {
    /// The file.
    pub file: AbsPath,
    /// The agent's id, by the file's name.
    pub thread: ThreadId,
    /// Its tree, if the first line is complete.
    pub tree: Option<TreeId>,
}

/// Something that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What.
    pub file: AbsPath,
    /// Why.
    pub why: String,
    /// The tree that it belongs to, where something else than itself says so.
    pub tree: Option<TreeId>,
}

/// All rollouts by name.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Them, ordered by file name.
    pub files: Vec<FileFacts>,
    /// Folders that could not be listed, and what is named like a rollout and is no file.
    pub problems: Vec<Problem>,
    /// Whether every folder was listed, so that a rollout that is not here is nowhere.
    pub complete: bool,
}

/// A rollout that was listed and not opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The agent's id, by the file's name.
    pub thread: ThreadId,
    /// The file.
    pub file: AbsPath,
    /// Its length.
    pub bytes: u64,
    /// When it was last written.
    pub modified: Timestamp,
}

/// Whose file it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Identity {
    /// An agent's.
    Agent(Box<SessionMeta>),
    /// Nobody's: its first write is not complete, and nothing follows it.
    Unborn(Unborn),
    /// It cannot be told whose.
    Odd(Problem),
}

impl FileFacts {
    /// What a person is to be told of an unborn file that nobody else may claim: it does not even say of which tree it
    /// was to be, and is too old to be an agent's that is being made just now.
    pub fn stray(&self, unborn: &Unborn) -> Option<Problem> {
        let old = stdx::now().millis_since(self.modified) > MAKING;
        (unborn.tree.is_none() && old).then(|| {
            let what = if self.bytes == 0 { "is empty" } else { "breaks off in its first line" };
            Problem {
                file: self.file.clone(),
                why: format!("it {what}, so it is no agent's; it may be deleted"),
                tree: None,
            }
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl Scan {
    /// The agents of one tree, parents before children: by depth, then in the order in which they were spawned.
    pub fn tree(&self, tree: TreeId) -> Vec<Head> {
        let mut heads: Vec<Head> = self.heads.iter().filter(|head| head.meta.session_id == tree).cloned().collect();
        heads.sort_by_key(|head| head.meta.rank());
        heads
    }
}

impl SessionMeta {
    /// Orders the agents of a tree: parents before children, and siblings as they were spawned.
    pub fn rank(&self) -> impl Ord + use<> {
        (self.depth, self.spawned_by.map(|by| by.ordinal), self.timestamp, self.id)
    }
}

/// The thread id that a rollout's name carries.
pub(crate) fn thread_of(path: &Path) -> Option<ThreadId> {
    /// Length of a UUID in text.
    const ID: usize = 36;
    let name = path.file_name()?.to_str()?.strip_prefix("rollout-")?;
    let stem = name.strip_suffix(packed::ENDING).unwrap_or(name).strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(ID)?..)?.parse().ok()
}

/// Something that was passed over on the way.
enum Passed {
    /// A folder that could not be listed.
    Folder(std::io::Error),
    /// It is named like a rollout and is none.
    Odd(&'static str),
}

/// Calls `each` for every rollout, newest folder first, until it returns true. What is passed over goes to `passed`.
fn walk(
    disk: &dyn Disk,
    place: &Place,
    each: &mut dyn FnMut(ThreadId, Entry) -> Result<bool, Error>,
    passed: &mut dyn FnMut(&Path, Passed),
) -> Result<(), Error> {
    /// Year, month and day.
    const LEVELS: usize = 3;
    let sessions = &place.folder;
    let top = match disk.list(sessions) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|error| Error::io("list", &**sessions, error))?,
    };
    let mut open: Vec<(usize, Entry)> = top.into_iter().map(|entry| (1, entry)).collect();
    while let Some((level, entry)) = open.pop() {
        if let Some(thread) = thread_of(&entry.path) {
            if entry.folder {
                passed(&entry.path, Passed::Odd("a folder"));
            } else if !entry.file {
                passed(&entry.path, Passed::Odd("a link that leads nowhere, a pipe or a device"));
            } else if packed::is_packed(&entry.path) != place.packed {
                passed(&entry.path, Passed::Odd(if place.packed { "not packed" } else { "packed" }));
            } else if each(thread, entry)? {
                break;
            }
        } else if entry.folder && level <= LEVELS {
            match disk.list(&entry.path) {
                Ok(below) => open.extend(below.into_iter().map(|entry| (level + 1, entry))),
                Err(error) if is_shortage(&error) => return Err(Error::io("list", entry.path, error)),
                Err(error) => passed(&entry.path, Passed::Folder(error)),
            }
        }
    }
    Ok(())
}

/// The file whose name carries `thread`.
pub(crate) fn find(disk: &dyn Disk, place: &Place, thread: ThreadId) -> Result<Option<AbsPath>, Error> {
    let mut file = None;
    let mut each = |id, entry: Entry| {
        if id == thread {
            file = AbsPath::new(entry.path).ok();
        }
        Ok(file.is_some())
    };
    walk(disk, place, &mut each, &mut |path, passed| {
        if let Some(Problem { file, why, .. }) = problem(path, &passed) {
            tracing::warn!(%file, why, "passed over");
        }
    })?;
    Ok(file)
}

/// The first write of every file.
pub(crate) fn scan(disk: &dyn Disk, place: &Place) -> Result<Scan, Error> {
    let mut scan = Scan::default();
    let mut odd = Vec::new();
    let mut each = |thread, entry| {
        let Some(facts) = facts(thread, entry) else { return Ok(false) };
        match identify(disk, &facts)? {
            Identity::Agent(meta) => {
                scan.heads.push(Head { meta: *meta, file: facts.file, modified: facts.modified });
            }
            Identity::Unborn(unborn) => {
                scan.problems.extend(facts.stray(&unborn));
                scan.unborn.push(unborn);
            }
            Identity::Odd(problem) => scan.problems.push(problem),
        }
        Ok(false)
    };
    walk(disk, place, &mut each, &mut |path, passed| odd.extend(problem(path, &passed)))?;
    scan.problems.extend(odd);
    scan.heads.sort_by(|a, b| a.file.cmp(&b.file));
    for twin in twins(&mut scan.heads) {
        let why = format!("another file carries the same id {}", twin.meta.id);
        scan.problems.push(Problem { file: twin.file, why, tree: None });
    }
    Ok(scan)
}

fn problem(path: &Path, passed: &Passed) -> Option<Problem> {
    let why = match passed {
        Passed::Folder(error) => format!("it cannot be listed: {}", told(error)),
        Passed::Odd(what) => format!("it is named like a rollout and is {what}; move it away"),
    };
    AbsPath::new(path).ok().map(|file| Problem { file, why, tree: None })
}

fn facts(thread: ThreadId, entry: Entry) -> Option<FileFacts> {
    let (bytes, modified) = (entry.bytes, timestamp(entry.modified));
    AbsPath::new(entry.path).ok().map(|file| FileFacts { thread, file, bytes, modified })
}

/// Every file by name and length.
pub(crate) fn files(disk: &dyn Disk, place: &Place) -> Result<Files, Error> {
    let Files { mut files, mut problems, .. } = Files::default();
    let mut complete = true;
    let mut each = |thread, entry| {
        files.extend(facts(thread, entry));
        Ok(false)
    };
    walk(disk, place, &mut each, &mut |path, passed| {
        complete &= matches!(passed, Passed::Odd(_));
        problems.extend(problem(path, &passed));
    })?;
    // As text: comparing paths part by part takes as long as listing them.
    files.sort_by(|a, b| a.file.as_os_str().cmp(b.file.as_os_str()));
    Ok(Files { files, problems, complete })
}

/// Whose file it is, by its first write.
pub(crate) fn identify(disk: &dyn Disk, facts: &FileFacts) -> Result<Identity, Error> {
    let FileFacts { thread, file, .. } = facts;
    let odd = |why| Identity::Odd(Problem { file: file.clone(), why, tree: None });
    Ok(match head(disk, file) {
        Ok(Begin::Agent(meta)) if meta.id == *thread => Identity::Agent(meta),
        Ok(Begin::Agent(meta)) => odd(format!("its name does not carry its id {}", meta.id)),
        Ok(Begin::Unborn(tree)) => Identity::Unborn(Unborn { file: file.clone(), thread: *thread, tree }),
        Ok(Begin::Headless(why)) => odd(why),
        Err(error) if is_shortage(&error) => return Err(Error::io("read", &**file, error)),
        Err(error) => match packed::damage(file, &error) {
            Some(why) => odd(format!("it is damaged ({why}); put it back from a copy")),
            None => odd(format!("it cannot be read: {}", told(&error))),
        },
    })
}

/// Whether the last line of `file` is the one that a summary was made at.
pub(crate) fn ends_as(disk: &dyn Disk, file: &AbsPath, summary: &Summary) -> bool {
    let Some(start) = summary.bytes.checked_sub(summary.last_line_bytes) else { return false };
    let look = || {
        let mut line = vec![0; usize::try_from(summary.last_line_bytes).ok().filter(|len| *len <= MAX_LINE)?];
        let read = Source::piece(disk, file, start, &mut line).ok()?;
        (read == line.len()).then_some(line)
    };
    look().is_some_and(|line| {
        checksum(&line) == summary.checksum && decode_envelope(&line).is_some_and(|ordinal| ordinal == summary.ordinal)
    })
}

/// Takes out every head whose id an earlier one has.
fn twins(heads: &mut Vec<Head>) -> Vec<Head> {
    let mut seen = std::collections::HashSet::new();
    heads.extract_if(.., |head| !seen.insert(head.meta.id)).collect()
}

/// Reads a file as far as it takes to know what it begins with.
pub(crate) fn head(disk: &dyn Disk, file: &AbsPath) -> std::io::Result<Begin> {
    read::begin(&Source::open(disk, file)?)
}

fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::of(time).unwrap_or(Timestamp::EPOCH)
}

#[cfg(test)]
mod tests;
