//! The turn loop: does this turn need another sample? It may not announce a second turn.

use model::ModelError;
use protocol::{Mail, TurnId};
use tokio_util::sync::CancellationToken;

use super::core::{Core, EngineError};
use super::sampling::{Sampled, sample};
use super::spend::OverBudget;

/// How a pass of a turn ended.
pub(crate) enum Turned {
    /// Nothing more to do: no call to follow up, no input pending.
    Ended,
    /// It was interrupted.
    Interrupted,
    /// The provider failed for good.
    Failed(ModelError),
    /// The budget does not allow the next request, or did not allow the whole of the last reply.
    OverBudget(OverBudget),
}

/// Runs one pass. `input` enters the context first; the mailbox holds back everything else until it was sampled.
pub(crate) async fn run_turn(
    core: &mut Core,
    turn: TurnId,
    input: Vec<Mail>,
    cancel: &CancellationToken,
) -> Result<Turned, EngineError> {
    core.deliver(turn, input)?;
    loop {
        let mail = core.setup.inbox.lock().drain();
        core.deliver(turn, mail)?;
        match sample(core, turn, cancel).await? {
            Sampled::Interrupted => return Ok(Turned::Interrupted),
            Sampled::Failed(error) => return Ok(Turned::Failed(error)),
            Sampled::OverBudget(over) => return Ok(Turned::OverBudget(over)),
            Sampled::Ended { follow_up: true } => core.setup.inbox.lock().follow_up(),
            Sampled::Ended { follow_up: false } => {
                if !core.setup.inbox.lock().has_pending() {
                    return Ok(Turned::Ended);
                }
            }
        }
    }
}
