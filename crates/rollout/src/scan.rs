//! Finding rollouts without reading more of them than their first write.

use std::path::Path;
use std::time::SystemTime;

use protocol::{ThreadId, TreeId};
use stdx::{AbsPath, Timestamp};

use crate::line::{decode_envelope, decode_line};
use crate::{Disk, Entry, Error, Record, SessionMeta, Summary, checksum, read};

/// Bytes read of a file at first; doubled until its first write is in.
const HEAD: u64 = 16 << 10;

/// All rollouts there are.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Agents, ordered by file name.
    pub heads: Vec<Head>,
    /// Files whose first write is not complete.
    pub unborn: Vec<Unborn>,
    /// Files and folders that could not be read.
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
}

/// All rollouts by name.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Them, ordered by file name.
    pub files: Vec<FileFacts>,
    /// Folders that could not be listed.
    pub problems: Vec<Problem>,
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
    /// Nobody's: its first write is not complete.
    Unborn(Unborn),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

enum Found {
    Agent(Box<SessionMeta>),
    Unborn(Option<TreeId>),
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
    let stem = path.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(ID)?..)?.parse().ok()
}

/// Calls `each` for every rollout, newest folder first, until it returns true. What cannot be listed goes to `failed`.
fn walk(
    disk: &dyn Disk,
    sessions: &AbsPath,
    each: &mut dyn FnMut(ThreadId, Entry) -> bool,
    failed: &mut dyn FnMut(&Path, std::io::Error),
) -> Result<(), Error> {
    /// Year, month and day.
    const LEVELS: usize = 3;
    let top = match disk.list(sessions) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|error| Error::io("list", &**sessions, error))?,
    };
    let mut open: Vec<(usize, Entry)> = top.into_iter().map(|entry| (1, entry)).collect();
    while let Some((level, entry)) = open.pop() {
        if entry.folder && level <= LEVELS {
            match disk.list(&entry.path) {
                Ok(below) => open.extend(below.into_iter().map(|entry| (level + 1, entry))),
                Err(error) => failed(&entry.path, error),
            }
        } else if entry.file
            && let Some(thread) = thread_of(&entry.path)
            && each(thread, entry)
        {
            break;
        }
    }
    Ok(())
}

/// The file whose name carries `thread`.
pub(crate) fn find(disk: &dyn Disk, sessions: &AbsPath, thread: ThreadId) -> Result<Option<AbsPath>, Error> {
    let mut file = None;
    let mut each = |id, entry: Entry| {
        if id == thread {
            file = AbsPath::new(entry.path).ok();
        }
        file.is_some()
    };
    walk(disk, sessions, &mut each, &mut |folder, error| {
        tracing::warn!(folder = %folder.display(), %error, "passed over a folder of rollouts");
    })?;
    Ok(file)
}

/// The first write of every file.
pub(crate) fn scan(disk: &dyn Disk, sessions: &AbsPath) -> Result<Scan, Error> {
    let mut scan = Scan::default();
    let mut broken = Vec::new();
    let mut each = |thread, entry: Entry| {
        let Ok(file) = AbsPath::new(entry.path) else { return false };
        match identify(disk, thread, &file) {
            Ok(Identity::Agent(meta)) => {
                scan.heads.push(Head { meta: *meta, file, modified: timestamp(entry.modified) });
            }
            Ok(Identity::Unborn(unborn)) => scan.unborn.push(unborn),
            Err(problem) => scan.problems.push(problem),
        }
        false
    };
    walk(disk, sessions, &mut each, &mut |folder, error| broken.extend(unlisted(folder, &error)))?;
    scan.problems.extend(broken);
    scan.heads.sort_by(|a, b| a.file.cmp(&b.file));
    for twin in twins(&mut scan.heads) {
        let why = format!("another file carries the same id {}", twin.meta.id);
        scan.problems.push(Problem { file: twin.file, why });
    }
    Ok(scan)
}

fn unlisted(folder: &Path, error: &std::io::Error) -> Option<Problem> {
    AbsPath::new(folder).ok().map(|file| Problem { file, why: error.to_string() })
}

