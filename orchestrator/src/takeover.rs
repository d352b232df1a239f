//! Taking a tree over: reading it back, closing what broke off, paying what is owed.
//!
//! Made of steps that do no harm when they are done again, in an order in which a kill between any two of them leaves
//! a tree that can be taken over again. Nothing here starts a model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use agent_graph::Graph;
use frontend::{Cut, Found as Standing, Report};
use mirror::{Catalogue, Known};
use protocol::{EffectId, Mail, MailId, MailKind, Outcome, Party, TaskId, ThreadId, TreeId};
use rollout::{
    Edge, Lack, Limits, Obligation, OpenCall, Opened, Record, SessionMeta, State, Store, Summary, TaskDone, Unborn,
    Writer,
};
use runtime::{MAY_HAVE_RUN, closing};
use stdx::AbsPath;
use tokio_util::sync::CancellationToken;

use crate::node::Node;
use crate::post::whole_body;
use crate::tools::{NOT_DONE, sent, spawned};
use crate::tree::{Pending, Tree};
use crate::{Options, TreeError};

/// An agent as it is being taken over.
struct Found {
    state: State,
    /// Open when it is not at rest; an agent at rest costs a row of the mirror and no more.
    writer: Option<Writer>,
    cut: Cut,
    /// What of the conversation that it was forked from is lost.
    lack: Option<Lack>,
}

impl Found {
    /// From its row, when that can be believed and nothing of the agent needs a hand; else from its file. Where the whole
    /// tree is at rest, what its file came to a moment ago is as good as a row.
    fn new(store: &Store, known: &Known, all_rest: bool) -> Result<Self, rollout::Error> {
        let is_root = known.summary.meta.id == known.summary.meta.session_id.root();
        if known.summary.at_rest && (known.trusted || (all_rest && !is_root)) {
            let cut = cut(&known.summary.file, 0, known.summary.skipped);
            return Ok(Self { state: State::from_summary(&known.summary), writer: None, cut, lack: None });
        }
        let meta = &known.summary.meta;
        // The root is the one that is most likely woken next.
        let Opened { loaded, writer } = if is_root { store.open_ahead(meta.id)? } else { store.open(meta.id)? };
        let cut = cut(&loaded.file, loaded.torn, loaded.skipped);
        Ok(Self { state: loaded.state, writer: Some(writer), cut, lack: loaded.lack })
    }

    fn lacks(&self) -> Option<String> {
        self.lack.as_ref().map(|lack| format!("{}: {lack}", self.state.meta.agent_path))
    }
}

/// Whether nothing of the tree needs a hand. Then nothing will be written that stands on what was read, so nothing of that
/// has to be on the disk first: who is at rest has had an answer to all that it did, and what an answer stands on was
/// synced before it. Below a closed edge mail goes back, which stands on that edge.
fn all_rest(catalogue: &Catalogue) -> bool {
    let rests = |known: &Known| known.summary.at_rest && known.torn == 0 && known.summary.edge == Edge::Open;
    catalogue.unborn.is_empty() && catalogue.agents.iter().all(rests)
}

/// What of a rollout was lost.
fn cut(file: &AbsPath, torn: u64, skipped: usize) -> Cut {
    Cut { torn, skipped, file: (torn > 0 || skipped > 0).then(|| file.clone()), ..Cut::default() }
}

