//! Server-sent events, decoded from pieces that are cut anywhere.
//!
//! Lenient where servers differ: any line ending, comments, a missing last blank line. Strict about size.

/// The largest event, in bytes. A whole response object may come as one event; nothing else is near this.
pub const MAX_EVENT: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its `event:` line; empty when there was none.
    pub(crate) name: String,
    /// Its `data:` lines, joined by line breaks.
    pub(crate) data: Vec<u8>,
}

/// An event was larger than [`MAX_EVENT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Takes pieces, gives events.
#[derive(Debug)]
pub(crate) struct Decoder {
    max: usize,
    line: Vec<u8>,
    name: String,
    data: Vec<u8>,
    /// Whether a `data:` line was seen, so that an event of one empty line is told from none.
    has_data: bool,
    /// The last piece ended in `\r`: a `\n` that follows belongs to it.
    after_return: bool,
    first_line: bool,
}

impl Decoder {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            line: Vec::new(),
            name: String::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            first_line: true,
        }
    }

    /// Takes a piece; complete events are appended to `events`.
    pub(crate) fn push(&mut self, mut piece: &[u8], events: &mut impl Extend<Event>) -> Result<(), TooLarge> {
        if self.after_return && !piece.is_empty() {
            self.after_return = false;
            piece = piece.strip_prefix(b"\n").unwrap_or(piece);
        }
        while let Some(at) = piece.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            let (line, rest) = piece.split_at(at);
            self.grow(line)?;
            let line = std::mem::take(&mut self.line);
            events.extend(self.line_done(&line));
            // The buffer is kept: a reply is thousands of lines.
            self.line = line;
            self.line.clear();
            piece = match rest {
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.grow(piece)
    }

    /// Takes the end of the stream: what is complete but for its last blank line still counts.
    pub(crate) fn finish(mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.field(&line);
        }
        self.dispatch()
    }

    fn grow(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + bytes.len() + self.data.len() > self.max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_done(&mut self, line: &[u8]) -> Option<Event> {
        if line.is_empty() {
            return self.dispatch();
        }
        self.field(line);
        None
    }

    fn field(&mut self, mut line: &[u8]) {
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        let (name, value) = match line.iter().position(|b| *b == b':') {
            Some(at) => {
                let value = &line[at + 1..];
                (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match name {
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            // No field of the standard: what a widely used local server calls its faults.
            b"error" => {
                "error".clone_into(&mut self.name);
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            // Comments (an empty name), `id`, `retry` and anything else say nothing to us.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then_some(Event { name, data })
    }
}

#[cfg(test)]
mod tests;
