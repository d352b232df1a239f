//! A whole file: its lines, what was passed over, and where its good part ends.
//!
//! Lines of one write count together. A write that is incomplete at the end of the file was cut off, so it never
//! happened; anywhere else what can be read of it is kept, because later lines were written in its knowledge.
//!
//! A write whose last line is there did reach its end: what is missing of it was damaged later, and the rest is kept.
//! Unless what is missing reads as zeros, which no line has: that is a page that never reached the disk.

use protocol::{ThreadId, TreeId};
use stdx::AbsPath;

use crate::line::{Bad, decode_line};
use crate::{Error, FileEnd, Line, Record, SessionMeta, State, Summary};

/// How many bad lines are described; all are counted.
const MAX_LISTED: usize = 100;

/// A line that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Why it could not be decoded.
    pub why: String,
}

/// All lines of a file.
#[derive(Clone, Debug)]
pub struct Lines {
    /// The agent.
    pub thread: ThreadId,
    /// The file.
    pub file: AbsPath,
    /// Those that could be decoded, unknown types included.
    pub lines: Vec<Line>,
    /// Those that could not; at most 100 are described.
    pub bad: Vec<BadLine>,
    /// How many could not.
    pub skipped: usize,
    /// How many have a type that this version does not know.
    pub unknown: usize,
    /// Bytes of an unfinished write at the end.
    pub torn: u64,
}

/// What a file says, and what was passed over.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What its lines come to.
    pub state: State,
    /// The file.
    pub file: AbsPath,
    /// Lines that could not be decoded.
    pub skipped: usize,
    /// Lines of a type that this version does not know.
    pub unknown: usize,
    /// Bytes of an unfinished write at the end. They were cut off if the file was opened for writing.
    pub torn: u64,
    /// Where its good part ends.
    pub end: FileEnd,
}

impl Loaded {
    /// What lists need of it.
    pub fn summary(&self) -> Summary {
        self.state.summary(&self.end)
    }
}

/// What was found besides the lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bad: Vec<BadLine>,
    pub(crate) skipped: usize,
    pub(crate) unknown: usize,
    /// Bytes up to the end of the last whole write.
    pub(crate) good: u64,
    pub(crate) torn: u64,
    /// The highest ordinal up to there, that of undecodable lines included.
    pub(crate) last: u64,
}

/// A write whose lines have not all been seen.
struct Group {
    start: u64,
    before: Tally,
    /// The number that the next line must have.
    next: u32,
    count: u32,
    /// Whether its last line was seen.
    ended: bool,
    /// Whether a page of it never reached the disk.
    hole: bool,
    held: Vec<Line>,
}

/// What a file begins with.
pub(crate) enum Begin {
    /// An agent.
    Agent(Box<SessionMeta>),
    /// A first write that was cut off, with nothing after it; of this tree, if it says so.
    Unborn(Option<TreeId>),
    /// Something that does not say whose file it is, and why.
    Headless(String),
}

/// Feeds the lines of every whole write to `each`, in order.
pub(crate) fn read(bytes: &[u8], mut each: impl FnMut(Line)) -> Tally {
    let mut tally = Tally::default();
    let mut open: Option<Group> = None;
    // Whether zeros stand where the first lines of a write may have been.
    let mut hole = false;
    let mut offset = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if line.last() != Some(&b'\n') {
            break;
        }
        let start = offset;
        offset += line.len() as u64;
        let decoded = decode_line(line);
        let part = match &decoded {
            Ok(line) => line.part,
            Err(bad) if bad.ordinal.is_some() => bad.part,
            // Not even an envelope: it may belong to anything, so it ends no group and completes none.
            Err(_) => {
                let zeros = line.contains(&0);
                match &mut open {
                    Some(group) if !group.ended => group.hole |= zeros,
                    _ => hole |= zeros,
                }
                tally.note(start, decoded);
                continue;
            }
        };
        let goes_on = match (&open, part) {
            (Some(group), Some([index, count])) => !group.ended && count == group.count && index > 1,
            _ => false,
        };
        if !goes_on {
            open.take().into_iter().flat_map(|group| group.held).for_each(&mut each);
            open = part.filter(|[_, count]| *count > 1).map(|[_, count]| Group {
                start,
                before: tally.clone(),
                next: 1,
                count,
                ended: false,
                hole: hole && part.is_some_and(|[index, _]| index > 1),
                held: Vec::new(),
            });
            hole = false;
        }
        let decoded = tally.note(start, decoded);
        match (&mut open, part) {
            (Some(group), Some([index, _])) => {
                group.held.extend(decoded);
                if index == group.next {
                    group.next += 1;
                }
                group.ended |= index == group.count;
                if group.next > group.count {
                    open.take().into_iter().flat_map(|group| group.held).for_each(&mut each);
                }
            }
            _ => decoded.into_iter().for_each(&mut each),
        }
    }
    match open {
        Some(group) if group.ended && !group.hole => group.held.into_iter().for_each(&mut each),
        Some(group) => {
            tally = group.before;
            offset = group.start;
        }
        None => {}
    }
    tally.good = offset;
    tally.torn = bytes.len() as u64 - offset;
    tally
}

