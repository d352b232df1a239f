//! Reading rows. What does not fit together is not a row.

use std::collections::HashMap;

use protocol::{ThreadId, TreeId};
use rollout::{Summary, checksum};
use rusqlite::{Connection, params};

use crate::change::Mark;
use crate::fault::Fault;
use crate::side::by_side;
use crate::write::tree_seal;

/// An agent as the mirror has it. Its rollout may have gone on since.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was noted last.
    pub summary: Summary,
}

/// What the mirror has about one file.
pub(crate) enum Stored {
    /// A row.
    Row {
        /// What the columns say, by which the row can be removed.
        mark: Mark,
        /// Nothing when the row is not as it was written.
        summary: Option<Box<Summary>>,
    },
    /// A row of an agent that nobody asked for.
    Elsewhere,
}

/// Whose rows are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everybody's.
    All,
    /// Those of one tree.
    Tree(TreeId),
    /// Those of the roots.
    Roots,
}

impl Wanted {
    /// What is asked of the database, and what of its index alone.
    fn conditions(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::All => ("?1 IS NULL", None),
            Self::Tree(_) => ("tree = ?1", Some("tree <> ?1")),
            // A tree has the id of its root.
            Self::Roots => (
                "?1 IS NULL AND rowid IN (SELECT rowid FROM threads WHERE tree = thread)",
                Some("?1 IS NULL AND tree <> thread"),
            ),
        }
    }

    /// Whether an agent is wanted.
    pub(crate) fn has(self, thread: ThreadId, tree: TreeId) -> bool {
        match self {
            Self::All => true,
            Self::Tree(wanted) => tree == wanted,
            Self::Roots => tree.root() == thread,
        }
    }

    /// Whether a file of this tree may be one that is wanted; it is not known of which agent.
    pub(crate) fn may_have(self, tree: TreeId) -> bool {
        match self {
            Self::Tree(wanted) => tree == wanted,
            Self::All | Self::Roots => true,
        }
    }
}

/// Rows by thread: those that are wanted whole, of others only that they are not.
pub(crate) fn load(connection: &Connection, wanted: Wanted) -> Result<HashMap<ThreadId, Stored>, Fault> {
    const COLUMNS: &str = "SELECT thread, bytes, ordinal, checksum, seal, summary, tree, tree_seal FROM threads";
    let mut rows = HashMap::new();
    let text = if let Wanted::Tree(tree) = wanted { Some(tree.to_string()) } else { None };
    let (ours, others) = wanted.conditions();
    if let Some(others) = others {
        // From the index alone.
        let mut others = connection.prepare(&format!("SELECT thread, tree, tree_seal FROM threads WHERE {others}"))?;
        let mut others = others.query(params![text])?;
        while let Some(row) = others.next()? {
            let (Ok(thread), Ok(tree)) = (row.get_ref(0)?.as_str(), row.get_ref(1)?.as_str()) else { continue };
            let seal: i64 = row.get(2)?;
            if let Ok(id) = thread.parse()
                && tree_seal(thread, tree) == seal
            {
                rows.insert(id, Stored::Elsewhere);
            }
        }
    }
    let mut found = connection.prepare(&format!("{COLUMNS} WHERE {ours}"))?;
    let mut found = found.query(params![text])?;
    let mut raw: Vec<(ThreadId, Mark, u64, Vec<u8>)> = Vec::new();
    while let Some(row) = found.next()? {
        let Some(id) = row.get_ref(0)?.as_str().ok().and_then(|thread| thread.parse().ok()) else { continue };
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let mark = Mark { bytes: number(1)?, ordinal: number(2)?, checksum: number(3)? };
        raw.push((id, mark, number(4)?, row.get_ref(5)?.as_bytes().unwrap_or_default().to_vec()));
    }
    let summaries = by_side(&raw, |(id, _, seal, text)| {
        let as_written = checksum(text) == *seal;
        let summary: Option<Box<Summary>> = if as_written { serde_json::from_slice(text).ok() } else { None };
        summary.filter(|summary| summary.meta.id == *id && wanted.has(*id, summary.meta.session_id))
    });
    let ours = raw.into_iter().zip(summaries);
    rows.extend(ours.map(|((id, mark, ..), summary)| (id, Stored::Row { mark, summary })));
    Ok(rows)
}
