//! The chunks of one file: all are placed before anything is changed.

use crate::seek::{Place, Tier, alike, seek};
use crate::text::{Splice, Text};
use crate::{Chunk, Hint, Line, Mismatch};

/// Least share of a chunk's old lines, in percent, that has to agree for a place to be worth showing.
const NEAR_PERCENT: usize = 50;

/// Most comparisons of lines in the search for a nearly matching place. A hint is a courtesy; a huge file must not
/// make an error slow.
const MAX_NEAR_COMPARISONS: usize = 2_000_000;

/// The content with all `chunks` carried out.
///
/// # Errors
/// When one of them has no place.
pub(crate) fn edit(path: &str, content: &[u8], chunks: &[Chunk]) -> Result<Vec<u8>, Box<Mismatch>> {
    let text = Text::split(content);
    let mut splice = Splice::default();
    let mut below = 0;
    for chunk in chunks {
        below = place(&text.lines, chunk, below, &mut splice).map_err(|miss| {
            let Miss { expected, is_anchor, hint } = miss;
            let expected = expected.into_iter().map(str::to_owned).collect();
            Box::new(Mismatch { path: path.to_owned(), patch_line: chunk.line, expected, is_anchor, hint })
        })?;
    }
    Ok(text.join(&splice))
}

/// Lines without a place.
struct Miss<'p> {
    expected: Vec<&'p str>,
    is_anchor: bool,
    hint: Option<Hint>,
}

/// Finds the place of `chunk` at or below line `below` and notes what it changes. Gives the first line below it.
fn place<'p>(lines: &[&[u8]], chunk: &'p Chunk, below: usize, splice: &mut Splice<'p>) -> Result<usize, Miss<'p>> {
    let mut from = below;
    let mut anchored = None;
    for anchor in &chunk.anchors {
        // Of two anchors in a row, the second is another line than the first.
        let start = anchored.map_or(below, |at: usize| from.max(at + 1));
        // An anchor above the previous chunk still holds what is below that chunk: two chunks in one function.
        let found = seek(lines, &[anchor], Place::From(start))
            .or_else(|| seek(lines.get(..below)?, &[anchor], Place::From(anchored.map_or(0, |at| at + 1))));
        let Some(at) = found else {
            let hint = anchor_hint(lines, anchor, start);
            return Err(Miss { expected: vec![anchor], is_anchor: true, hint });
        };
        anchored = Some(at);
        from = from.max(at);
    }
    let mut old: Vec<&str> = chunk.lines.iter().filter_map(Line::old).collect();
    let tight = chunk.lines.len().saturating_sub(chunk.loose);
    if old.len() == chunk.loose {
        let at = anchored.filter(|_| !chunk.at_end).map_or(lines.len(), |at| at + 1);
        note(chunk, at, tight, splice);
        // What goes to the end of the file leaves the rest of it to the chunks that follow.
        return Ok(if anchored.is_some() && !chunk.at_end { at.max(below) } else { below });
    }
    let place = if chunk.at_end { Place::EndNotAbove(from) } else { Place::From(from) };
    // Empty lines at the end of a chunk are context as far as the file has them.
    for used in (tight..=chunk.lines.len()).rev() {
        if let Some(at) = seek(lines, &old, place) {
            note(chunk, at, used, splice);
            return Ok(at + old.len());
        }
        if used > tight {
            old.pop();
        }
    }
    let hint = hint(lines, chunk, &old, from);
    Err(Miss { expected: old, is_anchor: false, hint })
}

/// Notes the first `used` lines of `chunk` as changes from line `at` on.
fn note<'p>(chunk: &'p Chunk, mut at: usize, used: usize, splice: &mut Splice<'p>) {
    for line in chunk.lines.iter().take(used) {
        match line {
            Line::Context(_) => at += 1,
            Line::Remove(_) => {
                splice.removed.insert(at);
                at += 1;
            }
            Line::Add(text) => splice.inserts.push((at, text)),
        }
    }
}

