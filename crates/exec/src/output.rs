//! What a process said and nobody has read yet, bounded: the beginning and the end are kept, the middle may go.

use std::collections::VecDeque;

/// Unread bytes kept of one process: half of the beginning, half of the end. A process that nobody listens to must
/// not fill the memory.
pub const RETAINED: usize = 1024 * 1024;

const HALF: usize = RETAINED / 2;

/// What a process said since the last time it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The beginning; all of it when nothing was left out.
    pub head: Vec<u8>,
    /// Bytes left out between head and tail.
    pub omitted: u64,
    /// The end; empty when nothing was left out.
    pub tail: Vec<u8>,
    /// Lines in all, those left out included; an unfinished last line counts.
    pub lines: u64,
}

impl Chunk {
    /// Bytes in all, those left out included.
    pub fn total(&self) -> u64 {
        self.head.len() as u64 + self.omitted + self.tail.len() as u64
    }
}

#[derive(Debug, Default)]
pub(crate) struct Buffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
    newlines: u64,
}

impl Buffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.newlines += bytes.iter().map(|b| u64::from(*b == b'\n')).sum::<u64>();
        let room = HALF.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Takes everything out. With `more` to come, a character whose last bytes are not here yet stays for next time.
    pub(crate) fn take(&mut self, more: bool) -> Chunk {
        let Self { mut head, tail, omitted, newlines } = std::mem::take(self);
        let mut tail = Vec::from(tail);
        if omitted == 0 {
            head.append(&mut tail);
        }
        let end = if tail.is_empty() { &mut head } else { &mut tail };
        if more {
            let held = end.split_off(end.len() - unfinished(end));
            self.push(&held);
        }
        let open = end.last().is_some_and(|b| *b != b'\n');
        Chunk { head, omitted, tail, lines: newlines + u64::from(open) }
    }
}

/// How many bytes at the end begin a character that is not complete.
fn unfinished(bytes: &[u8]) -> usize {
    for (back, byte) in bytes.iter().rev().take(3).enumerate() {
        let needs = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 0,
        };
        return if needs > back + 1 { back + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], more: bool, head: &[u8], lines: u64) {
        let mut buffer = Buffer::default();
        for piece in pieces {
            buffer.push(piece);
        }
        let chunk = buffer.take(more);
        assert_eq!((chunk.head.as_slice(), chunk.omitted, chunk.lines), (head, 0, lines));
        assert_eq!(buffer.take(false).head.len() + head.len(), pieces.concat().len(), "nothing is lost or repeated");
    }

    #[test]
    fn everything_comes_once() {
        check(&[], true, b"", 0);
        check(&[b"a\n", b"b"], true, b"a\nb", 2);
        check(&[b"a\n", b"b\n"], true, b"a\nb\n", 2);
    }

    #[test]
    fn a_character_is_not_torn_between_two_reads() {
        check(&[b"a\xc3"], true, b"a", 1);
        check(&[b"a\xc3"], false, b"a\xc3", 1);
        check(&[b"\xf0\x9f\x98"], true, b"", 0);
        check(&[b"\xf0\x9f\x98\x80"], true, b"\xf0\x9f\x98\x80", 1);
        check(&[b"\x80\x80\x80\x80"], true, b"\x80\x80\x80\x80", 1);
        check(&[b"\xff"], true, b"\xff", 1);
    }

    #[test]
    fn the_middle_goes_first() {
        let mut buffer = Buffer::default();
        for piece in 0..40 {
            buffer.push(&vec![b'a' + piece; 65536]);
        }
        let chunk = buffer.take(true);
        assert_eq!(chunk.head.len() + chunk.tail.len(), RETAINED);
        assert_eq!(chunk.total(), 40 * 65536);
        assert_eq!((chunk.head[0], chunk.head[HALF - 1]), (b'a', b'a' + 7));
        assert_eq!((chunk.tail[0], chunk.tail[HALF - 1]), (b'a' + 32, b'a' + 39));
    }
}
