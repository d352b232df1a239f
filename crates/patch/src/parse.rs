//! From text to [`Patch`].

use std::collections::BTreeMap;

use crate::{Action, Chunk, Line, ParseError, Patch, Section};

const BEGIN: &str = "`*** Begin Patch`";
const END: &str = "`*** End Patch`";
const SECTION: &str =
    "`*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`";
const ADD_LINE: &str = "a line of the new file with `+` before it, or the next `*** ` marker";
const CHUNK_LINE: &str = "`@@`, a line with ` `, `-` or `+` before it, or the next `*** ` marker";
const CHANGE: &str = "the lines of a change, each with ` `, `-` or `+` before it";

/// Reads a patch. Blanks around markers, `\r\n`, a missing final newline, empty lines between sections and a
/// here-document around the whole (`<<'EOF'` … `EOF`) are forgiven. An empty line within a change is an empty line of
/// context, within a new file an empty line of it.
///
/// # Errors
/// At the first line that is not what has to stand there; when the text ends without `*** End Patch`, as a cut-off
/// patch does; when a path is empty, has NUL, or is named twice.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    let mut lines = Lines::unwrap(text)?;
    let mut sections = Sections::default();
    loop {
        let Some((line, raw)) = lines.next() else { return Err(lines.ended(END)) };
        match Marker::of(raw) {
            _ if raw.trim().is_empty() => {}
            Some(Marker::Add(path)) => {
                let path = usable(line, raw, path)?;
                let action = Action::Add(added(&mut lines)?);
                sections.push(Section { path, action, line }, line)?;
            }
            Some(Marker::Delete(path)) => {
                let path = usable(line, raw, path)?;
                sections.push(Section { path, action: Action::Delete, line }, line)?;
            }
            Some(Marker::Update(path)) => {
                let path = usable(line, raw, path)?;
                let (action, move_line) = updated(&mut lines)?;
                sections.push(Section { path, action, line }, move_line.unwrap_or(line))?;
            }
            Some(Marker::End) if lines.rest.is_empty() && !sections.list.is_empty() => break,
            _ => return Err(unexpected(line, raw, SECTION)),
        }
    }
    Ok(Patch { sections: sections.list })
}

/// The lines of a new file.
fn added(lines: &mut Lines<'_>) -> Result<Vec<String>, ParseError> {
    let mut content = Vec::new();
    // Empty lines belong to the file only if more of it follows; else they are spacing.
    let mut empty = 0;
    while let Some((line, raw)) = lines.peek() {
        if let Some(text) = raw.strip_prefix('+') {
            content.extend(std::iter::repeat_n(String::new(), std::mem::take(&mut empty)));
            content.push(text.to_owned());
        } else if raw.trim().is_empty() {
            empty += 1;
        } else if Marker::of(raw).is_some() {
            break;
        } else {
            return Err(unexpected(line, raw, ADD_LINE));
        }
        lines.next();
    }
    Ok(content)
}

/// What follows the header of an update, and the line of its `*** Move to: `, if it has one.
fn updated(lines: &mut Lines<'_>) -> Result<(Action, Option<usize>), ParseError> {
    while lines.peek().is_some_and(|(_, raw)| raw.trim().is_empty()) {
        lines.next();
    }
    let mut move_to = None;
    let mut move_line = None;
    if let Some((line, raw)) = lines.peek()
        && let Some(Marker::MoveTo(path)) = Marker::of(raw)
    {
        move_to = Some(usable(line, raw, path)?);
        move_line = Some(line);
        lines.next();
    }
    let mut chunks = Vec::new();
    let mut open = Open::default();
    while let Some((line, raw)) = lines.peek() {
        // Once a chunk has begun, a blank at the start of a line means context; before that a marker may be indented.
        let bare = if open.is_fresh() { raw.trim_start() } else { raw };
        if let Some(rest) = bare.strip_prefix("@@") {
            if open.has_change() {
                chunks.extend(std::mem::take(&mut open).close());
            }
            open.anchor(line, raw, rest)?;
        } else if raw.trim_end().is_empty() && !raw.starts_with(' ') {
            open.empty(line);
        } else {
            let marker = Marker::of(bare).filter(|_| bare.starts_with("***"));
            match (marker, raw.split_at_checked(1)) {
                (Some(Marker::EndOfFile), _) if open.has_change() => {
                    open.at_end = true;
                    chunks.extend(std::mem::take(&mut open).close());
                }
                (Some(_), _) => break,
                (None, Some((" ", text))) => open.push(line, Line::Context(text.to_owned())),
                (None, Some(("-", text))) => open.push(line, Line::Remove(text.to_owned())),
                (None, Some(("+", text))) => open.push(line, Line::Add(text.to_owned())),
                (None, _) => return Err(unexpected(line, raw, CHUNK_LINE)),
            }
        }
        lines.next();
    }
    let complete = open.has_change() || (!open.marked && (move_to.is_some() || !chunks.is_empty()));
    if !complete {
        return Err(lines.peek().map_or_else(|| lines.ended(CHANGE), |(line, raw)| unexpected(line, raw, CHANGE)));
    }
    chunks.extend(open.close());
    Ok((Action::Update { move_to, chunks }, move_line))
}

