//! What an agent of a role gets of what its parent has.

use budget::Usd;
use protocol::Sandbox;

use crate::Role;

/// What an agent may do, as far as a role can take it away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// How far commands may reach.
    pub sandbox: Sandbox,
    /// The only tools, in the order of the one who named them; `None` for all there are.
    pub tools: Option<Vec<String>>,
    /// Levels below the root at which its subtree ends.
    pub max_depth: usize,
    /// Tokens for it and everybody below; `None` for no bound of its own.
    pub budget_tokens: Option<u64>,
    /// US dollars for it and everybody below; `None` for no bound of its own.
    pub budget_usd: Option<Usd>,
}

/// A role lives from tools that the parent does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("role `{role}` works with {}, and you have none of them: choose another role", .tools.join(", "))]
pub struct NoToolsLeft {
    /// The role.
    pub role: String,
    /// The tools it names.
    pub tools: Vec<String>,
}

/// What a child of `role` gets from `parent`: of each grant the smaller one. Never more than the parent has.
///
/// # Errors
/// When both name tools and share none, so that the child could do nothing of what its role is for.
pub fn narrow(parent: &Granted, role: &Role) -> Result<Granted, NoToolsLeft> {
    let tools = match (&parent.tools, &role.tools) {
        (None, wanted) => wanted.clone(),
        (has, None) => has.clone(),
        (Some(has), Some(wanted)) => {
            let both: Vec<String> = has.iter().filter(|tool| wanted.contains(tool)).cloned().collect();
            if both.is_empty() && !wanted.is_empty() {
                return Err(NoToolsLeft { role: role.name.clone(), tools: wanted.clone() });
            }
            Some(both)
        }
    };
    Ok(Granted {
        sandbox: role.sandbox.map_or(parent.sandbox, |wanted| wanted.min(parent.sandbox)),
        tools,
        max_depth: role.limits.max_depth.map_or(parent.max_depth, |wanted| wanted.min(parent.max_depth)),
        budget_tokens: parent.budget_tokens.into_iter().chain(role.budget_tokens).min(),
        budget_usd: parent.budget_usd.into_iter().chain(role.budget_usd).min(),
    })
}

#[cfg(test)]
mod tests;
