//! The loop that owns an agent: operations come down a bounded queue, one turn runs at a time.

use std::sync::{Arc, PoisonError};

use protocol::{EventKind, Outcome, TaskEnd, TaskId, TurnId, Usage};
use rollout::State;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::core::{Core, Setup};
use super::host::{Host, TurnReport};
use super::limits::OPS_QUEUE;
use super::recover;
use super::seam::{JoinError, JoinHandle, TaskTracker};
use super::task::{Ended, Stopped, run_task};

/// A resident agent. Cheap to clone; when the last clone is dropped its loop ends, once its turn has ended.
#[derive(Clone)]
pub struct Agent {
    ops: mpsc::Sender<Op>,
}

/// Why a turn is stopped.
#[derive(Clone, Debug)]
pub struct Stop {
    /// How its tasks end.
    pub outcome: Outcome,
    /// By whom or why, for people and for the giver.
    pub reason: String,
    /// Whether the work itself is still wanted: the process ends, not the task. A resume can go on with it.
    pub goes_on: bool,
    /// The tasks that it is about; all of the turn's when there is none. What else the turn had taken in is cut off with
    /// them, and a resume can go on with it.
    pub only: Vec<TaskId>,
}

impl Stop {
    /// The process that drives the tree is about to end.
    pub(crate) fn of_the_tree() -> Self {
        Self {
            outcome: Outcome::Interrupted,
            reason: "the tree was interrupted".to_owned(),
            goes_on: true,
            only: Vec::new(),
        }
    }
}

/// The agent has a turn, or mail that wakes it, and stays resident.
#[derive(Debug, thiserror::Error)]
#[error("the agent is working")]
pub struct Busy;

/// The operations. What becomes of one is answered by its oneshot, never by an event.
enum Op {
    Wake { reply: oneshot::Sender<bool> },
    Interrupt { stop: Stop, reply: oneshot::Sender<bool> },
    Unload { reply: oneshot::Sender<Result<(), Busy>> },
}

impl Agent {
    /// Brings an agent to life as its rollout has it. Nothing starts until it is woken.
    ///
    /// `cancel` is its node of the cancellation tree: when it fires, the turn is interrupted and the loop ends.
    pub fn start(setup: Arc<Setup>, state: State, cancel: CancellationToken, tracker: &TaskTracker) -> Self {
        let (ops, queue) = mpsc::channel(OPS_QUEUE);
        // It was unloaded after its rollout had refused a line: what that left open is closed before the next turn.
        let open = !state.open_calls.is_empty() || !state.unsettled.is_empty() || state.open_turn.is_some();
        let core = (!open).then(|| Core::new(Arc::clone(&setup), state));
        let owner = Owner { setup, core, turn: None, held: false, tracker: tracker.clone(), cancel };
        tracker.spawn(owner.run(queue));
        Self { ops }
    }

    /// Starts a turn if mail is pending that wakes, and answers whether one is under way now. Waits while the queue
    /// is full. False when the agent is gone.
    pub async fn wake(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        if self.ops.send(Op::Wake { reply }).await.is_err() {
            return false;
        }
        answer.await.unwrap_or(false)
    }

    /// Stops the turn, if there is one, and answers when it has ended: whether there was one. The agent stays, and
    /// does not start again by itself.
    pub async fn interrupt(&self, stop: Stop) -> bool {
        let (reply, answer) = oneshot::channel();
        if self.ops.send(Op::Interrupt { stop, reply }).await.is_err() {
            return false;
        }
        answer.await.unwrap_or(false)
    }

