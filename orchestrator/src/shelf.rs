//! Putting a whole tree away, bringing it back, and deleting it.
//!
//! All three work under the tree's lock, on files alone, one file after the other; how a single file moves is in
//! `rollout`. Between two files a kill leaves a tree that lies in two places. Everybody reads it wholly then. But nobody
//! drives it: `Tree::open` refuses a tree of which any file is archived, and does not bring the rest back by itself,
//! because whoever was putting the tree away wanted it away, because bringing back may fail for want of room or by a
//! damaged file in the middle of somebody's `send`, and because which of the two was broken off cannot be told. Either
//! command finishes it, from wherever it stands.
//!
//! The root goes last into the archive and comes first out of it. So an archived root means that all of the tree is,
//! and both ways broken off look the same: the root in use, some below it archived.

use std::collections::{BTreeSet, HashSet};

use mirror::Mirror;
use protocol::{ThreadId, TreeId};
use rollout::{OwnerHint, Pieces, Store};

use crate::{Options, Tree, TreeError};

/// How often a tree is looked at anew that somebody archives or brings back at the same moment.
const TRIES: usize = 8;

/// What became of a tree.
#[derive(Clone, Debug)]
pub struct Shelved {
    /// The tree.
    pub tree: TreeId,
    /// Its agents.
    pub agents: usize,
    /// Bytes of its rollouts on the disk before.
    pub bytes_before: u64,
    /// And afterwards.
    pub bytes_after: u64,
    /// Whether there was anything left to do.
    pub changed: bool,
    /// What a person should be told. One sentence each.
    pub problems: Vec<String>,
}

/// Keeps everybody else away while files move, as long as it lives: a tree that was taken over, or the bare lock.
type Held = Box<dyn Send>;

/// Archives a tree. It is taken over first, as `resume` does: what a crash broke off is closed, results are sent, and
/// processes that it left are ended. No model is asked.
///
/// # Errors
/// When somebody drives it, it cannot be taken over, a process of it survives, or a file cannot be moved: what was not
/// moved by then is where it was, and doing it again goes on.
pub async fn archive(options: Options, id: TreeId) -> Result<Shelved, TreeError> {
    let (store, mirror) = (options.store.clone(), options.mirror.clone());
    let (held, mut problems) = hold(options, id).await?;
    let pieces = store.pieces(id)?;
    let changed = pieces.pieces.iter().any(|piece| piece.plain.is_some());
    for piece in pieces.pieces.iter().rev() {
        store.archive(piece)?;
    }
    store.settle(&pieces)?;
    problems.extend(pieces.problems.iter().map(ToString::to_string));
    let done = finish(&store, &mirror, id, &pieces, changed, problems).await;
    drop(held);
    done
}

