//! A role, and one layer of it.

use std::fmt;

use budget::Usd;
use protocol::Sandbox;

/// What an agent is for, and what it is held to. A field that is `None` leaves the parent's as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its name, as in `agent_type`.
    pub name: String,
    /// When to use it; told to the model that spawns.
    pub description: String,
    /// What an agent of this role is told beside the base instructions.
    pub instructions: String,
    /// `provider/name`; the spawner cannot choose another.
    pub model: Option<String>,
    /// Effort of reasoning; the spawner cannot choose another.
    pub effort: Option<String>,
    /// The only tools it may have, of those its parent has.
    pub tools: Option<Vec<String>>,
    /// The furthest its commands may reach.
    pub sandbox: Option<Sandbox>,
    /// Where it changes files.
    pub workspace: Option<Workspace>,
    /// Tokens it may spend with everybody below it, input and output together.
    pub budget_tokens: Option<u64>,
    /// US dollars it may spend with everybody below it.
    pub budget_usd: Option<Usd>,
    /// Limits of the tree, lowered for its subtree.
    pub limits: Limits,
    /// Names for people; empty for the built-in pool.
    pub nicknames: Vec<String>,
    /// The highest layer that says something about it.
    pub origin: Origin,
}

/// Limits that a role lowers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Levels below the root.
    pub max_depth: Option<usize>,
}

/// Where an agent changes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workspace {
    /// In its parent's folder.
    Shared,
    /// In a git worktree and on a branch of its own.
    Worktree,
}

/// Where a role comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is part of the program.
    BuiltIn,
    /// A file of the user.
    User(String),
    /// A file of the project.
    Project(String),
}

/// Whose file it is. A project's words stand over the user's, the user's over the built-in ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The user's own.
    User,
    /// The project's; read only when the project is trusted.
    Project,
}

/// One role file: what it says, and nothing of what it leaves to the layers below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The role it is about.
    pub name: String,
    /// Whose file it is.
    pub layer: Layer,
    /// The file, as it was named to [`crate::parse`].
    pub file: String,
    pub(crate) description: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) workspace: Option<Workspace>,
    pub(crate) budget_tokens: Option<u64>,
    pub(crate) budget_usd: Option<Usd>,
    pub(crate) max_depth: Option<usize>,
    pub(crate) nicknames: Option<Vec<String>>,
}

impl Role {
    /// Whether the role leaves its agent this tool.
    pub fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|t| t == tool))
    }
}

impl Workspace {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Worktree => "worktree",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::User(file) | Self::Project(file) => f.write_str(file),
        }
    }
}
