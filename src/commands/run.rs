//! `agent run`.

use orchestrator::Tree;
use protocol::TreeId;

use super::drive::Drive;
use super::text;
use crate::choose;
use crate::cli::Run;
use crate::exit::Failure;
use crate::output;
use crate::reach::{Owned, Served};
use crate::wire::Setting;

pub(super) async fn run(setting: Setting, args: Run) -> Result<u8, Failure> {
    if setting.common.last || setting.common.tree.is_some() {
        let flag = if setting.common.last { "--last" } else { "--tree" };
        return Err(Failure::usage(format!("{flag} chooses a tree that exists, and `agent run` makes a new one"))
            .hint(format!("without {flag} a new tree gets the task"))
            .hint("`agent resume \"…\"` with it gives the task to the root of that tree"));
    }
    let config = setting.config(args.roles)?;
    let mut options = setting.options(&config, None)?;
    let model = choose::model(&setting, &config, &options).await?;
    options.model = Some(model.clone());
    let prompt = text(args.prompt, "task")?;
    let deadline = args.deadline.map(|time| stdx::now().after(time));
    let (tree, pending) = Tree::create_until(options, &prompt, deadline).await?;
    announce(&setting, tree.id(), &model);
    let door = Served::open(&setting, &tree).await;
    let found = tree.report();
    let drive = Drive::new(&setting, Owned { tree, door, found });
    drive.tree().started(false);
    drive.tree().go().await;
    Ok(drive.finish(pending).await)
}

/// Says which tree this is, and what its commands may do.
pub(super) fn announce(setting: &Setting, tree: TreeId, model: &str) {
    output::note(&format!("tree {tree} · {model} · {}", setting.cwd));
    output::note("no sandbox (danger-full-access): commands run as you, with everything you may do");
    if model == "rehearsal" {
        output::note("this is a rehearsal: a built-in script plays the model, and it cannot think");
    }
}
