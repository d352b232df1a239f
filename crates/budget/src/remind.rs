//! When an agent is told how much of its budget is left.

use crate::accounts::Pot;
use crate::refusal::{Scope, grouped};

/// An agent is told when less than this many percent are left: half-way, then with time to finish, then to stop.
pub const LEVELS: [u8; 3] = [50, 25, 10];

/// How a budget stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose budget.
    pub scope: Scope,
    /// How much of it is left, in percent, rounded down.
    pub percent: u8,
    /// Used and allowed, for people and models.
    pub used: String,
}

impl Standing {
    /// How the tighter limit of an account stands, requests under way not counted; none when it has no limit.
    pub(crate) fn of(scope: Scope, pot: &Pot) -> Option<Self> {
        let tokens = pot.limit.tokens.map(|limit| {
            let used = pot.spent.tokens;
            (left(used, limit), format!("{} of {} tokens are used", grouped(used), grouped(limit)))
        });
        let usd = pot.limit.usd.map(|limit| {
            let (used, most) = (pot.spent.usd.dollars(), limit.dollars());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
            let left = if most > 0.0 { ((1.0 - used / most).clamp(0.0, 1.0) * 100.0) as u8 } else { 0 };
            (left, format!("{} of {limit} are used", pot.spent.usd))
        });
        let tighter = tokens.into_iter().chain(usd).min_by_key(|(left, _)| *left);
        tighter.map(|(percent, used)| Self { scope, percent, used })
    }
}

fn left(used: u64, limit: u64) -> u8 {
    let percent = u128::from(limit.saturating_sub(used)) * 100 / u128::from(limit.max(1));
    u8::try_from(percent).unwrap_or(100)
}

/// The level that an agent with `left` percent is to be told of, and the one that it counts as told from now on.
/// `told` is the lowest so far; a budget that was raised starts again.
pub fn remind(told: Option<u8>, left: u8) -> (Option<u8>, Option<u8>) {
    let level = LEVELS.into_iter().filter(|level| left < *level).min();
    let news = level.filter(|level| told.is_none_or(|told| *level < told));
    (news, level)
}
