//! One line: its envelope, and its payload by type. Type names are frozen.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;

use protocol::{EffectId, Item, MailId, ThreadId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stdx::Timestamp;

use crate::{Error, EventRecord, ItemRecord, Record};

/// A line as it was read.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it was written. Order is never taken from it.
    pub timestamp: Timestamp,
    /// Its place in the file, from 1; 0 when a foreign writer gave none.
    pub ordinal: u64,
    /// `[k, n]`: the k-th of n lines that were one write.
    pub part: Option<[u32; 2]>,
    /// What it says.
    pub record: Record,
}

/// Why a line could not be decoded, and what of its envelope could.
#[derive(Clone, Debug)]
pub(crate) struct Bad {
    pub(crate) ordinal: Option<u64>,
    pub(crate) part: Option<[u32; 2]>,
    pub(crate) why: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    timestamp: Timestamp,
    #[serde(default)]
    ordinal: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    part: Option<[u32; 2]>,
    #[serde(default, borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Default, Serialize, Deserialize)]
struct Metadata<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<EffectId>,
    #[serde(default, skip_serializing_if = "<[MailId]>::is_empty")]
    mail: Cow<'a, [MailId]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copied_from: Option<ThreadId>,
}

#[derive(Serialize, Deserialize)]
struct Sent {
    obligation: MailId,
    mail: MailId,
}

impl Record {
    /// The `type` of its line.
    pub fn kind(&self) -> &str {
        match self {
            Self::SessionMeta(_) => "session_meta",
            Self::Item(_) => "response_item",
            Self::Forked(_) => "forked",
            Self::Compacted(_) => "compacted",
            Self::Checkpoint(_) => "checkpoint",
            Self::WorldState(_) => "world_state",
            Self::TurnContext(_) => "turn_context",
            Self::Mail(_) => "mail",
            Self::MailReturned(_) => "mail_returned",
            Self::TurnEnd(_) => "turn_end",
            Self::TaskDone(_) => "task_done",
            Self::Sent { .. } => "sent",
            Self::Edge(_) => "edge",
            Self::Process(_) => "process",
            Self::Usage(_) => "usage",
            Self::Limits(_) => "limits",
            Self::Event(_) => "event_msg",
            Self::Other { kind, .. } => kind,
        }
    }

    /// Whether this version does not know what the line means.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Other { .. } | Self::Event(EventRecord::Unknown))
    }
}

/// Appends one line to `out`, its line break included. An item's bytes are copied, never written anew.
///
/// # Errors
/// When the record has no JSON form; `out` may then hold part of the line.
pub fn encode(
    out: &mut Vec<u8>,
    timestamp: Timestamp,
    ordinal: u64,
    part: Option<[u32; 2]>,
    record: &Record,
) -> Result<(), Error> {
    write_line(out, timestamp, ordinal, part, record)
        .map_err(|source| Error::Encode { kind: record.kind().to_owned(), source: Arc::new(source) })
}

