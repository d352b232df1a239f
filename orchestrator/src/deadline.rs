//! Deadlines of tasks: when one passes, its task ends with what there is, exactly once, whoever drives the tree then.
//!
//! A deadline stands in the mail that gave the task, as a moment and not as a span, so it holds over a restart. A task
//! that nobody has taken in ends without a turn. A turn that took it in is interrupted, and so are those below who
//! work for nobody else: nobody waits for them any more.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_graph::Filter;
use protocol::{EventKind, Mail, Outcome, Status, TaskEnd, TaskId, ThreadId, TurnId, Usage};
use rollout::{Record, TaskDone};
use stdx::{Timestamp, now, one_line};

use super::node::Node;
use super::seam::{Stop, TurnReport, sleep};
use super::tree::{Inner, Tree};
use super::{TreeError, life};

/// The longest time between two looks: the wall clock may be set, and a machine may sleep, while a deadline is near.
const LOOK: Duration = Duration::from_secs(30);

/// Until a task is tried again whose end could not be written.
const AGAIN: Duration = Duration::from_secs(1);

/// Characters of a task in a line for people.
const LINE: usize = 120;

/// A task that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The agent that gave it; none for a client.
    pub(crate) giver: Option<ThreadId>,
    /// When it ends at the latest.
    pub(crate) deadline: Option<Timestamp>,
}

/// The tasks of one agent that have not ended, taken in or not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(HashMap<TaskId, Given>);

impl Tasks {
    /// A task was accepted. Mail that is no task is passed over.
    pub(crate) fn given(&mut self, mail: &Mail) {
        if mail.kind.is_task() {
            self.0.insert(mail.id, Given { giver: mail.from.thread(), deadline: mail.deadline });
        }
    }

    /// A task has ended.
    pub(crate) fn ended(&mut self, task: TaskId) {
        self.0.remove(&task);
    }

    /// The first deadline that is still to come, or has passed and was not kept yet.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.0.values().filter_map(|task| task.deadline).min()
    }

    /// When whoever works for this agent has to end at the latest: with the last of its tasks, if all of them have a
    /// deadline. A command that is to end by then would wait for those below it otherwise.
    pub(crate) fn bound(&self) -> Option<Timestamp> {
        let all = self.0.values().map(|task| task.deadline);
        all.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten()
    }

    /// Lets the time that is left pass at once.
    #[cfg(test)]
    pub(crate) fn hasten(&mut self) {
        self.0.values_mut().filter_map(|task| task.deadline.as_mut()).for_each(|at| *at = Timestamp::EPOCH);
    }

    /// The tasks whose deadline has passed, with it.
    fn overdue(&self, now: Timestamp) -> Vec<(TaskId, Timestamp)> {
        let overdue = |(id, task): (&TaskId, &Given)| Some((*id, task.deadline.filter(|at| *at <= now)?));
        let mut all: Vec<_> = self.0.iter().filter_map(overdue).collect();
        all.sort_unstable_by_key(|(id, at)| (*at, *id));
        all
    }

    /// Whether there is work, and all of it was given by these.
    fn only_for(&self, givers: &HashSet<ThreadId>) -> bool {
        let for_them = |task: &Given| task.giver.is_some_and(|giver| givers.contains(&giver));
        !self.0.is_empty() && self.0.values().all(for_them)
    }
}

/// The earlier of the two.
pub(crate) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

impl Tree {
    /// Keeps the deadlines for as long as the tree is driven.
    pub(crate) fn keep_deadlines(&self) {
        let (tree, cancel) = (Arc::downgrade(&self.0), self.0.cancel.clone());
        let mut news = self.0.deadlines.subscribe();
        self.0.tracker.spawn(async move {
            loop {
                news.borrow_and_update();
                let Some(wait) = keep(&tree).await else { return };
                tokio::select! {
                    () = cancel.cancelled() => return,
                    // The tree has gone.
                    changed = news.changed() => if changed.is_err() { return },
                    () = sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                }
            }
        });
    }

    /// Somebody has a task with a deadline: it may be the next.
    pub(crate) fn deadlines_changed(&self) {
        self.0.deadlines.send_modify(|n| *n += 1);
    }

    /// Ends what is overdue; how long nothing else will be.
    async fn keep(&self) -> Option<Duration> {
        let overdue = |node: &Arc<Node>| !node.facts().tasks.overdue(now()).is_empty();
        for node in self.nodes().into_iter().filter(overdue) {
            self.expire(&node).await;
        }
        let first = self.nodes().iter().filter_map(|node| node.facts().tasks.first()).min()?;
        let left = first.until(now());
        // Overdue still: its end could not be written.
        Some(if left.is_zero() { AGAIN } else { left.min(LOOK) })
    }

