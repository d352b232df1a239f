//! The hands of an agent: running commands, speaking with them, patching files.
//!
//! One file a tool, and a table of the processes of one agent behind them. Nothing here asks whether a call is
//! allowed, wraps it in a sandbox or decides when it runs: whoever dispatches calls does. Starting processes is left
//! to `exec`, understanding patches to `patch`.

mod command;
mod edit;
mod files;
mod intercept;
mod report;
mod session;
mod stdin;
mod strays;
mod table;
mod truncate;
mod workbench;

pub use workbench::Workbench;

#[cfg(test)]
mod tests;
