//! A run counts only when the rollouts say that all of the work was done.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, ensure};
use protocol::{ItemKind, Outcome};
use rollout::{Checker, Record};
use stdx::Timestamp;

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

/// Bytes of all items of all agents.
pub(super) fn history(home: &Path) -> Result<usize> {
    let store = home::store(home)?;
    let mut bytes = 0;
    for head in store.scan()?.heads {
        store.walk(&head.file, 0, |line| {
            if let Record::Item(record) = &line.record {
                bytes += record.item.raw().len();
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(bytes)
}

/// Reads every rollout of `home`. When mail was last put into a context, which is right before a request.
pub(super) fn verify(home: &Path, expected: Expected) -> Result<Option<Timestamp>> {
    let store = home::store(home)?;
    let (mut agents, mut calls, mut results, mut asked) = (0, 0, 0, None);
    for head in store.scan()?.heads {
        let path = &head.meta.agent_path;
        let mut checker = Checker::default();
        let (mut completed, mut faults) = (0, Vec::new());
        let tally = store.walk(&head.file, 0, |line| {
            faults.extend(checker.line(&line).iter().map(ToString::to_string));
            match &line.record {
                Record::TaskDone(done) if done.end.outcome == Outcome::Completed => completed += 1,
                Record::TaskDone(done) => faults.push(format!("a task ended {}", done.end.outcome)),
                Record::Mail(mail) if mail.outcome == Some(Outcome::Completed) => results += 1,
                Record::Item(record) if !record.mail.is_empty() => asked = Some(line.timestamp),
                Record::Item(record) if record.item.kind() == ItemKind::Output => {
                    calls += usize::from(record.item.text().contains("exited with code 0"));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        ensure!(faults.is_empty() && tally.skipped == 0 && tally.torn == 0, "the rollout of {path}: {faults:?}");
        agents += usize::from(completed > 0);
    }
    let found = (agents, calls, results);
    let wanted = (expected.agents, expected.calls, expected.results);
    ensure!(found == wanted, "(agents, calls, results) are {found:?} and should be {wanted:?}");
    Ok(asked)
}
