//! What the lines of a file come to. A pure fold: the same lines give the same state, live or read back.

use std::collections::{HashMap, HashSet};

use protocol::{
    Address, Call, EffectId, Item, ItemKind, Mail, MailId, MailKind, Outcome, Party, ProcessEvent, ProcessRecord,
    Status, TaskEnd, TaskId, ThreadId, TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use stdx::Timestamp;

use crate::{
    EdgeRecord, EdgeStatus, EventRecord, ItemRecord, Limits, Line, Record, SessionMeta, TaskDone, TurnContext,
    UsageRecord, UsageStage,
};

/// How many warnings are kept; the oldest go first.
const MAX_WARNINGS: usize = 100;

/// One agent, as its rollout has it.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Who it is.
    pub meta: SessionMeta,
    /// Whether it belongs to its tree.
    pub edge: Edge,
    /// Its context, oldest first; nothing when `transcript_complete` is false.
    pub transcript: Vec<Item>,
    /// Whether `transcript` is kept. A writer and a summary leave it out.
    pub transcript_complete: bool,
    /// Calls without an output, in order.
    pub open_calls: Vec<OpenCall>,
    /// Mail that is neither in the context, nor returned, nor answered unread; in the order in which it was accepted.
    pub pending: Vec<Mail>,
    /// Every mail that was ever accepted.
    pub known: HashSet<MailId>,
    /// Whether `known` has everything. From a summary it only has what is still open, and such a state is to be looked
    /// at: applying lines to it would accept old mail twice. After a compaction of an agent with very much mail, too.
    pub known_complete: bool,
    /// Mail that went back, since the compaction that was read from.
    pub returned: HashSet<MailId>,
    /// The highest sequence accepted of each sender; all clients are one sender, `None`.
    pub sequences: HashMap<Option<ThreadId>, u64>,
    /// The body of its first task.
    pub first_task: Option<String>,
    /// Tasks in the context that have not ended.
    pub tasks_taken: Vec<Task>,
    /// Tasks that ended with their process, lost or interrupted, and that nothing goes on with yet.
    pub cut_off: Vec<Mail>,
    /// The mail of the tasks in `tasks_taken`.
    pub(crate) taken_mail: Vec<Mail>,
    /// How tasks ended; answers clients.
    pub done: HashMap<TaskId, TaskEnd>,
    /// Whether `done` has everything, or only what ended since the compaction that was read from.
    pub done_complete: bool,
    /// Every task that ended, so that none ends twice.
    pub(crate) ended: HashSet<TaskId>,
    /// What is owed to other agents, oldest first.
    pub obligations: Vec<Obligation>,
    /// The turn that has begun and not ended.
    pub open_turn: Option<TurnId>,
    /// How many turns began.
    pub turns: usize,
    /// How the last turn ended.
    pub last_end: Option<TaskEnd>,
    /// Tokens of settled requests.
    pub usage: Usage,
    /// Tokens of the conversation as the server counted them for the last settled request.
    pub window_used: u64,
    /// Money of settled requests.
    pub cost_usd: f64,
    /// Tokens of requests that nobody counted, as they were estimated.
    pub estimated: Usage,
    /// Money of those.
    pub estimated_usd: f64,
    /// Reservations whose request was never settled.
    pub unsettled: Vec<UsageRecord>,
    /// All lines of processes that have not ended.
    pub processes: Vec<ProcessRecord>,
    /// Limits of the tree; in the root's file.
    pub limits: Option<Limits>,
    /// The settings of the turns that follow.
    pub turn_context: Option<TurnContext>,
    /// What the agent was last told of its surroundings. A summary leaves it out.
    pub world_state: Option<serde_json::Value>,
    /// The number of its window: 1, and one more with each compaction.
    pub window: u64,
    /// The latest warnings; at most 100.
    pub warnings: Vec<String>,
    /// Ordinal of the last line.
    pub last_ordinal: u64,
    /// When the last line was written.
    pub last_activity: Timestamp,
}

/// Whether an agent belongs to its tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Edge {
    /// It does.
    Open,
    /// Somebody closed it. Final.
    Closed {
        /// Why.
        reason: String,
        /// A path, or `user`.
        by: String,
        /// When.
        at: Timestamp,
    },
}

/// A call without an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Minted when it was recorded; missing in files of other writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectId>,
    /// The call.
    pub call: Call,
    /// Its line.
    pub ordinal: u64,
    /// The turn it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
}

/// A task that a turn took in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id: that of the mail that gave it.
    pub id: TaskId,
    /// Who gets the result.
    pub giver: Party,
    /// The cut-off task that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<TaskId>,
    /// The kind of the mail.
    pub kind: MailKind,
}

/// Something owed to another agent until a `sent` line settles it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "owed", rename_all = "snake_case")]
pub enum Obligation {
    /// The giver of a task must hear how it ended.
    Result {
        /// The task.
        task: TaskId,
        /// Who gave it.
        giver: Address,
        /// How it ended.
        end: TaskEnd,
        /// The cut-off task that it went on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continues: Option<TaskId>,
    },
    /// Mail must go back to its sender; a result moves on to an ancestor.
    Return {
        /// The mail.
        mail: Box<Mail>,
        /// Why it was not delivered.
        reason: String,
    },
}

