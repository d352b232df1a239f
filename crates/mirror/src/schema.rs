//! The tables, by version. A step that has been released never changes; what comes later is a further step.

/// The version of the database that this program reads and writes: `PRAGMA user_version`.
#[expect(clippy::cast_possible_wrap, reason = "there are a handful of steps")]
pub(crate) const VERSION: i64 = STEPS.len() as i64;

/// The n-th step leads from version n to n + 1.
pub(crate) const STEPS: &[&str] = &[FIRST];

/// Columns beside `summary` are for lists and for people with a shell; what is believed is the summary, and it only
/// while `seal` is its checksum. `tree_seal` is that of thread and tree, which alone decide that a file is not read.
const FIRST: &str = "
CREATE TABLE threads (
    thread TEXT PRIMARY KEY NOT NULL,
    tree TEXT NOT NULL,
    tree_seal INTEGER NOT NULL,
    parent TEXT,
    path TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    role TEXT NOT NULL,
    cwd TEXT NOT NULL,
    model TEXT NOT NULL,
    title TEXT NOT NULL,
    file TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    last_line_bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    status TEXT NOT NULL,
    unread INTEGER NOT NULL,
    tokens_input INTEGER NOT NULL,
    tokens_cached_input INTEGER NOT NULL,
    tokens_output INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    seal INTEGER NOT NULL,
    summary TEXT NOT NULL
) STRICT;
CREATE INDEX threads_by_tree ON threads (tree, thread, tree_seal);
CREATE INDEX threads_by_cwd ON threads (cwd, updated_at);

CREATE TABLE thread_spawn_edges (
    child_thread_id TEXT PRIMARY KEY NOT NULL,
    parent_thread_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('open', 'closed')),
    path TEXT NOT NULL,
    opened_at TEXT NOT NULL,
    closed_at TEXT,
    close_reason TEXT
) STRICT;
CREATE INDEX thread_spawn_edges_by_parent ON thread_spawn_edges (parent_thread_id);
CREATE TRIGGER closed_is_final BEFORE UPDATE ON thread_spawn_edges
    WHEN OLD.status = 'closed' AND NEW.status <> 'closed'
    BEGIN SELECT RAISE(IGNORE); END;

CREATE TABLE mail (
    thread TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    sender TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'cut_off')),
    PRIMARY KEY (thread, id)
) STRICT, WITHOUT ROWID;
";
