//! What one agent needs from whoever keeps it.

use budget::{Refusal, Reservation, Standing, Usd};
use futures::future::BoxFuture;
use model::ErrorKind;
use protocol::{EventKind, Status, TaskEnd, TurnId, Usage, WaitingOn, Waits};
use rollout::TaskDone;

/// The keeper of an agent, as the agent sees it.
pub trait Host: Send + Sync {
    /// Waits for a running slot. Dropping the future gives up the place in the queue.
    fn enter(&self) -> BoxFuture<'_, ()>;

    /// Gives the slot back. Called once for every `enter` that completed.
    fn leave(&self);

    /// Tells whoever watches. Never blocks.
    fn emit(&self, event: EventKind);

    /// The agent stands differently. Never blocks.
    fn status(&self, status: Status, waiting_on: Option<WaitingOn>);

    /// What the turn waits for, in detail; said after `status`, and again when it changes. Never blocks.
    fn waits(&self, waits: Waits) {
        let _ = waits;
    }

    /// Something has come of the turn that no event tells: a piece of a reply, of an output, the end of a call among
    /// others. Never blocks.
    fn progress(&self) {}

    /// A turn is about to start: said before it asks for its slot. Never blocks.
    fn busy(&self);

    /// The agent has no turn any more, and none is about to start. Never blocks.
    fn rest(&self);

    /// Asks for room in every budget that binds this agent, for a request that sends about `input` tokens. Waits while
    /// others have reserved what is left; dropping the future gives up.
    fn reserve(&self, input: u64) -> BoxFuture<'_, Result<Reservation, Refusal>>;

    /// The request of a reservation has ended: what it used, and whether that is an estimate. Answers what it cost, when
    /// the model has a price. Never blocks.
    fn settle(&self, reservation: &Reservation, usage: Usage, estimated: bool) -> Option<Usd>;

    /// The budget of which the smallest part is left; none when no budget binds this agent.
    fn standing(&self) -> Option<Standing>;

    /// A turn has ended, and its end and those of its tasks are on disk: now the results are owed.
    fn turn_ended(&self, report: TurnReport) -> BoxFuture<'_, ()>;
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub end: TaskEnd,
    /// The tasks that it took in; each owes its giver a result. Empty when the end could not be written.
    pub tasks: Vec<TaskDone>,
    /// The tasks that it took in when the end could not be written: no result is owed for them yet. They are closed
    /// and reported once more when the agent is woken and its rollout takes lines again.
    pub unwritten: Vec<TaskDone>,
    /// Whether the turn broke down: then the agent starts nothing, pending mail included, before somebody wakes it.
    pub broken: bool,
    /// Tokens of this turn.
    pub usage: Usage,
    /// The provider's fault that ended it, if one did.
    pub fault: Option<Fault>,
}

/// A provider's fault, for exit codes and hints.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Its kind.
    pub kind: ErrorKind,
    /// What to do about it.
    pub hints: Vec<String>,
}
