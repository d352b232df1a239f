//! The trait, the request and the events.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use protocol::{Address, Item, TreeId, Usage};
use serde_json::Value;

use crate::written::Slot;

/// A stream that can be sent to another thread.
pub type BoxStream<T> = Pin<Box<dyn Stream<Item = T> + Send>>;

/// A model of some provider.
pub trait Model: Send + Sync {
    /// `provider/name`, as a user would write it.
    fn id(&self) -> &str;

    /// The context window in tokens, if it is known.
    fn window(&self) -> Option<u64> {
        None
    }

    /// How long it is tried while nobody answers at its address; none when there is no address.
    fn unreachable_for(&self) -> Option<Duration> {
        None
    }

    /// Serialises what is the same in every request of a role: made once per role and model, then shared.
    fn head(&self, tools: &[ToolWire]) -> Arc<Head>;

    /// Sends one request. The stream ends after [`ModelEvent::Done`] or after an error. Dropping it ends the request.
    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>>;
}

/// A tool as a wire sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolWire {
    /// Name shown to the model.
    pub name: String,
    /// Description shown to the model.
    pub description: String,
    /// What it takes.
    pub kind: ToolKind,
}

/// What a tool takes, as a wire sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind {
    /// A JSON object of this schema.
    Function(Value),
    /// Free text held to a grammar; a function of schema `fallback` on wires that have no free text.
    Freeform {
        /// `lark` or `regex`.
        syntax: String,
        /// The grammar.
        definition: String,
        /// The schema of the function offered instead.
        fallback: Value,
    },
}

/// The part of a request that does not change during a session, already serialised.
#[derive(Debug)]
pub struct Head {
    /// The tools as this model's wire wants them: a JSON array.
    pub tools: Box<str>,
    /// Names of the tools, for models that do not speak over a wire.
    pub names: Vec<String>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The tree; also the cache key, the same for all its agents.
    pub tree: TreeId,
    /// The agent that asks.
    pub agent: Address,
    /// Its role.
    pub role: String,
    /// What is the same in every request.
    pub head: Arc<Head>,
    /// The whole conversation, instructions first.
    pub input: Transcript,
    /// Upper bound of output tokens, if one is set.
    pub max_output: Option<u64>,
    /// Effort of reasoning (`low`, `medium`, `high`, …), if one is set.
    pub effort: Option<String>,
}

/// The items of a conversation, oldest first. Only ever grows at its end. A clone shares them, however many there are, and
/// the first item that is added while there is one parts the two; a model that has built its request lets go of it.
#[derive(Debug)]
pub struct Transcript {
    items: Arc<Vec<Item>>,
    /// What a model keeps of it between two requests.
    slot: Arc<Slot>,
    /// Whether this is the one that may be pushed to without leaving what the slot is about: of all that share a slot,
    /// one at the most, so that each of them is a beginning of that one.
    grows: bool,
}

impl Transcript {
    /// Adds an item at the end.
    pub fn push(&mut self, item: Item) {
        if !self.grows {
            self.slot = Arc::default();
            self.grows = true;
        }
        Arc::make_mut(&mut self.items).push(item);
    }

    /// The items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Lets go of what a model keeps of it to build the next request faster: that takes as much memory as the items do,
    /// and is no use while nobody asks.
    pub fn rest(&self) {
        self.slot.clear();
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Clone for Transcript {
    fn clone(&self) -> Self {
        Self { items: Arc::clone(&self.items), slot: Arc::clone(&self.slot), grows: false }
    }
}

impl Default for Transcript {
    fn default() -> Self {
        Self::from_iter([])
    }
}

impl FromIterator<Item> for Transcript {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Self {
        Self { items: Arc::new(items.into_iter().collect()), slot: Arc::default(), grows: true }
    }
}

/// What a model says, whatever its wire.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// The provider has taken the request up.
    Started,
    /// A piece of visible text; the whole comes as an item.
    TextDelta(String),
    /// A piece of visible reasoning; the whole comes as an item.
    ReasoningDelta(String),
    /// A piece of what is not shown before it is whole: a call, a signature.
    Piece,
    /// A finished item, as its bytes on the wire.
    Item(Item),
    /// The reply is complete.
    Done {
        /// What it cost.
        usage: Usage,
        /// The provider's own word on whether the model wants another request, when it has one.
        wants_more: Option<bool>,
    },
}

impl ModelEvent {
    /// Whether something of the reply has come with it, and not only a sign that the server lives.
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Started => false,
            Self::TextDelta(text) | Self::ReasoningDelta(text) => !text.is_empty(),
            Self::Piece | Self::Item(_) | Self::Done { .. } => true,
        }
    }
}

/// Why a request gave no complete reply.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of fault it is; decides whether it is tried again and the exit code.
    pub kind: ErrorKind,
    /// One sentence for a person: who failed at what, with the server's own words cut to a line.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// Kinds of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Nobody answers at the address (refused, unknown host, TLS): tried again for a stated time.
    Unreachable,
    /// The connection broke, the stream ended early, or nothing came for too long.
    Interrupted,
    /// 429 and the like.
    RateLimited {
        /// How long the provider asked us to wait.
        after: Option<Duration>,
    },
    /// 5xx, overloaded.
    Server {
        /// How long the provider asked us to wait.
        after: Option<Duration>,
    },
    /// The server answered, but not in its protocol, or over a byte cap.
    Nonsense,
    /// 401 or 403: the key is missing or refused.
    Refused,
    /// The conversation does not fit the model's window.
    WindowExceeded,
    /// The account has nothing left.
    Quota,
    /// The request was refused for another reason (400, 404, content policy).
    Rejected,
    /// A script or a tape has no reply for this request.
    Unscripted,
}
