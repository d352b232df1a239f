//! The tree as its owner offers it to faces and to other processes.

use std::sync::Arc;

use frontend::{Answer as Told, Code, Cut, Desk, Fault, Found, Given, Listing, Op, Refusal, Reply, Report, Row};
use frontend::{Edge as ShownEdge, Submission, Subscription, UnreadWords};
use futures::future::BoxFuture;
use protocol::{AgentPath, MailKind, RequestId, TaskId};
use stdx::{Timestamp, one_line};
use tokio::time::Instant;

use crate::TreeError;
use crate::close::{By, NO_REASON};
use crate::node::Node;
use crate::snapshot::tokens;
use crate::submit::{Mode, NotSubmitted, Submitted};
use crate::tree::{Answer, Pending, Tree};

/// Characters of a task in a listing.
const LINE: usize = 120;

impl Desk for Tree {
    fn call(&self, op: Op) -> BoxFuture<'_, Result<Reply, Fault>> {
        Box::pin(async move {
            match op {
                Op::Send { path, body, wake, request, mode, deadline } => {
                    let mode = match (wake, mode) {
                        (false, _) => Mode::Leave,
                        (true, frontend::Mode::StartOrSteer) => Mode::StartOrSteer,
                        (true, frontend::Mode::StartIfIdle) => Mode::StartIfIdle,
                        (true, frontend::Mode::Steer) => Mode::Steer,
                    };
                    self.take(&path, &body, mode, (request, deadline)).await.map(Reply::Submitted)
                }
                Op::Answer { task } => {
                    let pending = self.await_task(task).await.map_err(fault)?;
                    let agent = pending.agent.clone();
                    let answer = tokio::select! {
                        answer = pending.answer() => answer,
                        () = self.0.cancel.cancelled() => {
                            return Err(Fault::new(Code::ShuttingDown, "the tree's owner is letting go of it"));
                        }
                    };
                    let (end, fault) = (answer.end, answer.fault.map(provider));
                    Ok(Reply::Answered(Told { task, agent, end, fault, seq: Some(self.0.bus.newest()) }))
                }
                Op::Interrupt { path, reason: _ } => {
                    let before = self.interrupt(&path, &By::User).await.map_err(fault)?;
                    let agents = if before.is_active() { vec![path] } else { Vec::new() };
                    Ok(Reply::Interrupted { agents })
                }
                Op::Close { path, reason } => {
                    let reason = if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason };
                    let (agents, unread) = (self.below(&path), self.unread_words(&path));
                    self.close(&path, &one_line(&reason, 200), &By::User).await.map_err(fault)?;
                    Ok(Reply::Closed { agents, unread })
                }
                Op::Tree => Ok(Reply::Tree(self.listing())),
                Op::Resume => Ok(Reply::Report(self.report())),
                Op::Continue => {
                    let pending = self.go_on().await.map_err(fault)?;
                    let tasks =
                        pending.iter().map(|pending| Given { task: pending.task, agent: pending.agent.clone() });
                    Ok(Reply::Continued { tasks: tasks.collect() })
                }
                Op::Ping => Ok(Reply::Pong),
                Op::Subscribe { .. } => Err(Fault::new(Code::Usage, "events are asked for with a subscription")),
            }
        })
    }

    fn events(&self, after: Option<u64>) -> Subscription {
        self.0.bus.subscribe(after)
    }
}

impl Tree {
    async fn take(
        &self,
        path: &AgentPath,
        body: &str,
        mode: Mode,
        (request, deadline): (RequestId, Option<Timestamp>),
    ) -> Result<Submission, Fault> {
        let taken = self.submit_until(path, body, mode, request, deadline).await;
        let (submitted, pending) = taken.map_err(fault)?;
        let task = pending.map_or(request.mail(), |pending| pending.task);
        let queued = || self.0.slots.position(self.at(path).ok()?.meta.id);
        Ok(match submitted {
            Submitted::Started if queued().is_some() => Submission::Queued { task, position: queued() },
            Submitted::Started => Submission::Started { task, turn: None },
            Submitted::Steered => Submission::Steered { task, turn: None },
            Submitted::Left => Submission::Queued { task, position: None },
            Submitted::NotSubmitted(why) => {
                let reason = match &why {
                    NotSubmitted::NoActiveTurn => Refusal::NoActiveTurn,
                    NotSubmitted::Busy => Refusal::Busy,
                    NotSubmitted::InvalidRequest(_) => Refusal::InvalidRequest,
                    NotSubmitted::QueueFull(_) => Refusal::QueueFull,
                    NotSubmitted::ShuttingDown => Refusal::ShuttingDown,
                };
                Submission::NotSubmitted { reason, message: why.to_string() }
            }
        })
    }

    /// Waits for a task that some client gave, in this process or an earlier one. One that has ended is answered from
    /// the rollout; one that lies there unstarted is started, unless an interrupt has just left it there.
    ///
    /// # Errors
    /// When no agent ever got it.
    pub async fn await_task(&self, task: TaskId) -> Result<Pending, TreeError> {
        let node = self.holder(task)?.ok_or(TreeError::NoTask(task))?;
        // Asked for before looking, so that an end in between is not missed.
        let pending = self.expect(task, node.address.path.clone());
        if let Some(end) = self.0.options.store.ended(node.meta.id, task)? {
            self.answer(task, Answer { end, fault: None });
        } else if let Some(end) = node.facts().kept.get(&task).cloned() {
            self.answer(task, Answer { end, fault: None });
        } else if node.inbox.lock().wakes() {
            self.wake(&node).await;
        }
        Ok(pending)
    }