impl Tally {
    /// Counts a line, and gives it an ordinal if its writer did not.
    fn note(&mut self, offset: u64, decoded: Result<Line, Bad>) -> Option<Line> {
        match decoded {
            Ok(mut line) => {
                if line.ordinal == 0 {
                    line.ordinal = self.last + 1;
                }
                self.last = self.last.max(line.ordinal);
                self.unknown += usize::from(line.record.is_unknown());
                Some(line)
            }
            Err(bad) => {
                self.last = self.last.max(bad.ordinal.unwrap_or(0));
                self.skipped += 1;
                if self.bad.len() < MAX_LISTED {
                    self.bad.push(BadLine { offset, why: bad.why });
                }
                None
            }
        }
    }
}

/// All lines of `file`, whoever wrote it.
pub(crate) fn lines(thread: ThreadId, file: AbsPath, bytes: &[u8]) -> Lines {
    let mut lines = Vec::new();
    let tally = read(bytes, |line| lines.push(line));
    Lines { thread, file, lines, bad: tally.bad, skipped: tally.skipped, unknown: tally.unknown, torn: tally.torn }
}

/// What a file begins with, when this is the first record of its whole writes.
fn begin(bytes: &[u8], first: Option<Record>) -> Begin {
    let none = first.is_none();
    if let Some(Record::SessionMeta(meta)) = first {
        return Begin::Agent(meta);
    }
    let Some(line) = bytes.split_inclusive(|b| *b == b'\n').next().filter(|line| line.ends_with(b"\n")) else {
        return Begin::Unborn(None);
    };
    match decode_line(line) {
        Ok(Line { record: Record::SessionMeta(meta), .. }) => Begin::Unborn(Some(meta.session_id)),
        Ok(Line { record, .. }) => {
            let kind = stdx::one_line(record.kind(), 40);
            Begin::Headless(format!("it begins with a `{kind}` line, not with `session_meta`; move it away"))
        }
        Err(_) if none && line.contains(&0) => Begin::Unborn(None),
        Err(bad) => Begin::Headless(format!(
            "its first line, which should be `session_meta`, cannot be read ({}), so neither its agent nor its tree can \
             be told; mend that line or put the file back from a copy",
            bad.why
        )),
    }
}

/// What a file of which these are the first bytes, or all, begins with; nothing when that takes more of them.
pub(crate) fn begins(bytes: &[u8], all: bool) -> Option<Begin> {
    let first = |bytes| {
        let mut first = None;
        read(bytes, |line| first = first.take().or(Some(line.record)));
        first
    };
    // Its first write decides, unless something in it is missing.
    let record = first(first_write(bytes)).or_else(|| first(bytes));
    (all || record.is_some()).then(|| begin(bytes, record))
}

/// As many lines as the first one says belong together, or all there are.
fn first_write(bytes: &[u8]) -> &[u8] {
    let mut ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
    let Some(end) = ends.next() else { return bytes };
    let count = decode_line(&bytes[..end]).ok().and_then(|line| line.part).map_or(1, |[_, count]| count as usize);
    let end = if count > 1 { ends.nth(count - 2) } else { Some(end) };
    end.map_or(bytes, |end| &bytes[..end])
}

/// What `file` comes to.
pub(crate) fn fold(file: &AbsPath, bytes: &[u8]) -> Result<Loaded, Error> {
    let mut state: Option<State> = None;
    let mut first = None;
    let tally = read(bytes, |line| match &mut state {
        Some(state) => state.apply(&line),
        None if first.is_none() => {
            if let Record::SessionMeta(meta) = &line.record {
                let mut fresh = State::new((**meta).clone());
                fresh.apply(&line);
                state = Some(fresh);
            }
            first = Some(line.record);
        }
        None => {}
    });
    let Some(state) = state else {
        let file = file.to_path_buf();
        return Err(match begin(bytes, first) {
            Begin::Headless(why) => Error::Headless { file, why },
            Begin::Agent(_) | Begin::Unborn(_) => Error::Unborn { file },
        });
    };
    let end = FileEnd::found(file, bytes, &tally);
    let Tally { skipped, unknown, torn, .. } = tally;
    Ok(Loaded { state, file: file.clone(), skipped, unknown, torn, end })
}

#[cfg(test)]
mod tests;
