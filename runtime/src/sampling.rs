//! The sampling loop: has this one stream ended, and is it to be retried? It may not end the turn.

use budget::Refusal;
use futures::StreamExt as _;
use model::{ErrorKind, ModelError, ModelEvent, Retry};
use protocol::{EffectId, EventKind, Item, Status, TurnId, WaitingOn, Waits};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::core::{Core, EngineError};
use crate::limits::MAX_CALLS;
use crate::spend::{self, Bill, Held, OverBudget, Room};

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
    /// The budget does not allow the request, or cut the reply short; all calls are answered.
    OverBudget(OverBudget),
}

/// How one stream ended.
enum Stream {
    Done {
        wants_more: bool,
        /// The bound of output that the reply has reached, when the budget set one.
        cut: Option<u64>,
    },
    Interrupted,
    Failed(ModelError),
}

/// Samples once, trying again what can be tried again. Every retry is built from history, so calls that were already
/// recorded and answered are in it.
pub(crate) async fn sample(core: &mut Core, turn: TurnId, cancel: &CancellationToken) -> Result<Sampled, EngineError> {
    if let Some(error) = full(core) {
        return Ok(Sampled::Failed(error));
    }
    let mut held = None;
    let sampled = attempts(core, turn, cancel, &mut held).await?;
    // What is still held was refused, or never sent.
    if let Some(held) = held {
        spend::settle(core, turn, held, Bill::Nothing)?;
    }
    Ok(sampled)
}

/// Sends the request until there is a reply. Room that a refused attempt has not used is kept for the next one.
async fn attempts(
    core: &mut Core,
    turn: TurnId,
    cancel: &CancellationToken,
    held: &mut Option<Held>,
) -> Result<Sampled, EngineError> {
    let since = Instant::now();
    let mut retry = Retry::new(core.setup.retry.clone());
    loop {
        if core.setup.inbox.lock().is_shut() {
            // It is being closed, everybody at once: what ended the wait before this may have been the end of somebody
            // below. Its own stop is on the way, and no request is worth sending.
            cancel.cancelled().await;
            return Ok(Sampled::Interrupted);
        }
        core.setup.host.status(Status::Running, None);
        if held.is_none() {
            match spend::reserve(core, turn, cancel).await? {
                Room::Held(room) => *held = Some(room),
                Room::Interrupted => return Ok(Sampled::Interrupted),
                Room::Refused(refusal @ Refusal::NoPrice { .. }) => {
                    return Ok(Sampled::Failed(no_price(core, &refusal)));
                }
                Room::Refused(refusal) => return Ok(Sampled::OverBudget(refusal.into())),
            }
        }
        let mut calls = Calls::new(turn, cancel.child_token());
        let streamed = stream(core, turn, cancel, &mut calls, &mut retry, held).await;
        // Of this attempt only: what an earlier one called is answered in the request that this reply is to.
        let called = calls.any();
        // Whatever way the stream ended, every started tool is answered before anybody looks at the token.
        calls.drain(core).await?;
        let error = match streamed? {
            _ if cancel.is_cancelled() => return Ok(Sampled::Interrupted),
            Stream::Interrupted => return Ok(Sampled::Interrupted),
            Stream::Done { cut: Some(most), .. } if !called => return Ok(Sampled::OverBudget(cut_off(most))),
            Stream::Done { wants_more, .. } => return Ok(Sampled::Ended { follow_up: called || wants_more }),
            Stream::Failed(error) => error,
        };
        let Some(wait) = retry.next(&error, since.elapsed(), chance()) else {
            return Ok(Sampled::Failed(retry.conclude(error)));
        };
        core.setup
            .host
            .emit(EventKind::Warning { message: format!("{error}; trying again in {:.1} s", wait.as_secs_f64()) });
        core.setup.host.status(Status::Waiting, Some(WaitingOn::Model));
        core.setup.host.waits(Waits::Retry { until: stdx::now().after(wait) });
        tokio::select! {
            () = cancel.cancelled() => return Ok(Sampled::Interrupted),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Consumes one stream: a finished item is in the rollout and in history before its tool starts. What it cost is
/// settled, unless it cost nothing.
async fn stream(
    core: &mut Core,
    turn: TurnId,
    cancel: &CancellationToken,
    calls: &mut Calls,
    retry: &mut Retry,
    held: &mut Option<Held>,
) -> Result<Stream, EngineError> {
    core.half.clear();
    if cancel.is_cancelled() {
        return Ok(Stream::Interrupted);
    }
    let (max_output, reserved) = held.as_ref().map(|held| (held.max_output, held.usage)).unwrap_or_default();
    let before = core.transcript.len();
    let mut began = false;
    let mut events = core.setup.model.stream(core.request(max_output));
    let (ended, bill) = loop {
        let event = tokio::select! {
            biased;
            () = cancel.cancelled() => break (Stream::Interrupted, Bill::Estimated(reserved)),
            event = events.next() => event,
        };
        began |= matches!(event, Some(Ok(_)));
        let error = match event {
            Some(Ok(
                event @ (ModelEvent::Started
                | ModelEvent::TextDelta(_)
                | ModelEvent::ReasoningDelta(_)
                | ModelEvent::Piece),
            )) => {
                if event.is_progress() {
                    core.setup.host.progress();
                }
                if let ModelEvent::TextDelta(piece) = event {
                    core.half.push_str(&piece);
                }
                continue;
            }
            Some(Ok(ModelEvent::Item(item))) => {
                core.half.clear();
                retry.progress();
                if calls.count() < MAX_CALLS || item.call().is_none() {
                    take(core, turn, item, calls)?;
                    continue;
                }
                endless()
            }
            Some(Ok(ModelEvent::Done { usage, wants_more })) => {
                core.half.clear();
                let reply = core.transcript.items().get(before..).unwrap_or_default();
                let bill = spend::bill_of_reply(usage, reserved, reply);
                let cut = max_output.filter(|most| usage.output >= *most);
                break (Stream::Done { wants_more: wants_more == Some(true), cut }, bill);
            }
            Some(Err(error)) => error,
            None => early_end(),
        };
        let bill = spend::bill_of_failure(error.kind, began, reserved);
        break (Stream::Failed(error), bill);
    };
    if bill != Bill::Nothing
        && let Some(held) = held.take()
    {
        spend::settle(core, turn, held, bill)?;
    }
    Ok(ended)
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

/// A budget in dollars binds an agent whose model has no price.
fn no_price(core: &Core, refusal: &Refusal) -> ModelError {
    let model = core.setup.model.id();
    ModelError {
        kind: ErrorKind::Rejected,
        message: format!("{refusal}: {model}"),
        hints: vec![format!("set input_usd_per_mtok and output_usd_per_mtok in [models.\"{model}\"] of config.toml")],
    }
}

fn cut_off(most: u64) -> OverBudget {
    let reason = format!("the reply was cut off at {most} tokens of output: the budget had no more left");
    OverBudget { reason, of_the_tree: true }
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