    /// Ends the loop of an idle agent whose rollout is flushed.
    ///
    /// # Errors
    /// When it has a turn, mail that wakes it, or could not be flushed.
    pub async fn unload(&self) -> Result<(), Busy> {
        let (reply, answer) = oneshot::channel();
        if self.ops.send(Op::Unload { reply }).await.is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

/// A turn under way, or waiting for its slot.
struct Turn {
    task: JoinHandle<(Core, Option<Ended>)>,
    cancel: CancellationToken,
    stopped: Stopped,
    waiting: Vec<oneshot::Sender<bool>>,
}

struct Owner {
    setup: Arc<Setup>,
    /// Here while no turn runs; gone after a panic, until it is read again.
    core: Option<Core>,
    turn: Option<Turn>,
    /// After an interrupt or a broken turn, pending mail starts nothing until somebody wakes the agent.
    held: bool,
    tracker: TaskTracker,
    cancel: CancellationToken,
}

impl Owner {
    async fn run(mut self, mut queue: mpsc::Receiver<Op>) {
        let mut open = true;
        while open || self.turn.is_some() {
            // In this order and not by chance, so that a schedule of tasks is all that a run depends on. Nobody starves:
            // a turn ends once, and the tree is interrupted once.
            tokio::select! {
                biased;
                ended = ended(&mut self.turn) => self.turn_ended(ended).await,
                () = self.cancel.cancelled(), if open => {
                    open = false;
                    self.interrupt(Stop::of_the_tree(), None);
                },
                op = queue.recv(), if open => match op {
                    Some(Op::Wake { reply }) => {
                        self.held = false;
                        self.start_turn().await;
                        let _ = reply.send(self.turn.is_some());
                    }
                    Some(Op::Interrupt { stop, reply }) => self.interrupt(stop, Some(reply)),
                    Some(Op::Unload { reply }) => {
                        // Mail does not pin an agent that is held: whoever wakes it loads it again.
                        let idle = self.turn.is_none() && (self.held || !self.setup.inbox.lock().wakes());
                        let unloads = idle && self.setup.writer.sync().await.is_ok();
                        open = !unloads;
                        let _ = reply.send(if unloads { Ok(()) } else { Err(Busy) });
                    }
                    None => open = false,
                },
            }
        }
    }

    async fn start_turn(&mut self) {
        if self.turn.is_some() || self.cancel.is_cancelled() || !self.setup.inbox.lock().wakes() {
            return;
        }
        let core = match self.core.take() {
            Some(core) => core,
            None => match recover::reload(&self.setup).await {
                Ok((state, owed)) => {
                    if let Some(owed) = owed {
                        self.setup.host.turn_ended(owed).await;
                    }
                    Core::new(Arc::clone(&self.setup), state)
                }
                Err(error) => {
                    self.held = true;
                    self.setup.host.emit(EventKind::Error {
                        message: format!("{} cannot be read back: {error}", self.setup.agent.path),
                        hints: vec!["`agent resume` tries again".to_owned()],
                    });
                    return;
                }
            },
        };
        self.setup.host.busy();
        let cancel = self.cancel.child_token();
        let stopped = Stopped::default();
        let task = self.tracker.spawn(drive(core, Arc::clone(&stopped), cancel.clone()));
        self.turn = Some(Turn { task, cancel, stopped, waiting: Vec::new() });
    }

    fn interrupt(&mut self, stop: Stop, reply: Option<oneshot::Sender<bool>>) {
        self.held = true;
        match (&mut self.turn, reply) {
            (Some(turn), reply) => {
                *turn.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
                turn.waiting.extend(reply);
                self.setup.inbox.lock().interrupt();
                turn.cancel.cancel();
            }
            (None, Some(reply)) => drop(reply.send(false)),
            (None, None) => {}
        }
    }

    async fn turn_ended(&mut self, joined: Joined) {
        let Some(turn) = self.turn.take() else { return };
        let had_turn = match joined {
            Ok((core, ended)) => {
                if ended.as_ref().is_some_and(|ended| ended.report.broken) {
                    self.held = true;
                } else {
                    self.core = Some(core);
                }
                ended.is_some()
            }
            Err(error) => {
                self.held = true;
                self.panicked(&error.to_string()).await;
                true
            }
        };
        if !self.held {
            self.start_turn().await;
        }
        if self.turn.is_none() {
            if let Some(core) = &self.core {
                core.transcript.rest();
            }
            self.setup.host.rest();
        }
        // Last, so that whoever stopped the turn finds the agent at rest.
        for waiting in turn.waiting {
            let _ = waiting.send(had_turn);
        }
    }

    /// A panic ends only this agent's task: its rollout is closed, its giver is told, and it can be woken again.
    async fn panicked(&mut self, error: &str) {
        let reason = format!("the agent's turn broke down: {error}");
        let setup = Arc::clone(&self.setup);
        setup.inbox.lock().end_turn();
        setup.host.emit(EventKind::Error { message: reason.clone(), hints: Vec::new() });
        let report = match recover::abandon(&setup, &reason).await {
            Ok(report) => report,
            Err(write) => TurnReport {
                turn: TurnId::new(),
                end: TaskEnd { outcome: Outcome::Errored, text: None, reason: Some(format!("{reason}; {write}")) },
                tasks: Vec::new(),
                unwritten: Vec::new(),
                broken: true,
                usage: Usage::default(),
                fault: None,
            },
        };
        setup.host.turn_ended(report).await;
    }
}

type Joined = Result<(Core, Option<Ended>), JoinError>;

/// The end of the turn; pending for ever while there is none.
async fn ended(turn: &mut Option<Turn>) -> Joined {
    match turn {
        Some(turn) => (&mut turn.task).await,
        None => std::future::pending().await,
    }
}

/// Waits for a slot, runs the task, hands its results over, and gives the slot back. An interrupt in the queue gives
/// up the place: no turn has started, and the mail stays pending.
async fn drive(mut core: Core, stopped: Stopped, cancel: CancellationToken) -> (Core, Option<Ended>) {
    let host = Arc::clone(&core.setup.host);
    let slot = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        () = host.enter() => Some(Slot(Arc::clone(&host))),
    };
    let Some(_slot) = slot else { return (core, None) };
    let ended = run_task(&mut core, &stopped, &cancel).await;
    host.turn_ended(ended.report.clone()).await;
    (core, Some(ended))
}

/// Gives the slot back, whatever happens.
struct Slot(Arc<dyn Host>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.leave();
    }
}
