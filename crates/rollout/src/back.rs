//! Reading back from the end: where the newest compaction stands that is there as a whole.
//!
//! Lines on the way are not parsed, so nothing is said about them. A compaction that lost one of its lines is passed
//! over: what it stood for is read from the lines before it.

use std::io;

use protocol::MailId;

use crate::front::Front;
use crate::line::decode_line;
use crate::read::all_decoded;
use crate::source::{Source, Walk};
use crate::{Record, SessionMeta};

/// Where the newest whole compaction begins.
pub(crate) fn newest(source: &Source) -> io::Result<Option<u64>> {
    source.backwards(|offset, front| {
        let begins = Front::of(front).is_some_and(|front| {
            front.kind == "compacted" && front.part.is_some_and(|[index, count]| index == 1 && count > 1)
        });
        Ok(begins && is_whole(source, offset)?)
    })
}

/// Whether the write that begins here is all there, can all be read, and says what a state needs.
fn is_whole(source: &Source, offset: u64) -> io::Result<bool> {
    let mut walk = Walk::new(source, offset);
    let (mut seen, mut count) = (0, 1);
    while seen < count {
        let Some(line) = walk.next()? else { return Ok(false) };
        let Some(line) = all_decoded(&line) else { return Ok(false) };
        seen += 1;
        let says = match (seen, line.record) {
            (1, Record::Compacted(compacted)) => compacted.replacement_history.is_some(),
            (1, _) => false,
            (2, record) => matches!(record, Record::Checkpoint(_)),
            _ => true,
        };
        match line.part {
            Some([index, of]) if says && index == seen && (seen == 1 || of == count) => count = of,
            _ => return Ok(false),
        }
    }
    Ok(count > 1)
}

/// The mail that the compaction which begins here names, if that is all that was ever accepted.
pub(crate) fn known(source: &Source, offset: u64) -> io::Result<Option<Vec<MailId>>> {
    let mut walk = Walk::new(source, offset);
    walk.next()?;
    let checkpoint = walk.next()?.as_ref().and_then(all_decoded);
    Ok(match checkpoint.map(|line| line.record) {
        Some(Record::Checkpoint(checkpoint)) if checkpoint.known_complete => Some(checkpoint.known),
        _ => None,
    })
}

/// Whose file it is, by its first line alone.
pub(crate) fn meta(source: &Source) -> io::Result<Option<SessionMeta>> {
    let mut walk = Walk::new(source, 0);
    let first = walk.next()?.filter(|line| line.whole);
    Ok(first.and_then(|line| match decode_line(line.text).ok()?.record {
        Record::SessionMeta(meta) => Some(*meta),
        _ => None,
    }))
}

#[cfg(test)]
mod tests;
