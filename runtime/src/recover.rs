//! Closing what broke off: the lines that turn an interrupted rollout into one that a model can be asked about again.

use protocol::{Item, Outcome, Party, TaskEnd, TurnId, Usage};
use rollout::{ItemRecord, Obligation, OpenCall, Record, State, TaskDone, TurnEnd, UsageRecord, UsageStage};

use super::core::{EngineError, Setup};
use super::host::TurnReport;

/// What a call with outside effects is answered when its process ended.
pub const MAY_HAVE_RUN: &str = "the process ended; this may have run partly";

/// The lines that close `state`: an output for every open call, a bill for every request that has none, and an end for
/// an open turn and the tasks it took in. Empty for an agent at rest. One write.
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
    // Nobody will count them any more: they cost what was reserved.
    records.extend(state.unsettled.iter().map(|open| {
        let (stage, total) = (UsageStage::Settled, state.usage);
        Record::Usage(UsageRecord { stage, total, estimated: true, ..open.clone() })
    }));
    if let Some(turn_id) = state.open_turn {
        let end = TaskEnd { outcome, text: None, reason: Some(reason.to_owned()) };
        records.push(Record::TurnEnd(TurnEnd { turn_id, end: end.clone() }));
        records.extend(state.tasks_taken.iter().map(|task| {
            Record::TaskDone(TaskDone {
                task: task.id,
                giver: task.giver.clone(),
                end: end.clone(),
                continues: task.continues,
                goes_on: false,
            })
        }));
    }
    records
}

fn read(setup: &Setup) -> Result<State, EngineError> {
    Ok(setup.store.load(setup.agent.thread)?.state)
}

/// Reads the agent back after its turn broke down and closes whatever its rollout has open, synced. The report says
/// what is owed: the results of the tasks that this closes, and those that an earlier end left unpaid because it was
/// written but could not be synced; none when there is no debt.
pub(crate) async fn reload(setup: &Setup) -> Result<(State, Option<TurnReport>), EngineError> {
    const REASON: &str = "the turn broke down";
    let state = read(setup)?;
    let records = closing(&state, Outcome::Errored, REASON, |_| MAY_HAVE_RUN.to_owned());
    // Also when there is nothing to close: what was read may be what a failed sync left.
    setup.writer.append_synced(&records).await?;
    let unpaid = state.obligations.iter().filter_map(|obligation| match obligation {
        Obligation::Result { task, giver, end, continues } => {
            let giver = Party::Agent(giver.clone());
            Some(TaskDone { task: *task, giver, end: end.clone(), continues: *continues, goes_on: false })
        }
        Obligation::Return { .. } => None,
    });
    let tasks: Vec<TaskDone> = unpaid.chain(ends(&records)).collect();
    // The agent is well now and about to go on.
    let owed = (!tasks.is_empty()).then(|| TurnReport { broken: false, ..report(&state, REASON, tasks) });
    let state = if records.is_empty() { state } else { read(setup)? };
    Ok((state, owed))
}

/// Ends the open turn of an agent whose loop broke down, synced, and says what is owed.
pub(crate) async fn abandon(setup: &Setup, reason: &str) -> Result<TurnReport, EngineError> {
    let state = read(setup)?;
    // The turn may have died with mail in its hands that its rollout has as pending.
    setup.inbox.lock().restore_undelivered(state.pending.clone());
    let records = closing(&state, Outcome::Errored, reason, |_| MAY_HAVE_RUN.to_owned());
    let tasks = ends(&records).collect();
    Ok(match setup.writer.append_synced(&records).await {
        Ok(_) => report(&state, reason, tasks),
        Err(error) => TurnReport { unwritten: tasks, ..report(&state, &format!("{reason}; {error}"), Vec::new()) },
    })
}

fn ends(records: &[Record]) -> impl Iterator<Item = TaskDone> {
    records.iter().filter_map(|record| if let Record::TaskDone(done) = record { Some(done.clone()) } else { None })
}

fn report(state: &State, reason: &str, tasks: Vec<TaskDone>) -> TurnReport {
    TurnReport {
        turn: state.open_turn.unwrap_or_else(TurnId::new),
        end: TaskEnd { outcome: Outcome::Errored, text: None, reason: Some(reason.to_owned()) },
        tasks,
        unwritten: Vec::new(),
        broken: true,
        usage: Usage::default(),
        fault: None,
    }
}
