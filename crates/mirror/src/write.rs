//! Writing one batch.

use std::fs;

use protocol::{Mail, ThreadId};
use rollout::{Edge, Summary, checksum, is_packed};
use rusqlite::{Transaction, TransactionBehavior, named_params, params};
use stdx::{AbsPath, one_line};

use crate::change::{Change, Mark};
use crate::database::{self, Database};
use crate::fault::Fault;
use crate::limits::{MAX_SUMMARY, TITLE};
use crate::schema::VERSION;

/// A row that is newer than what comes is left alone; the same place of the same file may be said again.
const THREAD: &str = "
INSERT INTO threads (
    thread, tree, tree_seal, parent, path, incarnation, role, cwd, model, title, file, bytes, ordinal,
    last_line_bytes, checksum, status, unread, tokens_input, tokens_cached_input, tokens_output, updated_at, seal,
    summary
) VALUES (
    :thread, :tree, :tree_seal, :parent, :path, :incarnation, :role, :cwd, :model, :title, :file, :bytes, :ordinal,
    :last_line_bytes, :checksum, :status, :unread, :input, :cached_input, :output, :updated_at, :seal, :summary
)
ON CONFLICT (thread) DO UPDATE SET
    tree = excluded.tree, tree_seal = excluded.tree_seal, parent = excluded.parent, path = excluded.path,
    incarnation = excluded.incarnation, role = excluded.role, cwd = excluded.cwd, model = excluded.model,
    title = excluded.title, file = excluded.file, bytes = excluded.bytes, ordinal = excluded.ordinal,
    last_line_bytes = excluded.last_line_bytes, checksum = excluded.checksum, status = excluded.status,
    unread = excluded.unread, tokens_input = excluded.tokens_input,
    tokens_cached_input = excluded.tokens_cached_input, tokens_output = excluded.tokens_output,
    updated_at = excluded.updated_at, seal = excluded.seal, summary = excluded.summary
WHERE (excluded.bytes, excluded.ordinal) >= (threads.bytes, threads.ordinal)";

/// A spawn makes it open. That a closed one stays closed is the table's own rule, whoever writes.
const EDGE: &str = "
INSERT INTO thread_spawn_edges (
    child_thread_id, parent_thread_id, status, path, opened_at, closed_at, close_reason
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (child_thread_id) DO UPDATE SET
    parent_thread_id = excluded.parent_thread_id, status = excluded.status, path = excluded.path,
    opened_at = excluded.opened_at, closed_at = excluded.closed_at, close_reason = excluded.close_reason";

/// Writes all changes, or none.
pub(crate) fn apply<'a>(
    database: &mut Database,
    home: &AbsPath,
    changes: impl IntoIterator<Item = (&'a ThreadId, &'a Change)>,
) -> Result<(), Fault> {
    let batch = database.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if database::version(&batch)? != VERSION {
        return Err(Fault::Damaged("its tables are gone".to_owned()));
    }
    for (thread, change) in changes {
        if let Some(mark) = change.disproved {
            remove(&batch, *thread, mark)?;
        }
        if let Some(summary) = change.summary.as_deref().filter(|summary| is_behind_its_file(summary)) {
            note(&batch, home, summary)?;
        }
    }
    batch.commit()?;
    Ok(())
}

/// The mirror is never ahead: of a file that has gone, or is shorter than this says, nothing is kept. A packed one is
/// shorter and never changes.
fn is_behind_its_file(summary: &Summary) -> bool {
    fs::metadata(&summary.file).is_ok_and(|facts| facts.len() >= summary.bytes || is_packed(&summary.file))
}

fn remove(batch: &Transaction<'_>, thread: ThreadId, mark: Mark) -> Result<(), Fault> {
    let id = thread.to_string();
    let gone = batch
        .prepare_cached("DELETE FROM threads WHERE thread = ?1 AND bytes = ?2 AND ordinal = ?3 AND checksum = ?4")?
        .execute(params![id, int(mark.bytes), int(mark.ordinal), mark.checksum.cast_signed()])?;
    if gone > 0 {
        batch.prepare_cached("DELETE FROM thread_spawn_edges WHERE child_thread_id = ?1")?.execute([&id])?;
        batch.prepare_cached("DELETE FROM mail WHERE thread = ?1")?.execute([&id])?;
    }
    Ok(())
}

fn note(batch: &Transaction<'_>, home: &AbsPath, summary: &Summary) -> Result<(), Fault> {
    let text = serde_json::to_string(summary).map_err(|error| Fault::Unusable(error.to_string()))?;
    if text.len() > MAX_SUMMARY {
        return Ok(());
    }
    let meta = &summary.meta;
    let (thread, tree) = (meta.id.to_string(), meta.session_id.to_string());
    let parent = meta.parent_thread_id.map(|parent| parent.to_string());
    let written = batch.prepare_cached(THREAD)?.execute(named_params! {
        ":thread": thread,
        ":tree": tree,
        ":tree_seal": tree_seal(&thread, &tree),
        ":parent": parent,
        ":path": meta.agent_path.as_str(),
        ":incarnation": meta.incarnation,
        ":role": meta.agent_role,
        ":cwd": meta.cwd.to_string_lossy(),
        ":model": summary.turn_context.as_ref().map_or(&meta.model, |context| &context.model),
        ":title": one_line(summary.first_task.as_deref().unwrap_or_default(), TITLE),
        ":file": summary.file.strip_prefix(home).unwrap_or(&summary.file).to_string_lossy(),
        ":bytes": int(summary.bytes),
        ":ordinal": int(summary.ordinal),
        ":last_line_bytes": int(summary.last_line_bytes),
        ":checksum": summary.checksum.cast_signed(),
        ":status": summary.status.as_str(),
        ":unread": int(summary.unread() as u64),
        ":input": int(summary.usage.input),
        ":cached_input": int(summary.usage.cached_input),
        ":output": int(summary.usage.output),
        ":updated_at": summary.last_activity.to_string(),
        ":seal": checksum(text.as_bytes()).cast_signed(),
        ":summary": text,
    })?;
    if written > 0 {
        edge(batch, &thread, parent.as_deref(), summary)?;
        batch.prepare_cached("DELETE FROM mail WHERE thread = ?1")?.execute([&thread])?;
        letters(batch, &thread, "pending", &summary.pending)?;
        letters(batch, &thread, "cut_off", &summary.cut_off)?;
    }
    Ok(())
}

fn edge(batch: &Transaction<'_>, thread: &str, parent: Option<&str>, summary: &Summary) -> Result<(), Fault> {
    let (status, reason) = match &summary.edge {
        Edge::Open => ("open", None),
        Edge::Closed { reason, .. } => ("closed", Some(reason)),
    };
    batch.prepare_cached(EDGE)?.execute(params![
        thread,
        parent,
        status,
        summary.meta.agent_path.as_str(),
        summary.opened_at().to_string(),
        summary.closed_at().map(|at| at.to_string()),
        reason,
    ])?;
    Ok(())
}

fn letters(batch: &Transaction<'_>, thread: &str, state: &str, mail: &[Mail]) -> Result<(), Fault> {
    let mut insert = batch.prepare_cached("INSERT OR REPLACE INTO mail VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for mail in mail {
        insert.execute(params![thread, mail.id.to_string(), mail.kind.as_str(), mail.from.name(), state])?;
    }
    Ok(())
}

/// What makes a row's word about its tree believable without its summary.
pub(crate) fn tree_seal(thread: &str, tree: &str) -> i64 {
    checksum(format!("{thread} {tree}").as_bytes()).cast_signed()
}

/// SQLite has no unsigned integers; nothing here comes near the limit.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
