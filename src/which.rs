//! Which tree a command is about.

use orchestrator::{TreeHead, TreeRoot, list, roots};
use protocol::TreeId;
use stdx::one_line;

use crate::exit::Failure;
use crate::output;
use crate::wire::Setting;

/// Trees that a failure names; `agent list` has all.
const MAX_NAMED: usize = 5;

/// Characters of a title there.
const TITLE: usize = 60;

/// Trees among which the newest is meant when none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// Those in use.
    Used,
    /// Those that are archived.
    Archived,
}

impl Setting {
    /// The tree that the flags mean: an id or its prefix, archived or not; or of those in use the one used last, in any
    /// folder or in this one.
    pub(crate) fn tree(&self) -> Result<TreeId, Failure> {
        // Most of the time one tree can be meant, and its root says so. Otherwise that of everybody decides, or a person
        // is told why none can be.
        match roots(&self.store, self.mirror())?.and_then(|roots| self.only(&roots)) {
            Some(tree) => Ok(tree),
            None => Ok(self.head()?.tree),
        }
    }

    /// The one tree that the flags can mean.
    fn only(&self, roots: &[TreeRoot]) -> Option<TreeId> {
        let wanted = self.common.tree.as_deref().map(prefix);
        let meant = |root: &&TreeRoot| match &wanted {
            Some(wanted) => begins(root.tree, wanted),
            None => !root.archived && (self.common.last || root.cwd == self.cwd),
        };
        let mut all = roots.iter().filter(meant);
        let first = all.next()?;
        all.next().is_none().then_some(first.tree)
    }

    /// As [`Setting::tree`], with what lists know of it.
    pub(crate) fn head(&self) -> Result<TreeHead, Failure> {
        let mut heads = self.heads()?;
        if let Some(wanted) = &self.common.tree {
            return self.named(wanted, &heads).cloned();
        }
        if self.common.last {
            return newest(heads, Among::Used);
        }
        heads.retain(|head| !head.archived);
        let here = heads.iter().find(|head| head.cwd == self.cwd);
        here.cloned().ok_or_else(|| self.not_here(&heads))
    }

    /// The trees that these words name, each once, in their order; with `--last` the newest among those. None when
    /// nothing of all this is given.
    pub(crate) fn named_trees(&self, words: &[String], among: Among) -> Result<Vec<TreeHead>, Failure> {
        let heads = self.heads()?;
        let mut found: Vec<TreeHead> = Vec::new();
        for word in words {
            let head = self.named(word, &heads)?;
            if !found.iter().any(|known| known.tree == head.tree) {
                found.push(head.clone());
            }
        }
        if self.common.last {
            if !words.is_empty() {
                return Err(Failure::usage("--last and the id of a tree contradict each other")
                    .hint("leave one of the two out"));
            }
            found.push(newest(heads, among)?);
        }
        Ok(found)
    }

    /// Words that name trees, and `--tree`.
    pub(crate) fn words(&self, words: &[String]) -> Vec<String> {
        words.iter().chain(&self.common.tree).cloned().collect()
    }

    /// All trees, archived ones included, newest first. What was passed over goes to stderr.
    pub(crate) fn heads(&self) -> Result<Vec<TreeHead>, Failure> {
        let (heads, problems) = list(&self.store, self.mirror())?;
        for problem in problems {
            output::note(&format!("warning: {problem}"));
        }
        Ok(heads)
    }

