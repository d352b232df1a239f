//! `agent interrupt` and `agent close`.

use frontend::{Edge, Op, Reply, UnreadWords};
use orchestrator::{By, NO_REASON, TreeError};
use protocol::AgentPath;

use super::drive::Drive;
use super::remote::{Spoken, ask, unexpected};
use super::tree::look;
use crate::cli::{Close, Interrupt};
use crate::exit::{self, Failure};
use crate::output;
use crate::reach::{Patience, Reached, reach};
use crate::who;
use crate::wire::{Setting, alive};

pub(super) async fn interrupt(setting: Setting, args: Interrupt) -> Result<u8, Failure> {
    let path = who::agent(&args.path)?;
    let head = setting.head()?;
    let id = head.tree;
    if head.archived || head.partly {
        return Err(TreeError::Archived(id).into());
    }
    // A tree that nobody drives has no turn: there is nothing to take over for.
    let driven = setting.store.owner(id).is_some_and(|hint| hint.pid != 0 && alive(&hint));
    let reached = if driven {
        let config = setting.config(None)?;
        let options = setting.options(&config, None)?;
        Some(reach(&setting, &options, id).await?)
    } else {
        None
    };
    let client = match reached {
        Some(Reached::Other(client)) => client,
        // It let go just now.
        Some(Reached::Owner(owned)) => {
            Drive::new(&setting, owned).drop_tree().await;
            output::note(&format!("nothing runs at {path}: the process that drove the tree has ended"));
            return Ok(exit::DONE);
        }
        None => {
            let listing = look(&setting, id).await?;
            if !listing.agents.iter().any(|row| row.path == path) {
                let open = listing.agents.into_iter().filter(|row| row.edge == Edge::Open);
                let known = open.map(|row| row.path).collect();
                return Err(TreeError::NoAgent { path, known }.into());
            }
            output::note(&format!("nothing runs at {path}: nobody drives this tree"));
            return Ok(exit::DONE);
        }
    };
    let reason = "interrupted by the user".to_owned();
    match ask(&client, Op::Interrupt { path: path.clone(), reason }).await? {
        Spoken::Done(Reply::Interrupted { agents }) if agents.is_empty() => {
            output::note(&format!("nothing ran at {path}"));
        }
        Spoken::Done(Reply::Interrupted { .. }) => {
            output::note(&format!("{path} is interrupted; `agent send {path} \"…\"` goes on"));
        }
        Spoken::Done(other) => return Err(unexpected(&other)),
        Spoken::OwnerGone => {
            output::note(&format!("nothing runs at {path}: the process that drove the tree has ended"));
        }
    }
    Ok(exit::DONE)
}

pub(super) async fn close(setting: Setting, args: Close) -> Result<u8, Failure> {
    let path = who::agent(&args.path)?;
    let config = setting.config(None)?;
    let options = setting.options(&config, None)?;
    let id = setting.tree()?;
    let reason = args.reason.unwrap_or_default();
    let mut patience = Patience::default();
    loop {
        match reach(&setting, &options, id).await? {
            Reached::Other(client) => {
                match ask(&client, Op::Close { path: path.clone(), reason: reason.clone() }).await? {
                    Spoken::Done(Reply::Closed { agents, unread }) => {
                        closed(&path, &agents, &unread);
                        return Ok(exit::DONE);
                    }
                    Spoken::Done(other) => return Err(unexpected(&other)),
                    Spoken::OwnerGone => patience.wait(client.hello().pid).await?,
                }
            }
            Reached::Owner(owned) => {
                let drive = Drive::new(&setting, owned);
                let tree = drive.tree();
                let (agents, unread) = (tree.below(&path), tree.unread_words(&path));
                let reason = if reason.trim().is_empty() { NO_REASON } else { reason.trim() };
                let done = tree.close(&path, reason, &By::User).await;
                drive.drop_tree().await;
                done?;
                closed(&path, &agents, &unread);
                return Ok(exit::DONE);
            }
        }
    }
}

fn closed(path: &AgentPath, agents: &[AgentPath], unread: &[UnreadWords]) {
    match agents.len().saturating_sub(1) {
        0 => output::note(&format!("{path} is closed")),
        1 => output::note(&format!("{path} is closed, and with it 1 agent below")),
        many => output::note(&format!("{path} is closed, and with it {many} agents below")),
    }
    for words in unread {
        output::note(&format!("not read by {}, and now nobody will: {}", words.path, words.line));
    }
}
