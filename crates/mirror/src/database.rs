//! One connection, with the tables as this version knows them.

use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use stdx::AbsPath;

use crate::aside::opening;
use crate::fault::Fault;
use crate::limits::{MAX_CHECKED, PATIENCE};
use crate::schema::{STEPS, VERSION};

/// How long to pause where SQLite answers that the database is held without waiting first.
const PAUSE: Duration = Duration::from_millis(5);

/// An open database.
pub(crate) struct Database {
    pub(crate) connection: Connection,
    identity: Option<Identity>,
}

/// Which file stands at a path, so that a deleted or replaced one is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity([u64; 2]);

impl Identity {
    pub(crate) fn of(file: &Path) -> Option<Self> {
        // The file itself is never opened here: closing any descriptor of it would drop SQLite's locks.
        fs::metadata(file).ok().map(|facts| Self::from(&facts))
    }
}

impl From<&Metadata> for Identity {
    #[cfg(unix)]
    fn from(facts: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self([facts.dev(), facts.ino()])
    }

    #[cfg(not(unix))]
    fn from(facts: &Metadata) -> Self {
        let created = facts.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Self([created.map_or(0, |since| since.as_secs()), created.map_or(0, |since| since.subsec_nanos().into())])
    }
}

impl Database {
    /// Opens the database, and makes it if there is none. Waits at most [`PATIENCE`] for others.
    pub(crate) fn open(file: &AbsPath) -> Result<Self, Fault> {
        let _turn = opening(file)?;
        let before = Identity::of(file);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(file, flags)?;
        if before.is_none() {
            make_private(file);
        }
        let end = Instant::now() + PATIENCE;
        loop {
            connection.busy_timeout(end.saturating_duration_since(Instant::now()))?;
            match prepare(&mut connection) {
                // Not every step of SQLite waits by itself, changing the journal for one.
                Err(Fault::Busy) if Instant::now() + PAUSE < end => std::thread::sleep(PAUSE),
                prepared => break prepared?,
            }
        }
        connection.busy_timeout(PATIENCE)?;
        Ok(Self { connection, identity: Identity::of(file) })
    }

    /// Whether it still is what stands at this path.
    pub(crate) fn is_at(&self, file: &Path) -> bool {
        self.identity.is_some() && self.identity == Identity::of(file)
    }

    /// Looks through all tables and indexes, unless that would take long.
    pub(crate) fn check(&self, file: &Path) -> Result<(), Fault> {
        if fs::metadata(file).is_ok_and(|facts| facts.len() > MAX_CHECKED) {
            return Ok(());
        }
        let found: String = self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if found == "ok" { Ok(()) } else { Err(Fault::Damaged(stdx::one_line(&found, 200))) }
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
    }
}

/// What is in a mirror is as private as the rollouts.
fn make_private(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if let Err(error) = fs::set_permissions(file, fs::Permissions::from_mode(0o600)) {
            tracing::debug!(%error, "the mirror keeps the permissions it was made with");
        }
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// The version of the tables; an error when this program must not write to them.
pub(crate) fn version(connection: &Connection) -> Result<i64, Fault> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        found if found > VERSION => Err(Fault::Future(found)),
        found if found < 0 => Err(Fault::Damaged(format!("there is no version {found}"))),
        found => Ok(found),
    }
}

fn prepare(connection: &mut Connection) -> Result<(), Fault> {
    // One view of both, because another process may be making the tables at this moment.
    let look = connection.transaction()?;
    let found = version(&look)?;
    nobody_elses(&look, found)?;
    drop(look);
    if found < VERSION {
        // Before the tables, so that whoever finds them finds the journal that lets readers and a writer work at once.
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        migrate(connection)?;
    }
    // Durable enough: a power loss may cost the latest rows, never the file.
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(())
}

/// A database without a version is one that nobody has written to yet.
fn nobody_elses(connection: &Connection, version: i64) -> Result<(), Fault> {
    if version > 0 {
        return Ok(());
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 { Err(Fault::Damaged("it has tables of somebody else".to_owned())) } else { Ok(()) }
}

fn migrate(connection: &mut Connection) -> Result<(), Fault> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Again under the lock: another process may have made the tables meanwhile.
    let found = version(&step)?;
    nobody_elses(&step, found)?;
    for sql in STEPS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        step.execute_batch(sql)?;
    }
    step.pragma_update(None, "user_version", VERSION)?;
    step.commit()?;
    Ok(())
}
