//! `agent send`.

use orchestrator::Tree;
use protocol::AgentPath;

use super::drive::Drive;
use super::text;
use crate::cli::Send;
use crate::exit::{self, Failure};
use crate::output;
use crate::render::oddities;
use crate::wire::Setting;

pub(super) async fn send(setting: Setting, args: Send) -> Result<u8, Failure> {
    let path = AgentPath::root().resolve(&args.path).map_err(|error| Failure::usage(error.to_string()))?;
    let message = text(Some(args.message), "message")?;
    let config = setting.config(None)?;
    let options = setting.options(&config, setting.common.model.clone())?;
    let (tree, report) = Tree::open(options, setting.tree()?).await?;
    for line in oddities(&report) {
        output::note(&line);
    }
    let drive = Drive::new(&setting, tree.clone());
    tree.started(true);
    let sent = tree.send(&path, &message, !args.queue).await;
    let pending = match sent {
        Ok(pending) => pending,
        Err(error) => {
            tree.shut_down().await;
            return Err(error.into());
        }
    };
    if args.queue {
        tree.shut_down().await;
        output::note(&format!("left for {path}; it reads this with its next task"));
        return Ok(exit::DONE);
    }
    drop(tree);
    Ok(drive.finish(pending).await)
}
