//! The task loop: is there still work for this task? It may not retry a stream.

use std::sync::{Arc, PoisonError};

use model::ModelError;
use protocol::{EventKind, Outcome, TaskEnd, TaskId, TurnId, Usage};
use rollout::{EventRecord, Record, TaskDone, TurnEnd};
use tokio_util::sync::CancellationToken;

use super::agent::Stop;
use super::core::{Core, EngineError};
use super::fragment::{ContextFragment as _, TurnAborted};
use super::host::{Fault, TurnReport};
use super::seam::Mutex;
use super::turn::{Turned, run_turn};

/// Why a turn was told to stop. Written before its token is cancelled.
pub(crate) type Stopped = Arc<Mutex<Option<Stop>>>;

/// A task that has ended. When its report says broken, memory may differ from the rollout and the agent has to be read
/// again.
pub(crate) struct Ended {
    pub(crate) report: TurnReport,
}

/// Runs one task to its end, and writes the end: of the turn and of all the tasks that it took in, in one write.
pub(crate) async fn run_task(core: &mut Core, stopped: &Stopped, cancel: &CancellationToken) -> Ended {
    let turn = TurnId::new();
    core.spent = Usage::default();
    core.tasks.clear();
    core.turn_began = core.transcript.len();
    let result = passes(core, turn, cancel).await;
    core.setup.inbox.lock().end_turn();

    let mut fault = None;
    let mut broken = false;
    let mut goes_on = false;
    let mut only: Vec<TaskId> = Vec::new();
    let end = match result {
        Ok(Turned::Ended) => completed(core.last_words()),
        Ok(Turned::Interrupted) => {
            let stop = stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Nobody named this turn, so the whole tree is being ended, and its token has fired first.
            let stop = stop.unwrap_or_else(Stop::of_the_tree);
            broken |= core.record_item(turn, TurnAborted.item(), None).is_err();
            goes_on = stop.goes_on;
            only.clone_from(&stop.only);
            TaskEnd { outcome: stop.outcome, text: core.partial_words(), reason: Some(stop.reason) }
        }
        Ok(Turned::Failed(error)) => {
            let end = errored(core, &error);
            fault = Some(Fault { kind: error.kind, hints: error.hints });
            end
        }
        Ok(Turned::OverBudget(over)) => {
            goes_on = over.of_the_tree;
            TaskEnd { outcome: Outcome::OverBudget, text: core.partial_words(), reason: Some(over.reason) }
        }
        Err(error) => {
            broken = true;
            TaskEnd { outcome: Outcome::Errored, text: None, reason: Some(error.to_string()) }
        }
    };

    let tasks: Vec<TaskDone> = core
        .tasks
        .drain(..)
        .map(|task| TaskDone {
            task: task.id(),
            giver: task.mail.from.clone(),
            end: end.clone(),
            continues: task.mail.continues,
            goes_on: goes_on || !(only.is_empty() || only.contains(&task.id())),
        })
        .collect();
    let written = write_end(core, turn, &end, &tasks).await;
    let end = match &written {
        Ok(()) => end,
        Err(error) => {
            let message = format!("the end of a turn of {} could not be written: {error}", core.setup.agent.path);
            let hint = "free space or repair the disk, then `agent resume`: the rollout is intact up to here";
            core.setup.host.emit(EventKind::Error { message: message.clone(), hints: vec![hint.to_owned()] });
            // Not completed as long as it may be lost, whatever the model said.
            TaskEnd { outcome: Outcome::Errored, text: end.text, reason: Some(message) }
        }
    };
    core.setup.host.emit(EventKind::TurnCompleted {
        turn,
        outcome: end.outcome,
        text: end.text.clone(),
        reason: end.reason.clone(),
        usage: core.spent,
    });
    broken |= written.is_err();
    let (tasks, unwritten) = if written.is_ok() { (tasks, Vec::new()) } else { (Vec::new(), tasks) };
    Ended { report: TurnReport { turn, end, tasks, unwritten, broken, usage: core.spent, fault } }
}

/// Announces the turn once, then runs passes for as long as input is pending.
async fn passes(core: &mut Core, turn: TurnId, cancel: &CancellationToken) -> Result<Turned, EngineError> {
    core.setup.writer.append(&[Record::Event(EventRecord::TurnStarted { turn_id: turn })])?;
    core.setup.host.emit(EventKind::TurnStarted { turn });
    core.open_window(turn)?;
    let mut input = core.setup.inbox.lock().begin_turn();
    loop {
        let turned = run_turn(core, turn, std::mem::take(&mut input), &cancel.child_token()).await?;
        // Looked at and ended under one lock: whoever steers is told truly whether there was a turn to join.
        let mut mailbox = core.setup.inbox.lock();
        if !matches!(turned, Turned::Ended) || !mailbox.has_pending() {
            mailbox.end_turn();
            return Ok(turned);
        }
    }
}

/// One write for the turn and its tasks, synced before anybody is told.
async fn write_end(core: &Core, turn: TurnId, end: &TaskEnd, tasks: &[TaskDone]) -> Result<(), EngineError> {
    let mut records = vec![Record::TurnEnd(TurnEnd { turn_id: turn, end: end.clone() })];
    records.extend(tasks.iter().cloned().map(Record::TaskDone));
    core.setup.writer.append_synced(&records).await?;
    Ok(())
}

fn completed(words: Option<String>) -> TaskEnd {
    let reason = words.is_none().then(|| "the agent ended its turn without text".to_owned());
    TaskEnd { outcome: Outcome::Completed, text: words, reason }
}

fn errored(core: &Core, error: &ModelError) -> TaskEnd {
    TaskEnd { outcome: Outcome::Errored, text: core.partial_words(), reason: Some(error.message.clone()) }
}