/// What may explain that the old lines of `chunk` are not at or below line `from`.
fn hint(lines: &[&[u8]], chunk: &Chunk, old: &[&str], from: usize) -> Option<Hint> {
    if chunk.at_end
        && let Some(at) = seek(lines, old, Place::From(from))
    {
        return Some(Hint::NotAtEnd { line: at + 1 });
    }
    if let Some(at) = seek(lines, old, Place::From(0)) {
        return Some(Hint::Above { line: at + 1, from: from + 1 });
    }
    let tight = chunk.lines.len().saturating_sub(chunk.loose);
    let new: Vec<&str> = chunk.lines.iter().take(tight).filter_map(Line::new_text).collect();
    let brings = chunk.lines.iter().any(|line| matches!(line, Line::Add(text) if !text.trim().is_empty()));
    if brings && let Some(at) = seek(lines, &new, Place::From(from)) {
        return Some(Hint::Applied { line: at + 1 });
    }
    near(lines, old, from)
}

/// What may explain that `anchor` is not at or below line `from`.
fn anchor_hint(lines: &[&[u8]], anchor: &str, from: usize) -> Option<Hint> {
    if let Some(at) = seek(lines, &[anchor], Place::From(0)) {
        return Some(Hint::Above { line: at + 1, from: from + 1 });
    }
    let wanted = anchor.trim();
    let at = lines.iter().position(|line| String::from_utf8_lossy(line).contains(wanted));
    match at.filter(|_| !wanted.is_empty()) {
        Some(at) => difference(lines, &[anchor], at),
        None => near(lines, &[anchor], from),
    }
}

/// The place where most of `old` agrees line by line, if that is at least half of it; of equal ones the first at or
/// below `from`. For a single line: the most similar line.
fn near(lines: &[&[u8]], old: &[&str], from: usize) -> Option<Hint> {
    if lines.len().saturating_mul(old.len()) > MAX_NEAR_COMPARISONS {
        return None;
    }
    if let [single] = old {
        let at = (0..lines.len()).max_by_key(|at| {
            let text = lines.get(*at).map(|line| String::from_utf8_lossy(line));
            (text.map_or(0, |text| similar(text.trim(), single.trim())), std::cmp::Reverse(*at))
        })?;
        let text = String::from_utf8_lossy(lines.get(at)?);
        return if similar(text.trim(), single.trim()) >= NEAR_PERCENT { difference(lines, old, at) } else { None };
    }
    let mut best = (0, 0);
    for at in (from..lines.len()).chain(0..from.min(lines.len())) {
        let here = lines.iter().skip(at).zip(old);
        // Empty lines agree everywhere and say nothing.
        let agreeing =
            here.filter(|(line, want)| !want.trim().is_empty() && alike(Tier::Typography, line, want)).count();
        if agreeing > best.0 {
            best = (agreeing, at);
        }
    }
    let telling = old.iter().filter(|line| !line.trim().is_empty()).count();
    let (agreeing, at) = best;
    if agreeing > 0 && agreeing * 100 >= telling * NEAR_PERCENT { difference(lines, old, at) } else { None }
}

/// How much of the longer of two lines is a common beginning or end, in percent.
fn similar(a: &str, b: &str) -> usize {
    let longer = a.chars().count().max(b.chars().count());
    let shorter = a.chars().count().min(b.chars().count());
    let head = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let tail = a.chars().rev().zip(b.chars().rev()).take_while(|(a, b)| a == b).count();
    (head + tail.min(shorter - head)) * 100 / longer.max(1)
}

/// The first difference between `old` and the lines from `at` on.
fn difference(lines: &[&[u8]], old: &[&str], at: usize) -> Option<Hint> {
    let (offset, patch) = old
        .iter()
        .enumerate()
        .find(|(offset, wanted)| lines.get(at + offset).is_none_or(|line| !alike(Tier::Typography, line, wanted)))?;
    let file = lines.get(at + offset).map(|line| String::from_utf8_lossy(line).into_owned());
    Some(Hint::Near { line: at + 1, differs: at + offset + 1, patch: (*patch).to_owned(), file })
}

#[cfg(test)]
mod tests;
