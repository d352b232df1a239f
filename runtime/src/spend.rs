//! What a request costs: room is asked for before it, the bill is written down after it.

use std::sync::Arc;

use budget::{Refusal, Reservation, Scope, remind};
use model::ErrorKind;
use protocol::{Item, ItemKind, Role, TurnId, Usage};
use rollout::{Record, UsageRecord, UsageStage};
use tokio_util::sync::CancellationToken;

use super::Host;
use super::core::{Core, EngineError};
use super::fragment::{BudgetReminder, ContextFragment as _};

/// Bytes that count as a token where nobody has counted yet: the usual estimate for English and code.
const BYTES_PER_TOKEN: usize = 4;

/// What came of asking for room.
pub(crate) enum Room {
    /// There is.
    Held(Held),
    /// There is none, and there will be none.
    Refused(Refusal),
    /// The turn was interrupted while it waited for others to settle.
    Interrupted,
}

/// Why a budget ended a turn.
pub(crate) struct OverBudget {
    pub(crate) reason: String,
    /// Whether it is the whole tree's: then nobody of it works any more, and with more the task can go on. Of any other
    /// the giver has heard, and decides.
    pub(crate) of_the_tree: bool,
}

impl From<Refusal> for OverBudget {
    fn from(refusal: Refusal) -> Self {
        let scope = match &refusal {
            Refusal::Tokens { scope, .. } | Refusal::Money { scope, .. } | Refusal::NoPrice { scope } => Some(scope),
            Refusal::Busy => None,
        };
        Self { of_the_tree: scope.is_none_or(|scope| *scope == Scope::Tree), reason: refusal.to_string() }
    }
}

/// What a request that has ended cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bill {
    /// As the server counted.
    Counted(Usage),
    /// Nobody counted; this much at the most, as far as that can be known.
    Estimated(Usage),
    /// It never got to the point of costing anything.
    Nothing,
}

/// Room held for a request. Dropped without a bill, as when a turn panics, it costs what was reserved.
pub(crate) struct Held {
    host: Arc<dyn Host>,
    reservation: Option<Reservation>,
    /// The upper bound of output that the request has to name.
    pub(crate) max_output: Option<u64>,
    /// What was reserved.
    pub(crate) usage: Usage,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            self.host.settle(&reservation, reservation.usage, true);
        }
    }
}

/// Tells the agent how its budget stands, if it is time, and asks for room for the next request. The reservation is in
/// the rollout before the request is sent, so that one that a crash cuts off still counts.
pub(crate) async fn reserve(core: &mut Core, turn: TurnId, cancel: &CancellationToken) -> Result<Room, EngineError> {
    reminder(core, turn)?;
    let host = Arc::clone(&core.setup.host);
    let reserved = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(Room::Interrupted),
        reserved = host.reserve(input(core)) => reserved,
    };
    let reservation = match reserved {
        Ok(reservation) => reservation,
        Err(refusal) => return Ok(Room::Refused(refusal)),
    };
    let (usage, max_output) = (reservation.usage, reservation.max_output);
    let cost_usd = reservation.usd.map(budget::Usd::dollars);
    let held = Held { host, reservation: Some(reservation), max_output, usage };
    let line = UsageRecord {
        stage: UsageStage::Reserved,
        turn_id: turn,
        usage,
        cost_usd,
        total: core.total,
        estimated: false,
    };
    core.setup.writer.append(&[Record::Usage(line)])?;
    Ok(Room::Held(held))
}

/// Writes down what a request cost.
pub(crate) fn settle(core: &mut Core, turn: TurnId, mut held: Held, bill: Bill) -> Result<(), EngineError> {
    let Some(reservation) = held.reservation.take() else { return Ok(()) };
    let (usage, estimated) = match bill {
        Bill::Counted(usage) => {
            core.total += usage;
            core.spent += usage;
            core.window_used = usage.total();
            core.counted = core.transcript.len();
            (usage, false)
        }
        Bill::Estimated(usage) => (usage, true),
        Bill::Nothing => (Usage::default(), true),
    };
    let cost = core.setup.host.settle(&reservation, usage, estimated);
    let line = UsageRecord {
        stage: UsageStage::Settled,
        turn_id: turn,
        usage,
        cost_usd: cost.map(budget::Usd::dollars),
        total: core.total,
        estimated,
    };
    core.setup.writer.append(&[Record::Usage(line)])?;
    Ok(())
}