impl Tree {
    /// Takes over a tree that exists. Every agent is there afterwards, none runs.
    ///
    /// # Errors
    /// When somebody else drives it, it does not exist, or its root cannot be read.
    pub async fn open(mut options: Options, id: TreeId) -> Result<(Self, Report), TreeError> {
        if options.store.file(id.root()).is_err() {
            return Err(TreeError::NoTree(id));
        }
        // Asked before the lock is ours, and with it the hint. A last owner that lives although its lock is free drives
        // the original of which this home is a copy: its processes are not ours to end.
        let copied =
            options.store.owner(id).is_some_and(|last| last.pid != options.owner.pid && (options.alive)(&last));
        let lock = options.store.lock(id, &options.owner)?;
        if options.store.is_deleting(id) {
            return Err(TreeError::Deleting(id));
        }
        options.store.keep(id.root());
        // Under the lock: nobody spawns in this tree any more.
        let catalogue = options.mirror.catalogue(&options.store, Some(id))?;
        // One is enough: a tree without it would go on as if that agent had never been. See `shelf`.
        if catalogue.archived > 0 {
            return Err(TreeError::Archived(id));
        }
        let mut problems: Vec<String> = catalogue.trouble.iter().map(ToString::to_string).collect();
        let mut order: Vec<ThreadId> = Vec::with_capacity(catalogue.agents.len());
        let mut found: HashMap<ThreadId, Found> = HashMap::with_capacity(catalogue.agents.len());
        let all_rest = all_rest(&catalogue);
        let mut left_out = Vec::new();
        for known in &catalogue.agents {
            match Found::new(&options.store, known, all_rest) {
                Ok(agent) => {
                    problems.extend(agent.lacks());
                    order.push(known.summary.meta.id);
                    found.insert(known.summary.meta.id, agent);
                }
                // It is there: a tree without it would answer the call that spawned it as if it were not.
                Err(error) if error.is_want() => return Err(error.into()),
                Err(error) => {
                    problems.push(error.to_string());
                    left_out.push(known.summary.meta.clone());
                }
            }
        }
        // Before the calls are answered: a file that broke off in its first line says whose it is only by them.
        let mut unborn = Vec::new();
        let mut stays = catalogue.problems;
        for file in catalogue.unborn.iter().filter(|file| is_ours(file, id, &found)) {
            match options.store.set_aside(&file.file) {
                Ok(aside) => {
                    unborn.push(aside.to_string());
                    stays.retain(|problem| problem.file != file.file);
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        problems.extend(stays.iter().map(ToString::to_string));
        problems.extend(options.store.sweep_attachments(id).err().map(|error| error.to_string()));
        let root = found.get(&id.root()).ok_or(TreeError::NoRoot(id))?;
        let stored = root.state.limits.clone();
        options.limits = merged(options.limits, stored.as_ref());
        options.roles = options.roles.restrict(&options.limits.roles)?;

        // What was read may never have been synced by the process that wrote it. It is before anything is written that
        // stands on it: an output that says that a mail was accepted or a child spawned.
        let held = found.values().filter_map(|found| found.writer.as_ref()).map(|writer| options.store.hold(writer));
        futures::future::try_join_all(held).await?;
        close_transcripts(&options.store, &order, &mut found, &left_out).await?;

        let tree = Self::new(id, options, lock);
        problems.extend(tree.populate(&order, &found));
        tree.note_limits(stored.as_ref())?;
        for thread in &order {
            if let (Some(found), Some(node)) = (found.get_mut(thread), tree.node(*thread)) {
                found.cut.paid = tree.redrive(&node, &found.state, &mut problems).await;
            }
        }
        for node in tree.unreachable() {
            node.inbox.lock().shut();
            if let Err(error) = tree.empty(&node, CLOSED).await {
                problems.push(format!("mail of the closed {} did not go back: {error}", node.address.path));
            }
        }
        let mut agents = Vec::new();
        for thread in &order {
            if let (Some(found), Some(node)) = (found.remove(thread), tree.node(*thread)) {
                agents.push(tree.swept(&node, found, copied, &mut problems).await);
            }
        }
        tree.deadlines_changed();
        let open: HashSet<ThreadId> = tree.reachable().iter().map(|node| node.meta.id).collect();
        let agents = agents.into_iter().filter(|(thread, _)| open.contains(thread)).map(|(_, report)| report).collect();
        Ok((tree, Report { tree: id, agents, unborn, problems }))
    }

    /// Puts the agents into the tables. What does not fit into the graph is left out and told.
    fn populate(&self, order: &[ThreadId], found: &HashMap<ThreadId, Found>) -> Vec<String> {
        let states = || order.iter().filter_map(|thread| found.get(thread)).map(|found| &found.state);
        let (graph, problems) = Graph::build(states().map(crate::snapshot::graph_node));
        let mut cancels: HashMap<ThreadId, CancellationToken> = HashMap::new();
        for state in states().filter(|state| graph.get(state.meta.id).is_some()) {
            let meta = &state.meta;
            let above = meta.parent_thread_id.and_then(|parent| cancels.get(&parent));
            let cancel = above.unwrap_or(&self.0.cancel).child_token();
            cancels.insert(meta.id, cancel.clone());
            self.open_account(meta, crate::spend::spent(state));
            let node = Node::new(meta.clone(), state, cancel);
            node.facts().skipped = found.get(&meta.id).map_or(0, |found| found.cut.skipped);
            self.0.nodes.insert(meta.id, Arc::new(node));
        }
        self.family().graph = graph;
        problems.iter().map(ToString::to_string).collect()
    }

    /// Writes the limits in force into the root's rollout when they are not the stored ones.
    fn note_limits(&self, stored: Option<&Limits>) -> Result<(), TreeError> {
        let limits = &self.0.options.limits;
        if stored != Some(limits) {
            let writer = self.0.options.store.writer(self.0.id.root())?;
            writer.append(&[Record::Limits(Box::new(limits.clone()))])?;
        }
        Ok(())
    }

    /// Pays what this agent owes. What cannot be paid stays owed and is told.
    async fn redrive(&self, node: &Arc<Node>, state: &State, problems: &mut Vec<String>) -> usize {
        let mut paid = 0;
        for obligation in &state.obligations {
            let result = match obligation {
                Obligation::Result { task, giver, end, continues } => {
                    let done = TaskDone {
                        task: *task,
                        giver: Party::Agent(giver.clone()),
                        end: end.clone(),
                        continues: *continues,
                        goes_on: false,
                    };
                    self.pay(node, &done).await
                }
                Obligation::Return { mail, reason } => self.give_back(node, mail, reason).await,
            };
            match result {
                Ok(()) => paid += 1,
                Err(error) => problems.push(format!("{} still owes a mail: {error}", node.address.path)),
            }
        }
        paid
    }

    /// Ends what a crash left of this agent's processes, and reports the agent.
    async fn swept(
        &self,
        node: &Arc<Node>,
        found: Found,
        copied: bool,
        problems: &mut Vec<String>,
    ) -> (ThreadId, Standing) {
        let state = &found.state;
        let mut swept = Vec::new();
        let mut survive = Vec::new();
        if copied && !state.processes.is_empty() {
            let text =
                "the process that drove this tree lives, so what it started is left alone: is this a copied home?";
            problems.push(format!("{}: {text}", node.address.path));
        } else if !state.processes.is_empty() {
            for process in self.0.options.workshop.sweep(state.processes.clone()).await {
                use tool_api::SweptHow as How;
                let gone = match process.how {
                    How::Ended => {
                        swept.push(process.command);
                        true
                    }
                    How::Gone => true,
                    How::Survives => {
                        survive.push(process.command);
                        false
                    }
                };
                let ended = protocol::ProcessEvent::Ended { exit_code: None };
                let record = protocol::ProcessRecord { token: process.token, event: ended };
                if gone
                    && let Some(writer) = &found.writer
                    && let Err(error) = writer.append(&[Record::Process(record)])
                {
                    problems.push(error.to_string());
                }
            }
        }
        let pending = node.pending();
        let report = Standing {
            path: node.address.path.clone(),
            role: node.meta.agent_role.clone(),
            status: node.facts().status,
            last: state.last_end.as_ref().map(|end| end.outcome),
            cut: Cut { in_turn: !state.cut_off.is_empty() || found.cut.in_turn, ..found.cut },
            unread: pending.len(),
            unread_results: pending.iter().filter(|mail| mail.kind == MailKind::Result).count(),
            swept,
            survive,
        };
        (node.meta.id, report)
    }

    /// Gives every task that was cut off a successor, and starts those and all that are pending: children before
    /// their givers, so that nobody waits for somebody who has not begun. Returns the client's tasks among them, which
    /// somebody may wait for, root's first.
    ///
    /// # Errors
    /// When a successor cannot be written; those before it are there, and doing it again goes on with the rest.
    pub async fn go_on(&self) -> Result<Vec<Pending>, TreeError> {
        // Two who ask at once would each give every task a successor.
        let _one = self.0.continuing.lock().await;
        let mut expected = Vec::new();
        let mut nodes = self.reachable();
        let catalogue = self.0.options.mirror.catalogue(&self.0.options.store, Some(self.0.id))?;
        let mut summaries: HashMap<ThreadId, Summary> =
            catalogue.agents.into_iter().map(|known| (known.summary.meta.id, known.summary)).collect();
        for node in &nodes {
            let Some(summary) = summaries.remove(&node.meta.id) else { continue };
            for lost in summary.cut_off {
                node.make_whole(&self.0.options.store)?;
                let letter = self.successor(&lost, |id| node.inbox.lock().knows(id))?;
                if matches!(letter.from, Party::Client { .. }) {
                    expected.push(self.expect(letter.id, node.address.path.clone()));
                }
                // Accepted without waking: nobody starts before all successors are on disk.
                self.deliver_quietly(node, letter).await?;
            }
            for mail in summary.pending.iter().filter(|mail| mail.kind.is_task() && mail.trigger_turn) {
                if matches!(mail.from, Party::Client { .. }) {
                    expected.push(self.expect(mail.id, node.address.path.clone()));
                }
            }
        }
        nodes.reverse();
        for node in nodes {
            if node.inbox.lock().wakes() {
                let mut changes = self.0.changes.subscribe();
                self.wake(&node).await;
                // In the queue for a slot, or past it: whoever is woken next comes behind.
                while node.facts().start.is_some() && self.0.slots.position(node.meta.id).is_none() {
                    if changes.changed().await.is_err() {
                        break;
                    }
                }
            }
        }
        Ok(expected)
    }

    /// As [`Tree::go_on`], with one task alone; none when that was not cut off.
    pub(crate) async fn go_on_with(&self, node: &Arc<Node>, task: TaskId) -> Result<Option<Pending>, TreeError> {
        let _one = self.0.continuing.lock().await;
        // It may have been cut off more than once, each time under the name of the one before.
        let mut newest = task;
        while node.inbox.lock().knows(newest.continued(1)) {
            newest = newest.continued(1);
        }
        let cut_off = self.0.options.store.load(node.meta.id)?.state.cut_off;
        match cut_off.iter().find(|lost| lost.id == newest) {
            Some(lost) => {
                let letter = self.successor(lost, |id| node.inbox.lock().knows(id))?;
                let pending = self.expect(letter.id, node.address.path.clone());
                self.deliver(node, letter).await?;
                Ok(Some(pending))
            }
            None if newest == task => Ok(None),
            None => Ok(Some(self.await_task(newest).await?)),
        }
    }

    /// The task that goes on with one that was cut off.
    fn successor(&self, lost: &Mail, known: impl Fn(MailId) -> bool) -> Result<Mail, TreeError> {
        let id: TaskId = (1..=u32::MAX).map(|n| lost.id.continued(n)).find(|id| !known(*id)).unwrap_or(lost.id);
        let (body, whole) = match (lost.continues, &lost.whole) {
            // It went on with another one already, and says so.
            (Some(_), _) => (lost.body.clone(), lost.whole.clone()),
            (None, None) => whole_body(&self.0.options.store, self.0.id, id, &format!("{GO_ON}{}", lost.body))?,
            (None, Some(whole)) => {
                let body = format!("{GO_ON}{}", lost.body);
                (mailbox::cut_body(&body).unwrap_or(&body).to_owned(), Some(whole.clone()))
            }
        };
        let kind = if matches!(lost.from, Party::Client { .. }) { MailKind::Input } else { MailKind::Followup };
        Ok(Mail { id, kind, trigger_turn: true, sequence: 0, body, whole, continues: Some(lost.id), ..lost.clone() })
    }
}

/// What stands before a task that goes on. A crash or a person may have broken it off.
const GO_ON: &str = "You were cut off in the middle of this task. Go on with it: look at what is done already, and do \
                     not repeat what need not be repeated. The task was:\n\n";

/// Why tasks end, and mail goes back, that an agent had when it was closed.
const CLOSED: &str = "its agent is closed";

/// Whether a file whose first write is not complete was to be an agent of this tree: its first line says so, or, when
/// that is torn too, an open call of the tree whose child carries its id.
fn is_ours(file: &Unborn, tree: TreeId, found: &HashMap<ThreadId, Found>) -> bool {
    let mut calls = found.values().flat_map(|found| &found.state.open_calls);
    match file.tree {
        Some(of) => of == tree,
        None => calls.any(|open| open.effect.is_some_and(|effect| effect.thread() == file.thread)),
    }
}

/// The tool that a call is for; a model may put a namespace before it.
fn tool(open: &OpenCall) -> &str {
    open.call.name.rsplit('.').next().unwrap_or_default()
}

/// Answers every open call and ends every open turn, each agent in one write, all synced before anything that follows
/// from it is written elsewhere. Who is `left_out` is there, but what its file says is not known.
async fn close_transcripts(
    store: &Store,
    order: &[ThreadId],
    found: &mut HashMap<ThreadId, Found>,
    left_out: &[SessionMeta],
) -> Result<(), TreeError> {
    let mails = |open: &OpenCall| matches!(tool(open), "send_message" | "followup_task");
    if found.values().any(|found| found.state.open_calls.iter().any(mails)) {
        // Whether their mail arrived is known only by those who have all that was ever accepted.
        for found in found.values_mut().filter(|found| !found.state.known_complete) {
            found.state.known = store.known(found.state.meta.id)?;
        }
    }
    let mut born: HashMap<EffectId, String> = HashMap::new();
    let mut mailed: HashMap<MailId, String> = HashMap::new();
    for meta in left_out {
        born.extend(meta.spawned_by.map(|by| (by.effect, spawned(meta))));
    }
    for thread in order {
        let Some(state) = found.get(thread).map(|found| &found.state) else { continue };
        if let Some(by) = state.meta.spawned_by {
            born.insert(by.effect, spawned(&state.meta));
        }
        for id in &state.known {
            mailed.insert(*id, state.meta.agent_path.to_string());
        }
    }
    let answer = |open: &OpenCall| match (tool(open), open.effect) {
        ("spawn_agent", Some(effect)) => born.get(&effect).cloned().unwrap_or_else(|| NOT_DONE.to_owned()),
        ("send_message" | "followup_task", Some(effect)) => {
            let id = effect.mail();
            let unknown = if left_out.is_empty() { NOT_DONE } else { MAY_HAVE_RUN };
            mailed.get(&id).map_or_else(|| unknown.to_owned(), |to| sent(id, to))
        }
        ("wait_agent" | "list_agents" | "interrupt_agent", _) => NOT_DONE.to_owned(),
        _ => MAY_HAVE_RUN.to_owned(),
    };
    let closed: HashSet<ThreadId> = order.iter().copied().filter(|thread| is_closed(*thread, found)).collect();
    for thread in order {
        let Some(found) = found.get_mut(thread) else { continue };
        let Some(writer) = &found.writer else { continue };
        let state = &mut found.state;
        found.cut.in_turn = state.open_turn.is_some();
        found.cut.calls = state.open_calls.len();
        // Whoever closed it was about to end the turn so, and that follows from the edge.
        let (outcome, reason) = if closed.contains(thread) {
            (Outcome::Closed, CLOSED)
        } else {
            (Outcome::Lost, "its process ended in the middle of the turn")
        };
        let records = closing(state, outcome, reason, answer);
        if !records.is_empty() {
            let appended = writer.append(&records)?;
            for (ordinal, record) in (appended.first..).zip(&records) {
                state.apply_record(appended.at, ordinal, record);
            }
        }
    }
    let writers = found.values().filter_map(|found| found.writer.as_ref()).map(Writer::sync);
    futures::future::try_join_all(writers).await?;
    Ok(())
}

/// Whether somebody closed this agent, or one above it.
fn is_closed(thread: ThreadId, found: &HashMap<ThreadId, Found>) -> bool {
    let mut above = found.get(&thread);
    // No chain of parents is longer than there are agents, whatever the files say.
    for _ in 0..found.len() {
        let Some(Found { state, .. }) = above else { return false };
        if state.is_closed() {
            return true;
        }
        above = state.meta.parent_thread_id.and_then(|parent| found.get(&parent));
    }
    false
}

/// The limits asked for; budgets and roles that nobody asked about stay as they were.
fn merged(asked: Limits, stored: Option<&Limits>) -> Limits {
    let Some(stored) = stored else { return asked };
    let mut limits = asked;
    if limits.roles.is_empty() {
        limits.roles.clone_from(&stored.roles);
    }
    limits.budgets.tokens = limits.budgets.tokens.or(stored.budgets.tokens);
    limits.budgets.usd = limits.budgets.usd.or(stored.budgets.usd);
    limits.budgets.agent_tokens = limits.budgets.agent_tokens.or(stored.budgets.agent_tokens);
    limits.budgets.agent_usd = limits.budgets.agent_usd.or(stored.budgets.agent_usd);
    limits
}
