//! The command: arguments, the wiring of everything below, what a person sees, exit codes.
//!
//! It is a library so that tests can run it on a file system that fails. Nothing else should depend on it.

mod choose;
mod cli;
mod commands;
mod exit;
mod live;
mod output;
mod progress;
mod reach;
mod render;
mod roles;
mod span;
mod usage;
mod which;
mod who;
mod wire;

use std::ffi::OsString;
use std::sync::Arc;

use clap::Parser as _;
use rollout::Disk;

use crate::cli::Cli;
use crate::exit::Failure;

/// Runs the command with these arguments (the first is its name) on this file system, and gives the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, disk: Arc<dyn Disk>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no error; clap knows which is which.
            let code = if error.use_stderr() { exit::USAGE } else { exit::DONE };
            let _ = error.print();
            if let Some(hint) = usage::hint(&error, &args) {
                output::note(&format!("\n  hint: {hint}"));
            }
            return code;
        }
    };
    let env = config::Env::capture();
    output::trace(&env, cli.common.verbose);
    wire::raise_limits();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(commands::dispatch(cli, env, disk));
            // Whatever still runs holds no promise: everything that counts was flushed before.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::internal(format!("cannot start: {error}"))),
    };
    match result {
        Ok(code) => match output::lost() {
            Some(why) => {
                let failure = Failure::internal(format!("stdout did not take all of it: {why}"))
                    .hint("nothing is lost: `agent log PATH` shows what an agent said");
                output::failure(&failure);
                failure_code(code)
            }
            None => code,
        },
        Err(failure) => {
            output::failure(&failure);
            failure.code()
        }
    }
}

/// The code of a command that did what it was to do and could not say so.
fn failure_code(code: u8) -> u8 {
    if code == exit::DONE { exit::ERRORED } else { code }
}
