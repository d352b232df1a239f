//! Reading a file: its lines, what was passed over, and where its good part ends.
//!
//! In memory are the line that is read and the lines of a write that is not complete yet, however long the file is.
//!
//! Lines of one write count together. A write that is incomplete at the end of the file was cut off, so it never
//! happened; anywhere else what can be read of it is kept, because later lines were written in its knowledge.
//!
//! A write whose last line is there did reach its end: what is missing of it was damaged later, and the rest is kept.
//! Unless what is missing reads as zeros, which no line has: that is a page that never reached the disk.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;

use protocol::{Item, MailId, TaskEnd, TaskId, ThreadId, TreeId};
use serde_json::value::RawValue;
use stdx::AbsPath;

use crate::error::lost;
use crate::line::{Bad, decode_line};
use crate::source::{MAX_LINE, RawLine, Source, Walk};
use crate::{Error, FORMAT, FileEnd, Forked, Lack, Line, Record, SessionMeta, State, Summary, back, checksum};

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
    /// Where reading began, in bytes: at the newest compaction, or at 0. Of what stands before it only the first line
    /// was read, so nothing before it is counted.
    pub from: u64,
    /// Where its good part ends.
    pub end: FileEnd,
    /// What of the conversation that it was forked from is lost, if its own was kept.
    pub lack: Option<Lack>,
}

impl Loaded {
    /// What lists need of it.
    pub fn summary(&self) -> Summary {
        self.state.summary(&self.end)
    }
}

/// What was found besides the lines.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Lines that could not be decoded; at most 100 are described.
    pub bad: Vec<BadLine>,
    /// How many could not.
    pub skipped: usize,
    /// How many have a type that this version does not know.
    pub unknown: usize,
    /// Bytes up to the end of the last whole write.
    pub good: u64,
    /// Bytes of an unfinished write at the end.
    pub torn: u64,
    /// The highest ordinal up to there, that of undecodable lines included.
    pub last: u64,
    /// The last line up to there: where it begins, and its length.
    pub(crate) last_line: (u64, u64),
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

/// Which lines are decoded, by their type.
pub(crate) type Wanted = fn(&str) -> bool;

/// Feeds the lines of every whole write from `from` on to `each`, in order, until it has seen enough. Lines that are not
/// wanted come as ones of a type that nobody knows.
pub(crate) fn read(
    source: &Source,
    from: u64,
    wanted: Wanted,
    mut each: impl FnMut(Line) -> ControlFlow<()>,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut open: Option<Group> = None;
    // Whether zeros stand where the first lines of a write may have been.
    let mut hole = false;
    let mut offset = from;
    let mut walk = Walk::new(source, from);
    while let Some(line) = walk.next()? {
        let start = line.offset;
        offset = start + line.bytes;
        let place = (start, line.bytes);
        let decoded = decoded(&line, wanted);
        let part = match &decoded {
            Ok(line) => line.part,
            Err(bad) if bad.ordinal.is_some() => bad.part,
            // Not even an envelope: it may belong to anything, so it ends no group and completes none.
            Err(_) => {
                let zeros = line.has_zeros();
                match &mut open {
                    Some(group) if !group.ended => group.hole |= zeros,
                    _ => hole |= zeros,
                }
                tally.note(place, decoded);
                continue;
            }
        };
        let goes_on = match (&open, part) {
            (Some(group), Some([index, count])) => !group.ended && count == group.count && index > 1,
            _ => false,
        };
        if !goes_on {
            if fed(open.take(), &mut each).is_break() {
                return Ok(tally);
            }
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
        let decoded = tally.note(place, decoded);
        let flow = match (&mut open, part) {
            (Some(group), Some([index, _])) => {
                group.held.extend(decoded);
                if index == group.next {
                    group.next += 1;
                }
                group.ended |= index == group.count;
                if group.next > group.count { fed(open.take(), &mut each) } else { ControlFlow::Continue(()) }
            }
            _ => decoded.map_or(ControlFlow::Continue(()), &mut each),
        };
        if flow.is_break() {
            return Ok(tally);
        }
    }
    match open {
        // It is over either way.
        Some(group) if group.ended && !group.hole => drop(fed(Some(group), &mut each)),
        Some(group) => {
            tally = group.before;
            offset = group.start;
        }
        None => {}
    }
    tally.good = offset;
    tally.torn = walk.end() - offset;
    Ok(tally)
}

/// Hands out what a write has held back.
fn fed(group: Option<Group>, each: &mut impl FnMut(Line) -> ControlFlow<()>) -> ControlFlow<()> {
    group.into_iter().flat_map(|group| group.held).try_for_each(each)
}

/// A line, if it is wanted; otherwise what its front says of it.
fn decoded(line: &RawLine<'_>, wanted: Wanted) -> Result<Line, Bad> {
    let front = line.front();
    if !line.whole {
        let why = format!("it is longer than the {} MiB that a line may have", MAX_LINE >> 20);
        let part = front.and_then(|front| front.part).filter(|[index, count]| (1..=*count).contains(index));
        return Err(Bad { ordinal: front.map(|front| front.ordinal), part, why });
    }
    match front.filter(|front| !wanted(front.kind)) {
        Some(front) => {
            let record = Record::Other { kind: String::new(), payload: RawValue::NULL.to_owned() };
            Ok(Line { timestamp: stdx::Timestamp::EPOCH, ordinal: front.ordinal, part: front.part, record })
        }
        None => decode_line(line.text),
    }
}

/// A line, whatever it says; none when it cannot be read.
pub(crate) fn all_decoded(line: &RawLine<'_>) -> Option<Line> {
    decoded(line, all).ok()
}

/// Every line is wanted.
pub(crate) fn all(_: &str) -> bool {
    true
}

impl Tally {
    /// Counts a line, and gives it an ordinal if its writer did not.
    fn note(&mut self, place: (u64, u64), decoded: Result<Line, Bad>) -> Option<Line> {
        self.last_line = place;
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
                    self.bad.push(BadLine { offset: place.0, why: bad.why });
                }
                None
            }
        }
    }
}

