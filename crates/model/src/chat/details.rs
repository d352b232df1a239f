//! Structured reasoning that comes in pieces, put together again.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Fields whose pieces follow one another; all others are said once, or repeated.
const PIECES: [&str; 3] = ["text", "summary", "data"];

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Details {
    parts: Vec<Map<String, Value>>,
}

impl Details {
    /// Takes the details of one event: a list of parts, or of pieces of parts.
    pub(super) fn take(&mut self, raw: &RawValue) {
        let pieces: Vec<Map<String, Value>> = serde_json::from_str(raw.get()).unwrap_or_default();
        for piece in pieces {
            match self.parts.iter_mut().rfind(|part| same(part, &piece)) {
                Some(part) => add(part, piece),
                None => self.parts.push(piece),
            }
        }
    }

    /// The whole, unless there is nothing.
    pub(super) fn whole(&self) -> Option<Box<RawValue>> {
        if self.parts.is_empty() {
            return None;
        }
        serde_json::value::to_raw_value(&self.parts).ok()
    }
}

/// Whether a piece belongs to a part: same kind and same place. Without a place each is a part of its own.
fn same(part: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let is = |name: &str| part.get(name).is_some() && part.get(name) == piece.get(name);
    let other = |name: &str| {
        let (a, b) = (part.get(name), piece.get(name));
        matches!((a, b), (Some(Value::String(a)), Some(Value::String(b))) if a != b)
    };
    is("index") && is("type") && !other("id")
}

fn add(part: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (part.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if PIECES.contains(&name.as_str()) => text.push_str(&more),
            (_, Value::Null) => {}
            (_, value) => drop(part.insert(name, value)),
        }
    }
}
