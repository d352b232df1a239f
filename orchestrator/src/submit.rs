//! A client's words to an agent: one entry, told at once what became of them.

use mailbox::{Mailbox, Refused};
use protocol::{AgentPath, Mail, MailKind, Party, RequestId, TaskId};
use stdx::Timestamp;

use crate::TreeError;
use crate::tree::{Pending, Tree};

/// What a client wants of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Join the running turn; without one, start one.
    StartOrSteer,
    /// Start a turn, unless one runs or is about to.
    StartIfIdle,
    /// Join the running turn, if there is one.
    Steer,
    /// Lie there until the agent's next turn.
    Leave,
}

/// What became of them. When they were taken, they are on disk before this is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A turn starts for them, or queues for a running slot.
    Started,
    /// They join the turn that runs.
    Steered,
    /// They lie in the mailbox.
    Left,
    /// Nothing was taken and nothing has changed.
    NotSubmitted(NotSubmitted),
}

/// Why words were not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubmitted {
    /// Nothing to steer.
    #[error("the agent has no turn to steer; send without asking for a steer")]
    NoActiveTurn,
    /// It has a turn, or one is about to start.
    #[error("the agent is working; steer it, or wait for its end")]
    Busy,
    /// The words themselves.
    #[error("{0}")]
    InvalidRequest(Refused),
    /// Too much waits, or the agent is closed.
    #[error("{0}")]
    QueueFull(Refused),
    /// The tree is going down.
    #[error("the tree is shutting down; send again to whoever drives it next")]
    ShuttingDown,
}

impl Tree {
    /// Takes a client's words for an agent. Whether they fit the mode is decided under the lock under which they are
    /// written; the answer follows the sync. The same request twice is taken once.
    ///
    /// # Errors
    /// When there is no such agent, or the disk did not take them.
    pub async fn submit(
        &self,
        path: &AgentPath,
        body: &str,
        mode: Mode,
        request: RequestId,
    ) -> Result<(Submitted, Option<Pending>), TreeError> {
        self.submit_until(path, body, mode, request, None).await
    }

    /// As [`Tree::submit`], with a moment at which the task ends with what there is.
    ///
    /// # Errors
    /// As for [`Tree::submit`].
    pub async fn submit_until(
        &self,
        path: &AgentPath,
        body: &str,
        mode: Mode,
        request: RequestId,
        deadline: Option<Timestamp>,
    ) -> Result<(Submitted, Option<Pending>), TreeError> {
        let refuse = |why| Ok((Submitted::NotSubmitted(why), None));
        let Some(_entering) = Entering::new(self) else { return refuse(NotSubmitted::ShuttingDown) };
        if let Some(taken) = self.taken_before(path, request.mail(), mode).await? {
            return Ok(taken);
        }
        let node = self.at(path)?;
        if mode != Mode::Leave {
            // A model that cannot be opened is told before the words are taken, not after.
            self.model(&self.model_of(&node.meta))?;
        }
        let party = Party::Client { client: request };
        let letter = match self.letter(request.mail(), party, &node, (MailKind::Input, mode != Mode::Leave), body) {
            Ok(letter) => Mail { deadline, ..letter },
            Err(TreeError::Mail(refused)) => return refuse(NotSubmitted::InvalidRequest(refused)),
            Err(error) => return Err(error),
        };
        // Asked for before the mail is out, so that the answer cannot come first.
        let pending = self.expect(letter.id, path.clone());
        let mut decided = Ok(Submitted::Left);
        let taken = self
            .deliver_if(&node, letter, |mailbox| {
                decided = decide(mode, mailbox);
                decided.is_ok()
            })
            .await;
        match (taken, decided) {
            (Ok(_), Ok(submitted)) => {
                if mode != Mode::Leave {
                    self.wake(&node).await;
                }
                Ok((submitted, Some(pending)))
            }
            (Ok(_), Err(why)) => refuse(why),
            (Err(TreeError::Mail(refused)), _) => refuse(NotSubmitted::QueueFull(refused)),
            (Err(error), _) => Err(error),
        }
    }
}

impl Tree {
    /// What has become of words that an earlier owner took, or this one. A task that a crash cut off goes on: whoever
    /// says the words again waits for their end still.
    async fn taken_before(
        &self,
        path: &AgentPath,
        task: TaskId,
        mode: Mode,
    ) -> Result<Option<(Submitted, Option<Pending>)>, TreeError> {
        // Closed ones too: they may have taken it before they were.
        let mut taker = None;
        for node in self.nodes().into_iter().filter(|node| node.address.path == *path) {
            node.make_whole(&self.0.options.store)?;
            taker = if node.inbox.lock().knows(task) { Some(node) } else { taker };
        }
        let Some(node) = taker else { return Ok(None) };
        // Whoever took them may have been killed before they, or their end, were on the disk.
        let writer = self.0.options.store.writer(node.meta.id)?;
        self.0.options.store.hold(&writer).await?;
        if mode == Mode::Leave {
            return Ok(Some((Submitted::Left, Some(self.expect(task, node.address.path.clone())))));
        }
        let pending = match self.go_on_with(&node, task).await? {
            Some(pending) => pending,
            None => self.await_task(task).await?,
        };
        Ok(Some((Submitted::Started, Some(pending))))
    }
}

/// A client that is coming in. While it does the tree does not end; once it is in, its agent is busy.
struct Entering<'a>(&'a Tree);

impl<'a> Entering<'a> {
    fn new(tree: &'a Tree) -> Option<Self> {
        let mut door = tree.door();
        if door.shut || tree.0.cancel.is_cancelled() {
            return None;
        }
        door.entering += 1;
        Some(Self(tree))
    }
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        self.0.door().entering -= 1;
        self.0.changed();
    }
}

/// Whether words of this mode may be taken now, and what becomes of them.
fn decide(mode: Mode, mailbox: &Mailbox) -> Result<Submitted, NotSubmitted> {
    let turn = mailbox.phase().is_some();
    match mode {
        Mode::Leave => Ok(Submitted::Left),
        Mode::StartOrSteer => Ok(if turn { Submitted::Steered } else { Submitted::Started }),
        Mode::StartIfIdle if turn || mailbox.wakes() => Err(NotSubmitted::Busy),
        Mode::StartIfIdle => Ok(Submitted::Started),
        Mode::Steer if turn => Ok(Submitted::Steered),
        Mode::Steer => Err(NotSubmitted::NoActiveTurn),
    }
}