/// Keeps a tree that is to be archived: taken over, unless it is archived in part.
async fn hold(options: Options, id: TreeId) -> Result<(Held, Vec<String>), TreeError> {
    for _ in 0..TRIES {
        let store = &options.store;
        if known(store, id)?.any_archived() {
            let lock = store.lock(id, &options.owner)?;
            if known(store, id)?.any_archived() {
                return Ok((Box::new(lock), Vec::new()));
            }
            // Somebody brought it back just now, and may have driven it since.
            continue;
        }
        match Tree::open(options.clone(), id).await {
            Ok((tree, report)) => {
                tree.shut_down().await;
                let survive: Vec<String> = report.agents.into_iter().flat_map(|agent| agent.survive).collect();
                if !survive.is_empty() {
                    return Err(TreeError::Survives { tree: id, commands: survive });
                }
                return Ok((Box::new(tree), report.problems));
            }
            Err(TreeError::Archived(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(TreeError::Lock(rollout::LockError::Owned(OwnerHint::default())))
}

/// Brings an archived tree back. It is at rest, as it was archived.
///
/// # Errors
/// When somebody drives it, a packed file is damaged, or a file cannot be moved. Before the first file moves all are
/// verified, so damage leaves the tree as it was.
pub async fn unarchive(store: &Store, mirror: &Mirror, owner: &OwnerHint, id: TreeId) -> Result<Shelved, TreeError> {
    known(store, id)?;
    let _lock = store.lock(id, owner)?;
    let pieces = known(store, id)?;
    // One that does not even begin as a rollout is an agent's all the same, and a tree without it must not be driven.
    if let Some(lost) = unreadable(store, mirror, id)?.into_iter().find(|problem| rollout::is_packed(&problem.file)) {
        return Err(rollout::Error::Damaged { file: lost.file.to_path_buf(), why: lost.why }.into());
    }
    let archived = pieces.pieces.iter().filter(|piece| piece.is_archived());
    archived
        .filter_map(|piece| piece.packed.as_ref())
        .chain(&pieces.damaged)
        .try_for_each(|f| store.verify_packed(f))?;
    let changed = pieces.pieces.iter().any(|piece| piece.packed.is_some());
    for piece in &pieces.pieces {
        store.unarchive(piece)?;
    }
    store.settle(&pieces)?;
    let problems = pieces.problems.iter().map(ToString::to_string).collect();
    finish(store, mirror, id, &pieces, changed, problems).await
}

/// Deletes a tree and everything that is kept of it, archived or not, also one that is damaged or that somebody began
/// to delete. Processes that a crash left are ended first.
///
/// # Errors
/// When somebody drives it, or a process of it survives: then the tree is as it was. When something cannot be removed:
/// then the tree is marked, nobody takes it for one any more, and doing it again goes on.
pub async fn delete(options: &Options, id: TreeId) -> Result<Shelved, TreeError> {
    let (store, mirror) = (&options.store, &options.mirror);
    // Looked at before the lock makes the folder of a tree that is not there.
    if store.pieces(id)?.pieces.is_empty() && !store.is_deleting(id) {
        return Err(TreeError::NoTree(id));
    }
    // As in taking over: a last owner that lives although its lock is free drives the original of a copied home.
    let copied = store.owner(id).is_some_and(|last| last.pid != options.owner.pid && (options.alive)(&last));
    let _lock = store.lock(id, &options.owner)?;
    let pieces = store.pieces(id)?;
    let mut problems = Vec::new();
    if copied {
        let text = "the process that drove this tree lives, so what it started is left alone: is this a copied home?";
        problems.push(text.to_owned());
    } else {
        sweep(options, id).await?;
    }
    store.begin_deleting(id)?;
    pieces.pieces.iter().rev().try_for_each(|piece| store.remove_piece(piece))?;
    let lost = unreadable(store, mirror, id)?;
    let scraps = pieces.scraps.iter().chain(pieces.damaged.iter().map(|facts| &facts.file));
    let scraps = scraps.chain(lost.iter().map(|problem| &problem.file)).collect::<BTreeSet<_>>();
    scraps.into_iter().try_for_each(|file| store.remove_scrap(file))?;
    store.settle(&pieces)?;
    match mirror.forget(id).await {
        Ok(()) => {}
        // The rows can go now or with the next try; while the mark is there nobody misses their files.
        Err(busy @ mirror::Trouble::Busy { .. }) => return Err(TreeError::Remembered { tree: id, why: busy }),
        Err(trouble) => tracing::info!(%trouble, "the mirror does not forget the tree"),
    }
    store.end_deleting(id)?;
    Ok(Shelved {
        tree: id,
        agents: pieces.pieces.len(),
        bytes_before: pieces.bytes(),
        bytes_after: 0,
        changed: true,
        problems,
    })
}

/// Files that cannot be read and that, as the mirror remembers, are agents' of this tree.
fn unreadable(store: &Store, mirror: &Mirror, id: TreeId) -> Result<Vec<rollout::Problem>, TreeError> {
    let problems = mirror.catalogue(store, Some(id))?.problems;
    Ok(problems.into_iter().filter(|problem| problem.tree == Some(id) && store.disk().exists(&problem.file)).collect())
}

/// Ends what a crash left running.
async fn sweep(options: &Options, id: TreeId) -> Result<(), TreeError> {
    let catalogue = options.mirror.catalogue(&options.store, Some(id))?;
    let mut survive = Vec::new();
    for known in catalogue.agents.into_iter().filter(|known| !known.summary.processes.is_empty()) {
        let swept = options.workshop.sweep(known.summary.processes).await;
        let alive = swept.into_iter().filter(|process| matches!(process.how, tool_api::SweptHow::Survives));
        survive.extend(alive.map(|process| process.command));
    }
    if survive.is_empty() { Ok(()) } else { Err(TreeError::Survives { tree: id, commands: survive }) }
}

/// The files of a tree that is there and that nobody has begun to delete.
fn known(store: &Store, id: TreeId) -> Result<Pieces, TreeError> {
    if store.is_deleting(id) {
        return Err(TreeError::Deleting(id));
    }
    let pieces = store.pieces(id)?;
    if pieces.pieces.is_empty() { Err(TreeError::NoTree(id)) } else { Ok(pieces) }
}

/// Lets the mirror follow, and says what became of the tree.
async fn finish(
    store: &Store,
    mirror: &Mirror,
    id: TreeId,
    before: &Pieces,
    changed: bool,
    problems: Vec<String>,
) -> Result<Shelved, TreeError> {
    for known in mirror.catalogue(store, Some(id))?.agents {
        mirror.note(known.summary);
    }
    if let Err(trouble) = mirror.flush().await {
        tracing::info!(%trouble, "the mirror lags");
    }
    let after = store.pieces(id)?;
    let agents = after.pieces.len();
    Ok(Shelved { tree: id, agents, bytes_before: before.bytes(), bytes_after: after.bytes(), changed, problems })
}

/// Trees that no list has and that can be deleted all the same: those that somebody began to delete, and those whose
/// root cannot be read.
///
/// # Errors
/// When the folders of the home cannot be listed.
pub fn remnants(store: &Store, mirror: &Mirror) -> Result<Vec<TreeId>, TreeError> {
    let mut ids = store.deleting()?;
    let catalogue = mirror.catalogue(store, None)?;
    let metas = || catalogue.agents.iter().map(|known| &known.summary.meta);
    let there: HashSet<ThreadId> = metas().map(|meta| meta.id).collect();
    ids.extend(metas().map(|meta| meta.session_id).filter(|id| !there.contains(&id.root())));
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
