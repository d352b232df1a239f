//! Looking at trees without driving them: nothing is locked and nothing is written.

use std::collections::{HashMap, HashSet};

use agent_graph::{Edge, Filter, Graph};
use frontend::{Edge as ShownEdge, Listing, Row, Tokens};
use mirror::{Catalogue, Mirror};
use protocol::{AgentPath, Status, ThreadId, TreeId, Usage};
use rollout::{Edge as StoredEdge, OwnerHint, State, Store};
use serde::Serialize;
use stdx::{AbsPath, Timestamp, one_line};

use crate::TreeError;

/// Characters of a task or title.
const LINE: usize = 120;

/// A tree, as its rollouts have it at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its agents.
    pub listing: Listing,
    /// How many of them are archived; all, unless archiving the tree or bringing it back broke off.
    pub archived: usize,
    /// What could not be read. One sentence each.
    pub problems: Vec<String>,
}

/// A tree in a list of trees. Wire names are frozen.
#[derive(Clone, Debug, Serialize)]
pub struct TreeHead {
    /// The tree.
    pub tree: TreeId,
    /// Its root's working folder.
    pub cwd: AbsPath,
    /// The root's first task, on one line.
    pub title: String,
    /// Agents ever spawned, the root included.
    pub agents: usize,
    /// Agents that can be reached.
    pub open: usize,
    /// Mail that nobody has read.
    pub unread: usize,
    /// When any of its rollouts last grew.
    pub updated_at: Timestamp,
    /// Whether a process drives it now.
    pub driven: bool,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether it is in part: archiving it or bringing it back broke off.
    #[serde(skip)]
    pub partly: bool,
}

/// All trees, archived ones included, newest first, and what was passed over.
///
/// # Errors
/// When the folder of the sessions cannot be listed.
pub fn list(store: &Store, mirror: &Mirror) -> Result<(Vec<TreeHead>, Vec<String>), TreeError> {
    let catalogue = mirror.catalogue(store, None)?;
    let mut problems: Vec<String> = catalogue.problems.iter().map(ToString::to_string).collect();
    problems.extend(catalogue.trouble.iter().map(ToString::to_string));
    problems.extend(unreadable(&catalogue));
    let mut trees: HashMap<TreeId, Vec<State>> = HashMap::new();
    let mut archived: HashSet<ThreadId> = HashSet::new();
    for known in &catalogue.agents {
        trees.entry(known.summary.meta.session_id).or_default().push(State::from_summary(&known.summary));
        archived.extend(known.is_archived().then_some(known.summary.meta.id));
    }
    let mut heads: Vec<TreeHead> = Vec::new();
    for tree in store.deleting()? {
        trees.remove(&tree);
        problems.push(format!("deleting the tree {tree} broke off: `agent delete {tree}` finishes it"));
    }
    for (tree, states) in trees {
        let Some(root) = states.iter().find(|state| state.meta.id == tree.root()) else {
            let file = catalogue.unborn.iter().find(|unborn| unborn.thread == tree.root());
            let file = file.map(|unborn| format!(" ({} breaks off in its first write)", unborn.file));
            problems.push(format!(
                "the tree {tree} has no readable root{}: its agents are reached again when that file is back",
                file.unwrap_or_default()
            ));
            continue;
        };
        let (graph, _) = Graph::build(states.iter().map(graph_node));
        let open = states.iter().filter(|state| graph.is_reachable(state.meta.id)).count();
        // The root goes last and comes back first: its place decides.
        let is_archived = archived.contains(&root.meta.id);
        heads.push(TreeHead {
            driven: store.is_owned(tree),
            archived: is_archived,
            partly: !is_archived && states.iter().any(|state| archived.contains(&state.meta.id)),
            tree,
            cwd: root.meta.cwd.clone(),
            title: one_line(root.first_task.as_deref().unwrap_or_default(), LINE),
            agents: states.len(),
            open,
            unread: states.iter().map(State::unread).sum(),
            updated_at: states.iter().map(|state| state.last_activity).max().unwrap_or(root.meta.timestamp),
        });
    }
    heads.sort_by_key(|head| std::cmp::Reverse((head.updated_at, head.tree)));
    Ok((heads, problems))
}

/// A tree by its root alone.
#[derive(Clone, Debug)]
pub struct TreeRoot {
    /// The tree.
    pub tree: TreeId,
    /// Its root's working folder.
    pub cwd: AbsPath,
    /// Whether its root is archived.
    pub archived: bool,
}

/// All trees by their roots, in no order, for whoever wants a certain one: other agents are not looked at. Nothing when
/// anything is odd about any of them; then [`list`] has what a person is to be told.
///
/// # Errors
/// When the folder of the sessions cannot be listed.
pub fn roots(store: &Store, mirror: &Mirror) -> Result<Option<Vec<TreeRoot>>, TreeError> {
    let catalogue = mirror.roots(store)?;
    let odd = !catalogue.problems.is_empty() || catalogue.trouble.is_some() || unreadable(&catalogue).next().is_some();
    if odd || !store.deleting()?.is_empty() {
        return Ok(None);
    }
    let root = |known: &mirror::Known| TreeRoot {
        tree: known.summary.meta.session_id,
        cwd: known.summary.meta.cwd.clone(),
        archived: known.is_archived(),
    };
    Ok(Some(catalogue.agents.iter().map(root).collect()))
}

