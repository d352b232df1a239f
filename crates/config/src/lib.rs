//! Settings: the environment, `config.toml`, profiles, `-c` and flags, merged into one typed [`Config`].
//!
//! Every value remembers where it came from, so that a message can name file, line and key. The keys, their types,
//! their documentation and the reference page come from one table. This is the only crate that reads the
//! environment. It writes nothing, starts nothing, opens no connection, and enforces none of what it reads: limits,
//! budgets and permissions are kept by those who own them.

mod apply;
mod choice;
mod env;
mod error;
mod keys;
mod layer;
mod origin;
mod provider;
mod reference;
mod settings;
mod shape;

pub use choice::{DEFAULT_MODELS, model_choice};
pub use env::{Env, Proxies, agent_home};
pub use error::{ConfigError, Warning};
pub use origin::Origin;
pub use provider::{
    CONNECT_TIMEOUT_MS, IDLE_TIMEOUT_MS, ModelFacts, PROGRESS_TIMEOUT_MS, Provider, UNREACHABLE_FOR_MS, Wire,
};
pub use reference::reference;
pub use settings::{
    APPROVAL, Config, Flags, Loaded, MAX_AGENTS, MAX_CONFIG_BYTES, MAX_DEPTH, MAX_RESIDENT, MAX_RUNNING, SANDBOX,
    STALL_AFTER_MS,
};
