//! What a person is told when the mirror does not help.

use stdx::AbsPath;

/// Why rollouts are read that need not have been. Each text is one sentence that says what happens now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nobody wanted it.
    #[error("the mirror is switched off, so every rollout is read; nothing is lost")]
    Off,
    /// It could not be read. It works again from now on.
    #[error(
        "`{file}` was damaged ({why}), so it was moved to `{aside}` and is made anew from the rollouts; nothing is \
         lost, and the old file may be deleted"
    )]
    Damaged {
        /// The database.
        file: AbsPath,
        /// Where the damaged one is now.
        aside: AbsPath,
        /// What SQLite said.
        why: String,
    },
    /// A newer version made it. It stays off for this process.
    #[error(
        "`{file}` was made by a newer version (its format is {found}, this version knows {known}), so it is left as \
         it is and every rollout is read; nothing is lost"
    )]
    Future {
        /// The database.
        file: AbsPath,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// Somebody else held it for longer than we wait. The next operation tries again.
    #[error("another program holds `{file}`, so rollouts are read instead this time; nothing is lost")]
    Busy {
        /// The database.
        file: AbsPath,
    },
    /// The system refused it.
    #[error("`{file}` cannot be used ({why}), so every rollout is read; nothing is lost")]
    Unusable {
        /// The database.
        file: AbsPath,
        /// What the system said.
        why: String,
    },
}