/// A tree as its rollouts have it. `alive` says whether the owner that a hint names still lives: then a turn without
/// an end is running and not lost.
///
/// # Errors
/// When there is no such tree, or its root cannot be read.
pub fn snapshot(
    store: &Store,
    mirror: &Mirror,
    tree: TreeId,
    alive: impl Fn(&OwnerHint) -> bool,
) -> Result<Snapshot, TreeError> {
    if store.is_deleting(tree) {
        return Err(TreeError::Deleting(tree));
    }
    let catalogue = mirror.catalogue(store, Some(tree))?;
    if catalogue.agents.is_empty() {
        return Err(TreeError::NoTree(tree));
    }
    let owned = store.owner(tree).is_some_and(|owner| owner.pid != 0 && alive(&owner));
    let mut problems: Vec<String> = catalogue.problems.iter().map(ToString::to_string).collect();
    problems.extend(catalogue.trouble.iter().map(ToString::to_string));
    problems.extend(unreadable(&catalogue));
    let states: Vec<State> = catalogue.agents.iter().map(|known| State::from_summary(&known.summary)).collect();
    let (graph, odd) = Graph::build(states.iter().map(graph_node));
    problems.extend(odd.iter().map(ToString::to_string));
    let root = graph.root().filter(|root| *root == tree.root()).ok_or(TreeError::NoRoot(tree))?;
    let by_thread: HashMap<ThreadId, &State> = states.iter().map(|state| (state.meta.id, state)).collect();
    let skipped: HashMap<ThreadId, usize> =
        catalogue.agents.iter().map(|known| (known.summary.meta.id, known.summary.skipped)).collect();
    let order = std::iter::once(root).chain(graph.descendants(root, Filter::All));
    let rows = order.filter_map(|thread| {
        let state = by_thread.get(&thread)?;
        let parent = graph.parent(thread).and_then(|parent| graph.get(parent)).map(|parent| parent.path.clone());
        Some(row(state, skipped.get(&thread).copied().unwrap_or(0), parent, owned))
    });
    let agents = rows.collect();
    let listing = Listing { tree, root, budget: spending(&states, tree), agents };
    Ok(Snapshot { listing, archived: catalogue.archived, problems })
}

/// What all agents have spent of the budget that the root's rollout names.
fn spending(states: &[State], tree: TreeId) -> Option<frontend::Spending> {
    let root = states.iter().find(|state| state.meta.id == tree.root())?;
    let mut all = budget::Spent::default();
    for spent in states.iter().map(crate::spend::spent) {
        all.tokens = all.tokens.saturating_add(spent.tokens);
        all.usd += spent.usd;
    }
    crate::spend::spending(&root.limits.as_ref()?.budgets, all, budget::Spent::default())
}

/// How many lines of which file could not be read.
fn unreadable(catalogue: &Catalogue) -> impl Iterator<Item = String> + '_ {
    catalogue.agents.iter().filter(|known| known.summary.skipped > 0).map(|known| {
        let (file, skipped) = (&known.summary.file, known.summary.skipped);
        let lines = if skipped == 1 { "line" } else { "lines" };
        format!("{file}: {skipped} {lines} could not be read")
    })
}

fn row(state: &State, skipped: usize, parent: Option<AgentPath>, owned: bool) -> Row {
    let closed_at = match &state.edge {
        StoredEdge::Open => None,
        StoredEdge::Closed { at, .. } => Some(*at),
    };
    let running = owned && state.open_turn.is_some();
    Row {
        path: state.meta.agent_path.clone(),
        thread_id: state.meta.id,
        parent,
        role: state.meta.agent_role.clone(),
        nickname: state.meta.agent_nickname.clone(),
        edge: if closed_at.is_some() { ShownEdge::Closed } else { ShownEdge::Open },
        status: if running { Status::Running } else { state.status() },
        outcome: state.last_end.as_ref().map(|end| end.outcome),
        waiting_on: None,
        resident: running,
        unread: state.unread(),
        skipped,
        tokens: tokens(state.usage),
        estimated: tokens(state.estimated),
        position: None,
        waits: None,
        since: None,
        stalled_ms: None,
        cost_usd: Some(state.cost_usd + state.estimated_usd).filter(|usd| *usd > 0.0),
        task: one_line(state.first_task.as_deref().unwrap_or_default(), LINE),
        opened_at: state.meta.timestamp,
        closed_at,
        last_activity: state.last_activity,
    }
}

/// Tokens in the form of a listing.
pub(crate) fn tokens(usage: Usage) -> Tokens {
    Tokens { input: usage.input, cached_input: usage.cached_input, output: usage.output }
}

/// A rollout's agent as the graph has it.
pub(crate) fn graph_node(state: &State) -> agent_graph::Node {
    let meta = &state.meta;
    agent_graph::Node {
        thread: meta.id,
        parent: meta.parent_thread_id,
        path: meta.agent_path.clone(),
        incarnation: meta.incarnation,
        order: meta.spawned_by.map_or(0, |by| by.ordinal),
        edge: match &state.edge {
            StoredEdge::Open => Edge::Open,
            StoredEdge::Closed { reason, .. } => Edge::Closed { reason: reason.clone() },
        },
    }
}
