//! How mail gets across: written into the recipient's rollout and synced before the sender hears that it is accepted.

use std::sync::Arc;

use futures::future::BoxFuture;
use mailbox::{Mailbox, Offer, Route, cut_body, route_result, route_undelivered};
use protocol::{Address, EventKind, Mail, MailId, MailKind, Party, ThreadId, TreeId};
use rollout::{Record, TaskDone};
use stdx::{AbsPath, one_line};

use super::TreeError;
use super::node::Node;
use super::seam::{Store, TurnReport, Writer};
use super::tree::{Answer, Tree};

/// Characters of a mail shown in an event.
const PREVIEW: usize = 120;

impl Tree {
    /// A mail that is checked and whose body fits. Its sequence is given under the recipient's lock.
    pub(crate) fn letter(
        &self,
        id: MailId,
        from: Party,
        to: &Node,
        (kind, trigger_turn): (MailKind, bool),
        body: &str,
    ) -> Result<Mail, TreeError> {
        mailbox::check_new(kind, &from, &to.address, body)?;
        let (body, whole) = whole_body(&self.0.options.store, self.0.id, id, body)?;
        Ok(Mail {
            id,
            tree: self.0.id,
            from,
            to: to.address.clone(),
            kind,
            trigger_turn,
            sequence: 0,
            body,
            whole,
            answers: None,
            outcome: None,
            continues: None,
            deadline: None,
        })
    }

    /// Accepts mail for an agent, resident or not, and wakes it if the mail says so. The same id twice is a no-op.
    ///
    /// The `mail` line is appended while the mailbox is locked, so that the order of the lines is the order in which
    /// mail is read; it is synced after that, together with whatever else waits for this file.
    ///
    /// # Errors
    /// When the mailbox is full, or the disk did not take the line. Nothing is acknowledged then.
    pub(crate) async fn deliver(&self, to: &Arc<Node>, mail: Mail) -> Result<(), TreeError> {
        let wakes = mail.trigger_turn;
        let new = self.deliver_quietly(to, mail).await?;
        if new && wakes {
            self.wake(to).await;
        }
        Ok(())
    }

    /// As [`Tree::deliver`], but wakes nobody. False when the mail was there already.
    pub(crate) async fn deliver_quietly(&self, to: &Arc<Node>, mail: Mail) -> Result<bool, TreeError> {
        self.deliver_if(to, mail, |_| true).await
    }

    /// As [`Tree::deliver_quietly`], if `admit` says so; it is asked under the lock under which the mail is written.
    /// False when it said no, too.
    pub(crate) async fn deliver_if(
        &self,
        to: &Arc<Node>,
        mut mail: Mail,
        admit: impl FnOnce(&Mailbox) -> bool,
    ) -> Result<bool, TreeError> {
        // Mail of agents has an id that its call made now; any other may be one that an earlier owner accepted.
        if !matches!(mail.kind, MailKind::Message | MailKind::Followup) || mail.continues.is_some() {
            to.make_whole(&self.0.options.store)?;
        }
        let writer = self.0.options.store.writer(to.meta.id)?;
        let preview = one_line(&mail.body, PREVIEW);
        let known;
        {
            let mut mailbox = to.inbox.lock();
            match mailbox.offer(&mail) {
                Offer::Known => known = true,
                Offer::New => known = false,
                Offer::Full(refused) => return Err(refused.into()),
            }
            if !known {
                if !admit(&mailbox) {
                    return Ok(false);
                }
                mail.sequence = mailbox.next_sequence(&mail.from);
                writer.append(&[Record::Mail(Box::new(mail.clone()))])?;
                mailbox.accept(mail.clone());
                to.facts().tasks.given(&mail);
            }
        }
        // Also for mail that is known: its first sync may not be over, or may have failed.
        writer.sync().await?;
        if known {
            return Ok(false);
        }
        if mail.deadline.is_some() {
            self.deadlines_changed();
        }
        self.0.bus.emit(
            &to.address,
            EventKind::MailAccepted { mail: mail.id, from: mail.from.name().to_owned(), kind: mail.kind, preview },
        );
        to.inbox.notify();
        // A turn's end is noted when it comes, and with it all mail before it.
        if !to.is_busy() {
            self.note(&writer);
        }
        Ok(true)
    }

    /// Tells the mirror how a rollout stands that was synced. When somebody has appended meanwhile, their sync tells it.
    pub(crate) fn note(&self, writer: &Writer) {
        if let Some(summary) = writer.synced_summary() {
            self.0.options.mirror.note(summary);
        }
    }

    /// Pays what a turn's end owes: each task's giver gets one result.
    pub(crate) async fn settle(&self, node: &Arc<Node>, report: TurnReport) {
        for done in report.tasks {
            match done.giver {
                Party::Client { .. } => {
                    self.answer(done.task, Answer { end: done.end, fault: report.fault.clone() });
                }
                Party::Agent(_) => {
                    if let Err(error) = self.pay(node, &done).await {
                        self.0.bus.emit(
                            &node.address,
                            EventKind::Error {
                                message: format!(
                                    "a result of {} did not reach {}: {error}",
                                    node.address.path,
                                    done.giver.name()
                                ),
                                hints: vec!["it is on disk: `agent resume` delivers it".to_owned()],
                            },
                        );
                    }
                }
            }
        }
    }

