//! One file a command.

mod archive;
mod control;
mod delete;
mod doctor;
mod drive;
mod list;
mod log;
mod remote;
mod resume;
mod roles;
mod run;
mod send;
mod signals;
mod tree;
mod unarchive;
mod verify;

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use config::Env;
use rollout::Disk;

use crate::cli::{Cli, Command};
use crate::exit::Failure;
use crate::wire::Setting;

/// The longest text read from stdin, in bytes. What a mail cannot hold goes into a file; this bounds the memory.
const MAX_STDIN: u64 = 64 << 20;

pub(crate) async fn dispatch(cli: Cli, env: Env, disk: Arc<dyn Disk>) -> Result<u8, Failure> {
    let _size = signals::minding_size();
    let setting = Setting::new(cli.common, env, disk)?;
    match cli.command {
        Command::Run(args) => run::run(setting, args).await,
        Command::Send(args) => send::send(setting, args).await,
        Command::Resume(args) => resume::resume(setting, args).await,
        Command::Tree(args) => tree::tree(&setting, &args).await,
        Command::Interrupt(args) => control::interrupt(setting, args).await,
        Command::Close(args) => control::close(setting, args).await,
        Command::Log(args) => log::log(&setting, &args).await,
        Command::List(args) => list::list(&setting, &args),
        Command::Archive(args) => archive::archive(&setting, &args).await,
        Command::Unarchive(args) => unarchive::unarchive(&setting, &args).await,
        Command::Delete(args) => delete::delete(&setting, &args).await,
        Command::Doctor => doctor::doctor(&setting).await,
        Command::Rollout(args) => verify::rollout(&setting, &args),
        Command::Roles(args) => roles::roles(&setting, args),
    }
}

/// A text of the command line; `-` means stdin.
fn text(given: Option<String>, what: &str) -> Result<String, Failure> {
    let text = match given {
        Some(text) if text != "-" => text,
        given => {
            if given.is_none() && std::io::stdin().is_terminal() {
                return Err(Failure::usage(format!("there is no {what}"))
                    .hint(format!("give the {what} in quotes, or `-` to read it from stdin")));
            }
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().take(MAX_STDIN).read_to_end(&mut bytes);
            read.map_err(|error| Failure::usage(format!("cannot read the {what} from stdin: {error}")))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(format!("the {what} is empty")).hint("say what is to be done"));
    }
    Ok(text)
}
