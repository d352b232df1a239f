//! Moving the rollouts of a tree that nobody drives: packed below `archived_sessions`, back, or away for good.
//!
//! Every function here is for the owner of the tree alone, moves one file at a time, and may be killed between any two
//! of its effects: what comes out is written beside under a name that nobody reads, synced, read back and compared,
//! renamed into its place, made durable there; only then what it came from is removed. So there is always one whole
//! file, sometimes two, and doing it again finishes it.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::Arc;

use pack::{Label, Packer};
use stdx::AbsPath;

use crate::packed::{open_packed, open_plain};
use crate::{Disk, DiskFile, Error, FileFacts, Piece, Pieces, Store, packed};

/// What the name of a file ends in that is being written beside.
const UNFINISHED: &str = ".tmp";

/// Bytes that are copied at once, 256 KiB.
const BLOCK: usize = 256 << 10;

/// What was done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is in its new place.
    Now,
    /// It was there already.
    Before,
}

/// A file as something to write to.
struct Sink<'a>(&'a dyn DiskFile);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Store {
    /// Packs an agent's rollout into the archive and removes the one in use. Blocks.
    ///
    /// # Errors
    /// When the disk does not take it or what was packed does not read back the same. Then the rollout is where it was.
    pub fn archive(&self, piece: &Piece) -> Result<Moved, Error> {
        let Some(plain) = &piece.plain else { return Ok(Moved::Before) };
        let target = self.other_of(plain)?;
        let kept = |error| kept("archive", &plain.file, error);
        let disk = &**self.disk();
        if let Some(packed) = &piece.packed {
            self.goes_on(plain, packed)?;
        }
        // How it ends goes into the label, so that lists need not unpack it.
        let end = self.summarise(plain)?;
        let unlike = packed::owned_by(piece.meta.session_id);
        let label = Label {
            bytes: end.bytes,
            ordinal: end.ordinal,
            last_line_bytes: end.last_line_bytes,
            checksum: end.checksum,
            ..unlike
        };
        // Nothing follows its last whole write: its owner has cut that off. Were it otherwise, it has to be read.
        let label = if end.bytes == plain.bytes { label } else { unlike };
        let unfinished = self.begin(&target).map_err(kept)?;
        let pack = |file: &dyn DiskFile| {
            let mut packer = Packer::new(io::BufWriter::with_capacity(BLOCK, Sink(file)), plain.bytes)?;
            copy(&mut open_plain(disk, &plain.file)?, &mut packer)?;
            packer.finish(Some(&label))?.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(())
        };
        let same = || same(&mut open_plain(disk, &plain.file)?, &mut open_packed(disk, &unfinished)?);
        self.put(&unfinished, &target, &pack, &same).map_err(kept)?;
        self.forget_writer(plain.thread);
        self.remove_synced(&plain.file).map_err(kept)?;
        Ok(Moved::Now)
    }

    /// Brings an agent's rollout back from the archive and removes the packed one. Blocks.
    ///
    /// # Errors
    /// When the packed file is damaged or the disk does not take it. Then the packed file is where it was.
    pub fn unarchive(&self, piece: &Piece) -> Result<Moved, Error> {
        let Some(packed) = &piece.packed else { return Ok(Moved::Before) };
        let plain = self.other_of(packed)?;
        let kept = |error| kept("bring back", &packed.file, error);
        let disk = &**self.disk();
        if let Some(there) = &piece.plain {
            // It counts, and the packed one may be older. Whoever put it there may have been killed before it was safe.
            self.goes_on(there, packed)?;
            disk.open_append(&there.file).and_then(|file| file.sync_data()).map_err(kept)?;
            self.sync_way(&there.file).map_err(kept)?;
        } else {
            let unfinished = self.begin(&plain).map_err(kept)?;
            let unpack = |file: &dyn DiskFile| {
                let mut target = io::BufWriter::with_capacity(BLOCK, Sink(file));
                copy(&mut open_packed(disk, &packed.file)?, &mut target)?;
                target.into_inner().map_err(io::IntoInnerError::into_error)?;
                Ok(())
            };
            let same = || same(&mut open_plain(disk, &unfinished)?, &mut open_packed(disk, &packed.file)?);
            self.put(&unfinished, &plain, &unpack, &same).map_err(|error| damaged(&packed.file, error))?;
        }
        self.forget_writer(packed.thread);
        self.remove_synced(&packed.file).map_err(kept)?;
        Ok(if piece.plain.is_some() { Moved::Before } else { Moved::Now })
    }

