//! The sampling loop: has this one stream ended, and is it to be retried? It may not end the turn.

use futures::StreamExt as _;
use model::{ErrorKind, ModelError, ModelEvent, Retry};
use protocol::{EffectId, EventKind, Item, Status, TurnId, Usage, WaitingOn};
use rollout::{Record, UsageRecord, UsageStage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::core::{Core, EngineError};
use crate::limits::MAX_CALLS;

/// What one sample came to.
pub(crate) enum Sampled {
    /// The reply is complete and all its calls are answered.
    Ended {
        /// Whether the model has to be asked again.
        follow_up: bool,
    },
    /// The turn was interrupted; all calls are answered.
    Interrupted,
    /// The provider failed for good; all calls are answered.
    Failed(ModelError),
}

/// How one stream ended.
enum Stream {
    Done { wants_more: bool },
    Interrupted,
    Failed(ModelError),
}

/// Samples once, trying again what can be tried again. Every retry is built from history, so calls that were already
/// recorded and answered are in it.
pub(crate) async fn sample(core: &mut Core, turn: TurnId, cancel: &CancellationToken) -> Result<Sampled, EngineError> {
    if let Some(error) = full(core) {
        return Ok(Sampled::Failed(error));
    }
    let since = Instant::now();
    let mut retry = Retry::new(core.setup.retry.clone());
    loop {
        core.setup.host.status(Status::Running, None);
        let mut calls = Calls::new(turn, cancel.child_token());
        let streamed = stream(core, turn, cancel, &mut calls, &mut retry).await;
        // Of this attempt only: what an earlier one called is answered in the request that this reply is to.
        let called = calls.any();
        // Whatever way the stream ended, every started tool is answered before anybody looks at the token.
        calls.drain(core).await?;
        let error = match streamed? {
            _ if cancel.is_cancelled() => return Ok(Sampled::Interrupted),
            Stream::Interrupted => return Ok(Sampled::Interrupted),
            Stream::Done { wants_more } => return Ok(Sampled::Ended { follow_up: called || wants_more }),
            Stream::Failed(error) => error,
        };
        let Some(wait) = retry.next(&error, since.elapsed(), chance()) else {
            return Ok(Sampled::Failed(retry.conclude(error)));
        };
        core.setup
            .host
            .emit(EventKind::Warning { message: format!("{error}; trying again in {:.1} s", wait.as_secs_f64()) });
        core.setup.host.status(Status::Waiting, Some(WaitingOn::Model));
        tokio::select! {
            () = cancel.cancelled() => return Ok(Sampled::Interrupted),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Consumes one stream: a finished item is in the rollout and in history before its tool starts.
async fn stream(
    core: &mut Core,
    turn: TurnId,
    cancel: &CancellationToken,
    calls: &mut Calls,
    retry: &mut Retry,
) -> Result<Stream, EngineError> {
    let mut events = core.setup.model.stream(core.request());
    loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(Stream::Interrupted),
            event = events.next() => event,
        };
        match event {
            Some(Ok(ModelEvent::Started | ModelEvent::TextDelta(_) | ModelEvent::ReasoningDelta(_))) => {}
            Some(Ok(ModelEvent::Item(item))) => {
                retry.progress();
                if calls.count() >= MAX_CALLS && item.call().is_some() {
                    return Ok(Stream::Failed(endless()));
                }
                take(core, turn, item, calls)?;
            }
            Some(Ok(ModelEvent::Done { usage, wants_more })) => {
                settle(core, turn, usage)?;
                return Ok(Stream::Done { wants_more: wants_more == Some(true) });
            }
            Some(Err(error)) => return Ok(Stream::Failed(error)),
            None => return Ok(Stream::Failed(early_end())),
        }
    }
}

/// Records a finished item and starts its tool, if it is a call.
fn take(core: &mut Core, turn: TurnId, item: Item, calls: &mut Calls) -> Result<(), EngineError> {
    if let Some(call) = item.call() {
        let effect = EffectId::new();
        let ordinal = core.record_item(turn, item, Some(effect))?;
        core.setup.inbox.lock().tool_called();
        calls.start(core, call, effect, ordinal);
        return Ok(());
    }
    let answers = item.final_text().is_some();
    core.record_item(turn, item, None)?;
    if answers {
        core.setup.inbox.lock().final_text();
    }
    Ok(())
}

/// Writes down what the reply cost.
fn settle(core: &mut Core, turn: TurnId, usage: Usage) -> Result<(), EngineError> {
    core.total += usage;
    core.spent += usage;
    core.window_used = usage.total();
    core.setup.writer.append(&[Record::Usage(UsageRecord {
        stage: UsageStage::Settled,
        turn_id: turn,
        usage,
        cost_usd: None,
        total: core.total,
    })])?;
    Ok(())
}

/// The error that ends a task whose conversation has filled the model's window.
fn full(core: &Core) -> Option<ModelError> {
    let window = core.setup.model.window()?;
    (core.window_used >= window).then(|| ModelError {
        kind: ErrorKind::WindowExceeded,
        message: format!(
            "the conversation has {} tokens and fills the window of {} ({window} tokens)",
            core.window_used,
            core.setup.model.id()
        ),
        hints: vec!["give the rest of the task to a new agent, or use a model with a larger window".to_owned()],
    })
}

/// Not tried again: the next reply would be as long, and its calls would run too.
fn endless() -> ModelError {
    ModelError {
        kind: ErrorKind::Rejected,
        message: format!("the model made more than {MAX_CALLS} calls in one reply"),
        hints: vec!["what it called before that has run; ask for less at once, or use another model".to_owned()],
    }
}

fn early_end() -> ModelError {
    ModelError {
        kind: ErrorKind::Interrupted,
        message: "the model's reply ended before it was complete".to_owned(),
        hints: Vec::new(),
    }
}

/// A number in 0..1 for jitter, from the random bits of a fresh id.
fn chance() -> f64 {
    let bits = (EffectId::new().uuid().as_u128() & 0xffff_ffff) as u32;
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}
