//! A rollout that is read: the one place where a file is opened for that, and its lines one after another.
//!
//! Positioned reads into a small buffer, whatever the size of the file. It is not mapped into memory: somebody else may
//! cut the file meanwhile, and then touching a mapped page ends the process, and with it the whole tree; a read only
//! says that there is less. Reading costs little beside parsing, so a mapping would win nothing either.

use std::io;
use std::path::Path;

use memchr::{memchr, memrchr};

use crate::front::{FRONT, Front};
use crate::packed::{self, is_packed};
use crate::{Disk, ReadAt};

/// Bytes of one line that are taken into memory, 64 MiB. Longer ones are passed over as unreadable, and no writer of
/// ours makes one: the longest lines are items with an image and histories of a whole window, a few MiB.
pub(crate) const MAX_LINE: usize = 64 << 20;

/// Bytes read at once at first, so that looking at the beginning of many files stays cheap. Doubled at each further read.
const FIRST: usize = 16 << 10;

/// Bytes read at once at the most, 256 KiB: more calls to the system would show, and a larger buffer falls out of the
/// processor's cache.
const CHUNK: usize = 256 << 10;

/// A file as long as it was when it was opened. What is appended later is not seen.
pub(crate) struct Source {
    reader: Box<dyn ReadAt>,
    len: u64,
    /// Whether it can only be read forwards without reading it many times.
    forwards: bool,
}

