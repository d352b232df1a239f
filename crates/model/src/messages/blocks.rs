//! The content blocks of one reply: opened, filled piece by piece, closed.

use std::borrow::Cow;

use protocol::{Item, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Wire;
use crate::fault::Origin;
use crate::json;
use crate::opaque::Opaque;

/// A block in the making. Texts are kept escaped: a piece may end within a character.
#[derive(Debug)]
pub(super) struct Block {
    /// Its place in the reply.
    pub(super) index: Option<u64>,
    /// As it was opened.
    opened: Box<RawValue>,
    kind: String,
    text: String,
    signature: String,
    arguments: String,
    /// Whether pieces came after the opening.
    pieces: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Opened<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A piece of a block.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Piece<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
}

/// What a piece, or an opened block, shows.
pub(super) enum Shown {
    Text(String),
    Reasoning(String),
    /// A piece of what is not shown.
    Hidden,
}

/// What a finished block is.
pub(super) enum Finished {
    /// An item of the canonical form.
    Item(Item),
    /// Something that only its provider understands; it belongs before the next item.
    Opaque(Box<RawValue>),
    /// Nothing.
    Empty,
}

impl Block {
    pub(super) fn open(index: Option<u64>, raw: &RawValue) -> Self {
        let opened: Opened<'_> = serde_json::from_str(raw.get()).unwrap_or_default();
        let start = |raw: Option<&RawValue>| raw.and_then(json::inner).unwrap_or_default().to_owned();
        Self {
            index,
            opened: raw.to_owned(),
            kind: opened.kind.unwrap_or_default().into_owned(),
            text: start(opened.text.or(opened.thinking)),
            signature: start(opened.signature),
            arguments: String::new(),
            pieces: false,
        }
    }

    /// A block whose opening never came, guessed from its first piece.
    pub(super) fn guess(index: Option<u64>, piece: &Piece<'_>) -> Option<Self> {
        let opened = match piece.kind.as_deref()? {
            "text_delta" => r#"{"type":"text","text":""}"#,
            "thinking_delta" => r#"{"type":"thinking","thinking":""}"#,
            _ => return None,
        };
        Some(Self::open(index, &RawValue::from_string(opened.to_owned()).ok()?))
    }

    /// What there is to show of a block that was opened with something in it.
    pub(super) fn shown(&self) -> Option<Shown> {
        (!self.text.is_empty()).then(|| self.show(&self.text)).flatten()
    }

    /// Takes a piece.
    pub(super) fn take(&mut self, piece: &Piece<'_>) -> Option<Shown> {
        self.pieces = true;
        let before = self.signature.len() + self.arguments.len();
        self.signature.push_str(piece.signature.and_then(json::inner).unwrap_or_default());
        if let Some(raw) = piece.partial_json {
            match json::inner(raw) {
                Some(text) => self.arguments.push_str(text),
                // The arguments themselves instead of a piece of their text.
                None => self.arguments.push_str(&json::escape(raw.get())),
            }
        }
        let text = piece.text.or(piece.thinking).and_then(json::inner).filter(|text| !text.is_empty());
        let Some(text) = text else {
            return (self.signature.len() + self.arguments.len() > before).then_some(Shown::Hidden);
        };
        self.text.push_str(text);
        self.show(text)
    }

    fn show(&self, escaped: &str) -> Option<Shown> {
        match self.kind.as_str() {
            "text" => Some(Shown::Text(json::decode(escaped))),
            "thinking" => Some(Shown::Reasoning(json::decode(escaped))),
            _ => None,
        }
    }

    /// Closes the block.
    pub(super) fn finish(self) -> Finished {
        match self.kind.as_str() {
            "text" if json::blank(&self.text) => Finished::Empty,
            "text" => Finished::Item(Item::message(Role::Assistant, &json::decode(&self.text))),
            "tool_use" => Finished::Item(self.call()),
            "thinking" => self.thought().map_or(Finished::Empty, Finished::Opaque),
            // Unknown ones come whole, or in pieces that we cannot put together.
            _ if !self.pieces => Finished::Opaque(self.opened),
            _ => Finished::Empty,
        }
    }

    fn call(&self) -> Item {
        let opened: Opened<'_> = serde_json::from_str(self.opened.get()).unwrap_or_default();
        let id = opened
            .id
            .filter(|id| !id.is_empty())
            .map_or_else(|| format!("call_{}", uuid::Uuid::now_v7().simple()), Cow::into_owned);
        let arguments = json::decode(&self.arguments);
        let arguments = if arguments.trim().is_empty() {
            opened.input.map(RawValue::get).filter(|input| input.starts_with('{')).unwrap_or("{}").to_owned()
        } else {
            arguments
        };
        Item::function_call(&id, &opened.name.unwrap_or_default(), &arguments)
    }

    /// The whole block as it has to go back: what it was opened with, its text and its signature filled in.
    fn thought(&self) -> Option<Box<RawValue>> {
        if !self.pieces {
            return Some(self.opened.clone());
        }
        let mut block: Map<String, Value> = serde_json::from_str(self.opened.get()).ok()?;
        block.insert("thinking".to_owned(), json::decode(&self.text).into());
        if !self.signature.is_empty() {
            block.insert("signature".to_owned(), json::decode(&self.signature).into());
        }
        serde_json::value::to_raw_value(&block).ok()
    }
}

/// The item that carries a block.
pub(super) fn carry(block: &RawValue, after_note: bool, origin: &Origin) -> Option<Item> {
    let opaque = Opaque { block: Some(block), after_note, ..Opaque::default() };
    opaque.item(Wire::Messages, &origin.provider)
}
