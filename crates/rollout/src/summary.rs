//! What an agent's file comes to without its conversation: one value that fits into a row of a list.
//!
//! It also says where the file ended when it was made, so that whoever finds it later can tell by two numbers and one
//! line whether the file has changed since.

use std::collections::{HashMap, HashSet};

use protocol::{Mail, ProcessRecord, Status, TaskEnd, ThreadId, TurnId, Usage};
use serde::{Deserialize, Serialize};
use stdx::{AbsPath, Timestamp};

use crate::{Edge, Limits, Obligation, OpenCall, Record, SessionMeta, State, Task, TurnContext, UsageRecord};

/// Where the good part of a file ends, and by what its last line is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// The file.
    pub file: AbsPath,
    /// Bytes of whole writes.
    pub bytes: u64,
    /// The highest ordinal in them.
    pub ordinal: u64,
    /// Length of the last line, its line break included.
    pub last_line_bytes: u64,
    /// [`checksum`] of the last line, its line break included.
    pub checksum: u64,
    /// Lines that could not be decoded.
    pub skipped: usize,
    /// Lines of a type that this version does not know.
    pub unknown: usize,
}

/// An agent without its conversation. Unknown fields are passed over, so that a newer one can still be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`Summary::VERSION`] of the program that made it.
    pub version: u32,
    /// Who it is.
    pub meta: SessionMeta,
    /// Where its file was.
    pub file: AbsPath,
    /// As in [`FileEnd`].
    pub bytes: u64,
    /// As in [`FileEnd`].
    pub ordinal: u64,
    /// As in [`FileEnd`].
    pub last_line_bytes: u64,
    /// As in [`FileEnd`].
    pub checksum: u64,
    /// As in [`FileEnd`].
    #[serde(default)]
    pub skipped: usize,
    /// As in [`FileEnd`].
    #[serde(default)]
    pub unknown: usize,
    /// [`State::status`].
    pub status: Status,
    /// [`State::is_at_rest`].
    pub at_rest: bool,
    /// Whether it belongs to its tree.
    pub edge: Edge,
    /// The turn that has begun and not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_turn: Option<TurnId>,
    /// Calls without an output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<OpenCall>,
    /// Mail that waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Mail>,
    /// The highest sequence of each sender, clients first, then by thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<Sequence>,
    /// The body of its first task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_task: Option<String>,
    /// Tasks in the context that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks_taken: Vec<Task>,
    /// The mail of those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_mail: Vec<Mail>,
    /// Tasks that ended as lost and that nothing goes on with yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<Mail>,
    /// What is owed to other agents, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub obligations: Vec<Obligation>,
    /// How many turns began.
    #[serde(default)]
    pub turns: usize,
    /// How the last turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<TaskEnd>,
    /// Tokens of settled requests.
    #[serde(default)]
    pub usage: Usage,
    /// Tokens of the conversation as the server counted them last.
    pub window_used: u64,
    /// Money of settled requests.
    #[serde(default)]
    pub cost_usd: f64,
    /// Tokens of requests that nobody counted, as they were estimated.
    #[serde(default)]
    pub estimated: Usage,
    /// Money of those.
    #[serde(default)]
    pub estimated_usd: f64,
    /// Reservations whose request was never settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsettled: Vec<UsageRecord>,
    /// All lines of processes that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessRecord>,
    /// Limits of the tree; in the root's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The settings of the turns that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_context: Option<TurnContext>,
    /// The number of its window.
    #[serde(default)]
    pub window: u64,
    /// The latest warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// When the last line was written.
    pub last_activity: Timestamp,
}

/// How far the mail of one sender has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    /// The sender; none for all clients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ThreadId>,
    /// The highest sequence accepted.
    pub highest: u64,
}

/// FNV-1a of 64 bits. The same on every machine and in every version: it is kept beside what it was taken of. Tells a
/// changed line from an unchanged one; whoever may write into the folder of the rollouts need not be kept out by it.
pub fn checksum(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    checksum_on(BASIS, bytes)
}

