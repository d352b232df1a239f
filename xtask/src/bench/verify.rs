//! A run counts only when the rollouts say that all of the work was done.

use std::path::Path;

use anyhow::{Result, ensure};
use protocol::{ItemKind, Outcome};
use rollout::Record;

use super::home;

/// What a home should hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Agents, each with at least one task completed and none ended otherwise.
    pub(super) agents: usize,
    /// Shell calls that exited with 0.
    pub(super) calls: usize,
    /// Results of children, each accepted by its parent.
    pub(super) results: usize,
}

/// Reads every rollout of `home`.
pub(super) fn verify(home: &Path, expected: Expected) -> Result<()> {
    let store = home::store(home)?;
    let (mut agents, mut calls, mut results) = (0, 0, 0);
    for head in store.scan()?.heads {
        let lines = store.read(head.meta.id)?;
        let path = &head.meta.agent_path;
        let findings = rollout::check(&lines.lines);
        ensure!(findings.is_empty() && lines.bad.is_empty() && lines.torn == 0, "the rollout of {path}: {findings:?}");
        let mut completed = 0;
        for line in &lines.lines {
            match &line.record {
                Record::TaskDone(done) => {
                    ensure!(done.end.outcome == Outcome::Completed, "a task of {path} ended {}", done.end.outcome);
                    completed += 1;
                }
                Record::Mail(mail) if mail.outcome == Some(Outcome::Completed) => results += 1,
                Record::Item(record) if record.item.kind() == ItemKind::Output => {
                    calls += usize::from(record.item.text().contains("exited with code 0"));
                }
                _ => {}
            }
        }
        agents += usize::from(completed > 0);
    }
    let found = (agents, calls, results);
    let wanted = (expected.agents, expected.calls, expected.results);
    ensure!(found == wanted, "(agents, calls, results) are {found:?} and should be {wanted:?}");
    Ok(())
}