    /// The agent that ever got this task.
    fn holder(&self, task: TaskId) -> Result<Option<Arc<Node>>, TreeError> {
        let nodes = self.nodes();
        if let Some(node) = nodes.iter().find(|node| node.inbox.lock().knows(task)) {
            return Ok(Some(Arc::clone(node)));
        }
        // Rarely: a task of an earlier owner that nobody has asked this one about.
        for node in &nodes {
            node.make_whole(&self.0.options.store)?;
        }
        Ok(nodes.into_iter().find(|node| node.inbox.lock().knows(task)))
    }

    /// The agents that can be reached at or below a path.
    pub fn below(&self, path: &AgentPath) -> Vec<AgentPath> {
        let below = |node: &Arc<Node>| node.address.path.is_at_or_below(path);
        self.reachable().into_iter().filter(below).map(|node| node.address.path.clone()).collect()
    }

    /// Words of people that nobody at or below a path has read.
    pub fn unread_words(&self, path: &AgentPath) -> Vec<UnreadWords> {
        let below = self.reachable().into_iter().filter(|node| node.address.path.is_at_or_below(path));
        let words = below.flat_map(|node| {
            let left = node.pending().into_iter().filter(|mail| mail.from.thread().is_none());
            let path = node.address.path.clone();
            left.map(move |mail| UnreadWords { path: path.clone(), line: one_line(&mail.body, LINE) })
        });
        words.collect()
    }

    /// The tree as it stands now.
    pub fn listing(&self) -> Listing {
        let root = self.0.id.root();
        let agents = self.nodes().iter().map(|node| self.row(node)).collect();
        Listing { tree: self.0.id, root, budget: self.spending(), agents }
    }

    fn row(&self, node: &Arc<Node>) -> Row {
        let facts = node.facts().clone();
        let parent = node.meta.parent_thread_id.and_then(|parent| self.node(parent));
        let open = self.family().graph.is_open(node.meta.id);
        let unread = node.inbox.lock().unread().total();
        Row {
            path: node.address.path.clone(),
            thread_id: node.meta.id,
            parent: parent.map(|parent| parent.address.path.clone()),
            role: node.meta.agent_role.clone(),
            nickname: node.meta.agent_nickname.clone(),
            edge: if open { ShownEdge::Open } else { ShownEdge::Closed },
            status: facts.status,
            outcome: facts.last_end.as_ref().map(|end| end.outcome),
            waiting_on: facts.waiting_on,
            position: self.0.slots.position(node.meta.id),
            waits: self.waits(node),
            since: Some(facts.since),
            stalled_ms: facts
                .watch
                .stalled(Instant::now())
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            resident: facts.resident,
            unread,
            skipped: facts.skipped,
            tokens: tokens(facts.usage),
            estimated: tokens(facts.estimated),
            cost_usd: (facts.cost_usd > 0.0).then_some(facts.cost_usd),
            task: one_line(&node.task, LINE),
            opened_at: node.meta.timestamp,
            closed_at: facts.closed_at,
            last_activity: facts.last_activity,
        }
    }

    /// How each agent stands, in the words of a resume.
    pub fn report(&self) -> Report {
        let found = |node: &Arc<Node>| {
            let facts = node.facts().clone();
            let pending = node.pending();
            Found {
                path: node.address.path.clone(),
                role: node.meta.agent_role.clone(),
                status: facts.status,
                last: facts.last_end.map(|end| end.outcome),
                cut: Cut {
                    skipped: facts.skipped,
                    file: (facts.skipped > 0).then(|| self.0.options.store.file(node.meta.id).ok()).flatten(),
                    ..Cut::default()
                },
                unread: pending.len(),
                unread_results: pending.iter().filter(|mail| mail.kind == MailKind::Result).count(),
                swept: Vec::new(),
                survive: Vec::new(),
            }
        };
        let agents = self.reachable().iter().map(found).collect();
        Report { tree: self.0.id, agents, unborn: Vec::new(), problems: Vec::new() }
    }
}

/// A refusal of the tree, for a client.
fn fault(error: TreeError) -> Fault {
    let code = match &error {
        TreeError::NoAgent { .. } => Code::NoAgent,
        TreeError::NoTask(_) => Code::NoTask,
        TreeError::Path(_) | TreeError::Mail(_) | TreeError::NotAllowed { .. } => Code::Usage,
        TreeError::ShuttingDown => Code::ShuttingDown,
        _ => Code::Internal,
    };
    Fault::new(code, error.to_string())
}

/// A provider's fault, for a client.
fn provider(fault: runtime::Fault) -> Fault {
    let code = match fault.kind {
        model::ErrorKind::Unreachable | model::ErrorKind::Refused => Code::Provider,
        _ => Code::Internal,
    };
    Fault { message: String::new(), hints: fault.hints, code }
}
