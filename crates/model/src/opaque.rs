//! Reasoning of the other wires, wrapped up as a reasoning item.
//!
//! A conversation is kept in the form of the Responses wire. What a model of another wire thought, or signed, has no
//! form there, but must go back to its provider exactly as it came. So it travels in an item of our own making that
//! names its wire and its provider: it keeps its place in the rollout, goes back where it came from, and nobody else
//! is shown it. The bytes are part of the rollouts' format.

use std::borrow::Cow;
use std::collections::BTreeMap;

use protocol::{Item, ItemKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Wire;

/// What tells such an item from reasoning of the Responses wire.
const MARK: &str = "{\"type\":\"reasoning\",\"wire\":\"";

/// What is wrapped up.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Opaque<'a> {
    /// A whole content block (Messages).
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<&'a RawValue>,
    /// Whether the request that led to it ended with the note that says "go on": then that note belongs before it for
    /// ever, because a signature covers all that came before (Messages).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) after_note: bool,
    /// The field that the text came in, and goes back in (Chat).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<Cow<'a, str>>,
    /// The text (Chat).
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<&'a RawValue>,
    /// Structured pieces: an array (Chat).
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<&'a RawValue>,
    /// What the provider attached to the calls of the reply, by call id (Chat).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) extra: BTreeMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct Origin<'a> {
    #[serde(borrow)]
    wire: Cow<'a, str>,
    #[serde(borrow)]
    provider: Cow<'a, str>,
}

impl Opaque<'_> {
    /// The item that carries it.
    pub(crate) fn item(&self, wire: Wire, provider: &str) -> Option<Item> {
        let rest = serde_json::to_string(self).ok()?;
        let rest = rest.strip_prefix('{')?;
        let comma = if rest == "}" { "" } else { "," };
        let provider = crate::json::quote(provider);
        Item::parse(&format!("{MARK}{}\",\"provider\":{provider}{comma}{rest}", wire.as_str())).ok()
    }
}

/// Whether an item is one of these, of any wire.
pub(crate) fn is(item: &Item) -> bool {
    item.kind() == ItemKind::Reasoning && item.raw().starts_with(MARK)
}

/// What `item` carries, if it came from this provider over this wire.
pub(crate) fn read<'a>(item: &'a Item, wire: Wire, provider: &str) -> Option<Opaque<'a>> {
    if !is(item) {
        return None;
    }
    let origin: Origin<'_> = serde_json::from_str(item.raw()).ok()?;
    if origin.wire != wire.as_str() || origin.provider != provider {
        return None;
    }
    serde_json::from_str(item.raw()).ok()
}
