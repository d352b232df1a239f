//! Closing an agent and everybody below it, and interrupting one.
//!
//! The edge is closed on disk first; everything after it follows from that line, so that taking the tree over after a
//! kill at any point ends in the same place.

use std::sync::Arc;

use agent_graph::Filter;
use protocol::{Address, AgentPath, EventKind, Mail, MailKind, Outcome, Status, TaskEnd};
use rollout::{EdgeRecord, EdgeStatus, MailReturned, Record, TaskDone};

use super::node::{Life, Node};
use super::seam::Stop;
use super::tree::Tree;
use super::{Answer, TreeError, life};

/// The reason of a person who gave none.
pub const NO_REASON: &str = "closed by the user";

/// Who closes or interrupts.
#[derive(Clone, Debug)]
pub enum By {
    /// A person: may do it to every agent.
    User,
    /// An agent: not to itself, to the root, or to anybody above it.
    Agent(Address),
}

impl By {
    fn name(&self) -> String {
        match self {
            Self::User => "user".to_owned(),
            Self::Agent(address) => address.path.to_string(),
        }
    }

    /// Whether this one may do it to `target`.
    fn may(&self, target: &AgentPath, what: &'static str) -> Result<(), TreeError> {
        match self {
            Self::User => Ok(()),
            Self::Agent(me) if me.path.is_at_or_below(target) => {
                Err(TreeError::NotAllowed { target: target.clone(), what })
            }
            Self::Agent(_) => Ok(()),
        }
    }
}

impl Tree {
    /// Stops an agent's turn and keeps the agent. Answers how it stood before. Works on sleeping agents too: they have
    /// no turn.
    ///
    /// # Errors
    /// When there is no such agent, or this one may not.
    pub async fn interrupt(&self, path: &AgentPath, by: &By) -> Result<Status, TreeError> {
        by.may(path, "interrupt")?;
        let node = self.at(path)?;
        let before = node.facts().status;
        let reason = format!("interrupted by {}", by.name());
        let waiting = node.pending();
        let stop = Stop { outcome: Outcome::Interrupted, reason: reason.clone(), goes_on: false, only: Vec::new() };
        life::interrupt(&node, stop).await;
        self.kept(&node, &waiting, &format!("{reason} before it took this in; it is kept for its next turn"));
        Ok(before)
    }

    /// Tells clients whose words `waiting` an interrupt has left in this agent's mailbox that nobody starts them: they
    /// would wait for ever.
    fn kept(&self, node: &Node, waiting: &[Mail], reason: &str) {
        let end = TaskEnd { outcome: Outcome::Interrupted, text: None, reason: Some(reason.to_owned()) };
        let still = node.pending();
        for mail in waiting.iter().filter(|mail| mail.from.thread().is_none() && still.contains(mail)) {
            // Noted first: a client that has not asked yet finds it there.
            node.facts().kept.insert(mail.id, end.clone());
            self.answer(mail.id, Answer { end: end.clone(), fault: None });
        }
    }

    /// Closes an agent's edge and shuts its subtree down: turns end as closed, unread results move up, other mail goes
    /// back, processes end. Edges below stay as they are. Final. Answers how the agent stood before.
    ///
    /// # Errors
    /// When there is no such agent, this one may not, or the disk did not take the closing; then nothing is closed.
    pub async fn close(&self, path: &AgentPath, reason: &str, by: &By) -> Result<Status, TreeError> {
        by.may(path, "close")?;
        // Two who close one agent at once: the second finds it closed, and its rollout says so once.
        let one = self.0.closing.lock().await;
        let node = self.at(path)?;
        let before = node.facts().status;
        let edge = EdgeRecord { status: EdgeStatus::Closed, reason: reason.to_owned(), by: by.name() };
        let closed = self.0.options.store.writer(node.meta.id)?.append_synced(&[Record::Edge(edge)]).await?;
        node.facts().closed_at = Some(closed.at);
        let subtree: Vec<Arc<Node>> = {
            let mut family = self.family();
            family.graph.close(node.meta.id, reason);
            family.graph.subtree_post_order(node.meta.id).into_iter().filter_map(|thread| self.node(thread)).collect()
        };
        drop(one);
        for node in &subtree {
            node.inbox.lock().shut();
        }
        self.0.bus.emit(&node.address, EventKind::AgentClosed { reason: reason.to_owned() });
        let reason = if reason == NO_REASON { reason.to_owned() } else { format!("closed by {}: {reason}", by.name()) };
        let stop = Stop { outcome: Outcome::Closed, reason, goes_on: false, only: Vec::new() };
        // All at once, so that nobody works on while another one's tools wind down.
        futures::future::join_all(subtree.iter().map(|node| life::interrupt(node, stop.clone()))).await;
        for node in &subtree {
            self.shut(node, &stop).await;
        }
        self.changed();
        Ok(before)
    }

