//! Tool calls that come in pieces, from servers that differ in how they cut and number them.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::json;

/// A piece of a call. Any part of it may be missing, and any but the arguments may be repeated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    /// What a provider wants back with the call.
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Piece<'a> {
    /// A piece in the form from before there were several calls in a reply.
    pub(super) fn old(function: Function<'a>) -> Self {
        Self { function: Some(function), ..Self::default() }
    }
}

/// The calls of one reply.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    /// Escaped, because a piece may end within a character.
    arguments: String,
    extra: Option<Box<RawValue>>,
}

/// A finished call.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) extra: Option<Box<RawValue>>,
}

impl Calls {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Takes a piece. Says whether there was anything in it.
    pub(super) fn take(&mut self, piece: &Piece<'_>) -> bool {
        let index = piece.index.and_then(|raw| raw.get().parse().ok());
        let id = json::text(piece.id).unwrap_or_default();
        let name = piece.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default();
        let arguments = match piece.function.as_ref().and_then(|function| function.arguments) {
            None => Cow::Borrowed(""),
            Some(raw) => match json::inner(raw) {
                Some(text) => Cow::Borrowed(text),
                None if raw.get() == "null" => Cow::Borrowed(""),
                // The arguments themselves instead of a string that holds them.
                None => Cow::Owned(json::escape(raw.get())),
            },
        };
        let slot = self.slot(index, &id, name, &arguments);
        if slot.id.is_empty() {
            slot.id = id;
        }
        if slot.name.is_empty() {
            name.clone_into(&mut slot.name);
        }
        if let Some(extra) = piece.extra_content.filter(|raw| raw.get() != "null") {
            slot.extra = Some(extra.to_owned());
        }
        if slot.arguments == "{}" && !json::blank(&arguments) {
            // A placeholder that stood for "none yet".
            slot.arguments.clear();
        }
        slot.arguments.push_str(&arguments);
        !arguments.is_empty()
    }

    /// The call that a piece belongs to. The number says so where servers give one, but some give every call the
    /// same: a name that comes when the call before has all its arguments begins a new one.
    fn slot(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> &mut Slot {
        let found = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index),
            None if !id.is_empty() => {
                self.slots.iter().rposition(|slot| slot.id == id).or(self.slots.len().checked_sub(1))
            }
            None => self.slots.len().checked_sub(1),
        };
        let found = found.filter(|at| !self.slots[*at].is_over(index, id, name, arguments));
        let at = found.unwrap_or_else(|| {
            self.slots.push(Slot { index, ..Slot::default() });
            self.slots.len() - 1
        });
        &mut self.slots[at]
    }

    /// The calls in the order in which they began. Each has an id of its own.
    pub(super) fn finish(self) -> Vec<Made> {
        let mut made = Vec::new();
        let mut ids = HashSet::new();
        for slot in self.slots {
            let mut extra = slot.extra;
            for arguments in split(&json::decode(&slot.arguments)) {
                if slot.name.is_empty() && arguments.trim().is_empty() {
                    continue;
                }
                let mut id = slot.id.clone();
                while id.is_empty() || !ids.insert(id.clone()) {
                    id = format!("call_{}", uuid::Uuid::now_v7().simple());
                }
                let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
                made.push(Made { id, name: slot.name.clone(), arguments, extra: extra.take() });
            }
        }
        made
    }
}

impl Slot {
    /// Whether a piece with these begins another call.
    fn is_over(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let other_name = !self.name.is_empty() && name != self.name;
        let other_id = !id.is_empty() && !self.id.is_empty() && id != self.id;
        if json::blank(&self.arguments) {
            // Some servers make up an id for every piece; but two names are two calls.
            return other_id && (other_name || index.is_none());
        }
        if objects(&json::decode(&self.arguments)).is_none() {
            return false;
        }
        let more = !json::blank(arguments) && self.arguments != "{}" && (id.is_empty() || id != self.id);
        other_id || other_name || more
    }
}

/// Several objects one after the other were several calls that the server ran together.
fn split(arguments: &str) -> Vec<String> {
    match objects(arguments) {
        Some(objects) if objects.len() > 1 => objects.into_iter().map(str::to_owned).collect(),
        _ => vec![arguments.to_owned()],
    }
}

/// The objects that a text consists of; `None` when it has something else in it, or nothing.
fn objects(text: &str) -> Option<Vec<&str>> {
    let mut objects = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut start = 0;
    while let Some(next) = stream.next() {
        let end = stream.byte_offset();
        let object = text.get(start..end)?.trim();
        if next.is_err() || !object.starts_with('{') {
            return None;
        }
        objects.push(object);
        start = end;
    }
    Some(objects).filter(|objects| !objects.is_empty())
}
