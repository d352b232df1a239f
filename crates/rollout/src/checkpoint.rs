//! Compaction: a shorter history takes the place of the conversation so far, and what the lines before it come to is
//! said once more, so that nobody has to read them again.
//!
//! Four lines are one write: `compacted`, `checkpoint`, `world_state`, `turn_context`; the last two only when there is
//! something to say. What a state has after them is what the fold of the whole file has, with two exceptions: how old
//! tasks ended (`done`) and which mail went back (`returned`) stay in the lines before. [`crate::Store::ended`] looks
//! there.

use std::collections::HashSet;

use protocol::{Item, Mail, MailId, ProcessRecord, TaskEnd, TaskId, ThreadId, TurnId, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Edge, Limits, Obligation, OpenCall, Record, Sequence, State, Task, UsageRecord};

/// Ids of mail that a checkpoint names, so that none is accepted twice, and of tasks: 390 kB each. With more of them it
/// names none. Whoever has to know of old mail reads the `mail` lines then; a task that ends twice owes its giver the
/// same result twice, which is accepted once.
const MAX_KNOWN: usize = 10_000;

/// `compacted`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// What a person is told of it, usually the summary.
    #[serde(default)]
    pub message: String,
    /// The window that begins here; an agent begins in window 1.
    #[serde(default)]
    pub window_number: u64,
    /// What the context is from here on, each item byte for byte. Other programs may leave it out; then nothing is
    /// replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_history: Option<Vec<Item>>,
}

/// `checkpoint`: what the lines so far come to, without the conversation. Fields mean what they mean in [`State`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Whether the agent belongs to its tree.
    pub edge: Edge,
    /// The turn that has begun and not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_turn: Option<TurnId>,
    /// How many turns began.
    pub turns: usize,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<TaskEnd>,
    /// The body of its first task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_task: Option<String>,
    /// Mail that waits, as it was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Mail>,
    /// Tasks in the context that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks_taken: Vec<Task>,
    /// The mail of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_mail: Vec<Mail>,
    /// Tasks that ended with their process and that nothing goes on with yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<Mail>,
    /// What is owed to other agents, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obligations: Vec<Obligation>,
    /// Calls without an output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<OpenCall>,
    /// All lines of processes that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
    /// The highest sequence accepted of each sender, clients first, then by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Sequence>,
    /// Every mail that was ever accepted, if `known_complete`; nothing otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<MailId>,
    /// Whether `known` has them all.
    #[serde(default)]
    pub known_complete: bool,
    /// Every task that ended, so that none ends twice; nothing when there are very many, or much mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<TaskId>,
    /// Tokens of settled requests.
    pub usage: Usage,
    /// Money of settled requests.
    #[serde(default)]
    pub cost_usd: f64,
    /// Tokens of requests that nobody counted, as they were estimated.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub estimated: Usage,
    /// Money of those.
    #[serde(default, skip_serializing_if = "is_free")]
    pub estimated_usd: f64,
    /// Reservations whose request was never settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<UsageRecord>,
    /// Limits of the tree; in the root's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The latest warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_free(usd: &f64) -> bool {
    *usd == 0.0
}

/// `world_state`: what the agent was last told of its surroundings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorldState {
    /// Whether `state` is all of it, or changes what was there: keys are set, and taken away by null (RFC 7396).
    #[serde(default)]
    pub full: bool,
    /// What it is told.
    #[serde(default)]
    pub state: Value,
}

impl State {
    /// The lines of a compaction, one write. Nothing may be appended between the lines that this state was made of and
    /// these: [`crate::Writer::compact`] sees to that.
    pub fn compaction(&self, message: String, replacement_history: Vec<Item>) -> Vec<Record> {
        let compacted =
            Compacted { message, window_number: self.window + 1, replacement_history: Some(replacement_history) };
        let mut records = vec![Record::Compacted(Box::new(compacted)), Record::Checkpoint(Box::new(self.checkpoint()))];
        let world = self.world_state.clone().map(|state| WorldState { full: true, state });
        records.extend(world.map(|world| Record::WorldState(Box::new(world))));
        records.extend(self.turn_context.clone().map(|context| Record::TurnContext(Box::new(context))));
        records
    }

