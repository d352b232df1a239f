//! An agent's hands: its tools, and the processes they left running.

use std::sync::Arc;

use futures::future::BoxFuture;
use protocol::{Address, ProcessRecord, Sandbox, Token};
use stdx::AbsPath;

use crate::Tool;

/// What decides which tools an agent gets.
#[derive(Clone, Debug)]
pub struct AgentFacts {
    /// Who it is.
    pub agent: Address,
    /// Its role.
    pub role: String,
    /// Its working folder.
    pub cwd: AbsPath,
    /// How far its commands may reach.
    pub sandbox: Sandbox,
    /// The tools its role allows; `None` for all. Names not known are ignored here: roles are checked on loading.
    pub allowed: Option<Vec<String>>,
}

/// Makes hands, and ends what a crash left of earlier ones.
pub trait Workshop: Send + Sync {
    /// The hands of one agent.
    fn hands(&self, agent: &AgentFacts) -> Arc<dyn Hands>;

    /// Ends the processes of all agents, as [`Hands::end_processes`] does for one. For the end of a tree.
    fn end_all(&self) -> BoxFuture<'_, ()>;

    /// Ends the processes that these ledger lines (of one agent, in their order) leave running. A process is only
    /// touched when boot, start time and token all match; a stranger that took over a pid never is.
    fn sweep(&self, ledger: Vec<ProcessRecord>) -> BoxFuture<'_, Vec<Swept>>;
}

/// The hands of one agent.
pub trait Hands: Send + Sync {
    /// Its tools, in the order in which a model sees them.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Processes that outlived the call that started them.
    fn running(&self) -> Vec<Running>;

    /// Ends them all, whole process groups, and returns when they are gone and written down.
    fn end_processes(&self) -> BoxFuture<'_, ()>;
}

/// A process that still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its mark.
    pub token: Token,
    /// Its process id.
    pub pid: i32,
    /// Its command line, on one line.
    pub command: String,
}

/// What became of one process of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Its mark.
    pub token: Token,
    /// Its command line, on one line.
    pub command: String,
    /// What became of it.
    pub how: SweptHow,
}

/// What became of a process that a crash left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweptHow {
    /// It ran on and has been ended.
    Ended,
    /// It was gone already, or its pid belongs to somebody else now.
    Gone,
    /// It runs on and could not be ended.
    Survives,
}
