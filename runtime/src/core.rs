//! What one agent is made of, and the one way in which anything enters its context.

use std::sync::Arc;

use model::{Head, Model, ModelRequest, RetryLimits, Transcript};
use protocol::{
    Address, Approval, EffectId, EventKind, Item, ItemKind, Mail, Role, Sandbox, TaskId, TreeId, TurnId, Usage,
};
use rollout::{Appended, ItemRecord, Record, State, TurnContext};
use stdx::AbsPath;
use tool_api::{Ledger, LedgerError, Tool};

use super::seam::{Store, Writer};
use super::{Host, Inbox, spend, task_or_note};

/// What an agent is made of. The same for all its turns.
pub struct Setup {
    /// Its tree.
    pub tree: TreeId,
    /// Who it is.
    pub agent: Address,
    /// Its role.
    pub role: String,
    /// Its working folder.
    pub cwd: AbsPath,
    /// How far its commands may reach.
    pub sandbox: Sandbox,
    /// When a person is asked.
    pub approval: Approval,
    /// The model that it talks to.
    pub model: Arc<dyn Model>,
    /// Effort of reasoning, if one is set.
    pub effort: Option<String>,
    /// The serialised tools, shared by all agents of this role and model.
    pub head: Arc<Head>,
    /// A digest of `head`, for `turn_context`.
    pub tools_digest: String,
    /// Its tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where its lines go.
    pub writer: Writer,
    /// Where they are read back after something broke down.
    pub store: Store,
    /// Where its mail comes from.
    pub inbox: Arc<Inbox>,
    /// Who keeps it.
    pub host: Arc<dyn Host>,
    /// When a failed request is tried again.
    pub retry: RetryLimits,
    /// What a new context begins with.
    pub preamble: Vec<Item>,
}

/// The engine is broken: the turn ends, the agent stays.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rollout did not take a line.
    #[error(transparent)]
    Rollout(#[from] rollout::Error),
    /// A tool said that the engine is broken, or panicked.
    #[error("{0}")]
    Tool(String),
}

/// A task that the running turn has taken in.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) mail: Mail,
}

impl Taken {
    pub(crate) fn id(&self) -> TaskId {
        self.mail.id
    }
}

/// The part of an agent that a turn changes.
pub(crate) struct Core {
    pub(crate) setup: Arc<Setup>,
    pub(crate) transcript: Transcript,
    pub(crate) tasks: Vec<Taken>,
    /// Settled tokens, over the agent's life.
    pub(crate) total: Usage,
    /// Settled tokens of this turn.
    pub(crate) spent: Usage,
    /// Tokens of the conversation as the server last counted them.
    pub(crate) window_used: u64,
    /// How many items of the context the server had seen or made when it last counted.
    pub(crate) counted: usize,
    /// The lowest level of its budget that the agent was told.
    pub(crate) told: Option<u8>,
    /// What the reply under way has said of its next item: it is in no context, and lost when the reply breaks off.
    pub(crate) half: String,
    /// How many items the context had when this turn began.
    pub(crate) turn_began: usize,
    context: Option<TurnContext>,
}

impl Core {
    /// An agent as its rollout has it.
    pub(crate) fn new(setup: Arc<Setup>, state: State) -> Self {
        Self {
            setup,
            counted: spend::counted(&state.transcript),
            told: spend::told(&state.transcript),
            transcript: state.transcript.into_iter().collect(),
            tasks: Vec::new(),
            total: state.usage,
            spent: Usage::default(),
            window_used: state.window_used,
            half: String::new(),
            turn_began: 0,
            context: state.turn_context,
        }
    }

    /// Puts items into the context: first the file, then memory, then whoever watches.
    pub(crate) fn record(&mut self, records: Vec<ItemRecord>) -> Result<Appended, EngineError> {
        let records: Vec<Record> = records.into_iter().map(Record::Item).collect();
        let appended = self.setup.writer.append(&records)?;
        for record in records {
            if let Record::Item(ItemRecord { item, turn, .. }) = record {
                self.transcript.push(item.clone());
                self.setup.host.emit(EventKind::ItemCompleted { turn, item });
            }
        }
        Ok(appended)
    }

    /// Records one item.
    pub(crate) fn record_item(
        &mut self,
        turn: TurnId,
        item: Item,
        effect: Option<EffectId>,
    ) -> Result<u64, EngineError> {
        let record = ItemRecord { item, effect, mail: Vec::new(), turn: Some(turn), copied_from: None };
        Ok(self.record(vec![record])?.last)
    }

