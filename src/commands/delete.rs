//! `agent delete`.

use std::io::{IsTerminal as _, Write as _};

use orchestrator::TreeHead;
use protocol::TreeId;
use stdx::one_line;

use super::archive::{Each, agents, size};
use crate::cli::Delete;
use crate::exit::Failure;
use crate::output;
use crate::which::{Among, begins};
use crate::wire::Setting;

/// Fewest characters of an id by which a tree is deleted without asking: one that was typed by chance names nobody.
const MIN_ID: usize = 8;

/// Characters of a title in a question.
const TITLE: usize = 60;

pub(super) async fn delete(setting: &Setting, args: &Delete) -> Result<u8, Failure> {
    let trees = chosen(setting, args)?;
    let config = setting.config(None)?;
    let options = setting.options(&config, None)?;
    let mut all = Each::new(trees.len());
    for tree in &trees {
        // Nobody is asked about what would be refused.
        if !args.yes && !setting.store.is_owned(tree.id) && !asked(tree)? {
            output::note(&format!("tree {} is kept", tree.id));
            all.declined();
            continue;
        }
        let done = orchestrator::delete(&options, tree.id).await.map_err(Failure::from);
        all.done(setting, tree.id, done, |done| {
            format!("is deleted: {}, {}", agents(done.agents), size(done.bytes_before))
        })?;
    }
    Ok(all.code())
}

/// A tree to be deleted, and what is known of it; nothing of one that is damaged or half deleted.
struct Doomed {
    id: TreeId,
    head: Option<TreeHead>,
}

fn chosen(setting: &Setting, args: &Delete) -> Result<Vec<Doomed>, Failure> {
    let short = |word: &&String| word.trim().chars().count() < MIN_ID;
    if let Some(word) = setting.words(&args.trees).iter().find(short).filter(|_| args.yes) {
        return Err(Failure::usage(format!("`{}` is too little of an id to delete by", one_line(word, TITLE)))
            .hint(format!("nobody is asked with --yes, so give at least {MIN_ID} characters of it")));
    }
    if !args.yes && !std::io::stdin().is_terminal() {
        return Err(Failure::usage("deleting asks first, and stdin is no terminal on which to answer")
            .hint("`--yes` deletes without asking"));
    }
    let remnants = orchestrator::remnants(&setting.store, setting.mirror())?;
    let heads = if remnants.is_empty() { Vec::new() } else { setting.heads()? };
    let (mut trees, mut words) = (Vec::new(), Vec::new());
    for word in setting.words(&args.trees) {
        let wanted = word.trim().to_ascii_lowercase();
        let fits = |id: &&TreeId| begins(**id, &wanted);
        let remnants: Vec<TreeId> = remnants.iter().filter(fits).copied().collect();
        let listed = heads.iter().map(|head| &head.tree).filter(fits).count();
        match remnants.as_slice() {
            [] => words.push(word),
            [id] if listed == 0 => trees.push(Doomed { id: *id, head: None }),
            _ => {
                let many = remnants.len() + listed;
                return Err(Failure::usage(format!(
                    "`{}` fits {many} trees: give more of the id",
                    one_line(&word, TITLE)
                )));
            }
        }
    }
    if trees.is_empty() || !words.is_empty() {
        let heads = setting.named_trees(&words, Among::Used)?;
        trees.extend(heads.into_iter().map(|head| Doomed { id: head.tree, head: Some(head) }));
    }
    if trees.is_empty() {
        return Err(setting.none_named("delete", &setting.heads()?));
    }
    Ok(trees)
}

/// Whether a person says yes.
fn asked(tree: &Doomed) -> Result<bool, Failure> {
    let what = match &tree.head {
        Some(head) => {
            let archived = if head.archived { ", archived" } else { "" };
            format!("{}{archived}, {}", agents(head.agents), one_line(&head.title, TITLE))
        }
        None => "damaged or deleted in part".to_owned(),
    };
    let mut err = std::io::stderr().lock();
    let asked = write!(err, "delete the tree {}, {what}? [y/N] ", tree.id).and_then(|()| err.flush());
    asked.map_err(|error| Failure::usage(format!("nobody can be asked: {error}")).hint("`--yes` does not ask"))?;
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.map_err(|error| Failure::usage(format!("the answer cannot be read: {error}")).hint("`--yes` does not ask"))?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        let check = |answer, yes| assert_eq!(is_yes(answer), yes, "{answer:?}");
        for yes in ["y\n", "Y", " yes \r\n", "YES"] {
            check(yes, true);
        }
        for no in ["", "\n", "n\n", "no", "yeah", "ja", "y y"] {
            check(no, false);
        }
    }
}