    /// Sends the result of one task to its giver, or to the nearest reachable agent above a closed giver, and notes
    /// that it is sent. Doing it again is a no-op over there.
    pub(crate) fn pay<'a>(&'a self, node: &'a Arc<Node>, done: &'a TaskDone) -> BoxFuture<'a, Result<(), TreeError>> {
        Box::pin(async move {
            // A recipient that is closed in between refuses; the way then leads to somebody above it, and ends there
            // or at the root.
            for _ in 0..=protocol::MAX_DEPTH_HARD {
                match self.pay_once(node, done).await {
                    Err(TreeError::Mail(mailbox::Refused::Closed { .. })) => {}
                    other => return other,
                }
            }
            self.settled(node, done.task, done.task.result())
        })
    }

    fn pay_once<'a>(&'a self, node: &'a Arc<Node>, done: &'a TaskDone) -> BoxFuture<'a, Result<(), TreeError>> {
        Box::pin(async move {
            let near = done.giver.thread().and_then(|giver| self.nearest(giver));
            let (to, id) = match route_result(done.task, &done.giver, near.as_ref()) {
                Route::Deliver { to, id } => (to, id),
                Route::Forward { to, id } => {
                    let ids = [done.task.result(), id];
                    if let Some(known) = self.arrived(done.giver.thread(), &to, &ids)? {
                        return self.settled(node, done.task, known);
                    }
                    (to, id)
                }
                // Nobody is left to read it: settled, so that it is not driven again for ever.
                Route::Drop(_) => return self.settled(node, done.task, done.task.result()),
                Route::Client(_) | Route::Return { .. } | Route::EndTask => return Ok(()),
            };
            let Some(recipient) = self.node(to.thread) else { return Ok(()) };
            let words = done.end.words();
            let (_, whole) = whole_body(&self.0.options.store, self.0.id, id, &words)?;
            let parties = (id, node.address.clone(), to);
            let mut mail = mailbox::result(self.0.id, done.task, parties, &done.end, whole);
            mail.continues = done.continues;
            self.deliver(&recipient, mail).await?;
            self.settled(node, done.task, id)
        })
    }

    /// Notes in this agent's rollout that what it owed is accepted over there.
    fn settled(&self, node: &Node, obligation: MailId, mail: MailId) -> Result<(), TreeError> {
        let writer = self.0.options.store.writer(node.meta.id)?;
        writer.append(&[Record::Sent { obligation, mail }])?;
        Ok(())
    }

    /// Sends mail back that its closed recipient never took in, or moves a result on to an ancestor, and notes that
    /// it is sent. Doing it again is a no-op over there.
    pub(crate) async fn give_back(&self, node: &Arc<Node>, mail: &Mail, reason: &str) -> Result<(), TreeError> {
        let above = self.nearest(node.meta.id);
        let near_sender = mail.from.thread().and_then(|sender| self.nearest(sender));
        let (back, way) = match route_undelivered(mail, above.as_ref(), near_sender.as_ref()) {
            Route::Forward { to, .. } => (mailbox::forwarded(mail, to), node.meta.parent_thread_id),
            Route::Return { to, .. } => (mailbox::returned(mail, to, reason), mail.from.thread()),
            Route::Drop(_) => return self.settled(node, mail.id, mail.id.returned()),
            Route::Deliver { .. } | Route::EndTask | Route::Client(_) => return Ok(()),
        };
        let id = back.id;
        if self.arrived(way, &back.to, &[id])?.is_some() {
            return self.settled(node, mail.id, id);
        }
        if let Some(recipient) = self.node(back.to.thread) {
            self.deliver(&recipient, back).await?;
            self.settled(node, mail.id, id)?;
        }
        Ok(())
    }

    /// Which of these ids an agent on the way from `from` up to `to` has accepted, who is closed by now: what it had not
    /// read it has moved on itself, and what it had is not to be read a second time further up. The note that it was
    /// sent is not synced, so it may be gone although the mail is there.
    pub(crate) fn arrived(
        &self,
        from: Option<ThreadId>,
        to: &Address,
        ids: &[MailId],
    ) -> Result<Option<MailId>, TreeError> {
        let mut at = from;
        // No chain of parents is longer, whatever the files say.
        for _ in 0..=protocol::MAX_DEPTH_HARD {
            let Some(node) = at.filter(|at| *at != to.thread).and_then(|at| self.node(at)) else { break };
            node.make_whole(&self.0.options.store)?;
            let mailbox = node.inbox.lock();
            if let Some(known) = ids.iter().find(|id| mailbox.knows(**id)) {
                return Ok(Some(*known));
            }
            drop(mailbox);
            at = node.meta.parent_thread_id;
        }
        Ok(None)
    }

    /// The nearest reachable agent at or above `thread`.
    pub(crate) fn nearest(&self, thread: ThreadId) -> Option<Address> {
        let near = self.family().graph.nearest_reachable(thread)?;
        self.node(near).map(|node| node.address.clone())
    }
}

/// The part of a body that goes into a mail, and the file with all of it when it is over the cap. The file is synced
/// before anything points to it.
pub(crate) fn whole_body(
    store: &Store,
    tree: TreeId,
    id: MailId,
    body: &str,
) -> Result<(String, Option<AbsPath>), TreeError> {
    match cut_body(body) {
        None => Ok((body.to_owned(), None)),
        Some(head) => Ok((head.to_owned(), Some(store.attach(tree, id, body)?))),
    }
}