    /// Unpacks a packed rollout to nowhere.
    ///
    /// # Errors
    /// When it is damaged or cannot be read.
    pub fn verify_packed(&self, packed: &FileFacts) -> Result<(), Error> {
        let unpacked = || copy(&mut open_packed(&**self.disk(), &packed.file)?, &mut io::sink());
        unpacked().map_err(|error| damaged(&packed.file, error))
    }

    /// Removes an agent's files, in both places. Not safe from a loss of power before [`Store::settle`]. Blocks.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_piece(&self, piece: &Piece) -> Result<(), Error> {
        for facts in piece.packed.iter().chain(&piece.plain) {
            self.forget_writer(facts.thread);
            let strays = [unfinished(&facts.file), unfinished(&self.other_of(facts)?)];
            let strays = strays.into_iter().filter(|file| self.disk().exists(file));
            for file in strays.chain([facts.file.clone()]) {
                remove(&**self.disk(), &file).map_err(|error| kept("remove", &file, error))?;
            }
        }
        Ok(())
    }

    /// Makes durable what was moved and removed, by an earlier process too: the folders of all files of the tree, and
    /// of what became of them. Also removes what was left half written. Blocks.
    ///
    /// # Errors
    /// When a folder cannot be synced.
    pub fn settle(&self, pieces: &Pieces) -> Result<(), Error> {
        let mut folders = BTreeSet::new();
        for facts in pieces.pieces.iter().flat_map(|piece| piece.plain.iter().chain(&piece.packed)) {
            for file in [facts.file.clone(), self.other_of(facts)?] {
                let stray = unfinished(&file);
                if self.disk().exists(&stray) {
                    remove(&**self.disk(), &stray).map_err(|error| kept("remove", &stray, error))?;
                }
                folders.extend(file.parent());
            }
        }
        let others = pieces.scraps.iter().chain(pieces.damaged.iter().map(|facts| &facts.file));
        folders.extend(others.filter_map(AbsPath::parent));
        for folder in folders.iter().filter(|folder| self.disk().exists(folder)) {
            self.disk().sync_dir(folder).map_err(|error| Error::io("sync", &**folder, error))?;
        }
        Ok(())
    }

    /// Whether a rollout in use begins with what its packed copy holds, as it does unless one of them is damaged: lines
    /// are only ever added. Otherwise the copy may be the better one, and must not go.
    fn goes_on(&self, plain: &FileFacts, packed: &FileFacts) -> Result<(), Error> {
        let disk = &**self.disk();
        let begins = || {
            let (mut whole, mut copy) = (open_plain(disk, &plain.file)?, open_packed(disk, &packed.file)?);
            let (mut first, mut second) = (vec![0; BLOCK], vec![0; BLOCK]);
            loop {
                let read = fill(&mut copy, &mut second)?;
                let also = fill(&mut whole, &mut first[..read])?;
                if first[..also] != second[..read] {
                    return Ok(false);
                }
                if read < second.len() {
                    return Ok(true);
                }
            }
        };
        match begins() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Differs { file: plain.file.to_path_buf(), packed: packed.file.to_path_buf() }),
            // A copy that cannot be unpacked is of use to nobody.
            Err(error) if packed::damage(&packed.file, &error).is_some() => Ok(()),
            Err(error) => Err(kept("compare", &packed.file, error)),
        }
    }

    /// Where the file of these facts is when it is in the other place.
    fn other_of(&self, facts: &FileFacts) -> Result<AbsPath, Error> {
        self.other_place(&facts.file)
            .ok_or_else(|| Error::Missing { thread: facts.thread, folder: self.home().to_path_buf() })
    }

    /// Makes room for a file that is to come to `target`: its folder is there, and nothing under the unfinished name.
    fn begin(&self, target: &AbsPath) -> io::Result<AbsPath> {
        let unfinished = unfinished(target);
        if self.disk().exists(&unfinished) {
            remove(&**self.disk(), &unfinished)?;
        }
        if let Some(folder) = target.parent().filter(|folder| !self.disk().exists(folder)) {
            // It may have been there before and have been removed.
            self.durable().remove(folder.as_path());
            self.disk().create_dir_all(&folder)?;
        }
        Ok(unfinished)
    }

    /// Writes `unfinished`, looks whether it reads back as it should, and makes it `target`, for good.
    fn put(
        &self,
        unfinished: &AbsPath,
        target: &AbsPath,
        write: &dyn Fn(&dyn DiskFile) -> io::Result<()>,
        same: &dyn Fn() -> io::Result<bool>,
    ) -> io::Result<()> {
        let disk = self.disk();
        let written = (|| {
            let file = disk.create_new(unfinished)?;
            write(&*file)?;
            file.sync_data()?;
            if same()? { Ok(()) } else { Err(io::Error::other("what was written does not read back the same")) }
        })();
        if let Err(error) = written {
            // A full disk gets its room back. What cannot be removed now is removed when this is done again.
            let _ = disk.remove(unfinished);
            return Err(error);
        }
        disk.rename(unfinished, target)?;
        let Some(day) = target.parent() else { return Ok(()) };
        if self.durable().contains(day.as_path()) {
            return disk.sync_dir(&day);
        }
        self.sync_way(target)?;
        self.durable().insert(day.to_path_buf());
        Ok(())
    }

    /// Makes the entry of a file durable, and those of all folders above it.
    pub(crate) fn sync_way(&self, file: &AbsPath) -> io::Result<()> {
        let mut way = file.parent();
        while let Some(folder) = way.filter(|folder| folder.starts_with(self.home().as_path())) {
            self.disk().sync_dir(&folder)?;
            way = folder.parent();
        }
        Ok(())
    }

    fn remove_synced(&self, file: &AbsPath) -> io::Result<()> {
        remove(&**self.disk(), file)?;
        file.parent().map_or(Ok(()), |folder| self.disk().sync_dir(&folder))
    }
}

