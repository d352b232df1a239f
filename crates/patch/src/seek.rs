//! Finding lines in a file: four tiers of likeness, never a fuzzy position.

/// How alike two lines have to be, strictest first. A looser tier is tried only when a stricter one finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Byte for byte.
    Exact,
    /// Blanks at the end do not count.
    TrailingBlanks,
    /// Blanks at both ends do not count.
    BothEnds,
    /// Nor does the kind of dash, quote or space.
    Typography,
}

/// All tiers in the order in which they are tried.
const TIERS: [Tier; 4] = [Tier::Exact, Tier::TrailingBlanks, Tier::BothEnds, Tier::Typography];

/// Where lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The first place at or below this index.
    From(usize),
    /// The end of the file, and not above this index.
    EndNotAbove(usize),
}

/// The index of the first line of `pattern` in `lines`. An empty pattern is nowhere.
pub(crate) fn seek(lines: &[&[u8]], pattern: &[&str], place: Place) -> Option<usize> {
    let last = lines.len().checked_sub(pattern.len())?;
    if pattern.is_empty() {
        return None;
    }
    let first = match place {
        Place::From(from) => from,
        Place::EndNotAbove(from) if from <= last => last,
        Place::EndNotAbove(_) => return None,
    };
    TIERS.into_iter().find_map(|tier| {
        (first..=last).find(|at| {
            let mut here = lines.iter().skip(*at).zip(pattern);
            here.all(|(line, wanted)| alike(tier, line, wanted))
        })
    })
}

/// Whether a line of the file is what the patch says it is. Bytes of the file that are not UTF-8 count as `\u{fffd}`
/// above the exact tier: that is how the author of the patch has seen them, and context keeps its bytes anyway.
pub(crate) fn alike(tier: Tier, line: &[u8], wanted: &str) -> bool {
    if tier == Tier::Exact {
        return line == wanted.as_bytes();
    }
    let text = String::from_utf8_lossy(line);
    match tier {
        Tier::Exact | Tier::TrailingBlanks => text.trim_end() == wanted.trim_end(),
        Tier::BothEnds => text.trim() == wanted.trim(),
        Tier::Typography => text.trim().chars().map(plain).eq(wanted.trim().chars().map(plain)),
    }
}

/// The ASCII form of a dash, quote or space; any other character as it is.
fn plain(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests;
