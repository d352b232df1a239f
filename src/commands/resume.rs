//! `agent resume`.

use orchestrator::{Tree, snapshot};
use protocol::AgentPath;

use super::drive::Drive;
use super::text;
use crate::cli::Resume;
use crate::exit::{self, Failure};
use crate::output;
use crate::render::{oddities, report};
use crate::wire::{Setting, alive};

pub(super) async fn resume(setting: Setting, args: Resume) -> Result<u8, Failure> {
    let prompt = args.prompt.map(|prompt| text(Some(prompt), "task")).transpose()?;
    let config = setting.config(None)?;
    let options = setting.options(&config, setting.common.model.clone())?;
    let (tree, found) = Tree::open(options, setting.tree()?).await?;
    output::note(&format!("tree {}", tree.id()));
    for line in oddities(&found) {
        output::note(&line);
    }
    let stands = report(&found);
    if prompt.is_none() && !args.go_on {
        tree.shut_down().await;
        if setting.common.json {
            output::note(stands.trim_end());
            super::tree::json(&snapshot(&setting.store, tree.id(), alive)?)?;
        } else {
            output::answer(&stands);
        }
        return Ok(exit::DONE);
    }
    output::note(stands.trim_end());
    let drive = Drive::new(&setting, tree.clone());
    tree.started(true);
    let mut expected = Vec::new();
    let begun = async {
        if args.go_on {
            expected = tree.go_on().await?;
        }
        match &prompt {
            Some(prompt) => tree.send(&AgentPath::root(), prompt, true).await.map(Some),
            None => Ok(None),
        }
    };
    let begun = begun.await;
    let asked = match begun {
        Ok(asked) => asked,
        Err(error) => {
            tree.shut_down().await;
            return Err(error.into());
        }
    };
    let nothing = asked.is_none() && expected.is_empty() && !tree.is_busy();
    drop(tree);
    if nothing {
        output::note("nothing was cut off and nothing waits to begin");
    }
    // The prompt's answer is the answer; without one, that of the first task that goes on, the root's before others.
    match asked.or_else(|| (!expected.is_empty()).then(|| expected.remove(0))) {
        Some(pending) => Ok(drive.finish(pending).await),
        None => Ok(drive.settle().await),
    }
}
