//! The payloads of the lines. Names and shapes are final; fields are only ever added.
//!
//! A line is `{"timestamp","ordinal","type","payload"}`. Two more keys may stand beside them: `metadata` (of a
//! `response_item`: what we know about the item, kept out of the item's own bytes) and `part` (`[k, n]`: the k-th of n
//! lines that were one write; a group that the end of a file cuts off counts as torn).

use protocol::{
    AgentPath, Approval, EffectId, Item, MailId, Party, ProcessRecord, Sandbox, TaskEnd, TaskId, ThreadId, TreeId,
    TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stdx::{AbsPath, Timestamp};

use crate::{Checkpoint, Compacted, Forked, WorldState};

/// The newest version of the line formats that is written and read. 1 is everything that may be passed over by who does
/// not know it; 2 stands in files with a `forked` line, without which a conversation is not what it was.
pub const FORMAT: u32 = 2;

/// One line, without its envelope.
#[derive(Clone, Debug)]
pub enum Record {
    /// `session_meta`: the first line of every file.
    SessionMeta(Box<SessionMeta>),
    /// `response_item`: an item is in the context.
    Item(ItemRecord),
    /// `forked`: items of its parent's rollout are in the context.
    Forked(Box<Forked>),
    /// `compacted`: a shorter history takes the place of the conversation. First of its group; `checkpoint` follows.
    Compacted(Box<Compacted>),
    /// `checkpoint`: what the lines before it come to.
    Checkpoint(Box<Checkpoint>),
    /// `world_state`: what the agent is told of its surroundings.
    WorldState(Box<WorldState>),
    /// `turn_context`: the settings of the turns that follow.
    TurnContext(Box<TurnContext>),
    /// `mail`: mail accepted for this agent.
    Mail(Box<protocol::Mail>),
    /// `mail_returned`: this agent is closed and sent undelivered mail back.
    MailReturned(MailReturned),
    /// `turn_end`: a turn has ended. Stands first in its group, the `task_done` lines of its tasks follow.
    TurnEnd(TurnEnd),
    /// `task_done`: a task has ended; an obligation towards its giver.
    TaskDone(TaskDone),
    /// `sent`: the mail that an obligation demanded is accepted over there.
    Sent {
        /// The task, or the returned mail, that demanded it.
        obligation: MailId,
        /// The mail that was sent.
        mail: MailId,
    },
    /// `edge`: this agent's edge was opened or closed.
    Edge(EdgeRecord),
    /// `process`: a process of this agent.
    Process(ProcessRecord),
    /// `usage`: tokens reserved or settled.
    Usage(UsageRecord),
    /// `limits`: limits of the tree; in the root's file.
    Limits(Box<Limits>),
    /// `event_msg`: something a person must see again.
    Event(EventRecord),
    /// Any other type: kept, counted, passed over.
    Other {
        /// Its `type`.
        kind: String,
        /// Its payload as it stands.
        payload: Box<RawValue>,
    },
}

/// Who an agent is. Never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The thread.
    pub id: ThreadId,
    /// The tree.
    pub session_id: TreeId,
    /// When it was made.
    pub timestamp: Timestamp,
    /// The agent that spawned it; none for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_thread_id: Option<ThreadId>,
    /// Where it lives.
    pub agent_path: AgentPath,
    /// 1 + earlier agents at this path.
    #[serde(default = "one")]
    pub incarnation: u32,
    /// Its role.
    pub agent_role: String,
    /// Levels below the root.
    pub depth: usize,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_nickname: Option<String>,
    /// The call that spawned it; none for a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnedBy>,
    /// Its working folder.
    pub cwd: AbsPath,
    /// `provider/name`.
    pub model: String,
    /// Effort of reasoning, if one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How far its commands may reach.
    pub sandbox: Sandbox,
    /// When a person is asked.
    pub approval: Approval,
    /// The program that wrote the file.
    pub originator: String,
    /// Its version.
    pub cli_version: String,
    /// Version of the line formats, at the most [`FORMAT`].
    #[serde(default = "one")]
    pub format: u32,
}

