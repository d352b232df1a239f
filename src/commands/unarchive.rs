//! `agent unarchive`.

use super::archive::{Each, sizes};
use crate::cli::Unarchive;
use crate::exit::Failure;
use crate::which::Among;
use crate::wire::{Setting, this_process};

pub(super) async fn unarchive(setting: &Setting, args: &Unarchive) -> Result<u8, Failure> {
    let heads = setting.named_trees(&setting.words(&args.trees), Among::Archived)?;
    if heads.is_empty() {
        let archived: Vec<_> = setting.heads()?.into_iter().filter(|head| head.archived || head.partly).collect();
        return Err(setting.none_named("unarchive", &archived));
    }
    let mut all = Each::new(heads.len());
    for head in &heads {
        let done = orchestrator::unarchive(&setting.store, setting.mirror(), &this_process(), head.tree).await;
        all.done(setting, head.tree, done.map_err(Failure::from), |done| {
            if done.changed { format!("is back: {}", sizes(done)) } else { "was not archived".to_owned() }
        })?;
    }
    Ok(all.code())
}
