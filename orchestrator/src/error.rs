//! Why something cannot be done to a tree.

use agent_graph::GraphError;
use mailbox::Refused;
use protocol::{AgentPath, PathError, TreeId};

/// Why something cannot be done to a tree. The text goes to a person or to a model; it says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// No tree of that id.
    #[error("there is no tree {0}; `agent list` shows those there are")]
    NoTree(TreeId),
    /// The tree's root cannot be read.
    #[error("the tree {0} has no readable root; `agent rollout check` shows what is damaged")]
    NoRoot(TreeId),
    /// No reachable agent at that path.
    #[error("there is no open agent at {path}{}", those(.known))]
    NoAgent {
        /// The path.
        path: AgentPath,
        /// Agents that are there.
        known: Vec<AgentPath>,
    },
    /// The path is not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// An agent may not do this to itself, the root, or anybody above it.
    #[error("an agent cannot {what} {target}: that is itself or above it; end your turn with your result instead")]
    NotAllowed {
        /// The agent it was tried on.
        target: AgentPath,
        /// What was tried.
        what: &'static str,
    },
    /// The agent cannot be spawned.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The mail is refused.
    #[error(transparent)]
    Mail(#[from] Refused),
    /// The role is unknown, or not allowed here.
    #[error(transparent)]
    Role(#[from] roles::UnknownRole),
    /// The role gets nothing of what its parent has.
    #[error(transparent)]
    Narrow(#[from] roles::NoToolsLeft),
    /// The role asks for something that nothing enforces yet.
    #[error("the role `{role}` asks for {what}, which this version cannot enforce: choose another role")]
    Unenforced {
        /// The role.
        role: String,
        /// What it asks for.
        what: String,
    },
    /// A budget in dollars binds a model that nobody knows the price of.
    #[error(
        "the budget is in dollars, and {model} has no price: set input_usd_per_mtok and output_usd_per_mtok in \
         [models.\"{model}\"] of config.toml, or choose another model"
    )]
    NoPrice {
        /// The model.
        model: String,
    },
    /// The role of an agent that exists is not there any more.
    #[error(
        "{path} has the role `{role}`, which is not defined now: its file is gone or cannot be used (`agent roles` says \
         why): put it right, or close the agent"
    )]
    NoRole {
        /// The agent.
        path: AgentPath,
        /// Its role.
        role: String,
    },
    /// No role may be spawned.
    #[error("no role may be spawned in this tree: name some with --roles")]
    NoRoles,
    /// The model cannot be opened.
    #[error(transparent)]
    Model(#[from] model::OpenError),
    /// The rollout did not take something.
    #[error(transparent)]
    Rollout(#[from] rollout::Error),
    /// Somebody else drives the tree.
    #[error(transparent)]
    Lock(#[from] rollout::LockError),
    /// Nobody ever got that task.
    #[error("no agent of this tree has the task {0}")]
    NoTask(protocol::TaskId),
    /// The tree is archived, or was when archiving it or bringing it back broke off.
    #[error("the tree {0} is archived, so nothing can be done in it")]
    Archived(TreeId),
    /// Somebody has begun to delete the tree.
    #[error("the tree {0} is deleted, but for what is left because deleting it broke off")]
    Deleting(TreeId),
    /// A process of the tree cannot be ended.
    #[error("processes of the tree {tree} cannot be ended: {}; end them, then give this command again", .commands.join(", "))]
    Survives {
        /// The tree.
        tree: TreeId,
        /// What they run.
        commands: Vec<String>,
    },
    /// The rollouts of a deleted tree are gone, and their rows in the mirror are not.
    #[error("the rollouts of the tree {tree} are gone, but not what lists know of it ({why}); give this command again")]
    Remembered {
        /// The tree.
        tree: TreeId,
        /// Why the rows are still there.
        why: mirror::Trouble,
    },
    /// The tree is being shut down.
    #[error("the tree is shutting down")]
    ShuttingDown,
}

fn those(paths: &[AgentPath]) -> String {
    if paths.is_empty() {
        return ": the tree is closed, and `agent run` makes a new one".to_owned();
    }
    let names: Vec<&str> = paths.iter().map(AgentPath::as_str).collect();
    format!("; open agents: {}", names.join(", "))
}