/// The error of unpacking.
fn damaged(file: &AbsPath, error: io::Error) -> Error {
    match packed::damage(file, &error) {
        Some(why) => Error::Damaged { file: file.to_path_buf(), why },
        None => kept("bring back", file, error),
    }
}

fn unfinished(file: &AbsPath) -> AbsPath {
    let mut name = file.as_os_str().to_owned();
    name.push(UNFINISHED);
    file.join(name)
}

fn kept(doing: &'static str, file: &AbsPath, source: io::Error) -> Error {
    Error::Kept { doing, file: file.to_path_buf(), source: Arc::new(source) }
}

/// Removes what may be gone already.
pub(crate) fn remove(disk: &dyn Disk, file: &AbsPath) -> io::Result<()> {
    match disk.remove(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Copies everything, in blocks, so that a target sees few writes.
fn copy(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = fill(from, &mut block)?;
        to.write_all(&block[..read])?;
        if read < block.len() {
            return Ok(());
        }
    }
}

/// Whether both read the same to their ends.
fn same(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let (mut first, mut second) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let (read, also) = (fill(one, &mut first)?, fill(other, &mut second)?);
        if first[..read] != second[..also] {
            return Ok(false);
        }
        if read < first.len() {
            return Ok(true);
        }
    }
}

/// Reads until the block is full or nothing is left.
fn fill(from: &mut dyn Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match from.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