/// The chunk that is being read.
#[derive(Default)]
struct Open {
    /// Where it begins; 0 before that.
    line: usize,
    /// Whether a `@@` began it.
    marked: bool,
    anchors: Vec<String>,
    lines: Vec<Line>,
    loose: usize,
    at_end: bool,
}

impl Open {
    fn is_fresh(&self) -> bool {
        self.line == 0
    }

    /// Whether there is a line that was not wholly empty.
    fn has_change(&self) -> bool {
        self.lines.len() > self.loose
    }

    fn anchor(&mut self, line: usize, raw: &str, rest: &str) -> Result<(), ParseError> {
        if has_line_numbers(rest) {
            return Err(ParseError::LineNumbers { line, found: raw.to_owned() });
        }
        if self.is_fresh() {
            self.line = line;
        }
        self.marked = true;
        // Empty lines between two anchors are spacing.
        self.lines.clear();
        self.loose = 0;
        let text = rest.strip_prefix(' ').unwrap_or(rest).trim_end();
        if !text.is_empty() {
            self.anchors.push(text.to_owned());
        }
        Ok(())
    }

    fn push(&mut self, line: usize, content: Line) {
        if self.is_fresh() {
            self.line = line;
        }
        self.loose = 0;
        self.lines.push(content);
    }

    /// An empty line: context once a chunk has begun, spacing before that.
    fn empty(&mut self, line: usize) {
        if !self.is_fresh() {
            let loose = self.loose + 1;
            self.push(line, Line::Context(String::new()));
            self.loose = loose;
        }
    }

    fn close(self) -> Option<Chunk> {
        let Self { line, anchors, lines, loose, at_end, .. } = self;
        (lines.len() > loose).then_some(Chunk { anchors, lines, at_end, loose, line })
    }
}

/// Whether what follows `@@` is the range of a unified diff, such as `-1,3 +1,4 @@`.
fn has_line_numbers(rest: &str) -> bool {
    let range = |word: Option<&str>, mark| {
        let digits = word.and_then(|word| word.strip_prefix(mark));
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b','))
    };
    let mut words = rest.split_whitespace();
    range(words.next(), '-') && range(words.next(), '+')
}

/// The sections so far, and who named which path.
#[derive(Default)]
struct Sections {
    list: Vec<Section>,
    /// Path to the line where it is named.
    named: BTreeMap<String, usize>,
}

impl Sections {
    /// Adds a section; `last` is the line of its last header.
    fn push(&mut self, mut section: Section, last: usize) -> Result<(), ParseError> {
        if let Action::Add(lines) = &mut section.action
            && self.named.contains_key(&section.path)
            && let Some(at) = self.list.iter().position(|s| s.path == section.path && s.action == Action::Delete)
        {
            section.action = Action::Replace(std::mem::take(lines));
            self.list.remove(at);
            self.named.remove(&section.path);
        }
        for (path, line) in section.paths().zip([section.line, last]) {
            if let Some(first) = self.named.insert(path.to_owned(), line) {
                return Err(ParseError::Twice { line, first, path: path.to_owned() });
            }
        }
        self.list.push(section);
        Ok(())
    }
}

