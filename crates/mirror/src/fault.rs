//! What an error of SQLite means here.

use rusqlite::ErrorCode;
use stdx::AbsPath;

use crate::Trouble;
use crate::schema::VERSION;

/// Why the database could not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Somebody else holds it.
    Busy,
    /// What is in it is not what we wrote.
    Damaged(String),
    /// A newer version made it.
    Future(i64),
    /// Anything else: no permission, no room, no such folder.
    Unusable(String),
}

impl Fault {
    /// What a person is told. A damaged database that reaches this could not be moved aside.
    pub(crate) fn trouble(self, file: &AbsPath) -> Trouble {
        let file = file.clone();
        match self {
            Self::Busy => Trouble::Busy { file },
            Self::Future(found) => Trouble::Future { file, found, known: VERSION },
            Self::Damaged(why) | Self::Unusable(why) => Trouble::Unusable { file, why },
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::WouldBlock => Self::Busy,
            _ => Self::Unusable(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let why = stdx::one_line(&error.to_string(), 200);
        let rusqlite::Error::SqliteFailure(failure, _) = &error else {
            // A value that has another type than its column: STRICT tables of ours have none.
            return Self::Damaged(why);
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => Self::Busy,
            // `Unknown` is what a missing table or column gives, of a database that has our version and is not ours.
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown => Self::Damaged(why),
            ErrorCode::SystemIoFailure if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ => {
                Self::Damaged(why)
            }
            _ => Self::Unusable(why),
        }
    }
}