    /// What the lines so far come to, without the conversation.
    pub fn checkpoint(&self) -> Checkpoint {
        let named = |ids: &HashSet<MailId>| {
            let mut ids: Vec<MailId> = ids.iter().copied().filter(|_| ids.len() <= MAX_KNOWN).collect();
            ids.sort();
            ids
        };
        let known_complete = self.known_complete && self.known.len() <= MAX_KNOWN;
        let (known, ended) =
            if known_complete { (named(&self.known), named(&self.ended)) } else { (Vec::new(), Vec::new()) };
        Checkpoint {
            edge: self.edge.clone(),
            open_turn: self.open_turn,
            turns: self.turns,
            last_end: self.last_end.clone(),
            first_task: self.first_task.clone(),
            pending: self.pending.clone(),
            tasks_taken: self.tasks_taken.clone(),
            taken_mail: self.taken_mail.clone(),
            cut_off: self.cut_off.clone(),
            obligations: self.obligations.clone(),
            open_calls: self.open_calls.clone(),
            processes: self.processes.clone(),
            sequences: self.sorted_sequences(),
            known,
            known_complete,
            ended,
            usage: self.usage,
            cost_usd: self.cost_usd,
            estimated: self.estimated,
            estimated_usd: self.estimated_usd,
            unsettled: self.unsettled.clone(),
            limits: self.limits.clone(),
            warnings: self.warnings.clone(),
        }
    }

    /// The state before a compaction that is read without the lines before it.
    pub(crate) fn resumed(meta: crate::SessionMeta) -> Self {
        Self { known_complete: false, done_complete: false, ..Self::new(meta) }
    }

    /// Takes in a shorter history.
    pub(crate) fn compact(&mut self, compacted: &Compacted) {
        let Some(history) = &compacted.replacement_history else { return };
        if self.transcript_complete {
            self.transcript.clone_from(history);
        }
        self.window = compacted.window_number;
        // The server has not counted the new window yet.
        self.window_used = 0;
    }

    /// Takes a checkpoint's word for everything that it says.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) {
        let Checkpoint { pending, taken_mail, cut_off, .. } = checkpoint;
        let open = pending.iter().chain(taken_mail).chain(cut_off).map(|mail| mail.id);
        self.known.extend(open.chain(checkpoint.known.iter().copied()));
        self.ended.extend(checkpoint.ended.iter().copied());
        self.known_complete |= checkpoint.known_complete;
        self.edge = checkpoint.edge.clone();
        self.open_turn = checkpoint.open_turn;
        self.turns = checkpoint.turns;
        self.last_end.clone_from(&checkpoint.last_end);
        self.first_task.clone_from(&checkpoint.first_task);
        self.pending.clone_from(pending);
        self.tasks_taken.clone_from(&checkpoint.tasks_taken);
        self.taken_mail.clone_from(taken_mail);
        self.cut_off.clone_from(cut_off);
        self.obligations.clone_from(&checkpoint.obligations);
        self.open_calls.clone_from(&checkpoint.open_calls);
        self.processes.clone_from(&checkpoint.processes);
        self.sequences = checkpoint.sequences.iter().map(|sequence| (sequence.from, sequence.highest)).collect();
        self.usage = checkpoint.usage;
        self.cost_usd = checkpoint.cost_usd;
        self.estimated = checkpoint.estimated;
        self.estimated_usd = checkpoint.estimated_usd;
        self.unsettled.clone_from(&checkpoint.unsettled);
        self.limits.clone_from(&checkpoint.limits);
        self.warnings.clone_from(&checkpoint.warnings);
    }

    /// Takes in what the agent is told of its surroundings.
    pub(crate) fn see(&mut self, world: &WorldState) {
        if world.full {
            self.world_state = Some(world.state.clone()).filter(|state| !state.is_null());
        } else {
            merge(self.world_state.get_or_insert(Value::Null), &world.state);
        }
    }

    /// The highest sequence of each sender, clients first, then by thread.
    pub(crate) fn sorted_sequences(&self) -> Vec<Sequence> {
        let mut sequences: Vec<Sequence> =
            self.sequences.iter().map(|(from, highest)| Sequence { from: *from, highest: *highest }).collect();
        sequences.sort_by_key(|sequence: &Sequence| -> Option<ThreadId> { sequence.from });
        sequences
    }
}

/// Changes `target` by a merge patch, RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests;