impl Obligation {
    /// What a `sent` line calls it: the task, or the mail that goes back.
    pub fn id(&self) -> MailId {
        match self {
            Self::Result { task, .. } => *task,
            Self::Return { mail, .. } => mail.id,
        }
    }
}

impl State {
    /// An agent whose file has nothing but its first line.
    pub fn new(meta: SessionMeta) -> Self {
        Self {
            last_activity: meta.timestamp,
            meta,
            edge: Edge::Open,
            transcript: Vec::new(),
            transcript_complete: true,
            open_calls: Vec::new(),
            pending: Vec::new(),
            known: HashSet::new(),
            known_complete: true,
            returned: HashSet::new(),
            sequences: HashMap::new(),
            first_task: None,
            tasks_taken: Vec::new(),
            cut_off: Vec::new(),
            taken_mail: Vec::new(),
            done: HashMap::new(),
            done_complete: true,
            ended: HashSet::new(),
            obligations: Vec::new(),
            open_turn: None,
            turns: 0,
            last_end: None,
            usage: Usage::default(),
            window_used: 0,
            cost_usd: 0.0,
            estimated: Usage::default(),
            estimated_usd: 0.0,
            unsettled: Vec::new(),
            processes: Vec::new(),
            limits: None,
            turn_context: None,
            world_state: None,
            window: 1,
            warnings: Vec::new(),
            last_ordinal: 0,
        }
    }

    /// The same without its transcript, which is not kept from here on.
    pub(crate) fn without_transcript(&mut self) -> Self {
        // Set aside meanwhile, so that it is not copied only to be dropped.
        let transcript = std::mem::take(&mut self.transcript);
        let copy = Self { transcript_complete: false, ..self.clone() };
        self.transcript = transcript;
        copy
    }

    /// Takes in the next line.
    pub fn apply(&mut self, line: &Line) {
        self.apply_record(line.timestamp, line.ordinal, &line.record);
    }

    /// As [`State::apply`], for records that were just appended.
    pub fn apply_record(&mut self, at: Timestamp, ordinal: u64, record: &Record) {
        self.last_ordinal = self.last_ordinal.max(ordinal);
        self.last_activity = at;
        match record {
            // The items of a fork stand in another file: whoever folds a file with its conversation brings them.
            Record::SessionMeta(_) | Record::Forked(_) | Record::Other { .. } | Record::Event(EventRecord::Unknown) => {
            }
            Record::Item(item) => self.item(ordinal, item),
            Record::Compacted(compacted) => self.compact(compacted),
            Record::Checkpoint(checkpoint) => self.restore(checkpoint),
            Record::WorldState(world) => self.see(world),
            Record::TurnContext(context) => self.turn_context = Some((**context).clone()),
            Record::Mail(mail) => self.accept(mail),
            Record::MailReturned(back) => back.ids.iter().for_each(|id| self.give_back(*id, &back.reason)),
            Record::TurnEnd(end) => {
                self.open_turn = None;
                self.last_end = Some(end.end.clone());
            }
            Record::TaskDone(done) => self.finish(done),
            Record::Sent { obligation, .. } => self.obligations.retain(|open| open.id() != *obligation),
            Record::Edge(edge) => self.edge(at, edge),
            Record::Process(process) => match process.event {
                ProcessEvent::Ended { .. } => self.processes.retain(|line| line.token != process.token),
                _ => self.processes.push(process.clone()),
            },
            Record::Usage(usage) => self.spend(usage),
            Record::Limits(limits) => self.limits = Some((**limits).clone()),
            Record::Event(EventRecord::TurnStarted { turn_id }) => {
                self.open_turn = Some(*turn_id);
                self.turns += 1;
            }
            Record::Event(EventRecord::Warning { message }) => {
                if self.warnings.len() == MAX_WARNINGS {
                    self.warnings.remove(0);
                }
                self.warnings.push(message.clone());
            }
        }
    }

    fn item(&mut self, ordinal: u64, record: &ItemRecord) {
        if self.transcript_complete {
            self.transcript.push(record.item.clone());
        }
        if record.copied_from.is_some() {
            return;
        }
        for id in &record.mail {
            let Some(at) = self.pending.iter().position(|mail| mail.id == *id) else { continue };
            let mail = self.pending.remove(at);
            if mail.kind.is_task() {
                let Mail { id, from, kind, continues, .. } = mail.clone();
                self.tasks_taken.push(Task { id, giver: from, continues, kind });
                self.taken_mail.push(mail);
            }
        }
        if let Some(call) = record.item.call() {
            self.open_calls.push(OpenCall { effect: record.effect, call, ordinal, turn: record.turn });
        } else if record.item.kind() == ItemKind::Output {
            // Servers repeat call ids, so an effect decides where there is one; then the output need not be parsed.
            let answered = if let Some(effect) = record.effect {
                self.open_calls.iter().position(|open| open.effect == Some(effect))
            } else {
                let call_id = record.item.answered_call_id();
                self.open_calls.iter().position(|open| call_id.as_deref() == Some(open.call.call_id.as_str()))
            };
            if let Some(at) = answered {
                self.open_calls.remove(at);
            }
        }
    }