fn write_line(
    out: &mut Vec<u8>,
    timestamp: Timestamp,
    ordinal: u64,
    part: Option<[u32; 2]>,
    record: &Record,
) -> Result<(), serde_json::Error> {
    let io = serde_json::Error::io;
    write!(out, r#"{{"timestamp":"{timestamp}","ordinal":{ordinal},"type":"#).map_err(io)?;
    serde_json::to_writer(&mut *out, record.kind())?;
    if let Some([index, count]) = part {
        write!(out, r#","part":[{index},{count}]"#).map_err(io)?;
    }
    if let Record::Item(item) = record {
        let metadata = Metadata {
            effect: item.effect,
            mail: Cow::Borrowed(&item.mail),
            turn: item.turn,
            copied_from: item.copied_from,
        };
        if !metadata.is_empty() {
            out.extend_from_slice(br#","metadata":"#);
            serde_json::to_writer(&mut *out, &metadata)?;
        }
    }
    out.extend_from_slice(br#","payload":"#);
    match record {
        Record::SessionMeta(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Item(payload) => out.extend_from_slice(payload.item.raw().as_bytes()),
        Record::Forked(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Compacted(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Checkpoint(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::WorldState(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::TurnContext(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Mail(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::MailReturned(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::TurnEnd(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::TaskDone(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Sent { obligation, mail } => {
            serde_json::to_writer(&mut *out, &Sent { obligation: *obligation, mail: *mail })?;
        }
        Record::Edge(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Process(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Usage(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Limits(payload) => serde_json::to_writer(&mut *out, payload)?,
        Record::Event(payload) => serde_json::to_writer(&mut *out, payload)?,
        // A raw line break can only stand between tokens, where a blank means the same.
        Record::Other { payload, .. } => {
            out.extend(payload.get().bytes().map(|b| if b == b'\n' || b == b'\r' { b' ' } else { b }));
        }
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

impl Metadata<'_> {
    fn is_empty(&self) -> bool {
        self.effect.is_none() && self.mail.is_empty() && self.turn.is_none() && self.copied_from.is_none()
    }
}

/// Reads one line, with or without its line break.
///
/// # Errors
/// One sentence that says why these bytes are not a line.
pub fn decode(bytes: &[u8]) -> Result<Line, String> {
    decode_line(bytes).map_err(|bad| bad.why)
}

pub(crate) fn decode_line(bytes: &[u8]) -> Result<Line, Bad> {
    let envelope: Envelope<'_> =
        serde_json::from_slice(bytes).map_err(|error| Bad { ordinal: None, part: None, why: error.to_string() })?;
    let part = envelope.part.filter(|[index, count]| (1..=*count).contains(index));
    let bad = |error: String| Bad {
        ordinal: (envelope.ordinal > 0).then_some(envelope.ordinal),
        part,
        why: format!("in a `{}` line: {error}", stdx::one_line(&envelope.kind, 40)),
    };
    let record = payload(&envelope).map_err(bad)?;
    Ok(Line { timestamp: envelope.timestamp, ordinal: envelope.ordinal, part, record })
}

/// The ordinal of one line, without looking into its payload.
pub(crate) fn decode_envelope(bytes: &[u8]) -> Option<u64> {
    serde_json::from_slice(bytes).ok().map(|envelope: Envelope<'_>| envelope.ordinal)
}

fn payload(envelope: &Envelope<'_>) -> Result<Record, String> {
    fn of<'a, T: Deserialize<'a>>(envelope: &Envelope<'a>) -> Result<T, String> {
        serde_json::from_str(envelope.payload.get()).map_err(|error| error.to_string())
    }
    Ok(match &*envelope.kind {
        "session_meta" => Record::SessionMeta(of(envelope)?),
        "response_item" => {
            let metadata: Metadata<'_> = match envelope.metadata {
                Some(raw) => serde_json::from_str(raw.get()).map_err(|error| error.to_string())?,
                None => Metadata::default(),
            };
            Record::Item(ItemRecord {
                item: Item::from_raw(envelope.payload.to_owned()).map_err(|error| error.to_string())?,
                effect: metadata.effect,
                mail: metadata.mail.into_owned(),
                turn: metadata.turn,
                copied_from: metadata.copied_from,
            })
        }
        "forked" => Record::Forked(of(envelope)?),
        "compacted" => Record::Compacted(of(envelope)?),
        "checkpoint" => Record::Checkpoint(of(envelope)?),
        "world_state" => Record::WorldState(of(envelope)?),
        "turn_context" => Record::TurnContext(of(envelope)?),
        "mail" => Record::Mail(of(envelope)?),
        "mail_returned" => Record::MailReturned(of(envelope)?),
        "turn_end" => Record::TurnEnd(of(envelope)?),
        "task_done" => Record::TaskDone(of(envelope)?),
        "sent" => {
            let sent: Sent = of(envelope)?;
            Record::Sent { obligation: sent.obligation, mail: sent.mail }
        }
        "edge" => Record::Edge(of(envelope)?),
        "process" => Record::Process(of(envelope)?),
        "usage" => Record::Usage(of(envelope)?),
        "limits" => Record::Limits(of(envelope)?),
        "event_msg" => Record::Event(of(envelope)?),
        kind => Record::Other { kind: kind.to_owned(), payload: envelope.payload.to_owned() },
    })
}

#[cfg(test)]
mod tests;
