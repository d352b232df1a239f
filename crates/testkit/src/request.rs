//! A request as the server got it, and the questions that brains and tests ask about it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use protocol::{Call, Item, ItemKind, Role};
use serde_json::Value;

use crate::Wire;

mod read;

/// One request. Cheap to clone.
#[derive(Clone)]
pub struct Request(Arc<Inner>);

struct Inner {
    wire: Wire,
    sequence: usize,
    connection: usize,
    arrived: Instant,
    headers: Vec<(String, String)>,
    raw: Vec<u8>,
    json: Value,
    input: Vec<Item>,
    tools: Box<str>,
    ended: OnceLock<(Ended, Instant)>,
}

/// How the answer to a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of the reply was sent.
    Sent,
    /// The reply was broken off, as its script says.
    Cut,
    /// The client closed the connection before that.
    ClientLeft,
}

impl Request {
    /// # Errors
    /// When the body is not a request of this wire; it goes on record anyway.
    pub(crate) fn new(
        wire: Wire,
        sequence: usize,
        connection: usize,
        headers: Vec<(String, String)>,
        raw: Vec<u8>,
    ) -> (Self, Result<(), String>) {
        let json = serde_json::from_slice(&raw).unwrap_or(Value::Null);
        let (input, tools, read) = match read::body(wire, &raw) {
            Ok((input, tools)) => (input, tools.into(), Ok(())),
            Err(error) => (Vec::new(), "".into(), Err(error)),
        };
        let arrived = Instant::now();
        let ended = OnceLock::new();
        (Self(Arc::new(Inner { wire, sequence, connection, arrived, headers, raw, json, input, tools, ended })), read)
    }

    /// A request that never crossed a wire, to try a brain or a check on: this conversation, these tools.
    pub fn example(thread: &str, input: &[Item], tools: &[&str]) -> Self {
        let tools: Vec<Value> =
            tools.iter().map(|name| serde_json::json!({"type": "function", "name": name})).collect();
        let input: Vec<&str> = input.iter().map(Item::raw).collect();
        let body = format!(r#"{{"stream":true,"tools":{},"input":[{}]}}"#, Value::from(tools), input.join(","));
        Self::over(Wire::Responses, thread, &body)
    }

    /// A request that never crossed a wire, with this body.
    pub(crate) fn over(wire: Wire, thread: &str, body: &str) -> Self {
        Self::new(wire, 1, 1, vec![("thread-id".into(), thread.into())], body.as_bytes().to_vec()).0
    }

    /// The wire it came over.
    pub fn wire(&self) -> Wire {
        self.0.wire
    }

    /// Its place among all requests of the server, from 1.
    pub fn sequence(&self) -> usize {
        self.0.sequence
    }

    /// The connection it came over, from 1: the same number twice proves that a connection was used again.
    pub fn connection(&self) -> usize {
        self.0.connection
    }

    /// When all of it had arrived.
    pub fn arrived(&self) -> Instant {
        self.0.arrived
    }

    /// How the answer ended, and when; `None` while it is under way. A client may have all of it a moment earlier: wait
    /// for it with [`Server::wait_until`](crate::Server::wait_until).
    pub fn ended(&self) -> Option<(Ended, Instant)> {
        self.0.ended.get().copied()
    }

    pub(crate) fn set_ended(&self, how: Ended) {
        let _ = self.0.ended.set((how, Instant::now()));
    }

    /// The body's bytes.
    pub fn raw(&self) -> &[u8] {
        &self.0.raw
    }

    /// The body; null when it was not JSON.
    pub fn json(&self) -> &Value {
        &self.0.json
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All headers, names in lower case, in the order sent.
    pub fn headers(&self) -> &[(String, String)] {
        &self.0.headers
    }

    /// The agent that asks; empty when it did not say.
    pub fn thread(&self) -> &str {
        self.header("thread-id").unwrap_or_default()
    }

    /// The tree it belongs to; empty when it did not say.
    pub fn session(&self) -> &str {
        self.header("session-id").unwrap_or_default()
    }

    /// The conversation. Over the Chat and Messages wires these are items made of its messages: what the body says, in
    /// its order. Texts that share a message of the Chat wire are told apart where fragments stand between markers.
    pub fn items(&self) -> &[Item] {
        &self.0.input
    }

    /// The newest item.
    pub fn last(&self) -> Option<&Item> {
        self.0.input.last()
    }

    /// The bytes of the `tools` key; empty when there is none.
    pub fn raw_tools(&self) -> &str {
        &self.0.tools
    }

    /// Names of the tools offered, in their order.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.0.json["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str())).collect()
    }

    /// How many replies of the model are in the conversation. Items of one reply stand together.
    pub fn replies(&self) -> usize {
        let mut count = 0;
        let mut inside = false;
        for item in self.items() {
            let model = !matches!(item.kind(), ItemKind::Output | ItemKind::Message(Role::User | Role::Developer));
            count += usize::from(model && !inside);
            inside = model;
        }
        count
    }

    /// What the agent was first asked to do: the first user message that is not a wrapped context fragment. Empty
    /// when there is none.
    pub fn task(&self) -> String {
        self.user_texts().into_iter().find(|text| !is_context(text)).unwrap_or_default()
    }

    /// The newest thing that somebody told the agent: the last user message that is not a wrapped context fragment.
    pub fn told(&self) -> String {
        self.user_texts().into_iter().rfind(|text| !is_context(text)).unwrap_or_default()
    }

    fn user_texts(&self) -> Vec<String> {
        self.items().iter().filter(|item| item.kind() == ItemKind::Message(Role::User)).map(Item::text).collect()
    }

    /// Whether somebody other than the model said `text`: in a message or in the output of a call.
    pub fn heard(&self, text: &str) -> bool {
        let others =
            |item: &&Item| matches!(item.kind(), ItemKind::Output | ItemKind::Message(Role::User | Role::Developer));
        self.items().iter().filter(others).any(|item| item.text().contains(text))
    }

    /// Whether `text` stands anywhere in the conversation: in a message, an output, or the arguments of a call.
    pub fn contains(&self, text: &str) -> bool {
        self.items().iter().any(|item| {
            item.text().contains(text)
                || item.call().is_some_and(|call| call.arguments.contains(text) || call.name.contains(text))
        })
    }

    /// Texts of the outputs, oldest first.
    pub fn outputs(&self) -> Vec<String> {
        self.items().iter().filter(|item| item.kind() == ItemKind::Output).map(Item::text).collect()
    }

    /// The calls, oldest first, each with its output if it has one. An output belongs to the oldest open call of its id.
    pub fn calls(&self) -> Vec<(Call, Option<String>)> {
        let mut calls: Vec<(Call, Option<String>)> = Vec::new();
        for item in self.items() {
            if let Some(call) = item.call() {
                calls.push((call, None));
            } else if let Some(id) = item.answered_call_id()
                && let Some((_, output)) =
                    calls.iter_mut().find(|(call, output)| output.is_none() && call.call_id == id)
            {
                *output = Some(item.text());
            }
        }
        calls
    }
}

/// Fragments stand between markers in angle brackets; project instructions may stand under their headline.
fn is_context(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with('<') && text.ends_with('>')) || text.starts_with("# AGENTS.md")
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "request {} of thread `{}`, {} items:", self.sequence(), self.thread(), self.items().len())?;
        for item in self.items() {
            let end = item.raw().floor_char_boundary(200);
            let more = if end < item.raw().len() { "…" } else { "" };
            writeln!(f, "  {}{more}", &item.raw()[..end])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
