//! The command line: one definition, from which help and errors come.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs a tree of coding agents that loses nothing.
///
/// A task is given to a root agent, which spawns children at paths (/root/worker_a), exchanges mail with them and
/// answers. The tree outlives the process: `agent send`, `agent resume` and `agent tree` find it again.
#[derive(Debug, Parser)]
#[command(name = "agent", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The tree: its id, or a prefix of it that fits no other
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) tree: Option<String>,
    /// The newest tree of any folder (default: the newest of this folder)
    #[arg(long, global = true, conflicts_with = "tree")]
    pub(crate) last: bool,
    /// The model, as PROVIDER/NAME, `rehearsal`, or `script:FILE`
    #[arg(long, global = true, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Work in this folder
    #[arg(short = 'C', long = "cd", global = true, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,
    /// Set a configuration key for this command, for example `-c max_depth=2`
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use `[profiles.NAME]` of the configuration
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// An unknown configuration key is an error
    #[arg(long, global = true)]
    pub(crate) strict_config: bool,
    /// JSON on stdout, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How far commands may reach: read-only, workspace-write, danger-full-access
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) sandbox: Option<String>,
    /// When you are asked: untrusted, on-request, never
    #[arg(long, global = true, value_name = "POLICY")]
    pub(crate) approval: Option<String>,
    /// Turns that work at once; more are queued
    #[arg(long, global = true, value_name = "N")]
    pub(crate) max_running: Option<u64>,
    /// Agents that are in memory at once; more sleep on disk
    #[arg(long, global = true, value_name = "N")]
    pub(crate) max_resident: Option<u64>,
    /// Tokens that the tree may use
    #[arg(long, global = true, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// US dollars that the tree may use
    #[arg(long, global = true, value_name = "X")]
    pub(crate) budget_usd: Option<f64>,
    /// Say more on stderr; twice for everything
    #[arg(short = 'v', long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a task to a new tree, print the root's answer
    Run(Run),
    /// Give a follow-up to any agent of a tree, print its answer
    Send(Send),
    /// Bring a tree back, and say how each of its agents stands
    Resume(Resume),
    /// Show a tree: its agents, their edges, statuses, unread mail, tokens
    Tree(Show),
    /// Print an agent's transcript
    Log(Log),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Roles that the tree may use, separated by commas (default: all)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) roles: Option<Vec<String>>,
    /// The task; `-` or nothing reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The agent, for example /root/worker_a
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// What to say; `-` reads it from stdin
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: String,
    /// Only leave the message: the agent reads it with its next task
    #[arg(long)]
    pub(crate) queue: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// A task for the root; `-` reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Go on with the tasks that were cut off, and start those that never began
    #[arg(long = "continue")]
    pub(crate) go_on: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// The agent, for example /root/worker_a
    #[arg(value_name = "PATH", default_value = "/root")]
    pub(crate) path: String,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }
}
