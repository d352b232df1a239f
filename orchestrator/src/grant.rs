//! What an agent is given: the beginning of its context, its role, its grants, its model.

use std::sync::{Arc, PoisonError};

use model::Model;
use protocol::Address;
use roles::{Granted, Place as Where, Role};
use rollout::SessionMeta;
use tool_api::AgentFacts;

use super::TreeError;
use super::seam::{ContextFragment as _, Environment, Instructions};
use super::tree::Tree;

impl Tree {
    /// What the context of an agent begins with.
    pub(crate) fn preamble(&self, meta: &SessionMeta, tools: &[&str]) -> Result<Vec<protocol::Item>, TreeError> {
        let role = self.role(meta)?;
        let place = Where { path: &meta.agent_path, sandbox: meta.sandbox, tools };
        let environment = Environment {
            cwd: meta.cwd.clone(),
            sandbox: meta.sandbox,
            approval: meta.approval,
            shell: self.0.options.shell.clone(),
            date: date(),
        };
        Ok(vec![Instructions { text: role.brief(&place) }.item(), environment.item()])
    }

    /// The role that an agent was made with.
    pub(crate) fn role(&self, meta: &SessionMeta) -> Result<&Role, TreeError> {
        let stored = self.0.options.roles.stored(&meta.agent_role);
        stored.ok_or_else(|| TreeError::NoRole { path: meta.agent_path.clone(), role: meta.agent_role.clone() })
    }

    /// What an agent may do: what is granted to the root, narrowed by every role from there down to its own.
    pub(crate) fn granted(&self, meta: &SessionMeta) -> Result<Granted, TreeError> {
        let limits = &self.0.options.limits;
        let mut line = vec![meta.clone()];
        while let Some(above) = line.last().and_then(|meta| meta.parent_thread_id) {
            match self.node(above) {
                Some(node) => line.push(node.meta.clone()),
                None => break,
            }
        }
        let mut granted = Granted {
            sandbox: meta.sandbox,
            tools: None,
            max_depth: limits.max_depth,
            budget_tokens: limits.budgets.tokens,
            budget_usd: limits.budgets.usd.map(budget::Usd::new),
        };
        for meta in line.iter().rev() {
            granted = roles::narrow(&granted, self.role(meta)?)?;
        }
        Ok(granted)
    }

    /// The facts by which an agent gets its hands.
    pub(crate) fn agent_facts(meta: &SessionMeta, granted: &Granted) -> AgentFacts {
        AgentFacts {
            agent: Address { path: meta.agent_path.clone(), thread: meta.id },
            role: meta.agent_role.clone(),
            cwd: meta.cwd.clone(),
            sandbox: meta.sandbox,
            allowed: granted.tools.clone(),
        }
    }

    /// The model called `name`, opened once a process.
    pub(crate) fn model(&self, name: &str) -> Result<Arc<dyn Model>, TreeError> {
        let mut models = self.0.models.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = models.get(name) {
            return Ok(Arc::clone(model));
        }
        let model = self.0.options.catalog.open(name)?;
        models.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }
}

fn date() -> String {
    stdx::now().to_string().chars().take(10).collect()
}
