//! Closing what broke off: the lines that turn an interrupted rollout into one that a model can be asked about again.

use std::sync::Arc;

use protocol::{Item, Outcome, TaskEnd, TurnId, Usage};
use rollout::{ItemRecord, OpenCall, Record, State, TaskDone, TurnEnd};

use crate::core::{EngineError, Setup};
use crate::host::TurnReport;

/// What a call with outside effects is answered when its process ended.
pub const MAY_HAVE_RUN: &str = "the process ended; this may have run partly";

/// The lines that close `state`: an output for every open call, and an end for an open turn and the tasks it took in.
/// Empty for an agent at rest. One write.
pub fn closing(state: &State, outcome: Outcome, reason: &str, answer: impl Fn(&OpenCall) -> String) -> Vec<Record> {
    let mut records: Vec<Record> = state
        .open_calls
        .iter()
        .map(|open| {
            Record::Item(ItemRecord {
                item: Item::output(&open.call, &answer(open)),
                effect: open.effect,
                mail: Vec::new(),
                turn: open.turn,
                copied_from: None,
            })
        })
        .collect();
    if let Some(turn_id) = state.open_turn {
        let end = TaskEnd { outcome, text: None, reason: Some(reason.to_owned()) };
        records.push(Record::TurnEnd(TurnEnd { turn_id, end: end.clone() }));
        records.extend(state.tasks_taken.iter().map(|task| {
            Record::TaskDone(TaskDone {
                task: task.id,
                giver: task.giver.clone(),
                end: end.clone(),
                continues: task.continues,
            })
        }));
    }
    records
}

fn read(setup: &Setup) -> Result<State, EngineError> {
    Ok(setup.store.load(setup.agent.thread)?.state)
}

/// Reads the agent back and closes whatever its rollout has open.
pub(crate) fn reload(setup: &Arc<Setup>) -> Result<State, EngineError> {
    let state = read(setup)?;
    let records = closing(&state, Outcome::Errored, "the turn broke down", |_| MAY_HAVE_RUN.to_owned());
    if records.is_empty() {
        return Ok(state);
    }
    setup.writer.append(&records)?;
    read(setup)
}

/// Ends the open turn of an agent whose loop broke down, and says what is owed.
pub(crate) fn abandon(setup: &Arc<Setup>, reason: &str) -> Result<TurnReport, EngineError> {
    let state = read(setup)?;
    let records = closing(&state, Outcome::Errored, reason, |_| MAY_HAVE_RUN.to_owned());
    if !records.is_empty() {
        setup.writer.append(&records)?;
    }
    let tasks = records
        .into_iter()
        .filter_map(|record| if let Record::TaskDone(done) = record { Some(done) } else { None })
        .collect();
    Ok(TurnReport {
        turn: state.open_turn.unwrap_or_else(TurnId::new),
        end: TaskEnd { outcome: Outcome::Errored, text: None, reason: Some(reason.to_owned()) },
        tasks,
        usage: Usage::default(),
        fault: None,
    })
}