/// A `*** ` line, with the rest of it.
enum Marker<'a> {
    Add(&'a str),
    Delete(&'a str),
    Update(&'a str),
    MoveTo(&'a str),
    EndOfFile,
    Begin,
    End,
}

impl<'a> Marker<'a> {
    fn of(raw: &'a str) -> Option<Self> {
        let text = raw.trim().strip_prefix("***")?.trim_start();
        Some(match text {
            "Begin Patch" => Self::Begin,
            "End Patch" => Self::End,
            "End of File" => Self::EndOfFile,
            _ => {
                let (keyword, path) = text.split_once(':')?;
                let path = path.trim();
                match keyword.trim_end() {
                    "Add File" => Self::Add(path),
                    "Delete File" => Self::Delete(path),
                    "Update File" => Self::Update(path),
                    "Move to" => Self::MoveTo(path),
                    _ => return None,
                }
            }
        })
    }
}

/// The lines of a patch text that are still to be read, each with its number.
struct Lines<'a> {
    rest: std::collections::VecDeque<(usize, &'a str)>,
    last: usize,
}

impl<'a> Lines<'a> {
    /// The lines between `*** Begin Patch` and `*** End Patch`, the latter included.
    fn unwrap(text: &'a str) -> Result<Self, ParseError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let numbered = text.split('\n').enumerate();
        let rest = numbered.map(|(at, line)| (at + 1, line.strip_suffix('\r').unwrap_or(line))).collect();
        let mut lines = Self { rest, last: 0 };
        lines.drop_blank();
        if let Some(word) = lines.peek().and_then(|(_, raw)| here_document(raw)) {
            lines.next();
            if lines.rest.back().is_some_and(|(_, raw)| raw.trim() == word) {
                lines.rest.pop_back();
            }
            lines.drop_blank();
        }
        match lines.next() {
            None => return Err(lines.ended(BEGIN)),
            Some((_, raw)) if matches!(Marker::of(raw), Some(Marker::Begin)) => {}
            Some((line, raw)) => return Err(unexpected(line, raw, BEGIN)),
        }
        match lines.rest.back() {
            Some((_, raw)) if matches!(Marker::of(raw), Some(Marker::End)) => Ok(lines),
            Some((line, _)) => Err(ParseError::Ended { line: *line, expected: END }),
            None => Err(lines.ended(END)),
        }
    }

    fn drop_blank(&mut self) {
        while self.rest.front().is_some_and(|(_, raw)| raw.trim().is_empty()) {
            self.rest.pop_front();
        }
        while self.rest.back().is_some_and(|(_, raw)| raw.trim().is_empty()) {
            self.rest.pop_back();
        }
    }

    fn peek(&self) -> Option<(usize, &'a str)> {
        self.rest.front().copied()
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let line = self.rest.pop_front()?;
        self.last = line.0;
        Some(line)
    }

    fn ended(&self, expected: &'static str) -> ParseError {
        ParseError::Ended { line: self.last, expected }
    }
}

/// The closing word of a here-document, if `raw` opens one: `<<'EOF'`, `apply_patch <<EOF`.
fn here_document(raw: &str) -> Option<&str> {
    let raw = raw.trim();
    let raw = raw.strip_prefix("apply_patch").map_or(raw, str::trim_start);
    let word = raw.strip_prefix("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim();
    let word = word.strip_prefix('\'').map_or(Some(word), |word| word.strip_suffix('\''))?;
    let word = word.strip_prefix('"').map_or(Some(word), |word| word.strip_suffix('"'))?;
    let plain = word.chars().all(|c| c.is_alphanumeric() || c == '_');
    (plain && !word.is_empty()).then_some(word)
}

fn usable(line: usize, raw: &str, path: &str) -> Result<String, ParseError> {
    if path.is_empty() || path.contains('\0') {
        return Err(ParseError::Path { line, found: raw.to_owned() });
    }
    Ok(path.to_owned())
}

fn unexpected(line: usize, raw: &str, expected: &'static str) -> ParseError {
    ParseError::Unexpected { line, found: raw.to_owned(), expected }
}

#[cfg(test)]
mod tests;
