//! What a tree is driven with.

use std::collections::BTreeMap;
use std::sync::Arc;

use budget::Price;
use model::{Catalog, RetryLimits};
use protocol::{Approval, Sandbox};
use roles::Roles;
use rollout::{Limits, OwnerHint};
use stdx::AbsPath;
use tool_api::Workshop;

use super::seam::{Mirror, Store};

/// Everything a tree needs from outside. The same for all its agents.
#[derive(Clone)]
pub struct Options {
    /// Where rollouts are.
    pub store: Store,
    /// What follows the rollouts, so that not all of them need be read.
    pub mirror: Mirror,
    /// Where models come from.
    pub catalog: Arc<Catalog>,
    /// Where hands come from.
    pub workshop: Arc<dyn Workshop>,
    /// The roles that are known; `limits.roles` says which of them this tree may use.
    pub roles: Roles,
    /// What this process says about itself to others who want the tree.
    pub owner: OwnerHint,
    /// Whether the process that such a hint names still lives.
    pub alive: fn(&OwnerHint) -> bool,
    /// Limits asked for. A tree that comes back keeps its budgets and roles where nothing is asked for.
    pub limits: Limits,
    /// What models cost, by `provider/name`.
    pub prices: BTreeMap<String, Price>,
    /// How far the commands of a new tree may reach.
    pub sandbox: Sandbox,
    /// When a person is asked, in a new tree.
    pub approval: Approval,
    /// `provider/name` for a new root; for a tree that comes back, what all its agents use from now on instead of
    /// what they were spawned with.
    pub model: Option<String>,
    /// Effort of reasoning for a new root.
    pub effort: Option<String>,
    /// Working folder of a new root.
    pub cwd: AbsPath,
    /// Name of the shell that runs commands, for the model.
    pub shell: String,
    /// Version of the program.
    pub version: String,
    /// When a failed request is tried again.
    pub retry: RetryLimits,
    /// How long an agent may work without anything coming of it until it is said to be stalled; none never says so.
    pub stall_after: Option<std::time::Duration>,
}