    fn accept(&mut self, mail: &Mail) {
        let highest = self.sequences.entry(mail.from.thread()).or_default();
        *highest = (*highest).max(mail.sequence);
        if self.known.insert(mail.id) {
            self.pending.push(mail.clone());
            self.cut_off.retain(|lost| mail.continues != Some(lost.id));
            if mail.kind.is_task() && self.first_task.is_none() {
                self.first_task = Some(mail.body.clone());
            }
        }
    }

    fn give_back(&mut self, id: MailId, reason: &str) {
        self.returned.insert(id);
        let Some(at) = self.pending.iter().position(|mail| mail.id == id) else { return };
        let mail = self.pending.remove(at);
        // A client waits for nothing, and a return is never returned.
        if mail.kind != MailKind::Returned && mail.from.thread().is_some() {
            self.obligations.push(Obligation::Return { mail: Box::new(mail), reason: reason.to_owned() });
        }
    }

    fn finish(&mut self, done: &TaskDone) {
        if !self.ended.insert(done.task) {
            return;
        }
        self.done.insert(done.task, done.end.clone());
        self.tasks_taken.retain(|task| task.id != done.task);
        let (ended, going) = std::mem::take(&mut self.taken_mail).into_iter().partition(|mail| mail.id == done.task);
        self.taken_mail = going;
        if done.end.outcome == Outcome::Lost || done.goes_on {
            self.cut_off.extend::<Vec<Mail>>(ended);
        }
        // A task that nobody took in ends too when its agent is closed.
        self.pending.retain(|mail| mail.id != done.task);
        if self.last_end.is_none() {
            self.last_end = Some(done.end.clone());
        }
        if let Party::Agent(giver) = &done.giver {
            self.obligations.push(Obligation::Result {
                task: done.task,
                giver: giver.clone(),
                end: done.end.clone(),
                continues: done.continues,
            });
        }
    }

    fn edge(&mut self, at: Timestamp, edge: &EdgeRecord) {
        if self.edge == Edge::Open && edge.status == EdgeStatus::Closed {
            self.edge = Edge::Closed { reason: edge.reason.clone(), by: edge.by.clone(), at };
        }
    }

    fn spend(&mut self, record: &UsageRecord) {
        match record.stage {
            UsageStage::Reserved => self.unsettled.push(record.clone()),
            UsageStage::Settled => {
                if let Some(at) = self.unsettled.iter().rposition(|open| open.turn_id == record.turn_id) {
                    self.unsettled.remove(at);
                }
                if record.estimated {
                    self.estimated += record.usage;
                    self.estimated_usd += record.cost_usd.unwrap_or(0.0);
                    return;
                }
                self.usage += record.usage;
                self.window_used = record.usage.total();
                self.cost_usd += record.cost_usd.unwrap_or(0.0);
                // A settled line that could not be read is still in the totals of those after it.
                if record.total.total() > self.usage.total() {
                    self.usage = record.total;
                }
            }
        }
    }

    /// How the agent stands when nobody runs it.
    pub fn status(&self) -> Status {
        if self.open_turn.is_some() {
            return Status::Lost;
        }
        let waking = self.pending.iter().any(|mail| mail.trigger_turn);
        match &self.last_end {
            Some(end) if !waking || self.is_closed() => end.outcome.into(),
            None if self.is_closed() => Outcome::Closed.into(),
            _ => Status::Pending,
        }
    }

    /// How many mails wait to be read.
    pub fn unread(&self) -> usize {
        self.pending.len()
    }

    /// Whether somebody closed its edge.
    pub fn is_closed(&self) -> bool {
        self.edge != Edge::Open
    }

    /// Whether nothing of it needs a hand when its tree is taken over.
    pub fn is_at_rest(&self) -> bool {
        self.open_turn.is_none()
            && self.open_calls.is_empty()
            && self.tasks_taken.is_empty()
            && self.obligations.is_empty()
            && self.processes.is_empty()
            && self.unsettled.is_empty()
            && (self.pending.is_empty() || !self.is_closed())
    }

    /// The sequence that the next mail of `from` gets.
    pub fn next_sequence(&self, from: &Party) -> u64 {
        self.sequences.get(&from.thread()).copied().unwrap_or(0) + 1
    }

    /// Tokens of requests that were reserved and never settled, as they were estimated.
    pub fn reserved(&self) -> Usage {
        self.unsettled.iter().map(|open| open.usage).sum()
    }

    /// Tokens that count against a budget: settled ones, and estimates of those that nobody counted or settled.
    pub fn spent(&self) -> Usage {
        let mut spent = self.usage;
        spent += self.estimated;
        spent += self.reserved();
        spent
    }

    /// Money that counts against a budget, in US dollars.
    pub fn spent_usd(&self) -> f64 {
        self.cost_usd + self.estimated_usd + self.unsettled.iter().filter_map(|open| open.cost_usd).sum::<f64>()
    }
}

#[cfg(test)]
pub(crate) mod tests;
