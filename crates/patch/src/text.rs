//! A file as lines, with all that the lines do not show: byte order mark, line endings, the final newline.

/// The UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// How one line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Not at all: the last line of a file without final newline.
    Open,
    /// `\n`
    Lf,
    /// `\r\n`
    CrLf,
}

/// A file taken apart. Bytes, because only the lines that a patch touches have to be text.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    bom: &'a [u8],
    /// The lines without their endings.
    pub(crate) lines: Vec<&'a [u8]>,
    endings: Vec<Ending>,
}

impl<'a> Text<'a> {
    /// Takes `content` apart; joining with no change gives it back byte for byte.
    pub(crate) fn split(content: &'a [u8]) -> Self {
        let (bom, rest) = match content.strip_prefix(BOM) {
            Some(rest) => (BOM, rest),
            None => (&[][..], content),
        };
        let split = rest.split_inclusive(|b| *b == b'\n').map(|line| {
            if let Some(line) = line.strip_suffix(b"\r\n") {
                (line, Ending::CrLf)
            } else if let Some(line) = line.strip_suffix(b"\n") {
                (line, Ending::Lf)
            } else {
                (line, Ending::Open)
            }
        });
        let (lines, endings) = split.unzip();
        Self { bom, lines, endings }
    }

    /// The file with some lines left out and others put in.
    pub(crate) fn join(&self, splice: &Splice<'_>) -> Vec<u8> {
        let mut inserts: Vec<(usize, &str)> = splice.inserts.clone();
        // Stable: what goes to one place keeps the order of the patch.
        inserts.sort_by_key(|(before, _)| *before);
        let mut inserts = inserts.into_iter().peekable();
        let mut out: Vec<(&[u8], Ending)> = Vec::with_capacity(self.lines.len() + splice.inserts.len());
        for at in 0..=self.lines.len() {
            while let Some((_, text)) = inserts.next_if(|(before, _)| *before <= at) {
                out.push((text.as_bytes(), self.ending_near(at)));
            }
            if let (Some(line), Some(ending)) = (self.lines.get(at), self.endings.get(at))
                && !splice.removed.contains(&at)
            {
                let ending = if *ending == Ending::Open { self.ending_near(at) } else { *ending };
                out.push((line, ending));
            }
        }
        if self.endings.last() == Some(&Ending::Open)
            && let Some((_, ending)) = out.last_mut()
        {
            *ending = Ending::Open;
        }
        let mut bytes = self.bom.to_vec();
        for (line, ending) in out {
            bytes.extend_from_slice(line);
            bytes.extend_from_slice(match ending {
                Ending::Open => b"",
                Ending::Lf => b"\n",
                Ending::CrLf => b"\r\n",
            });
        }
        bytes
    }

    /// How a new line that comes right before line `at` ends: as the closest old line above, else below, else `\n`.
    fn ending_near(&self, at: usize) -> Ending {
        let (above, below) = self.endings.split_at(at.min(self.endings.len()));
        let closed = |ending: &&Ending| **ending != Ending::Open;
        above.iter().rev().find(closed).or_else(|| below.iter().find(closed)).copied().unwrap_or(Ending::Lf)
    }
}

/// What to leave out of a file and what to put in.
#[derive(Debug, Default)]
pub(crate) struct Splice<'p> {
    /// Indices of old lines that go.
    pub(crate) removed: std::collections::BTreeSet<usize>,
    /// New lines, each with the index of the old line that it comes before; the number of lines means the end.
    pub(crate) inserts: Vec<(usize, &'p str)>,
}

#[cfg(test)]
mod tests;
