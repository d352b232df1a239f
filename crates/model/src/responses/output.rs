//! The items of one reply: each is given out once, as its bytes, and a call always has an id.

use std::borrow::Cow;
use std::fmt;

use protocol::{Item, ItemKind, NotAnItem};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// What was given out so far.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    seen: Vec<Seen>,
}

/// What tells one item of a reply from another. Servers leave any of it out, or repeat it.
#[derive(Debug)]
struct Seen {
    index: Option<u64>,
    id: Option<String>,
    raw: String,
}

#[derive(Deserialize)]
struct Ids<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    call_id: Option<Cow<'a, str>>,
}

impl Outputs {
    /// Takes an item that the stream announced; `None` when it was given out before.
    pub(super) fn announced(&mut self, raw: &RawValue, index: Option<u64>) -> Result<Option<Item>, NotAnItem> {
        let seen = Seen { index, id: id(raw), raw: raw.get().to_owned() };
        if self.seen.iter().any(|other| other.is(&seen)) {
            return Ok(None);
        }
        let item = item(raw)?;
        self.seen.push(seen);
        Ok(Some(item))
    }

    /// The items of a finished reply that were never announced, in their order.
    pub(super) fn missing(&mut self, output: &[&RawValue]) -> Result<Vec<Item>, NotAnItem> {
        // As many announced as there are: then none is missing, whatever their ids look like. A call that is given
        // out twice runs twice, so doubt falls on the side of silence.
        if self.seen.len() >= output.len() {
            return Ok(Vec::new());
        }
        let mut missing = Vec::new();
        for (at, raw) in output.iter().enumerate() {
            let index = u64::try_from(at).ok();
            let id = id(raw);
            let known = self.seen.iter().any(|seen| {
                seen.raw == raw.get() || (id.is_some() && seen.id == id) || (index.is_some() && seen.index == index)
            });
            if !known {
                missing.push(item(raw)?);
            }
        }
        Ok(missing)
    }
}

impl Seen {
    /// Whether both are the same item. Different places in the reply are different items, even if all else is the
    /// same: two equal calls are two calls.
    fn is(&self, other: &Self) -> bool {
        match (self.index, other.index) {
            (Some(a), Some(b)) if a != b => false,
            (Some(_), Some(_)) => self.raw == other.raw || (self.id.is_some() && self.id == other.id),
            _ => self.raw == other.raw,
        }
    }
}

fn id(raw: &RawValue) -> Option<String> {
    let ids: Ids<'_> = serde_json::from_str(raw.get()).ok()?;
    ids.id.filter(|id| !id.is_empty()).map(Cow::into_owned)
}

/// The item of these bytes. Only a call without an id is changed: it gets one in front.
fn item(raw: &RawValue) -> Result<Item, NotAnItem> {
    let item = Item::from_raw(raw.to_owned())?;
    if !matches!(item.kind(), ItemKind::FunctionCall | ItemKind::CustomCall) {
        return Ok(item);
    }
    let ids: Ids<'_> = serde_json::from_str(raw.get()).unwrap_or(Ids { id: None, call_id: None });
    if ids.call_id.is_some_and(|id| !id.is_empty()) {
        return Ok(item);
    }
    with_call_id(raw, &format!("call_{}", uuid::Uuid::now_v7().simple()))
}

fn with_call_id(raw: &RawValue, call_id: &str) -> Result<Item, NotAnItem> {
    let fields: Fields<'_> = serde_json::from_str(raw.get())?;
    let mut out = format!("{{\"call_id\":\"{call_id}\"");
    for (name, value) in fields.0.iter().filter(|(name, _)| name != "call_id") {
        out.push(',');
        out += &serde_json::Value::from(name.as_str()).to_string();
        out.push(':');
        out += value.get();
    }
    out.push('}');
    Item::parse(&out)
}

/// The fields of an object in their order, values untouched.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Walk;

        impl<'de> Visitor<'de> for Walk {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Walk)
    }
}