/// All lines of `file`, whoever wrote it.
pub(crate) fn lines(thread: ThreadId, file: AbsPath, source: &Source) -> io::Result<Lines> {
    let mut lines = Vec::new();
    let Tally { bad, skipped, unknown, torn, .. } = read(source, 0, all, |line| {
        lines.push(line);
        ControlFlow::Continue(())
    })?;
    Ok(Lines { thread, file, lines, bad, skipped, unknown, torn })
}

/// Every mail that was ever accepted.
pub(crate) fn known(source: &Source) -> io::Result<HashSet<MailId>> {
    let mut known = HashSet::new();
    // The newest compaction may name all of it.
    let mut from = 0;
    if let Some(newest) = back::newest(source)?
        && let Some(named) = back::known(source, newest)?
    {
        known.extend(named);
        from = newest;
    }
    let wanted = |kind: &str| kind == "mail";
    read(source, from, wanted, |line| {
        if let Record::Mail(mail) = line.record {
            known.insert(mail.id);
        }
        ControlFlow::Continue(())
    })?;
    Ok(known)
}

/// How a task ended. The first end counts.
pub(crate) fn ended(source: &Source, task: TaskId) -> io::Result<Option<TaskEnd>> {
    let mut end = None;
    let wanted = |kind: &str| kind == "task_done";
    read(source, 0, wanted, |line| match line.record {
        Record::TaskDone(done) if done.task == task => {
            end = Some(done.end);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(end)
}

/// What a file begins with. Read as far as it takes to know.
pub(crate) fn begin(source: &Source) -> io::Result<Begin> {
    let mut first = None;
    read(source, 0, all, |line| {
        first = Some(line.record);
        ControlFlow::Break(())
    })?;
    begins_with(source, first)
}

/// What a file begins with, when this is the first record of its whole writes.
fn begins_with(source: &Source, first: Option<Record>) -> io::Result<Begin> {
    let none = first.is_none();
    if let Some(Record::SessionMeta(meta)) = first {
        return Ok(newer(&meta).map_or(Begin::Agent(meta), Begin::Headless));
    }
    let mut walk = Walk::new(source, 0);
    let Some(line) = walk.next()? else { return Ok(Begin::Unborn(None)) };
    Ok(match decoded(&line, all) {
        Ok(Line { record: Record::SessionMeta(meta), .. }) => Begin::Unborn(Some(meta.session_id)),
        Ok(Line { record, .. }) => {
            let kind = stdx::one_line(record.kind(), 40);
            Begin::Headless(format!("it begins with a `{kind}` line, not with `session_meta`; move it away"))
        }
        Err(_) if none && line.has_zeros() => Begin::Unborn(None),
        Err(bad) => Begin::Headless(format!(
            "its first line, which should be `session_meta`, cannot be read ({}), so neither its agent nor its tree can \
             be told; mend that line or put the file back from a copy",
            bad.why
        )),
    })
}

/// Why a file cannot be read by this version, if that is so: what it does not know may be what the rest rests on.
fn newer(meta: &SessionMeta) -> Option<String> {
    let format = meta.format;
    (format > FORMAT).then(|| {
        format!(
            "it was written by a newer version of the program (format {format}; this one knows {FORMAT}); use that one"
        )
    })
}

/// Whether a fold keeps the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversation {
    Kept,
    LeftOut,
}

/// Brings the items that a fork takes over, and says what of them is lost.
pub(crate) type Forks<'a> = &'a dyn Fn(&Forked, &mut dyn FnMut(Item)) -> Result<Option<Lack>, Error>;

/// What `file` comes to: from its newest whole compaction on, or from its beginning. `forks` is asked when the conversation
/// is kept.
pub(crate) fn fold(
    file: &AbsPath,
    source: &Source,
    conversation: Conversation,
    forks: Forks<'_>,
) -> Result<Loaded, Error> {
    let kept = conversation == Conversation::Kept;
    let unread = |error| lost("read", file, error);
    let mut state: Option<State> = None;
    let mut first = None;
    let mut from = 0;
    let (mut forked, mut lack, mut failed) = (false, None, None);
    if let Some(newest) = back::newest(source).map_err(unread)?
        && let Some(meta) = back::meta(source).map_err(unread)?
    {
        from = newest;
        state = Some(State { transcript_complete: kept, ..State::resumed(meta) });
    }
    let tally = read(source, from, all, |line| {
        match &mut state {
            Some(state) => {
                state.apply(&line);
                if let Record::Forked(fork) = &line.record
                    && kept
                    && !std::mem::replace(&mut forked, true)
                {
                    match forks(fork, &mut |item| state.transcript.push(item)) {
                        Ok(found) => lack = found,
                        Err(error) => {
                            failed = Some(error);
                            return ControlFlow::Break(());
                        }
                    }
                }
            }
            None if first.is_none() => {
                if let Record::SessionMeta(meta) = &line.record {
                    let mut fresh = State { transcript_complete: kept, ..State::new((**meta).clone()) };
                    fresh.apply(&line);
                    state = Some(fresh);
                }
                first = Some(line.record);
            }
            None => {}
        }
        ControlFlow::Continue(())
    });
    let tally = tally.map_err(unread)?;
    if let Some(error) = failed {
        return Err(error);
    }
    let Some(state) = state else {
        let begin = begins_with(source, first).map_err(unread)?;
        let file = file.to_path_buf();
        return Err(match begin {
            Begin::Headless(why) => Error::Headless { file, why },
            Begin::Agent(_) | Begin::Unborn(_) => Error::Unborn { file },
        });
    };
    if let Some(why) = newer(&state.meta) {
        return Err(Error::Newer { file: file.to_path_buf(), why });
    }
    let end = end(file, source, &tally).map_err(unread)?;
    let Tally { skipped, unknown, torn, .. } = tally;
    Ok(Loaded { state, file: file.clone(), skipped, unknown, torn, from, end, lack })
}

/// The end of a file of which this was found, as far as it is good.
fn end(file: &AbsPath, source: &Source, tally: &Tally) -> io::Result<FileEnd> {
    let (start, bytes) = tally.last_line;
    let mut sum = checksum(b"");
    source.pieces(start, bytes, |piece| sum = crate::summary::checksum_on(sum, piece))?;
    Ok(FileEnd {
        file: file.clone(),
        bytes: tally.good,
        ordinal: tally.last,
        last_line_bytes: bytes,
        checksum: sum,
        skipped: tally.skipped,
        unknown: tally.unknown,
    })
}

#[cfg(test)]
mod tests;
