//! A tool and one call of it.

use std::sync::Arc;

use futures::future::BoxFuture;
use protocol::{Address, Call, EffectId, ProcessRecord, TurnId};
use stdx::AbsPath;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ToolSpec;

/// A tool of one agent.
pub trait Tool: Send + Sync {
    /// Its name, as in its description.
    fn name(&self) -> &str;

    /// How it is described to the model.
    fn spec(&self) -> ToolSpec;

    /// Whether calls of it may run beside others. A tool that says no runs alone.
    fn parallel(&self) -> bool {
        false
    }

    /// What a call does, in a few words, for whoever wonders what an agent waits for.
    fn label(&self, call: &Call) -> String {
        call.name.clone()
    }

    /// Runs one call.
    ///
    /// When `invocation.cancel` fires the tool stops waiting and returns what it has; the caller does not poll it
    /// for ever. An I/O error inside a tool is [`ToolError::RespondToModel`].
    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}

/// One call, and what the tool may see of its agent.
#[derive(Clone)]
pub struct Invocation {
    /// The call as the model made it.
    pub call: Call,
    /// Minted when the call was recorded; ids of what the tool brings about derive from it.
    pub effect: EffectId,
    /// The place of the call in the agent's rollout; orders the children of one reply.
    pub ordinal: u64,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The agent that calls.
    pub agent: Address,
    /// The agent's working folder.
    pub cwd: AbsPath,
    /// Fires when the turn is interrupted.
    pub cancel: CancellationToken,
    /// Where the tool writes down the processes it starts.
    pub ledger: Arc<dyn Ledger>,
    /// What else goes on in the reply that this call belongs to.
    pub activity: watch::Receiver<Activity>,
    /// Beats when something of the call's work shows before its end.
    pub pulse: Pulse,
}

/// Tells whoever watches that a call gets on. Never blocks.
#[derive(Clone, Default)]
pub struct Pulse(Option<Arc<dyn Fn() + Send + Sync>>);

impl Pulse {
    /// One that calls `heard` at every beat.
    pub fn new(heard: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(heard)))
    }

    /// Something has come of the call.
    pub fn beat(&self) {
        if let Some(heard) = &self.0 {
            heard();
        }
    }
}

/// What goes on in one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whether the model still speaks.
    pub sampling: bool,
    /// Calls of the reply that run, this one included; not those that still wait for others to end.
    pub running: usize,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// False when the call could not be made.
    pub success: bool,
}

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The call could not be made; the model is told this and goes on.
    #[error("{0}")]
    RespondToModel(String),
    /// The engine is broken; the turn ends.
    #[error("{0}")]
    Fatal(String),
}

/// Writes process lines into the agent's rollout.
pub trait Ledger: Send + Sync {
    /// Appends one line. It is in the file, not necessarily synced, when this returns.
    ///
    /// # Errors
    /// When it could not be written; then the process must not be started.
    fn record(&self, record: &ProcessRecord) -> Result<(), LedgerError>;
}

/// The rollout did not take a process line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process could not be written down: {0}")]
pub struct LedgerError(pub String);

impl ToolOutput {
    /// An output of a call that was made, however what it ran ended.
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), success: true }
    }
}

impl ToolError {
    /// Tells the model what was wrong with its call.
    pub fn respond(text: impl Into<String>) -> Self {
        Self::RespondToModel(text.into())
    }
}