/// The checksum of what `sum` is that of, followed by these bytes.
pub(crate) fn checksum_on(sum: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

impl FileEnd {
    /// A file that was just made and has no bytes.
    pub(crate) fn empty(file: AbsPath) -> Self {
        Self { file, bytes: 0, ordinal: 0, last_line_bytes: 0, checksum: checksum(b""), skipped: 0, unknown: 0 }
    }

    /// Takes in one write of these records, whose last line is `last`.
    pub(crate) fn append(&mut self, records: &[Record], written: u64, last: &[u8]) {
        self.bytes += written;
        self.ordinal += records.len() as u64;
        self.last_line_bytes = last.len() as u64;
        self.checksum = checksum(last);
        // As a reader has it, who begins at the newest compaction.
        if let [Record::Compacted(_), Record::Checkpoint(_), ..] = records {
            (self.skipped, self.unknown) = (0, 0);
        }
        self.unknown += records.iter().filter(|record| record.is_unknown()).count();
    }
}

impl Summary {
    /// Raised whenever a field is added, or the fold says something else about the same lines: a summary of another
    /// version is not believed, so that nothing an older program did not know is taken for absent.
    pub const VERSION: u32 = 2;

    /// When the agent was spawned.
    pub fn opened_at(&self) -> Timestamp {
        self.meta.timestamp
    }

    /// When its edge was closed.
    pub fn closed_at(&self) -> Option<Timestamp> {
        match self.edge {
            Edge::Open => None,
            Edge::Closed { at, .. } => Some(at),
        }
    }

    /// How many mails wait to be read.
    pub fn unread(&self) -> usize {
        self.pending.len()
    }
}

impl State {
    /// Everything but the conversation, of a file that ends like this.
    pub fn summary(&self, end: &FileEnd) -> Summary {
        Summary {
            version: Summary::VERSION,
            meta: self.meta.clone(),
            file: end.file.clone(),
            bytes: end.bytes,
            ordinal: end.ordinal,
            last_line_bytes: end.last_line_bytes,
            checksum: end.checksum,
            skipped: end.skipped,
            unknown: end.unknown,
            status: self.status(),
            at_rest: self.is_at_rest(),
            edge: self.edge.clone(),
            open_turn: self.open_turn,
            open_calls: self.open_calls.clone(),
            pending: self.pending.clone(),
            sequences: self.sorted_sequences(),
            first_task: self.first_task.clone(),
            tasks_taken: self.tasks_taken.clone(),
            taken_mail: self.taken_mail.clone(),
            cut_off: self.cut_off.clone(),
            obligations: self.obligations.clone(),
            turns: self.turns,
            last_end: self.last_end.clone(),
            usage: self.usage,
            window_used: self.window_used,
            cost_usd: self.cost_usd,
            estimated: self.estimated,
            estimated_usd: self.estimated_usd,
            unsettled: self.unsettled.clone(),
            processes: self.processes.clone(),
            limits: self.limits.clone(),
            turn_context: self.turn_context.clone(),
            window: self.window,
            warnings: self.warnings.clone(),
            last_activity: self.last_activity,
        }
    }

    /// The state that a summary was made of, as far as it goes: there is no transcript, and of the mail that was ever
    /// accepted only what is still open is known. To go on from it, open the file.
    pub fn from_summary(summary: &Summary) -> Self {
        let Summary { pending, taken_mail, cut_off, .. } = summary;
        let known: HashSet<_> = pending.iter().chain(taken_mail).chain(cut_off).map(|mail| mail.id).collect();
        Self {
            meta: summary.meta.clone(),
            edge: summary.edge.clone(),
            transcript: Vec::new(),
            transcript_complete: false,
            open_calls: summary.open_calls.clone(),
            pending: pending.clone(),
            known,
            known_complete: false,
            returned: HashSet::new(),
            sequences: summary.sequences.iter().map(|sequence| (sequence.from, sequence.highest)).collect(),
            first_task: summary.first_task.clone(),
            tasks_taken: summary.tasks_taken.clone(),
            cut_off: cut_off.clone(),
            taken_mail: taken_mail.clone(),
            done: HashMap::new(),
            done_complete: false,
            ended: HashSet::new(),
            obligations: summary.obligations.clone(),
            open_turn: summary.open_turn,
            turns: summary.turns,
            last_end: summary.last_end.clone(),
            usage: summary.usage,
            window_used: summary.window_used,
            cost_usd: summary.cost_usd,
            estimated: summary.estimated,
            estimated_usd: summary.estimated_usd,
            unsettled: summary.unsettled.clone(),
            processes: summary.processes.clone(),
            limits: summary.limits.clone(),
            turn_context: summary.turn_context.clone(),
            world_state: None,
            window: summary.window,
            warnings: summary.warnings.clone(),
            last_ordinal: summary.ordinal,
            last_activity: summary.last_activity,
        }
    }
}

#[cfg(test)]
mod tests;
