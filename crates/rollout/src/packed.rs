//! Reading a rollout, plain or packed. This is the one place that knows the difference.
//!
//! A packed rollout is one of an archived tree: the same bytes, as [`pack`] keeps them. Its name ends in `.zst`.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pack::{Label, Unpacker};
use protocol::TreeId;
use stdx::AbsPath;

use crate::{Disk, FileFacts, ReadAt, Summary};

/// What the name of a packed rollout ends in.
pub(crate) const ENDING: &str = ".zst";

/// Bytes that are read of a file at once, 256 KiB: few enough to hold, many enough that calls cost nothing.
const WINDOW: usize = 256 << 10;

/// A folder that rollouts lie in, by day.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) folder: AbsPath,
    /// Whether those in it are packed.
    pub(crate) packed: bool,
}

/// Whether a file is packed, by its name.
pub fn is_packed(file: &Path) -> bool {
    file.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes())
}

/// A file from its beginning, one piece after the other.
struct Windows {
    file: Arc<dyn ReadAt>,
    at: u64,
}

impl Read for Windows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

type Unpacking = Unpacker<BufReader<Windows>>;

fn windows(file: Arc<dyn ReadAt>) -> BufReader<Windows> {
    BufReader::with_capacity(WINDOW, Windows { file, at: 0 })
}

/// The bytes of any file as they stand on the disk.
pub(crate) fn open_plain(disk: &dyn Disk, file: &Path) -> io::Result<BufReader<impl Read + use<>>> {
    Ok(windows(disk.open_read(file)?.into()))
}

/// The text of a packed file, whatever its name ends in.
pub(crate) fn open_packed(disk: &dyn Disk, file: &Path) -> io::Result<impl Read + use<>> {
    Unpacker::new(windows(disk.open_read(file)?.into()))
}

/// The text of a rollout, to be read at any place, whether it is packed or not.
pub(crate) fn open(disk: &dyn Disk, file: &Path) -> io::Result<Box<dyn ReadAt>> {
    let reader = disk.open_read(file)?;
    if is_packed(file) { Ok(Box::new(Unpacked::new(reader.into())?)) } else { Ok(reader) }
}

/// The text of a packed rollout. Reading forwards unpacks each byte once; reading at an earlier place begins again, so
/// whoever reads it backwards would read it many times.
struct Unpacked {
    file: Arc<dyn ReadAt>,
    bytes: u64,
    /// What comes out next, and where in the text that is.
    next: Mutex<(u64, Unpacking)>,
}

impl Unpacked {
    fn new(file: Arc<dyn ReadAt>) -> io::Result<Self> {
        let unpacking = || Unpacker::new(windows(Arc::clone(&file)));
        let bytes = match end_label(&*file)? {
            Some(label) if label.bytes > 0 => label.bytes,
            _ => io::copy(&mut unpacking()?, &mut io::sink())?,
        };
        let next = Mutex::new((0, unpacking()?));
        Ok(Self { file, bytes, next })
    }
}

impl ReadAt for Unpacked {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, unpacking) = &mut *next;
        if offset < *at {
            *unpacking = Unpacker::new(windows(Arc::clone(&self.file)))?;
            *at = 0;
        }
        *at += io::copy(&mut unpacking.take(offset - *at), &mut io::sink())?;
        if *at < offset {
            return Ok(0);
        }
        let read = unpacking.read(into)?;
        *at += read as u64;
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }
}

/// What stands at the end of a packed file, if anything does.
fn end_label(file: &dyn ReadAt) -> io::Result<Option<Label>> {
    let Some(mut at) = file.size()?.checked_sub(Label::LEN as u64) else { return Ok(None) };
    let mut end = Vec::with_capacity(Label::LEN);
    let mut piece = [0; Label::LEN];
    while end.len() < Label::LEN {
        let read = file.read_at(at, &mut piece[end.len()..])?;
        if read == 0 {
            return Ok(None);
        }
        let from = end.len();
        end.extend_from_slice(&piece[from..from + read]);
        at += read as u64;
    }
    Ok(Label::at_end(&end))
}

/// Whether a packed file is still as a summary has it, by its label.
pub(crate) fn ends_as(disk: &dyn Disk, facts: &FileFacts, summary: &Summary) -> bool {
    let Summary { bytes, ordinal, last_line_bytes, checksum, .. } = *summary;
    let label = Label { bytes, ordinal, last_line_bytes, checksum, ..owned_by(summary.meta.session_id) };
    self::label(disk, facts) == Some(label)
}

/// The label of a packed file.
pub(crate) fn label(disk: &dyn Disk, facts: &FileFacts) -> Option<Label> {
    let file = disk.open_read(&facts.file).ok()?;
    if file.size().ok()? != facts.bytes {
        return None;
    }
    end_label(&*file).ok()?
}

/// The label of a rollout of this tree of which nothing else is said: no summary fits it.
pub(crate) fn owned_by(tree: TreeId) -> Label {
    Label { owner: tree.uuid().as_u128(), ..Label::default() }
}

/// Why a file could not be read, when that is because of what is in it and not because of the system.
pub(crate) fn damage(file: &Path, error: &io::Error) -> Option<String> {
    (is_packed(file) && error.kind() == io::ErrorKind::InvalidData).then(|| error.to_string())
}