    /// Whether a deadline of this agent has passed and was not kept yet.
    pub(crate) fn is_overdue(node: &Node) -> bool {
        !node.facts().tasks.overdue(now()).is_empty()
    }

    /// Ends the overdue tasks of an agent.
    pub(crate) async fn expire(&self, node: &Arc<Node>) {
        let interrupted = {
            // Two who see the same deadline pass: the second finds it kept, and interrupts nobody.
            let _one = self.0.expiring.lock().await;
            self.expire_once(node).await
        };
        // What else lies there is not overdue, and an interrupt would leave it until somebody came.
        for node in interrupted {
            if node.inbox.lock().wakes() {
                self.wake(&node).await;
            }
        }
    }

    /// Whose turn, or start of one, was interrupted for it.
    async fn expire_once(&self, node: &Arc<Node>) -> Vec<Arc<Node>> {
        let overdue = node.facts().tasks.overdue(now());
        let mut untaken = Vec::new();
        let mut taken = None;
        let mut only = Vec::new();
        for (id, deadline) in overdue {
            // Under one lock with taking it in: it ends in a turn, or without one.
            let withdrawn = node.inbox.lock().withdraw(id);
            if let Some(mail) = withdrawn {
                untaken.push((mail, TaskEnd::expired_unbegun(deadline)));
            } else {
                taken = taken.or(Some((id, deadline)));
                only.push(id);
            }
        }
        let called_off = self.end_untaken(node, untaken).await;
        let mut interrupted: Vec<Arc<Node>> = called_off.then(|| Arc::clone(node)).into_iter().collect();
        let Some((id, deadline)) = taken else { return interrupted };
        if !node.is_busy() {
            // Its end is on its way, or nobody can write it.
            node.facts().tasks.ended(id);
            return interrupted;
        }
        let reason = TaskEnd::expired(deadline, None).reason.unwrap_or_default();
        life::interrupt(node, Stop { outcome: Outcome::Interrupted, reason, goes_on: false, only }).await;
        node.facts().tasks.ended(id);
        interrupted.push(Arc::clone(node));
        interrupted.extend(self.call_off_below(node).await);
        interrupted
    }

    /// Interrupts those below an agent that work only for it, or for others of whom that is true. Answers who they are:
    /// somebody else may give one of them work at the same moment.
    async fn call_off_below(&self, node: &Arc<Node>) -> Vec<Arc<Node>> {
        let reason = format!(
            "interrupted: the deadline of {} passed, who gave this task or had it from above",
            node.address.path
        );
        let end = TaskEnd { outcome: Outcome::Interrupted, text: None, reason: Some(reason.clone()) };
        let mut givers = HashSet::from([node.meta.id]);
        let mut interrupted = Vec::new();
        let below = self.family().graph.descendants(node.meta.id, Filter::Open);
        // By depth, so that whoever gave a task comes before whoever has it.
        for child in below.into_iter().filter_map(|thread| self.node(thread)) {
            if !child.facts().tasks.only_for(&givers) {
                continue;
            }
            givers.insert(child.meta.id);
            let pending = child.pending().into_iter().filter(|mail| mail.kind.is_task());
            let untaken = pending.filter_map(|mail| child.inbox.lock().withdraw(mail.id));
            let untaken = untaken.map(|mail| (mail, end.clone())).collect();
            self.end_untaken(&child, untaken).await;
            let stop = Stop { outcome: Outcome::Interrupted, reason: reason.clone(), goes_on: false, only: Vec::new() };
            life::interrupt(&child, stop).await;
            interrupted.push(child);
        }
        interrupted
    }

