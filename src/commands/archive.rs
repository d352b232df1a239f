//! `agent archive`, and what it shares with `unarchive` and `delete`.

use orchestrator::Shelved;
use protocol::TreeId;
use serde_json::json;

use crate::cli::Archive;
use crate::exit::{self, Failure};
use crate::output;
use crate::which::Among;
use crate::wire::Setting;

pub(super) async fn archive(setting: &Setting, args: &Archive) -> Result<u8, Failure> {
    let mut heads = setting.named_trees(&setting.words(&args.trees), Among::Used)?;
    if heads.is_empty() {
        heads.push(setting.head()?);
    }
    let config = setting.config(None)?;
    let options = setting.options(&config, None)?;
    let mut all = Each::new(heads.len());
    for head in &heads {
        let done = orchestrator::archive(options.clone(), head.tree).await;
        all.done(setting, head.tree, done.map_err(Failure::from), |done| {
            if done.changed { format!("is archived: {}", sizes(done)) } else { "was archived already".to_owned() }
        })?;
    }
    Ok(all.code())
}

/// The trees of one command, one after the other. One that fails does not keep the others from it.
pub(super) struct Each {
    alone: bool,
    code: u8,
}

impl Each {
    pub(super) fn new(trees: usize) -> Self {
        Self { alone: trees == 1, code: exit::DONE }
    }

    /// Tells what became of one tree.
    ///
    /// # Errors
    /// When it failed and there is no other.
    pub(super) fn done(
        &mut self,
        setting: &Setting,
        tree: TreeId,
        done: Result<Shelved, Failure>,
        say: impl Fn(&Shelved) -> String,
    ) -> Result<(), Failure> {
        match done {
            Ok(done) => {
                for problem in &done.problems {
                    output::note(&format!("warning: {problem}"));
                }
                if setting.common.json {
                    output::answer(
                        &json!({
                            "tree": done.tree,
                            "agents": done.agents,
                            "bytes_before": done.bytes_before,
                            "bytes_after": done.bytes_after,
                        })
                        .to_string(),
                    );
                } else {
                    output::note(&format!("tree {} {}", done.tree, say(&done)));
                }
                Ok(())
            }
            Err(failure) if self.alone => Err(failure),
            Err(failure) => {
                if self.code == exit::DONE {
                    self.code = failure.code();
                }
                output::note(&format!("tree {tree}:"));
                output::failure(&failure);
                Ok(())
            }
        }
    }

    /// A person was asked about a tree and did not say yes.
    pub(super) fn declined(&mut self) {
        if self.code == exit::DONE {
            self.code = exit::INTERRUPTED;
        }
    }

    /// The exit code: of the first that failed.
    pub(super) fn code(self) -> u8 {
        self.code
    }
}

/// Agents, and bytes before and after.
pub(super) fn sizes(done: &Shelved) -> String {
    format!("{}, {} on the disk before, {} now", agents(done.agents), size(done.bytes_before), size(done.bytes_after))
}

pub(super) fn agents(number: usize) -> String {
    if number == 1 { "1 agent".to_owned() } else { format!("{number} agents") }
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        let check = |bytes, text: &str| assert_eq!(size(bytes), text);
        check(0, "0 bytes");
        check(9_999, "9999 bytes");
        check(10_000, "10 kB");
        check(9_999_999, "9999 kB");
        check(123_456_789, "123 MB");
    }
}
