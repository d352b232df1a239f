//! Which tree a command is about.

use orchestrator::{TreeHead, list};
use protocol::TreeId;
use stdx::one_line;

use crate::exit::Failure;
use crate::output;
use crate::wire::Setting;

/// Trees that a failure names; `agent list` has all.
const MAX_NAMED: usize = 5;

/// Characters of a title there.
const TITLE: usize = 60;

impl Setting {
    /// The tree that the flags mean: an id or its prefix, the newest of all, or the newest of this folder.
    pub(crate) fn tree(&self) -> Result<TreeId, Failure> {
        let (heads, problems) = list(&self.store, self.mirror())?;
        for problem in problems {
            output::note(&format!("warning: {problem}"));
        }
        if let Some(wanted) = &self.common.tree {
            return self.named(&wanted.trim().to_ascii_lowercase(), &heads);
        }
        if self.common.last {
            let newest = heads.first().map(|head| head.tree);
            return newest.ok_or_else(|| Failure::usage("there is no tree yet").hint("`agent run \"…\"` makes one"));
        }
        let here = heads.iter().find(|head| head.cwd == self.cwd).map(|head| head.tree);
        here.ok_or_else(|| self.not_here(&heads))
    }

    fn named(&self, wanted: &str, heads: &[TreeHead]) -> Result<TreeId, Failure> {
        let fits: Vec<&TreeHead> =
            heads.iter().filter(|head| !wanted.is_empty() && head.tree.to_string().starts_with(wanted)).collect();
        match fits.as_slice() {
            [head] => Ok(head.tree),
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

    /// No tree was made in this folder: one above it, or some elsewhere.
    fn not_here(&self, heads: &[TreeHead]) -> Failure {
        let failure = Failure::usage(format!("no tree was made in {}", self.cwd));
        if heads.is_empty() {
            return failure.hint("`agent run \"…\"` makes one");
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
        failure.hint("--last takes the newest of any folder, --tree ID a certain one; `agent list` lists them")
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