    /// Ends tasks that were withdrawn before any turn took them in: each has exactly one result. Answers whether a start
    /// was called off because nothing was left to begin.
    async fn end_untaken(&self, node: &Arc<Node>, untaken: Vec<(Mail, TaskEnd)>) -> bool {
        if untaken.is_empty() {
            return false;
        }
        let done = |(mail, end): &(Mail, TaskEnd)| TaskDone {
            task: mail.id,
            giver: mail.from.clone(),
            end: end.clone(),
            continues: mail.continues,
            goes_on: false,
        };
        let tasks: Vec<TaskDone> = untaken.iter().map(done).collect();
        let records: Vec<Record> = tasks.iter().cloned().map(Record::TaskDone).collect();
        if let Err(error) = self.write_ends(node, &records).await {
            node.inbox.lock().restore_undelivered(untaken.into_iter().map(|(mail, _)| mail).collect());
            let message = format!("the end of a task of {} could not be written: {error}", node.address.path);
            let hints = vec!["free space or repair the disk: it is tried again".to_owned()];
            self.0.bus.emit(&node.address, EventKind::Error { message, hints });
            return false;
        }
        for (mail, end) in &untaken {
            let reason = end.reason.as_deref().unwrap_or_default();
            let message = format!("not begun: {reason}: {}", one_line(&mail.body, LINE));
            self.0.bus.emit(&node.address, EventKind::Warning { message });
        }
        {
            let mut facts = node.facts();
            for done in &tasks {
                facts.tasks.ended(done.task);
            }
            if facts.last_end.is_none() {
                facts.last_end = tasks.first().map(|done| done.end.clone());
            }
        }
        let Some(end) = tasks.first().map(|done| done.end.clone()) else { return false };
        let report = TurnReport {
            turn: TurnId::new(),
            end,
            tasks,
            unwritten: Vec::new(),
            broken: false,
            usage: Usage::default(),
            fault: None,
        };
        self.settle(node, report).await;
        self.rest_without_task(node).await
    }

    async fn write_ends(&self, node: &Node, records: &[Record]) -> Result<(), TreeError> {
        self.0.options.store.writer(node.meta.id)?.append_synced(records).await?;
        Ok(())
    }

    /// An agent that has nothing to begin any more gives up its place in the queue, and stands as before. Answers
    /// whether it had one.
    async fn rest_without_task(&self, node: &Arc<Node>) -> bool {
        let nothing = {
            let mailbox = node.inbox.lock();
            mailbox.phase().is_none() && !mailbox.wakes()
        };
        let queued = nothing && node.is_busy();
        if queued {
            let reason = "there is nothing to begin any more".to_owned();
            life::interrupt(node, Stop { outcome: Outcome::Interrupted, reason, goes_on: false, only: Vec::new() })
                .await;
        }
        let stands = {
            let mut facts = node.facts();
            let last = facts.last_end.as_ref().map_or(Status::Interrupted, |end| end.outcome.into());
            let stands = (nothing && facts.status == Status::Pending).then_some(last);
            facts.status = stands.unwrap_or(facts.status);
            stands
        };
        if let Some(status) = stands {
            let event = EventKind::AgentStatus { status, waiting_on: None, position: None };
            self.0.bus.emit(&node.address, event);
        }
        self.changed();
        queued
    }
}

/// As [`Tree::keep`]; none when the tree has gone.
async fn keep(tree: &Weak<Inner>) -> Option<Option<Duration>> {
    Some(Tree(tree.upgrade()?).keep().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Timestamp {
        Timestamp::EPOCH.after(Duration::from_secs(second))
    }

    /// Tasks of these givers and deadlines; 0 is a client.
    fn tasks(all: &[(usize, Option<u64>)], threads: &[ThreadId]) -> Tasks {
        let given = |(giver, deadline): &(usize, Option<u64>)| Given {
            giver: giver.checked_sub(1).map(|n| threads[n]),
            deadline: deadline.map(at),
        };
        Tasks(all.iter().map(|task| (TaskId::new(), given(task))).collect())
    }

    #[track_caller]
    fn check(all: &[(usize, Option<u64>)], second: u64, expect: (Option<u64>, usize)) {
        let threads = [ThreadId::new(), ThreadId::new()];
        let tasks = tasks(all, &threads);
        assert_eq!((tasks.first(), tasks.overdue(at(second)).len()), (expect.0.map(at), expect.1), "{all:?}");
    }

    #[test]
    fn what_is_overdue_and_what_is_next() {
        check(&[], 9, (None, 0));
        check(&[(0, None), (1, None)], 9, (None, 0));
        check(&[(0, Some(10)), (1, None)], 9, (Some(10), 0));
        check(&[(0, Some(10)), (1, Some(12))], 10, (Some(10), 1));
        check(&[(0, Some(10)), (1, Some(12)), (1, Some(20))], 15, (Some(10), 2));
    }

    #[test]
    fn who_works_for_nobody_else() {
        let threads = [ThreadId::new(), ThreadId::new()];
        let only = |all: &[(usize, Option<u64>)], givers: &[ThreadId]| {
            tasks(all, &threads).only_for(&givers.iter().copied().collect())
        };
        assert!(only(&[(1, None)], &threads[..1]));
        assert!(only(&[(1, None), (2, Some(3))], &threads));
        assert!(!only(&[(1, None), (2, None)], &threads[..1]), "somebody else waits for it too");
        assert!(!only(&[(1, None), (0, None)], &threads), "and so does a client");
        assert!(!only(&[], &threads), "it does nothing");
    }
}