    /// Takes mail into the context, each by the one line that also says that it is delivered. When that fails nothing
    /// was delivered, and the mail is pending again.
    pub(crate) fn deliver(&mut self, turn: TurnId, mail: Vec<Mail>) -> Result<(), EngineError> {
        if mail.is_empty() {
            return Ok(());
        }
        // Where the whole of a long one is in this home, wherever it was written.
        let here = |mail: &Mail| self.setup.store.whole(mail);
        let mail: Vec<Mail> = mail.into_iter().map(|mail| Mail { whole: here(&mail), ..mail }).collect();
        let records = mail
            .iter()
            .map(|mail| ItemRecord {
                item: task_or_note(mail),
                effect: None,
                mail: vec![mail.id],
                turn: Some(turn),
                copied_from: None,
            })
            .collect();
        if let Err(error) = self.record(records) {
            self.setup.inbox.lock().restore_undelivered(mail);
            return Err(error);
        }
        for mail in mail {
            self.setup.host.emit(EventKind::MailDelivered {
                mail: mail.id,
                from: mail.from.name().to_owned(),
                kind: mail.kind,
            });
            if mail.kind.is_task() {
                self.tasks.push(Taken { mail });
            }
        }
        Ok(())
    }

    /// Writes the settings of this turn when they differ from those of the last one, and, in a new window, the
    /// context that everything else stands on.
    pub(crate) fn open_window(&mut self, turn: TurnId) -> Result<(), EngineError> {
        let setup = Arc::clone(&self.setup);
        let context = TurnContext {
            turn_id: turn,
            cwd: setup.cwd.clone(),
            model: setup.model.id().to_owned(),
            effort: setup.effort.clone(),
            sandbox_policy: setup.sandbox,
            approval_policy: setup.approval,
            tools: setup.head.names.clone(),
            tools_digest: setup.tools_digest.clone(),
        };
        let same = self.context.as_ref().is_some_and(|old| TurnContext { turn_id: turn, ..old.clone() } == context);
        if !same {
            setup.writer.append(&[Record::TurnContext(Box::new(context.clone()))])?;
            self.context = Some(context);
        }
        if self.transcript.is_empty() {
            let records = setup
                .preamble
                .iter()
                .map(|item| ItemRecord {
                    item: item.clone(),
                    effect: None,
                    mail: Vec::new(),
                    turn: Some(turn),
                    copied_from: None,
                })
                .collect();
            self.record(records)?;
        }
        Ok(())
    }

    /// The next request, with an upper bound of output tokens if it has to have one.
    pub(crate) fn request(&self, max_output: Option<u64>) -> ModelRequest {
        let setup = &self.setup;
        ModelRequest {
            tree: setup.tree,
            agent: setup.agent.clone(),
            role: setup.role.clone(),
            head: Arc::clone(&setup.head),
            input: self.transcript.clone(),
            max_output,
            effort: setup.effort.clone(),
        }
    }

    /// The model's answer: its last words after the last input or output, if they were meant as the answer.
    pub(crate) fn last_words(&self) -> Option<String> {
        let said = |item: &&Item| {
            matches!(item.kind(), ItemKind::Message(Role::Assistant) | ItemKind::Reasoning | ItemKind::Other)
        };
        self.transcript.items().iter().rev().take_while(said).find_map(Item::final_text)
    }

    /// Whatever the model said last in this turn, half-said words included, for a task that did not end well.
    pub(crate) fn partial_words(&self) -> Option<String> {
        let from_input = self.turn_began.min(self.transcript.len());
        let items = self.transcript.items().get(from_input..).unwrap_or_default();
        let said = items.iter().rev().find_map(Item::final_text);
        let half = Some(self.half.trim_end()).filter(|half| !half.trim().is_empty());
        match (said, half) {
            (said, None) => said,
            (None, Some(half)) => Some(half.to_owned()),
            (Some(said), Some(half)) => Some(format!("{said}\n\n{half}")),
        }
    }
}

/// The process ledger of an agent: lines of its rollout.
pub(crate) struct RolloutLedger(pub(crate) Writer);

impl Ledger for RolloutLedger {
    fn record(&self, record: &protocol::ProcessRecord) -> Result<(), LedgerError> {
        self.0.append(&[Record::Process(record.clone())]).map(|_| ()).map_err(|error| LedgerError(error.to_string()))
    }
}
