//! Lines out of a stream, none longer than allowed.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Reads lines. Nothing is lost when a read is dropped.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    max: usize,
}

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The line is longer than allowed. What follows it cannot be told from it.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// The stream broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, max: usize) -> Self {
        Self { reader: BufReader::new(reader), begun: Vec::new(), max }
    }

    /// The next line that is not blank, without its break. None at the end; half a line there counts as nothing,
    /// because who went away in the middle of a line has not said it.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, LineError> {
        loop {
            let piece = self.reader.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(piece.len());
            if self.begun.len() + part > self.max {
                return Err(LineError::TooLong(self.max));
            }
            self.begun.extend_from_slice(&piece[..part]);
            self.reader.consume(end.map_or(part, |end| end + 1));
            if end.is_some() {
                let line = std::mem::take(&mut self.begun);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
            }
        }
    }
}
