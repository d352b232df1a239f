//! A sample: it calls the agent's tool for as long as that wants to be called, or, where there is none, says its last
//! word or makes a call that answers at once, by chance. What a sample owes the mailbox, the accounts and the token it
//! does as the real one.

use std::sync::Arc;

use model::ModelError;
use protocol::{EffectId, Item, Role, TurnId, Usage};
use shuttle::future::yield_now;
use shuttle::rand::Rng as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tool_api::{Activity, Invocation, Pulse};

use super::core::{Core, EngineError, RolloutLedger};
use super::spend::{self, Bill, OverBudget, Room};

/// What every request costs.
const COST: Usage = Usage { input: 10, cached_input: 0, output: 5, reasoning: 0 };

pub(crate) enum Sampled {
    Ended { follow_up: bool },
    Interrupted,
    Failed(ModelError),
    OverBudget(OverBudget),
}

pub(crate) async fn sample(core: &mut Core, turn: TurnId, cancel: &CancellationToken) -> Result<Sampled, EngineError> {
    yield_now().await;
    if cancel.is_cancelled() {
        return Ok(Sampled::Interrupted);
    }
    let held = match spend::reserve(core, turn, cancel).await? {
        Room::Held(held) => held,
        Room::Interrupted => return Ok(Sampled::Interrupted),
        Room::Refused(refusal) => return Ok(Sampled::OverBudget(refusal.into())),
    };
    yield_now().await;
    spend::settle(core, turn, held, Bill::Counted(COST))?;
    let tool = core.setup.tools.first().cloned();
    // A tool that has nothing left to do says here that it would run alone.
    let calls = tool.as_ref().map_or_else(|| shuttle::rand::thread_rng().gen_bool(0.3), |tool| tool.parallel());
    if calls {
        let item = Item::function_call("call_0", "look", "{}");
        let Some(call) = item.call() else { return Ok(Sampled::Interrupted) };
        let effect = EffectId::new();
        let ordinal = core.record_item(turn, item, Some(effect))?;
        core.setup.inbox.lock().tool_called();
        let invocation = Invocation {
            call: call.clone(),
            effect,
            ordinal,
            turn,
            agent: core.setup.agent.clone(),
            cwd: core.setup.cwd.clone(),
            cancel: cancel.child_token(),
            ledger: Arc::new(RolloutLedger(core.setup.writer.clone())),
            activity: watch::Sender::new(Activity { sampling: false, running: 1 }).subscribe(),
            pulse: Pulse::default(),
        };
        let called = async {
            match tool {
                Some(tool) => tool.call(invocation).await.map_or_else(|error| error.to_string(), |output| output.text),
                None => "seen".to_owned(),
            }
        };
        let text = tokio::select! {
            biased;
            text = called => text,
            () = cancel.cancelled() => "aborted".to_owned(),
        };
        yield_now().await;
        core.record_item(turn, Item::output(&call, &text), None)?;
    } else {
        core.record_item(turn, Item::message(Role::Assistant, "done"), None)?;
        core.setup.inbox.lock().final_text();
        yield_now().await;
    }
    Ok(if cancel.is_cancelled() { Sampled::Interrupted } else { Sampled::Ended { follow_up: calls } })
}
