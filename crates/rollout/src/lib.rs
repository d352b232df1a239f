//! The truth about each agent: one append-only JSONL file, one writer, synced before anything is acknowledged.
//!
//! It writes and reads lines and folds them into a [`State`]; what follows from a state is decided above.

mod record;

pub use record::{
    Budgets, EdgeRecord, EdgeStatus, EventRecord, ItemRecord, Limits, MailReturned, Record, SessionMeta, SpawnedBy,
    TaskDone, TurnContext, TurnEnd, UsageRecord, UsageStage,
};
