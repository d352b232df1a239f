//! Whether an agent may have another child.

use protocol::{AgentName, AgentPath, ThreadId};

use crate::{Edge, Graph, GraphError};

impl Graph {
    /// The path of a new child called `name`, when it may be spawned: its parent is reachable, the path is free, it is
    /// at most `max_depth` levels below the root, and fewer than `max_agents` were ever spawned.
    ///
    /// # Errors
    /// With a text for the model that names the limit and its configuration key.
    pub fn can_spawn(
        &self,
        parent: ThreadId,
        name: &AgentName,
        max_depth: usize,
        max_agents: usize,
    ) -> Result<AgentPath, GraphError> {
        let above = self.get(parent).ok_or(GraphError::Unknown(parent))?;
        if let Some(closed) = self.closed_by(parent)
            && let Edge::Closed { reason } = &closed.edge
        {
            return Err(GraphError::Closed {
                path: above.path.clone(),
                closed: closed.path.clone(),
                reason: reason.clone(),
            });
        }
        let path = above.path.join(name)?;
        let depth = path.depth();
        if depth > max_depth {
            return Err(GraphError::TooDeep { path, depth, max: max_depth });
        }
        let spawned = self.spawned_total();
        if spawned >= max_agents {
            return Err(GraphError::TooMany { spawned, max: max_agents });
        }
        match self.resolve(&path) {
            Some(holder) => Err(GraphError::Taken { path, holder }),
            None => Ok(path),
        }
    }
}

#[cfg(test)]
mod tests;