/// What a request cost that gave no complete reply. A server that refused it, or could not be reached, has done nothing
/// for it; in any other case it may have worked until the end of what was reserved.
pub(crate) fn bill_of_failure(kind: ErrorKind, began: bool, reserved: Usage) -> Bill {
    let refused = match kind {
        ErrorKind::Unreachable
        | ErrorKind::RateLimited { .. }
        | ErrorKind::Server { .. }
        | ErrorKind::Refused
        | ErrorKind::WindowExceeded
        | ErrorKind::Quota
        | ErrorKind::Rejected
        | ErrorKind::Unscripted => !began,
        ErrorKind::Interrupted | ErrorKind::Nonsense => false,
    };
    if refused { Bill::Nothing } else { Bill::Estimated(reserved) }
}

/// What a complete reply cost: what the server counted, or, from one that does not count, what came by its bytes.
pub(crate) fn bill_of_reply(counted: Usage, reserved: Usage, reply: &[Item]) -> Bill {
    if counted.total() > 0 {
        return Bill::Counted(counted);
    }
    Bill::Estimated(Usage { input: reserved.input, output: tokens(bytes(reply)), ..Usage::default() })
}

/// About how many tokens the next request sends: what the server counted last, and the items since.
fn input(core: &Core) -> u64 {
    let items = core.transcript.items();
    let counted = if core.window_used == 0 { 0 } else { core.counted.min(items.len()) };
    let tools = if core.window_used == 0 { core.setup.head.tools.len() } else { 0 };
    core.window_used.saturating_add(tokens(bytes(items.get(counted..).unwrap_or_default()) + tools))
}

/// How many items the server has seen or made when it last counted, of an agent that was read back: all up to the last
/// one that the model made.
pub(crate) fn counted(items: &[Item]) -> usize {
    let made = |item: &Item| {
        item.call().is_some() || matches!(item.kind(), ItemKind::Reasoning | ItemKind::Message(Role::Assistant))
    };
    items.iter().rposition(made).map_or(0, |last| last + 1)
}

fn bytes(items: &[Item]) -> usize {
    items.iter().map(|item| item.raw().len()).sum()
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

/// Tells the agent that less than a level is left, once.
fn reminder(core: &mut Core, turn: TurnId) -> Result<(), EngineError> {
    let Some(standing) = core.setup.host.standing() else { return Ok(()) };
    let (news, told) = remind(core.told, standing.percent);
    if let Some(level) = news {
        core.record_item(turn, BudgetReminder { level, standing }.item(), None)?;
    }
    core.told = told;
    Ok(())
}

/// The level that an agent was told last, by its transcript.
pub(crate) fn told(items: &[Item]) -> Option<u8> {
    items.iter().rev().find_map(BudgetReminder::level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: ErrorKind, began: bool, counts: bool) {
        let reserved = Usage { input: 5, output: 7, ..Usage::default() };
        let expect = if counts { Bill::Estimated(reserved) } else { Bill::Nothing };
        assert_eq!(bill_of_failure(kind, began, reserved), expect, "{kind:?} {began}");
    }

    #[test]
    fn what_broke_off_counts_unless_it_was_refused() {
        check(ErrorKind::Unreachable, false, false);
        check(ErrorKind::RateLimited { after: None }, false, false);
        check(ErrorKind::Server { after: None }, false, false);
        check(ErrorKind::Server { after: None }, true, true);
        check(ErrorKind::Rejected, false, false);
        // The connection broke while the server may have been at work.
        check(ErrorKind::Interrupted, false, true);
        check(ErrorKind::Interrupted, true, true);
        check(ErrorKind::Nonsense, false, true);
    }

    #[test]
    fn a_server_that_does_not_count_is_estimated() {
        let reserved = Usage { input: 5, output: 7, ..Usage::default() };
        let reply = [Item::message(Role::Assistant, "four")];
        let length = reply[0].raw().len() as u64;
        let estimate = Usage { input: 5, output: length.div_ceil(4), ..Usage::default() };
        assert_eq!(bill_of_reply(Usage::default(), reserved, &reply), Bill::Estimated(estimate));
        let counted = Usage { input: 1, ..Usage::default() };
        assert_eq!(bill_of_reply(counted, reserved, &reply), Bill::Counted(counted));
    }

    #[test]
    fn what_was_told_is_found_again() {
        let standing = |percent| budget::Standing { scope: Scope::Tree, percent, used: "1 of 2".to_owned() };
        let note = |level| BudgetReminder { level, standing: standing(level - 1) }.item();
        let other = Item::message(Role::User, "Less than 50 % of it");
        assert_eq!(told(std::slice::from_ref(&other)), None);
        assert_eq!(told(&[note(50), other.clone(), note(25), other]), Some(25));
    }

    #[test]
    fn what_the_model_has_seen_ends_with_what_it_made() {
        let said = Item::message(Role::Assistant, "a");
        let asked = Item::message(Role::User, "b");
        assert_eq!(counted(&[asked.clone(), said, asked.clone(), asked.clone()]), 2);
        assert_eq!(counted(&[asked]), 0);
    }
}
