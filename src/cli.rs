//! The command line: one definition, from which help and errors come.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::span::span;

/// Headings of the flags that every command has.
const WHICH: &str = "Which tree, where";
const SETTINGS: &str = "Configuration, for this command only";

/// What to type first.
const EXAMPLES: &str = "\
Examples:
  agent run --model rehearsal \"look around\"          no key, no network: a script plays the model
  agent run --model openai/gpt-5.5 \"fix the tests\"   needs OPENAI_API_KEY
  agent send /root/worker \"and add a test\"           the agents are still there, also tomorrow
  agent resume --continue                            after Ctrl-C or a crash: everybody goes on";

const ARCHIVE: &str = "\
Examples:
  agent archive                      of the trees made in this folder the one used last
  agent archive 01a22d34 01a22d57    these two
  agent list --archived              what is put away
  agent tree --tree 01a22d34         reads it as if it were not";

const UNARCHIVE: &str = "\
Examples:
  agent unarchive 01a22d34           this one; `agent list --archived` has their ids
  agent unarchive --last             of those that are archived the one used last";

const DELETE: &str = "\
Examples:
  agent delete 01a22d34              asks, then deletes this one
  agent delete --yes 01a22d34 01a22d57
  agent archive 01a22d34             keeps it, in a third of the room or less";

/// Runs a tree of coding agents that loses nothing.
///
/// A task is given to a root agent, which spawns children at paths (/root/worker_a), exchanges mail with them and
/// answers. The tree outlives the process: `agent send`, `agent resume` and `agent tree` find it again.
///
/// The answer goes to stdout, everything else to stderr. Commands of agents run as you, without a sandbox.
#[derive(Debug, Parser)]
#[command(name = "agent", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// JSON on stdout instead of text; of a run, one event a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Write a log to stderr; twice for more
    #[arg(short = 'v', long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Work in this folder instead of the present one
    #[arg(short = 'C', long = "cd", global = true, value_name = "DIR", help_heading = WHICH)]
    pub(crate) cd: Option<PathBuf>,
    /// The tree with this id, or the beginning or the last 8 digits of it (default: of those made in this folder the one used last)
    #[arg(long, global = true, value_name = "ID", help_heading = WHICH)]
    pub(crate) tree: Option<String>,
    /// The tree used last, whatever folder it was made in
    #[arg(long, global = true, conflicts_with = "tree", help_heading = WHICH)]
    pub(crate) last: bool,
    /// The model: PROVIDER/NAME such as openai/gpt-5.5, `rehearsal`, or `script:FILE`
    #[arg(long, global = true, value_name = "MODEL", help_heading = SETTINGS)]
    pub(crate) model: Option<String>,
    /// How far commands may reach; this version has no sandbox and takes `danger-full-access` only
    #[arg(long, global = true, value_name = "MODE", help_heading = SETTINGS)]
    pub(crate) sandbox: Option<String>,
    /// When you are asked before something is done; this version never asks and takes `never` only
    #[arg(long, global = true, value_name = "POLICY", help_heading = SETTINGS)]
    pub(crate) approval: Option<String>,
    /// Turns that work at once; more are queued (default: 8)
    #[arg(long, global = true, value_name = "N", help_heading = SETTINGS)]
    pub(crate) max_running: Option<u64>,
    /// Agents that are in memory at once; more sleep on disk (default: 64)
    #[arg(long, global = true, value_name = "N", help_heading = SETTINGS)]
    pub(crate) max_resident: Option<u64>,
    /// Tokens that the whole tree may use; the request that would go beyond it is not sent
    #[arg(long, global = true, value_name = "N", help_heading = SETTINGS)]
    pub(crate) budget_tokens: Option<u64>,
    /// US dollars that the whole tree may use, by the prices in `[models."NAME"]`
    #[arg(long, global = true, value_name = "X", help_heading = SETTINGS)]
    pub(crate) budget_usd: Option<f64>,
    /// Any key of the configuration, for example `-c max_depth=2`
    #[arg(short = 'c', global = true, value_name = "KEY=VALUE", help_heading = SETTINGS)]
    pub(crate) set: Vec<String>,
    /// Use `[profiles.NAME]` of the configuration
    #[arg(long, global = true, value_name = "NAME", help_heading = SETTINGS)]
    pub(crate) profile: Option<String>,
    /// Take an unknown configuration key as an error, not as a warning
    #[arg(long, global = true, help_heading = SETTINGS)]
    pub(crate) strict_config: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give a task to a new tree, print its answer
    Run(Run),
    /// Give a follow-up to any agent of a tree, print its answer
    Send(Send),
    /// Bring a tree back after its process has ended, say how each agent stands
    Resume(Resume),
    /// Show a tree: each agent's status, role, unread mail, tokens and task
    Tree(Show),
    /// List the trees, the one used last first
    List(List),
    /// Print an agent's transcript
    Log(Log),
    /// Stop what an agent is doing, and keep the agent
    Interrupt(Interrupt),
    /// End an agent for good, with everybody below it; /root ends the tree
    Close(Close),
    /// Put trees away, packed; they can be read as before, and come back with `unarchive`
    #[command(after_help = ARCHIVE)]
    Archive(Archive),
    /// Bring archived trees back, as they were
    #[command(after_help = UNARCHIVE)]
    Unarchive(Unarchive),
    /// Delete trees for good, with all that is kept of them; asks first
    #[command(after_help = DELETE)]
    Delete(Delete),
    /// Check configuration, keys, providers, sandbox and stores, and say what to do
    Doctor,
    /// Check the files that trees are kept in
    Rollout(Rollout),
    /// Show the roles in force, and where each comes from
    Roles(Roles),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Roles that the tree may use, such as explorer,worker; `agent roles` lists them (default: all)
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) roles: Option<Vec<String>>,
    /// How long the task may take, such as 90s, 10m or 2h: then it ends with what there is
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) deadline: Option<Duration>,
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
    /// Only leave the message: it wakes nobody, the agent reads it with its next task
    #[arg(long)]
    pub(crate) queue: bool,
    /// How long this may take, such as 90s, 10m or 2h, waiting included: then it ends with what there is
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) deadline: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// A further task for the root; `-` reads it from stdin. Without one nothing is started
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Go on with the tasks that were cut off, and begin those that never began
    #[arg(long = "continue")]
    pub(crate) go_on: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// For people or for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Dot,
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct Interrupt {
    /// The agent, for example /root/worker_a
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
}

#[derive(Debug, Args)]
pub(crate) struct Close {
    /// The agent, for example /root/worker_a
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
    /// Why; whoever gave it a task is told
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Those that are archived, and only those
    #[arg(long)]
    pub(crate) archived: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    /// The trees, by id or the beginning of one (default: of those made in this folder the one used last)
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Unarchive {
    /// The trees, by id or the beginning of one
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The trees, by id or the beginning of one
    #[arg(value_name = "TREE")]
    pub(crate) trees: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    #[command(subcommand)]
    pub(crate) what: RolloutWhat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutWhat {
    /// Verify one file: every line readable, no gaps, every call answered, every mail and every end once; or all there
    /// are, and that they bear out what they say of each other: no rollout is missing, and no mail that was accepted
    Check {
        /// The file; left out: all of them, or with --tree those of one tree
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Roles {
    #[command(subcommand)]
    pub(crate) what: Option<RolesWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolesWhat {
    /// A line for each role (the default)
    List,
    /// Everything about one role
    Show {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// The agent, for example /root/worker_a
    #[arg(value_name = "PATH", default_value = "/root")]
    pub(crate) path: String,
    /// Go on printing what comes, until Ctrl-C
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,
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
