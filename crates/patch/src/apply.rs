//! Carrying a patch out, section by section.

use std::collections::BTreeMap;

use crate::edit::edit;
use crate::{Action, ApplyError, Chunk, Done, Files, FilesError, Patch, Problem, Section, Summary};

/// Byte order marks of UTF-16, whose line ends are not single bytes.
const UTF16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// Carries `patch` out, in its order. All chunks of a file are placed before that file is written. What has been
/// done to earlier files stays when a later one does not fit; call [`dry_run`] first to avoid that.
///
/// # Errors
/// At the first section that cannot be carried out, with what was done before it.
pub fn apply(patch: &Patch, files: &mut impl Files) -> Result<Summary, ApplyError> {
    let mut done = Summary::default();
    for section in &patch.sections {
        if let Err(problem) = apply_section(section, files, &mut done) {
            return Err(ApplyError { problem, done });
        }
    }
    Ok(done)
}

/// What [`apply`] would do: reads from `files`, writes nothing.
///
/// # Errors
/// As [`apply`], except for writes that the file system would refuse; nothing is ever listed as already done.
pub fn dry_run(patch: &Patch, files: &mut impl Files) -> Result<Summary, ApplyError> {
    let mut overlay = Overlay { below: files, written: BTreeMap::new() };
    apply(patch, &mut overlay).map_err(|error| ApplyError { done: Summary::default(), ..error })
}

fn apply_section(section: &Section, files: &mut impl Files, done: &mut Summary) -> Result<(), Problem> {
    let path = &section.path;
    match &section.action {
        Action::Add(lines) => {
            let content = whole(lines);
            match read(files, path)? {
                Some(existing) if existing != content => return Err(Problem::Exists(path.clone())),
                Some(_) => {}
                None => write(files, path, &content, None)?,
            }
            done.done.push(Done::Added(path.clone()));
        }
        Action::Replace(lines) => {
            read(files, path)?.ok_or_else(|| Problem::Missing(path.clone()))?;
            write(files, path, &whole(lines), Some(path))?;
            done.done.push(Done::Modified(path.clone()));
        }
        Action::Delete => {
            if !remove(files, path)? {
                return Err(Problem::Missing(path.clone()));
            }
            done.done.push(Done::Deleted(path.clone()));
        }
        Action::Update { move_to, chunks } => update(path, move_to.as_deref(), chunks, files, done)?,
    }
    Ok(())
}

fn update(
    path: &str,
    move_to: Option<&str>,
    chunks: &[Chunk],
    files: &mut impl Files,
    done: &mut Summary,
) -> Result<(), Problem> {
    let old = read(files, path)?.ok_or_else(|| Problem::Missing(path.to_owned()))?;
    let new = if chunks.is_empty() {
        old
    } else if UTF16.iter().any(|mark| old.starts_with(mark)) {
        return Err(Problem::Utf16(path.to_owned()));
    } else {
        edit(path, &old, chunks).map_err(Problem::Mismatch)?
    };
    let Some(to) = move_to else {
        write(files, path, &new, Some(path))?;
        done.done.push(Done::Modified(path.to_owned()));
        return Ok(());
    };
    if read(files, to)?.is_some() {
        return Err(Problem::Occupied { from: path.to_owned(), to: to.to_owned() });
    }
    write(files, to, &new, Some(path))?;
    if let Err(problem) = remove(files, path) {
        // The content is safe in both places, and the author has to know of the second one.
        done.done.push(Done::Added(to.to_owned()));
        return Err(problem);
    }
    done.done.push(Done::Moved { from: path.to_owned(), to: to.to_owned() });
    Ok(())
}

/// The content of a file that is given as a whole.
fn whole(lines: &[String]) -> Vec<u8> {
    let mut content = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        content.extend_from_slice(line.as_bytes());
        content.push(b'\n');
    }
    content
}

fn read(files: &mut impl Files, path: &str) -> Result<Option<Vec<u8>>, Problem> {
    files.read(path).map_err(failed("read", path))
}

fn write(files: &mut impl Files, path: &str, content: &[u8], like: Option<&str>) -> Result<(), Problem> {
    files.write(path, content, like).map_err(failed("write", path))
}

fn remove(files: &mut impl Files, path: &str) -> Result<bool, Problem> {
    files.remove(path).map_err(failed("remove", path))
}

fn failed(doing: &'static str, path: &str) -> impl FnOnce(FilesError) -> Problem {
    move |error| Problem::Files { doing, path: path.to_owned(), error }
}

/// Files as they would be: what is written stays here, the rest shows through.
struct Overlay<'a, F> {
    below: &'a mut F,
    /// `None` for a file that was removed.
    written: BTreeMap<String, Option<Vec<u8>>>,
}

impl<F: Files> Files for Overlay<'_, F> {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        match self.written.get(path) {
            Some(content) => Ok(content.clone()),
            None => self.below.read(path),
        }
    }

    fn write(&mut self, path: &str, content: &[u8], _like: Option<&str>) -> Result<(), FilesError> {
        self.written.insert(path.to_owned(), Some(content.to_vec()));
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        let existed = self.read(path)?.is_some();
        self.written.insert(path.to_owned(), None);
        Ok(existed)
    }
}

#[cfg(test)]
mod tests;