/// Every file by name and length.
pub(crate) fn files(disk: &dyn Disk, sessions: &AbsPath) -> Result<Files, Error> {
    let Files { mut files, mut problems } = Files::default();
    let mut each = |thread, entry: Entry| {
        let modified = timestamp(entry.modified);
        let facts = |file| FileFacts { thread, file, bytes: entry.bytes, modified };
        files.extend(AbsPath::new(entry.path).ok().map(facts));
        false
    };
    walk(disk, sessions, &mut each, &mut |folder, error| problems.extend(unlisted(folder, &error)))?;
    files.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(Files { files, problems })
}

/// Whose file it is, by its first write.
pub(crate) fn identify(disk: &dyn Disk, thread: ThreadId, file: &AbsPath) -> Result<Identity, Problem> {
    let problem = |why| Problem { file: file.clone(), why };
    match head(disk, file).map_err(problem)? {
        Found::Agent(meta) if meta.id == thread => Ok(Identity::Agent(meta)),
        Found::Agent(meta) => Err(problem(format!("its name does not carry its id {}", meta.id))),
        Found::Unborn(tree) => Ok(Identity::Unborn(Unborn { file: file.clone(), thread, tree })),
    }
}

/// Whether the last line of `file` is the one that a summary was made at.
pub(crate) fn ends_as(disk: &dyn Disk, file: &AbsPath, summary: &Summary) -> bool {
    let Some(start) = summary.bytes.checked_sub(summary.last_line_bytes) else { return false };
    let Ok(len) = usize::try_from(summary.last_line_bytes) else { return false };
    let Ok(line) = disk.read_part(file, start, len) else { return false };
    line.len() == len
        && checksum(&line) == summary.checksum
        && decode_envelope(&line).is_some_and(|ordinal| ordinal == summary.ordinal)
}

/// Takes out every head whose id an earlier one has.
fn twins(heads: &mut Vec<Head>) -> Vec<Head> {
    let mut seen = std::collections::HashSet::new();
    heads.extract_if(.., |head| !seen.insert(head.meta.id)).collect()
}

/// Reads a file as far as its first write goes.
fn head(disk: &dyn Disk, file: &AbsPath) -> Result<Found, String> {
    let mut max = HEAD;
    loop {
        let bytes = disk.read_head(file, max).map_err(|error| error.to_string())?;
        let whole = (bytes.len() as u64) < max;
        if let Some(found) = first_write(&bytes)? {
            return Ok(found);
        }
        if whole {
            return Ok(Found::Unborn(first_line(&bytes)?.map(|(meta, _)| meta.session_id)));
        }
        max *= 2;
    }
}

/// The first line and how many lines its write has, if the line is complete.
fn first_line(bytes: &[u8]) -> Result<Option<(Box<SessionMeta>, usize)>, String> {
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else { return Ok(None) };
    let line = decode_line(&bytes[..end]).map_err(|bad| bad.why)?;
    let count = line.part.map_or(1, |[_, count]| count as usize);
    match line.record {
        Record::SessionMeta(meta) => Ok(Some((meta, count))),
        other => Err(format!("it begins with a `{}` line, not with `session_meta`", stdx::one_line(other.kind(), 40))),
    }
}

/// The first line, if its whole write is there.
fn first_write(bytes: &[u8]) -> Result<Option<Found>, String> {
    let Some((meta, count)) = first_line(bytes)? else { return Ok(None) };
    let breaks = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at);
    let Some(end) = breaks.into_iter().nth(count.saturating_sub(1)) else { return Ok(None) };
    let mut born = false;
    read::read(&bytes[..=end], |_| born = true);
    Ok(Some(if born { Found::Agent(meta) } else { Found::Unborn(Some(meta.session_id)) }))
}

fn timestamp(time: SystemTime) -> Timestamp {
    jiff::Timestamp::try_from(time)
        .ok()
        .and_then(|time| Timestamp::parse(&time.to_string()).ok())
        .unwrap_or(Timestamp::EPOCH)
}

#[cfg(test)]
mod tests;
