//! Reading rows. What does not fit together is not a row.

use std::collections::HashMap;

use protocol::{ThreadId, TreeId};
use rollout::{Summary, checksum};
use rusqlite::{Connection, params};

use crate::change::Mark;
use crate::fault::Fault;
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
    /// A row of a tree that nobody asked for.
    Elsewhere,
}

/// Rows by thread: of `tree` whole, of other trees only that they are of others.
pub(crate) fn load(connection: &Connection, tree: Option<TreeId>) -> Result<HashMap<ThreadId, Stored>, Fault> {
    const COLUMNS: &str = "SELECT thread, bytes, ordinal, checksum, seal, summary, tree, tree_seal FROM threads";
    let mut rows = HashMap::new();
    let text = tree.map(|tree| tree.to_string());
    if let Some(tree) = &text {
        // From the index alone.
        let mut others = connection.prepare("SELECT thread, tree, tree_seal FROM threads WHERE tree <> ?1")?;
        let mut others = others.query([tree])?;
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
    let mut wanted = connection.prepare(&format!("{COLUMNS} WHERE ?1 IS NULL OR tree = ?1"))?;
    let mut wanted = wanted.query(params![text])?;
    while let Some(row) = wanted.next()? {
        let Some(id) = row.get_ref(0)?.as_str().ok().and_then(|thread| thread.parse().ok()) else { continue };
        let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
        let mark = Mark { bytes: number(1)?, ordinal: number(2)?, checksum: number(3)? };
        let text = row.get_ref(5)?.as_bytes().unwrap_or_default();
        let as_written = checksum(text) == number(4)?;
        let summary: Option<Summary> = if as_written { serde_json::from_slice(text).ok() } else { None };
        let fits = |summary: &Summary| summary.meta.id == id && tree.is_none_or(|t| t == summary.meta.session_id);
        rows.insert(id, Stored::Row { mark, summary: summary.filter(fits).map(Box::new) });
    }
    Ok(rows)
}
