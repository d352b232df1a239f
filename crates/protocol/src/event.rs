//! What a client sees of a tree: one stream, every event stamped with path and sequence.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use stdx::{AbsPath, Timestamp};

use crate::{
    AgentPath, Approval, Item, MailId, MailKind, Outcome, Sandbox, Status, ThreadId, TreeId, TurnId, Usage, WaitingOn,
    Waits,
};

/// One event of a tree; a line of `--json`.
///
/// It is read from JSON only, and not out of an untagged, tagged or flattened type: an item in it keeps its bytes.
/// An event of a type that this version does not know is an error; whoever reads a stream counts it and goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeEvent {
    /// From 1, without gaps, in this process.
    pub seq: u64,
    /// When it was made.
    pub time: Timestamp,
    /// The tree.
    pub tree: TreeId,
    /// The agent it is about.
    pub path: AgentPath,
    /// The same agent's thread.
    pub thread: ThreadId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// A result that the root never took into its context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadResult {
    /// Who sent it.
    pub from: String,
    /// How the task ended.
    pub outcome: Option<Outcome>,
    /// Its words.
    pub text: String,
}

/// What happened. Wire names are frozen. Read like [`TreeEvent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", remote = "Self")]
pub enum EventKind {
    /// A tree is driven by this process from now on.
    #[serde(rename = "tree.started")]
    TreeStarted {
        /// Working folder of the root.
        cwd: AbsPath,
        /// Model of the root.
        model: String,
        /// The permissions in force.
        sandbox: Sandbox,
        /// When a person is asked.
        approval: Approval,
        /// Whether the tree existed before.
        resumed: bool,
    },
    /// A new agent.
    #[serde(rename = "agent.spawned")]
    AgentSpawned {
        /// Its parent; none for the root.
        parent: Option<AgentPath>,
        /// Its role.
        role: String,
        /// Its name for people.
        nickname: Option<String>,
        /// Its first task, cut to one line.
        task: String,
    },
    /// An agent stands differently.
    #[serde(rename = "agent.status")]
    AgentStatus {
        /// How it stands.
        status: Status,
        /// What it waits for.
        #[serde(skip_serializing_if = "Option::is_none")]
        waiting_on: Option<WaitingOn>,
        /// Its place in the queue for a running slot, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        position: Option<usize>,
    },
    /// Nothing has come of an agent's work for as long as the configuration allows. Said once, and again only after
    /// something has come of it; nothing is ended by it.
    #[serde(rename = "agent.stalled")]
    AgentStalled {
        /// For how long, in milliseconds.
        stalled_ms: u64,
        /// How it stands.
        status: Status,
        /// What it waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<Waits>,
    },
    /// An idle agent was unloaded; it stays in the tree.
    #[serde(rename = "agent.evicted")]
    AgentEvicted,
    /// A sleeping agent was loaded.
    #[serde(rename = "agent.rehydrated")]
    AgentRehydrated {
        /// How many items its context has.
        items: usize,
    },
    /// An agent's edge was closed.
    #[serde(rename = "agent.closed")]
    AgentClosed {
        /// Why.
        reason: String,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// Its id.
        turn: TurnId,
    },
    /// An item is in the context: of the model, of a tool, or an input.
    #[serde(rename = "item.completed")]
    ItemCompleted {
        /// The turn, if there is one.
        turn: Option<TurnId>,
        /// The item as it is on the wire.
        #[serde(deserialize_with = "buffered")]
        item: Item,
    },
    /// Mail for this agent is on disk.
    #[serde(rename = "mail.accepted")]
    MailAccepted {
        /// Its id.
        mail: MailId,
        /// Who sent it.
        from: String,
        /// What it is for.
        kind: MailKind,
        /// Its words, cut to one line.
        preview: String,
    },
    /// Mail has entered this agent's context.
    #[serde(rename = "mail.delivered")]
    MailDelivered {
        /// Its id.
        mail: MailId,
        /// Who sent it.
        from: String,
        /// What it is for.
        kind: MailKind,
    },
    /// Mail that could not be delivered went back.
    #[serde(rename = "mail.returned")]
    MailReturned {
        /// Its id.
        mail: MailId,
        /// Why.
        reason: String,
    },
    /// A turn ended.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// Its id.
        turn: TurnId,
        /// How it ended.
        outcome: Outcome,
        /// The agent's last words.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Why it ended so.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Tokens of this turn.
        usage: Usage,
    },
    /// Something a person should know; work goes on.
    #[serde(rename = "warning")]
    Warning {
        /// One sentence.
        message: String,
    },
    /// Something failed.
    #[serde(rename = "error")]
    Error {
        /// One sentence.
        message: String,
        /// What to do.
        #[serde(default)]
        hints: Vec<String>,
    },
    /// The command is over.
    #[serde(rename = "tree.finished")]
    TreeFinished {
        /// How the task ended.
        outcome: Outcome,
        /// The answer.
        answer: Option<String>,
        /// Tokens of the whole tree.
        usage: Usage,
        /// Results the root never read.
        #[serde(default)]
        unread_results: Vec<UnreadResult>,
    },
}

/// What every event has, whatever its type.
#[derive(Deserialize)]
struct Stamp {
    seq: u64,
    time: Timestamp,
    tree: TreeId,
    path: AgentPath,
    thread: ThreadId,
}

/// The item of an event, byte for byte.
#[derive(Deserialize)]
struct Exact {
    item: Item,
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // Not this function but the derived one, which is an inherent one because of `remote`.
        Self::serialize(self, s)
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        read(Box::<RawValue>::deserialize(d)?.get()).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for TreeEvent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(d)?;
        let Stamp { seq, time, tree, path, thread } = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let kind = read(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { seq, time, tree, path, thread, kind })
    }
}

/// Reads by `type`. To find it serde buffers the fields, in which an item would lose its bytes: that one is read twice.
fn read(json: &str) -> Result<EventKind, serde_json::Error> {
    let mut kind = EventKind::deserialize(&mut serde_json::Deserializer::from_str(json))?;
    if let EventKind::ItemCompleted { item, .. } = &mut kind {
        *item = serde_json::from_str::<Exact>(json)?.item;
    }
    Ok(kind)
}

/// An item out of serde's buffer: the same item, but not the same bytes.
fn buffered<'de, D: Deserializer<'de>>(d: D) -> Result<Item, D::Error> {
    let value = serde_json::Value::deserialize(d)?;
    Item::parse(&value.to_string()).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
