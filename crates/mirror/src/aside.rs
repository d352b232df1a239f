//! Moving a damaged database out of the way.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use stdx::AbsPath;

use crate::database::Identity;
use crate::limits::{MAX_DAMAGED, PATIENCE};

/// What SQLite keeps beside a database.
const COMPANIONS: [&str; 3] = ["-shm", "-wal", "-journal"];

/// Moves `file` aside if it still is the damaged one; nothing when another process has done so already. Processes
/// that find the same damage take turns, so that nobody moves the new database away.
pub(crate) fn set_aside(file: &AbsPath, damaged: Option<Identity>) -> io::Result<Option<AbsPath>> {
    let _turn = turn(file, File::try_lock)?;
    if damaged.is_none() || Identity::of(file) != damaged {
        return Ok(None);
    }
    let aside = free_name(file);
    // The companions first: once the database is gone, a new one may be made at any moment with companions of its own.
    for end in COMPANIONS {
        match fs::rename(with(file, end), with(&aside, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(file, &aside)?;
    forget_oldest(file);
    Ok(Some(aside))
}

fn with(file: &AbsPath, end: &str) -> AbsPath {
    let mut name: OsString = file.as_os_str().to_owned();
    name.push(end);
    file.join(name)
}

/// Held while a database is opened: nobody moves it meanwhile. Otherwise whoever opened the damaged one a moment too
/// late would make companions of it beside the new one.
pub(crate) fn opening(file: &AbsPath) -> io::Result<File> {
    turn(file, File::try_lock_shared)
}

/// Waits for the lock between those who open and those who move, for a while.
fn turn(file: &AbsPath, lock: impl Fn(&File) -> Result<(), TryLockError>) -> io::Result<File> {
    const PAUSE: Duration = Duration::from_millis(1);
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A file of its own, never unlinked: closing a descriptor of the database would drop SQLite's locks on it.
    let path = with(file, ".lock");
    if fs::metadata(&path).is_ok_and(|facts| !facts.is_file()) {
        // To open a pipe would wait for its other end.
        return Err(io::Error::other(format!("`{path}` is no ordinary file; move it away")));
    }
    let held = options.write(true).create(true).truncate(false).open(path)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match lock(&held) {
            Ok(()) => return Ok(held),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

const MARK: &str = ".damaged-";

fn free_name(file: &AbsPath) -> AbsPath {
    let name = format!("{MARK}{}", stdx::now().for_file_name());
    let taken = |name: &AbsPath| name.symlink_metadata().is_ok();
    let mut aside = with(file, &name);
    let mut more = 1_u32;
    while taken(&aside) {
        more += 1;
        aside = with(file, &format!("{name}.{more}"));
    }
    aside
}

/// They are of use to nobody but whoever looks for the cause, who wants the latest.
fn forget_oldest(file: &AbsPath) {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return };
    let mut start = name.to_owned();
    start.push(MARK);
    let ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.starts_with(start.as_encoded_bytes()) && !COMPANIONS.iter().any(|end| name.ends_with(end.as_bytes()))
    };
    let Ok(entries) = fs::read_dir(&folder) else { return };
    let mut damaged: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| ours(path))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, AbsPath::new(path).ok()?)))
        .collect();
    damaged.sort();
    let surplus = damaged.len().saturating_sub(MAX_DAMAGED);
    for (_, old) in damaged.into_iter().take(surplus) {
        for end in COMPANIONS.into_iter().chain([""]) {
            // What cannot be removed now is removed with the next one, or stays.
            let _ = fs::remove_file(with(&old, end));
        }
    }
}
