//! The wires that the server speaks, and what their replies share.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use serde_json::Value;

use crate::Request;
use crate::reply::{Ids, Part, Reply, Shape};

mod chat;
mod messages;
mod responses;

/// Most pieces that a text is streamed in; with more, a long text would only cost time.
const MAX_PIECES: usize = 32;

/// Fewest characters of a piece.
const MIN_PIECE: usize = 16;

/// A protocol of models. Which one a request speaks is told by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// OpenAI's newer one: `…/responses`. Items are canonical on it.
    Responses,
    /// What nearly every compatible server speaks: `…/chat/completions`.
    Chat,
    /// Anthropic's: `…/messages`.
    Messages,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// The name that a configuration has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// The end of its path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }

    /// The wire of a request to `path`.
    pub(crate) fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| path.ends_with(wire.path()))
    }
}

/// The events of `reply` on the wire of `request`, each as its bytes.
pub(crate) fn events(request: &Request, reply: &Reply) -> Vec<Vec<u8>> {
    let mut events = match request.wire() {
        Wire::Responses => responses::events(request, reply),
        Wire::Chat => chat::events(request, reply),
        Wire::Messages => messages::events(request, reply),
    };
    if reply.shape.interleaved {
        events = interleave(events);
    }
    events.iter().map(|event| event.frame(&reply.shape)).collect()
}

/// The events in turns of one an item. Those of one item keep their order, and those of none their place.
fn interleave(events: Vec<Event>) -> Vec<Event> {
    let mut out = Vec::new();
    let mut items: BTreeMap<u64, VecDeque<Event>> = BTreeMap::new();
    let flush = |items: &mut BTreeMap<u64, VecDeque<Event>>, out: &mut Vec<Event>| {
        while !items.is_empty() {
            out.extend(items.values_mut().filter_map(VecDeque::pop_front));
            items.retain(|_, left| !left.is_empty());
        }
    };
    for event in events {
        if let Some(index) = event.item() {
            items.entry(index).or_default().push_back(event);
        } else {
            flush(&mut items, &mut out);
            out.push(event);
        }
    }
    flush(&mut items, &mut out);
    out
}

/// What a server of the wire of `request` sends to show that it lives: a comment, and an event with nothing in it.
pub(crate) fn beat(request: &Request) -> &'static [u8] {
    match request.wire() {
        Wire::Responses => {
            b": beat\n\nevent: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"response\":{}}\n\n"
        }
        Wire::Chat => b": beat\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n",
        Wire::Messages => b": beat\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
    }
}

/// The whole reply as the one object that a server gives which does not stream.
pub(crate) fn whole(request: &Request, reply: &Reply) -> String {
    match request.wire() {
        Wire::Responses => responses::whole(request, reply),
        Wire::Chat => chat::whole(request, reply),
        Wire::Messages => messages::whole(request, reply),
    }
}

/// One event: its name, if it has one, and its JSON on one line.
struct Event {
    name: &'static str,
    data: String,
}

impl Event {
    /// What ends a stream on wires that say so.
    fn done() -> Self {
        Self { name: "", data: "[DONE]".to_owned() }
    }

    /// The number of the item that it is about, if it is about one.
    fn item(&self) -> Option<u64> {
        let data: Value = serde_json::from_str(&self.data).ok()?;
        let chat = data.pointer("/choices/0/delta/tool_calls/0/index");
        data.get("output_index").or_else(|| data.get("index")).or(chat)?.as_u64()
    }

    fn frame(&self, shape: &Shape) -> Vec<u8> {
        let end = if shape.crlf { "\r\n" } else { "\n" };
        let mut text = String::new();
        if shape.comments {
            let _ = write!(text, ": still here{end}{end}");
        }
        if !shape.nameless && !self.name.is_empty() {
            let _ = write!(text, "event: {}{end}", self.name);
        }
        let _ = write!(text, "data: {}{end}{end}", self.data);
        text.into_bytes()
    }
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } | Self::Reasoning(text) | Self::Raw(text) => text.len(),
            Self::Call { name, arguments: text } | Self::Custom { name, input: text } => name.len() + text.len(),
        }
    }
}

/// Tokens that the server says it counted: input, how much of it was cached, output. `None` when it says nothing.
fn counts(request: &Request, reply: &Reply) -> Option<[u64; 3]> {
    if reply.shape.uncounted {
        return None;
    }
    let bytes: usize = reply.parts.iter().map(Part::bytes).sum();
    let estimate = [(request.raw().len() / 4) as u64, 0, (bytes / 4 + 1) as u64];
    Some(reply.usage.unwrap_or(estimate))
}

/// The id of the call at `index`. It follows from the conversation alone.
fn call_id(request: &Request, reply: &Reply, index: usize) -> Option<String> {
    match reply.ids {
        Ids::Unique => Some(format!("call_{}_{index}", request.items().len())),
        Ids::Same => Some("call_0".to_owned()),
        Ids::Missing => None,
    }
}

/// The call that a part is on wires that know functions only: its name, and its arguments. Free text is the one
/// argument of the function that stands in.
fn function(part: &Part) -> Option<(&str, String)> {
    match part {
        Part::Call { name, arguments } => Some((name, arguments.clone())),
        Part::Custom { name, input } => Some((name, serde_json::json!({ "input": input }).to_string())),
        Part::Text { .. } | Part::Reasoning(_) | Part::Raw(_) => None,
    }
}

/// `text` in at most [`MAX_PIECES`] pieces.
fn pieces(text: &str) -> Vec<&str> {
    let size = text.len().div_ceil(MAX_PIECES).max(MIN_PIECE);
    let mut rest = text;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(size));
        out.push(piece);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests;
