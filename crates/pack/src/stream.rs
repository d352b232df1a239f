//! Packing and unpacking, as a writer and a reader.

use std::fmt;
use std::io::{self, BufRead, Read, Write};

use zstd::stream::{read, write};

use crate::Label;

/// How hard it is tried, of 1 to 22. What is packed is packed once and kept for long: a third smaller than with the
/// format's own choice of 3, and still faster than a disk takes it.
const LEVEL: i32 = 9;

/// Packs what is written to it.
pub struct Packer<W: Write> {
    encoder: write::Encoder<'static, W>,
}

impl<W: Write> Packer<W> {
    /// Packs into `target` a text of `bytes` bytes.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(target: W, bytes: u64) -> io::Result<Self> {
        let mut encoder = write::Encoder::new(target, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(bytes))?;
        Ok(Self { encoder })
    }

    /// Writes what is left, and the label if there is one.
    ///
    /// # Errors
    /// When the target refuses it, or another number of bytes was written than announced.
    pub fn finish(self, label: Option<&Label>) -> io::Result<W> {
        let mut target = self.encoder.finish()?;
        if let Some(label) = label {
            target.write_all(&label.frame())?;
        }
        Ok(target)
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

impl<W: Write> fmt::Debug for Packer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

/// Reads a packed text. What is damaged or cut short is an error of the kind `InvalidData` and never the end.
pub struct Unpacker<R: BufRead> {
    decoder: read::Decoder<'static, R>,
    /// Whether a byte has come out.
    begun: bool,
}

impl<R: BufRead> Unpacker<R> {
    /// Unpacks from `source`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(source: R) -> io::Result<Self> {
        Ok(Self { decoder: read::Decoder::with_buffer(source)?, begun: false })
    }
}

impl<R: BufRead> Read for Unpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damage = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let read = self.decoder.read(buffer).map_err(|error| match error.raw_os_error() {
            // What the system says is about the source and not about what is in it.
            Some(_) => error,
            None => damage(error.to_string()),
        })?;
        self.begun |= read > 0;
        if !self.begun && !buffer.is_empty() {
            // A file that was cut to nothing has no frame that could be incomplete.
            return Err(damage("there is nothing in it".to_owned()));
        }
        Ok(read)
    }
}

impl<R: BufRead> fmt::Debug for Unpacker<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").finish_non_exhaustive()
    }
}