fn one() -> u32 {
    1
}

/// The call that spawned an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnedBy {
    /// Its effect; the child's thread id derives from it.
    pub effect: EffectId,
    /// Ordinal of the call's line in the parent's file: orders siblings.
    pub ordinal: u64,
}

/// `response_item`.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRecord {
    /// The payload: the item as it is on the wire.
    pub item: Item,
    /// Of a call: minted when it was recorded. Of an output: the effect of its call.
    pub effect: Option<EffectId>,
    /// Mail that this very line delivers.
    pub mail: Vec<MailId>,
    /// The turn it belongs to.
    pub turn: Option<TurnId>,
    /// Of an item that a fork has copied, as older versions did: the thread it comes from.
    pub copied_from: Option<ThreadId>,
}

/// `turn_context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnContext {
    /// The first turn it holds for.
    pub turn_id: TurnId,
    /// Working folder.
    pub cwd: AbsPath,
    /// `provider/name`.
    pub model: String,
    /// Effort of reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How far commands may reach.
    pub sandbox_policy: Sandbox,
    /// When a person is asked.
    pub approval_policy: Approval,
    /// Names of the tools offered.
    pub tools: Vec<String>,
    /// UUID v5 of the serialised tools, so that a change of their text shows.
    pub tools_digest: String,
}

/// `mail_returned`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailReturned {
    /// The mail that goes back.
    pub ids: Vec<MailId>,
    /// Why.
    pub reason: String,
}

/// `turn_end`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The turn.
    pub turn_id: TurnId,
    /// How it ended.
    #[serde(flatten)]
    pub end: TaskEnd,
}

/// `task_done`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDone {
    /// The task.
    pub task: TaskId,
    /// Who gave it, and so gets the result.
    pub giver: Party,
    /// How it ended.
    #[serde(flatten)]
    pub end: TaskEnd,
    /// The cut-off task that it went on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<TaskId>,
    /// Whether it was interrupted only because its process was ended: a resume can go on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// Whether an edge is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeStatus {
    /// The agent belongs to the tree.
    Open,
    /// Somebody closed it; final.
    Closed,
}

/// `edge`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeRecord {
    /// Open or closed.
    pub status: EdgeStatus,
    /// Why.
    pub reason: String,
    /// Who did it: a path, or `user`.
    pub by: String,
}

/// `usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// Reserved before a request, settled after it.
    pub stage: UsageStage,
    /// The turn.
    pub turn_id: TurnId,
    /// Tokens: estimated when reserved, counted when settled.
    #[serde(flatten)]
    pub usage: Usage,
    /// Money, when the model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent's total of settled tokens after this line, estimates left out.
    pub total: Usage,
    /// Of a settled line: nobody counted, because the request broke off or its server gives no numbers, so an estimate
    /// stands for it. It counts against budgets like any other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Stage of a usage line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageStage {
    /// Before the request.
    Reserved,
    /// After it.
    Settled,
}

/// `limits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Turns that may work at once.
    pub max_running: usize,
    /// Agents that may be in memory at once.
    pub max_resident: usize,
    /// Levels below the root.
    pub max_depth: usize,
    /// Agents ever spawned in the tree.
    pub max_agents: usize,
    /// Roles the tree may use; empty for all.
    #[serde(default)]
    pub roles: Vec<String>,
    /// Budgets.
    #[serde(default)]
    pub budgets: Budgets,
}

/// Budgets of a tree and of each of its agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Tokens of the tree, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars of the tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// Tokens of any single agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_tokens: Option<u64>,
    /// US dollars of any single agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_usd: Option<f64>,
}

/// `event_msg`. Names are those of the reference where it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventRecord {
    /// A turn began.
    #[serde(rename = "task_started", alias = "turn_started")]
    TurnStarted {
        /// Its id.
        turn_id: TurnId,
    },
    /// A warning a person must see again.
    Warning {
        /// One sentence.
        message: String,
    },
    /// A type this version does not know.
    #[serde(other)]
    Unknown,
}