    /// Ends an agent that was being made while an agent above it was closed: whoever did that did not find it.
    pub(crate) async fn shut_late(&self, node: &Arc<Node>, why: &str) {
        node.inbox.lock().shut();
        let reason = format!("an agent above it was closed while it was spawned: {why}");
        self.shut(node, &Stop { outcome: Outcome::Closed, reason, goes_on: false, only: Vec::new() }).await;
        self.changed();
    }

    /// Ends an agent below a closed edge: its turn, its session, its processes, and whatever waits for it.
    async fn shut(&self, node: &Arc<Node>, stop: &Stop) {
        life::interrupt(node, stop.clone()).await;
        node.cancel.cancel();
        let was = std::mem::take(&mut *node.life.lock().await);
        if let Life::Resident { hands, .. } = was {
            hands.end_processes().await;
            self.tell_survivors(node, &*hands);
        }
        node.facts().resident = false;
        self.forget(node.meta.id);
        let emptied = self.empty(node, &stop.reason).await;
        if let Ok(writer) = self.0.options.store.writer(node.meta.id)
            && writer.sync().await.is_ok()
        {
            self.note(&writer);
        }
        if let Err(error) = emptied {
            self.0.bus.emit(
                &node.address,
                EventKind::Error {
                    message: format!("mail of the closed {} did not go back: {error}", node.address.path),
                    hints: vec!["it is on disk: `agent resume` sends it back".to_owned()],
                },
            );
        }
    }

    /// Sends away what waits for an agent that nobody can reach: tasks end as closed, the rest goes back or up. Its
    /// own rollout says so first, in one write; what is owed then is paid, and paid again after a crash.
    pub(crate) async fn empty(&self, node: &Arc<Node>, reason: &str) -> Result<(), TreeError> {
        let one = node.emptying.lock().await;
        let pending = node.pending();
        if pending.is_empty() {
            return Ok(());
        }
        let end = TaskEnd { outcome: Outcome::Closed, text: None, reason: Some(reason.to_owned()) };
        let (tasks, others): (Vec<Mail>, Vec<Mail>) = pending.into_iter().partition(|mail| mail.kind.is_task());
        let done: Vec<TaskDone> = tasks
            .iter()
            .map(|mail| TaskDone {
                task: mail.id,
                giver: mail.from.clone(),
                end: end.clone(),
                continues: mail.continues,
                goes_on: false,
            })
            .collect();
        let mut records: Vec<Record> = done.iter().cloned().map(Record::TaskDone).collect();
        if !others.is_empty() {
            let ids = others.iter().map(|mail| mail.id).collect();
            records.push(Record::MailReturned(MailReturned { ids, reason: reason.to_owned() }));
        }
        self.0.options.store.writer(node.meta.id)?.append_synced(&records).await?;
        node.inbox.lock().clear();
        for done in &done {
            node.facts().tasks.ended(done.task);
        }
        drop(one);
        for done in &done {
            self.answer(done.task, Answer { end: done.end.clone(), fault: None });
            self.pay(node, done).await?;
        }
        for mail in &others {
            self.0.bus.emit(&node.address, EventKind::MailReturned { mail: mail.id, reason: reason.to_owned() });
            // A return is never returned, and a client waits for nothing: neither is owed.
            let owed = mail.kind != MailKind::Returned && mail.from.thread().is_some();
            if owed {
                self.give_back(node, mail, reason).await?;
            }
        }
        Ok(())
    }

    /// Agents that nobody can reach although their own edge may be open.
    pub(crate) fn unreachable(&self) -> Vec<Arc<Node>> {
        let family = self.family();
        let root = self.0.id.root();
        std::iter::once(root)
            .chain(family.graph.descendants(root, Filter::All))
            .filter(|thread| !family.graph.is_reachable(*thread))
            .filter_map(|thread| self.node(thread))
            .collect()
    }
}