    fn named<'a>(&self, wanted: &str, heads: &'a [TreeHead]) -> Result<&'a TreeHead, Failure> {
        let wanted = &*prefix(wanted);
        let fits: Vec<&TreeHead> = heads.iter().filter(|head| begins(head.tree, wanted)).collect();
        match fits.as_slice() {
            [head] => Ok(head),
            [] => {
                let failure = Failure::usage(format!("no tree begins with `{}`", one_line(wanted, TITLE)));
                let home = self.env.tilde(self.store.home());
                Err(match heads.len() {
                    0 => failure.hint(format!("there is no tree in {home}; `agent run \"…\"` makes one")),
                    _ => failure.hint(format!("trees in {home}:\n{}", self.rows(heads.iter()))),
                })
            }
            many => {
                let failure = Failure::usage(format!("`{wanted}` fits {} trees: give more of the id", many.len()));
                Err(failure.hint(format!("these:\n{}", self.rows(many.iter().copied()))))
            }
        }
    }

    /// That no tree was named where one must be.
    pub(crate) fn none_named(&self, command: &str, heads: &[TreeHead]) -> Failure {
        let failure = Failure::usage(format!("it is not said which tree to {command}"));
        let failure = failure.hint(format!("give its id: agent {command} ID"));
        if heads.is_empty() { failure } else { failure.hint(format!("these:\n{}", self.rows(heads.iter()))) }
    }

    /// No tree was made in this folder: one above it, or some elsewhere.
    fn not_here(&self, heads: &[TreeHead]) -> Failure {
        let failure = Failure::usage(format!("no tree was made in {}", self.cwd));
        if heads.is_empty() {
            return failure.hint("`agent run \"…\"` makes one");
        }
        if let Some(head) = heads.iter().find(|head| head.cwd == self.cwd) {
            let failure = Failure::usage(format!("every tree that was made in {} is archived", self.cwd));
            return failure.hint(format!("`agent unarchive {}` brings the last one back", head.tree));
        }
        let mut above = self.cwd.ancestors().skip(1);
        let above = above.find_map(|folder| heads.iter().find(|head| head.cwd.as_path() == folder));
        let failure = match above {
            Some(head) => failure.hint(format!(
                "one was made in {}, above this folder: -C {0} takes it\n{}",
                self.env.tilde(&head.cwd),
                self.rows(std::iter::once(head))
            )),
            None => failure,
        };
        failure.hint("--last takes the one used last in any folder, --tree ID a certain one; `agent list` lists them")
    }

    /// The first few of these trees, a line each.
    fn rows<'a>(&self, heads: impl ExactSizeIterator<Item = &'a TreeHead>) -> String {
        let more = heads.len().saturating_sub(MAX_NAMED);
        let row =
            |head: &TreeHead| format!("{}  {}  {}", head.tree, one_line(&head.title, TITLE), self.env.tilde(&head.cwd));
        let mut rows: Vec<String> = heads.take(MAX_NAMED).map(row).collect();
        if more > 0 {
            rows.push(format!("and {more} more: `agent list`"));
        }
        rows.join("\n")
    }
}

/// The beginning of an id as it may be typed.
fn prefix(word: &str) -> String {
    word.trim().to_ascii_lowercase()
}

/// Digits of the end of an id that name it. Trees of one minute begin alike, and no two end alike.
const END: usize = 8;

/// Whether a tree's id begins so, or ends so.
pub(crate) fn begins(tree: TreeId, words: &str) -> bool {
    let id = tree.to_string();
    !words.is_empty() && (id.starts_with(words) || (words.len() >= END && id.ends_with(words)))
}

/// The newest of those that are meant.
fn newest(heads: Vec<TreeHead>, among: Among) -> Result<TreeHead, Failure> {
    let none = match (among, heads.is_empty()) {
        (Among::Used, true) => Failure::usage("there is no tree yet").hint("`agent run \"…\"` makes one"),
        (Among::Archived, _) => Failure::usage("no tree is archived").hint("`agent archive ID` archives one"),
        (Among::Used, false) => Failure::usage("every tree is archived")
            .hint("`agent list --archived` lists them, `agent unarchive ID` brings one back"),
    };
    let meant = |head: &TreeHead| match among {
        Among::Used => !head.archived,
        Among::Archived => head.archived || head.partly,
    };
    heads.into_iter().find(meant).ok_or(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_named_by_either_end() {
        let check = |words, named| {
            let tree: TreeId = "01a22e61-a98c-7219-bfd7-d2295e09e252".parse().unwrap();
            assert_eq!(begins(tree, words), named, "{words:?}");
        };
        for words in ["0", "01a22e61", "01a22e61-a98c-7219-bfd7-d2295e09e252", "5e09e252", "d2295e09e252"] {
            check(words, true);
        }
        for words in ["", "02", "e252", "a98c-7219", "5e09e253"] {
            check(words, false);
        }
    }
}
