//! The accounts of a tree: each agent's own, and each agent's with everybody below it.

use std::collections::HashMap;

use protocol::{AgentPath, ThreadId, Usage};

use crate::refusal::{Refusal, Scope};
use crate::remind::Standing;
use crate::{Price, Usd};

/// Tokens of output that a request reserves. More than almost all replies of agents have, and no model refuses an
/// upper bound of this size; small enough that many requests may be under way on a small budget.
pub const OUTPUT: u64 = 16_384;

/// The least output that a request is sent for: a shorter reply would be cut off in the middle of its first call.
pub const MIN_OUTPUT: u64 = 1_024;

/// How much may be spent; `None` for no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Tokens, input and output together.
    pub tokens: Option<u64>,
    /// Money.
    pub usd: Option<Usd>,
}

/// How much was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money.
    pub usd: Usd,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.usd += other.usd;
    }

    fn take(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.usd = self.usd.less(other.usd);
    }
}

/// One account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pot {
    /// What may be spent.
    pub limit: Limit,
    /// What is settled.
    pub spent: Spent,
    /// What is reserved for requests under way.
    pub reserved: Spent,
}

struct Account {
    parent: Option<ThreadId>,
    path: AgentPath,
    own: Pot,
    /// With everybody below.
    below: Pot,
}

/// What a request under way may cost at the most, as far as that can be known. It is settled exactly once.
#[derive(Debug, PartialEq, Eq)]
pub struct Reservation {
    thread: ThreadId,
    /// Tokens: the estimate of the input, and the output that is allowed.
    pub usage: Usage,
    /// Money, when the model has a price.
    pub usd: Option<Usd>,
    /// The upper bound of output that the request has to name; `None` when there is room for any usual reply.
    pub max_output: Option<u64>,
}

impl Reservation {
    fn amount(&self) -> Spent {
        Spent { tokens: self.usage.total(), usd: self.usd.unwrap_or_default() }
    }
}

/// All accounts of a tree.
#[derive(Default)]
pub struct Accounts {
    each: Limit,
    accounts: HashMap<ThreadId, Account>,
}

impl Accounts {
    /// No agents yet. `each` bounds every single agent.
    pub fn new(each: Limit) -> Self {
        Self { each, accounts: HashMap::new() }
    }

    /// Takes an agent in, parents before their children: what it and everybody below it may spend, and what it has
    /// spent itself so far. An agent that is there already stays as it is.
    pub fn open(&mut self, thread: ThreadId, parent: Option<ThreadId>, path: AgentPath, below: Limit, spent: Spent) {
        if self.accounts.contains_key(&thread) {
            return;
        }
        let pot = |limit| Pot { limit, ..Pot::default() };
        self.accounts.insert(thread, Account { parent, path, own: pot(self.each), below: pot(below) });
        self.each_pot(thread, |pot| pot.spent.add(spent));
    }

    /// Reserves for a request of `thread` that sends about `input` tokens: on its own account, and on that of everybody
    /// above it.
    ///
    /// # Errors
    /// When there is no room for it on one of them, or it has a limit of money and the model has no price.
    pub fn reserve(&mut self, thread: ThreadId, input: u64, price: Option<Price>) -> Result<Reservation, Refusal> {
        let mut room = OUTPUT;
        let mut shared = false;
        for (scope, pot) in self.pots(thread) {
            if pot.limit.usd.is_some() && price.is_none() {
                return Err(Refusal::NoPrice { scope });
            }
            let (now, alone) = (output(&pot, pot.reserved, input, price), output(&pot, Spent::default(), input, price));
            if alone.is_some_and(|alone| alone < MIN_OUTPUT) {
                return Err(full(scope, &pot, input, price));
            }
            let Some(now) = now else { continue };
            // A reply is cut short only where the budget ends, not because others have reserved what is left.
            shared |= now < OUTPUT && alone.is_some_and(|alone| alone > now);
            room = room.min(now);
        }
        if shared {
            return Err(Refusal::Busy);
        }
        let usage = Usage { input, output: room, ..Usage::default() };
        let usd = price.map(|price| price.of(&usage));
        let reservation = Reservation { thread, usage, usd, max_output: (room < OUTPUT).then_some(room) };
        self.each_pot(thread, |pot| pot.reserved.add(reservation.amount()));
        Ok(reservation)
    }

    /// A request has ended: what it cost takes the place of what was reserved for it.
    pub fn settle(&mut self, reservation: &Reservation, cost: Spent) {
        self.each_pot(reservation.thread, |pot| {
            pot.reserved.take(reservation.amount());
            pot.spent.add(cost);
        });
    }

    /// The budget of which the smallest part is left for `thread`; none when nothing bounds it.
    pub fn standing(&self, thread: ThreadId) -> Option<Standing> {
        self.pots(thread).filter_map(|(scope, pot)| Standing::of(scope, &pot)).min_by_key(|standing| standing.percent)
    }

    /// The account of an agent with everybody below it; of the root, that is the tree's.
    pub fn below(&self, thread: ThreadId) -> Option<Pot> {
        self.accounts.get(&thread).map(|account| account.below)
    }

    /// The accounts that a request of `thread` is booked on.
    fn pots(&self, thread: ThreadId) -> impl Iterator<Item = (Scope, Pot)> {
        let first = self.accounts.get(&thread);
        let own = first.map(|account| (Scope::Agent(account.path.clone()), account.own));
        let up = std::iter::successors(first, |account| self.accounts.get(&account.parent?));
        own.into_iter().chain(up.map(|account| {
            let tree = account.parent.is_none();
            (if tree { Scope::Tree } else { Scope::Below(account.path.clone()) }, account.below)
        }))
    }

    fn each_pot(&mut self, thread: ThreadId, change: impl Fn(&mut Pot)) {
        let mut next = Some(thread);
        while let Some(account) = next.and_then(|thread| self.accounts.get_mut(&thread)) {
            if next == Some(thread) {
                change(&mut account.own);
            }
            change(&mut account.below);
            next = account.parent;
        }
    }
}

/// Tokens of output that a request of `input` tokens may have on this account; `None` for any number.
fn output(pot: &Pot, reserved: Spent, input: u64, price: Option<Price>) -> Option<u64> {
    let left = |limit: u64, spent: u64, reserved: u64| limit.saturating_sub(spent).saturating_sub(reserved);
    let by_tokens = pot.limit.tokens.map(|limit| left(limit, pot.spent.tokens, reserved.tokens).saturating_sub(input));
    let by_money = pot.limit.usd.zip(price).and_then(|(limit, price)| {
        let left = limit.less(pot.spent.usd).less(reserved.usd);
        let sends = price.of(&Usage { input, ..Usage::default() });
        if left < sends || left.is_zero() { Some(0) } else { left.less(sends).buys(price.output) }
    });
    match (by_tokens, by_money) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn full(scope: Scope, pot: &Pot, input: u64, price: Option<Price>) -> Refusal {
    let by_tokens = Pot { limit: Limit { usd: None, ..pot.limit }, ..*pot };
    match (pot.limit.tokens, pot.limit.usd, output(&by_tokens, Spent::default(), input, price)) {
        (Some(limit), _, Some(room)) if room < MIN_OUTPUT => {
            Refusal::Tokens { scope, used: pot.spent.tokens, limit, input }
        }
        (_, limit, _) => {
            let smallest = Usage { input, output: MIN_OUTPUT, ..Usage::default() };
            let needs = price.map(|price| price.of(&smallest)).unwrap_or_default();
            Refusal::Money { scope, used: pot.spent.usd, limit: limit.unwrap_or_default(), needs }
        }
    }
}
