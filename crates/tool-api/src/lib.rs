//! What a tool is, and what it may see of the agent that calls it.
//!
//! No tool lives here, and nothing that runs one: `tools` and `orchestrator` bring tools, `runtime` dispatches them.

mod arguments;
mod hands;
mod spec;
mod tool;

pub use arguments::{parse, schema, whole};
pub use hands::{AgentFacts, Hands, Running, Swept, SweptHow, Workshop};
pub use spec::{Grammar, ToolInput, ToolSpec};
pub use tool::{Activity, Invocation, Ledger, LedgerError, Pulse, Tool, ToolError, ToolOutput};