impl Source {
    /// Opens a rollout to be read. Every reader of rollouts comes through here.
    pub(crate) fn open(disk: &dyn Disk, file: &Path) -> io::Result<Self> {
        let reader = packed::open(disk, file)?;
        let len = reader.size()?;
        Ok(Self { reader, len, forwards: is_packed(file) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads from `offset` on until `into` is full or the file ends. How many bytes that were.
    pub(crate) fn fill(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(into.len());
        fill(&*self.reader, offset, &mut into[..room])
    }

    /// Reads from `offset` on until `into` is full or the file ends, of a file whose length nobody asks for: that is a
    /// call to the system less for each agent of a tree.
    pub(crate) fn piece(disk: &dyn Disk, file: &Path, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        fill(&*packed::open(disk, file)?, offset, into)
    }

    /// Calls `each` with these bytes, a piece at a time. How many there were.
    pub(crate) fn pieces(&self, offset: u64, len: u64, mut each: impl FnMut(&[u8])) -> io::Result<u64> {
        let mut buffer = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(CHUNK)];
        let mut done = 0;
        while done < len {
            let room = usize::try_from(len - done).unwrap_or(usize::MAX).min(buffer.len());
            let read = self.fill(offset + done, &mut buffer[..room])?;
            if read == 0 {
                break;
            }
            each(&buffer[..read]);
            done += read as u64;
        }
        Ok(done)
    }

    /// Where lines begin, from the end of the file on, that `wanted` says yes to when it sees how they begin. Nothing is
    /// found in a packed file: it is read from its beginning.
    pub(crate) fn backwards(&self, mut wanted: impl FnMut(u64, &[u8]) -> io::Result<bool>) -> io::Result<Option<u64>> {
        if self.forwards {
            return Ok(None);
        }
        let mut window = vec![0; usize::try_from(self.len).unwrap_or(usize::MAX).min(4 * CHUNK) + FRONT];
        let step = window.len() - FRONT;
        let mut end = self.len;
        while end > 0 {
            let start = end.saturating_sub(step as u64);
            // A little more than up to `end`: a line that begins there has its front behind it.
            let read = self.fill(start, &mut window)?;
            let mut upto = usize::try_from(end - start).unwrap_or(usize::MAX).min(read);
            while let Some(at) = memrchr(b'\n', &window[..upto]) {
                if wanted(start + at as u64 + 1, &window[at + 1..read.min(at + 1 + FRONT)])? {
                    return Ok(Some(start + at as u64 + 1));
                }
                upto = at;
            }
            end = start;
        }
        Ok(None)
    }
}

fn fill(reader: &dyn ReadAt, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match reader.read_at(offset + filled as u64, &mut into[filled..]) {
            // Somebody has cut it.
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The lines of a file from some place on, one in memory at a time.
pub(crate) struct Walk<'a> {
    source: &'a Source,
    /// What was read and is not passed yet, from `base` on.
    buffer: Vec<u8>,
    base: u64,
    /// Where in the buffer the next line begins.
    next: usize,
    chunk: usize,
}

/// A line that ends in a line break.
pub(crate) struct RawLine<'a> {
    /// Where it begins.
    pub(crate) offset: u64,
    /// How long it is, its line break included.
    pub(crate) bytes: u64,
    /// It, or, when it is longer than may be, how it begins.
    pub(crate) text: &'a [u8],
    /// Whether `text` is all of it.
    pub(crate) whole: bool,
    /// Whether what is not in `text` has a zero.
    pub(crate) zeros: bool,
}

impl<'a> Walk<'a> {
    /// From `offset` on, where a line begins.
    pub(crate) fn new(source: &'a Source, offset: u64) -> Self {
        Self { source, buffer: Vec::new(), base: offset, next: 0, chunk: FIRST }
    }

    /// The next line; none when what is left has no line break.
    pub(crate) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        let mut searched = self.next;
        let end = loop {
            if let Some(at) = memchr(b'\n', &self.buffer[searched..]) {
                break searched + at + 1;
            }
            if self.buffer.len() - self.next > MAX_LINE {
                return self.long();
            }
            self.forget(self.next);
            searched = self.buffer.len();
            if !self.more()? {
                return Ok(None);
            }
        };
        let start = std::mem::replace(&mut self.next, end);
        let text = &self.buffer[start..end];
        Ok(Some(RawLine {
            offset: self.base + start as u64,
            bytes: text.len() as u64,
            text,
            whole: true,
            zeros: false,
        }))
    }

    /// Where what was read ends: after the last `None` of [`Walk::next`], the end of the file.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Passes over a line that is too long, of which `MAX_LINE` bytes are in the buffer.
    fn long(&mut self) -> io::Result<Option<RawLine<'_>>> {
        let offset = self.base + self.next as u64;
        self.forget(self.next);
        let mut front = self.buffer[..FRONT.min(self.buffer.len())].to_vec();
        let mut zeros = false;
        let end = loop {
            let at = memchr(b'\n', &self.buffer);
            zeros |= memchr(0, &self.buffer[..at.unwrap_or(self.buffer.len())]).is_some();
            if let Some(at) = at {
                break at + 1;
            }
            self.forget(self.buffer.len());
            if !self.more()? {
                return Ok(None);
            }
        };
        let bytes = self.base + end as u64 - offset;
        // The front is put back before what follows the line, so that it can be lent like any other.
        let kept = front.len();
        front.extend_from_slice(&self.buffer[end..]);
        self.base = self.base + end as u64 - kept as u64;
        self.buffer = front;
        self.next = kept;
        Ok(Some(RawLine { offset, bytes, text: &self.buffer[..kept], whole: false, zeros }))
    }

    /// Drops the first `count` bytes of the buffer.
    fn forget(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.base += count as u64;
        self.next = 0;
        if self.buffer.len() <= CHUNK {
            self.buffer.shrink_to(2 * CHUNK);
        }
    }

    fn more(&mut self) -> io::Result<bool> {
        let had = self.buffer.len();
        self.buffer.resize(had + self.chunk, 0);
        let read = self.source.fill(self.base + had as u64, &mut self.buffer[had..]);
        self.buffer.truncate(had + *read.as_ref().unwrap_or(&0));
        self.chunk = (2 * self.chunk).min(CHUNK);
        read.map(|read| read > 0)
    }
}

impl RawLine<'_> {
    /// How it begins, when that is as our writers begin.
    pub(crate) fn front(&self) -> Option<Front<'_>> {
        Front::of(self.text)
    }

    /// Whether there is a zero in it, which no line has: a page that never reached the disk.
    pub(crate) fn has_zeros(&self) -> bool {
        self.zeros || memchr(0, self.text).is_some()
    }
}

#[cfg(test)]
pub(crate) mod tests;
