//! What the tree may spend: the accounts of its agents, and the room that each request asks for.

use std::sync::PoisonError;

use budget::{Accounts, Limit, Price, Refusal, Reservation, Spent, Standing, Usd};
use frontend::{Spending, Use};
use protocol::{Status, Usage, WaitingOn};
use rollout::{Budgets, SessionMeta, State};

use super::life::Keeper;
use super::seam::MutexGuard;
use super::tree::Tree;
use super::{Options, TreeError};

/// What any single agent may spend.
pub(crate) fn each(budgets: &Budgets) -> Limit {
    Limit { tokens: budgets.agent_tokens, usd: budgets.agent_usd.map(Usd::new) }
}

/// What the tree may spend.
fn whole(budgets: &Budgets) -> Limit {
    Limit { tokens: budgets.tokens, usd: budgets.usd.map(Usd::new) }
}

/// What a state has spent; what was never settled counts as it was estimated.
pub(crate) fn spent(state: &State) -> Spent {
    Spent { tokens: state.spent().total(), usd: Usd::new(state.spent_usd()) }
}

/// The spending of a tree, for a listing; none when nothing bounds it.
pub(crate) fn spending(budgets: &Budgets, spent: Spent, reserved: Spent) -> Option<Spending> {
    let limit = whole(budgets);
    let tokens = limit.tokens.map(|limit| Use { limit, used: spent.tokens, reserved: reserved.tokens });
    let usd = limit.usd.map(|limit| Use {
        limit: limit.dollars(),
        used: spent.usd.dollars(),
        reserved: reserved.usd.dollars(),
    });
    (tokens.is_some() || usd.is_some()).then_some(Spending { tokens, usd })
}

/// What a model costs, if that is known.
pub(crate) fn price(options: &Options, model: &str) -> Option<Price> {
    let free = model::is_played(model).then(Price::default);
    options.prices.get(model).copied().or(free)
}

impl Tree {
    pub(crate) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an agent into the accounts, after its parent.
    pub(crate) fn open_account(&self, meta: &SessionMeta, spent: Spent) {
        // An agent whose role is gone cannot be loaded, so it spends nothing.
        let role = self.role(meta).ok();
        let of_role =
            Limit { tokens: role.and_then(|role| role.budget_tokens), usd: role.and_then(|role| role.budget_usd) };
        let limit = match meta.parent_thread_id {
            Some(_) => of_role,
            None => tighter(whole(&self.0.options.limits.budgets), of_role),
        };
        self.accounts().open(meta.id, meta.parent_thread_id, meta.agent_path.clone(), limit, spent);
    }

    /// Whether a budget in dollars binds a model that nobody knows the price of.
    ///
    /// # Errors
    /// When it does.
    pub(crate) fn priced(&self, model: &str, granted_usd: Option<Usd>) -> Result<(), TreeError> {
        let budgets = &self.0.options.limits.budgets;
        let bound = budgets.usd.is_some() || budgets.agent_usd.is_some() || granted_usd.is_some();
        if bound && price(&self.0.options, model).is_none() {
            return Err(TreeError::NoPrice { model: model.to_owned() });
        }
        Ok(())
    }

    /// What the tree has spent of its budget; none when nothing bounds it.
    pub(crate) fn spending(&self) -> Option<Spending> {
        let pot = self.accounts().below(self.0.id.root())?;
        spending(&self.0.options.limits.budgets, pot.spent, pot.reserved)
    }
}

/// The smaller of each.
fn tighter(a: Limit, b: Limit) -> Limit {
    fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
        a.into_iter().chain(b).min()
    }
    Limit { tokens: least(a.tokens, b.tokens), usd: least(a.usd, b.usd) }
}

impl Keeper {
    fn price(&self) -> Option<Price> {
        let Self { tree, node } = self;
        price(&tree.0.options, &tree.model_of(&node.meta))
    }

    /// Reserves on all accounts, and waits while others have reserved what is left. They hold it for the length of a
    /// request only, so there is always somebody who will settle.
    pub(crate) async fn make_room(&self, input: u64) -> Result<Reservation, Refusal> {
        let Self { tree, node } = self;
        let mut settled = tree.0.settled.subscribe();
        let mut waited = false;
        loop {
            settled.borrow_and_update();
            let reserved = tree.accounts().reserve(node.meta.id, input, self.price());
            if !matches!(reserved, Err(Refusal::Busy)) {
                if waited {
                    self.show(Status::Running, None, None);
                }
                return reserved;
            }
            if !std::mem::replace(&mut waited, true) {
                self.show(Status::Waiting, Some(WaitingOn::Budget), None);
            }
            if settled.changed().await.is_err() {
                return Err(Refusal::Busy);
            }
        }
    }

    /// Books what a request cost.
    pub(crate) fn book(&self, reservation: &Reservation, usage: Usage, estimated: bool) -> Option<Usd> {
        let cost = self.price().map(|price| price.of(&usage));
        let spent = Spent { tokens: usage.total(), usd: cost.unwrap_or_default() };
        self.tree.accounts().settle(reservation, spent);
        {
            let mut facts = self.node.facts();
            let tokens = if estimated { &mut facts.estimated } else { &mut facts.usage };
            *tokens += usage;
            facts.cost_usd += cost.map_or(0.0, Usd::dollars);
        }
        self.tree.0.settled.send_modify(|n| *n += 1);
        cost
    }

    /// How the tightest budget of this agent stands.
    pub(crate) fn budget_left(&self) -> Option<Standing> {
        self.tree.accounts().standing(self.node.meta.id)
    }
}
