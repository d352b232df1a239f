//! What a brain answers: items, then how they are sent and how that goes wrong.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::Gate;
use crate::fail::must;

/// One reply. Built by chaining; what is not asked for behaves as a good server would.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub(crate) parts: Vec<Part>,
    pub(crate) usage: Option<[u64; 3]>,
    pub(crate) ids: Ids,
    pub(crate) finish: Finish,
    pub(crate) shape: Shape,
    pub(crate) plain: Option<Plain>,
    pub(crate) timing: Timing,
    pub(crate) fault: Option<Fault>,
}

/// One output item.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text { text: String, commentary: bool },
    Call { name: String, arguments: String },
    Custom { name: String, input: String },
    Reasoning(String),
    Raw(String),
}

/// Which call ids the server gives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Ids {
    #[default]
    Unique,
    Same,
    Missing,
}

/// The event that ends the reply.
#[derive(Clone, Debug, Default)]
pub(crate) enum Finish {
    #[default]
    Completed,
    Incomplete(String),
    Failed {
        code: String,
        message: String,
    },
    Nothing,
}

/// How the events look on the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) crlf: bool,
    pub(crate) comments: bool,
    pub(crate) nameless: bool,
    pub(crate) done_line: bool,
    pub(crate) unannounced: bool,
    pub(crate) interleaved: bool,
    pub(crate) whole: bool,
    pub(crate) uncounted: bool,
    pub(crate) object_arguments: bool,
    pub(crate) split: Option<usize>,
    pub(crate) huge: Option<usize>,
}

/// An answer that is not a stream of events.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
}

/// When things are sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing {
    pub(crate) gate: Option<Gate>,
    pub(crate) gate_after: Option<(usize, Gate)>,
    pub(crate) first: Duration,
    pub(crate) each: Duration,
    pub(crate) sent: Vec<Gate>,
}

/// What goes wrong while the events are sent; the number is how many are sent whole before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    StallBeforeHeaders,
    Stall(usize),
    Beat(usize),
    Close(usize),
    Reset(usize),
    CloseInside(usize),
    Garbage,
}

impl Reply {
    /// A reply without any item.
    pub fn new() -> Self {
        Self::default()
    }

    /// Text of the model, unmarked: it counts as the final answer.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.part(Part::Text { text: text.into(), commentary: false })
    }

    /// Text of the model that is marked as commentary.
    #[must_use]
    pub fn commentary(self, text: impl Into<String>) -> Self {
        self.part(Part::Text { text: text.into(), commentary: true })
    }

    /// A function call. Several in one reply are parallel calls.
    #[must_use]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// A function call whose arguments are this text, JSON or not.
    #[must_use]
    pub fn raw_call(self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.part(Part::Call { name: name.into(), arguments: arguments.into() })
    }

    /// A call with free text.
    #[must_use]
    pub fn custom(self, name: impl Into<String>, input: impl Into<String>) -> Self {
        self.part(Part::Custom { name: name.into(), input: input.into() })
    }

    /// Reasoning, as bytes that mean something to the server only.
    #[must_use]
    pub fn reasoning(self, opaque: impl Into<String>) -> Self {
        self.part(Part::Reasoning(opaque.into()))
    }

    /// An item of any kind, sent as it stands: a [`Value`], or JSON text whose blanks matter. On the Chat wire it is a
    /// `delta`, on the Messages wire a content block.
    #[must_use]
    #[track_caller]
    pub fn raw_item(self, json: impl ToString) -> Self {
        let json = json.to_string();
        must("the raw item of a reply is not JSON", RawValue::from_string(json.clone()));
        self.part(Part::Raw(json))
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// What the server says it counted, in tokens. Left out, a fourth of the bytes, nothing cached.
    #[must_use]
    pub fn usage(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.usage = Some([input, cached, output]);
        self
    }

    /// The server says nothing about tokens.
    #[must_use]
    pub fn no_usage(mut self) -> Self {
        self.shape.uncounted = true;
        self
    }

    /// Arguments of calls are the object itself instead of a string that holds it, as some servers of the Chat wire
    /// have it. Other wires are as ever.
    #[must_use]
    pub fn object_arguments(mut self) -> Self {
        self.shape.object_arguments = true;
        self
    }

    /// Every call has the id `call_0`, as some servers do.
    #[must_use]
    pub fn repeat_call_ids(mut self) -> Self {
        self.ids = Ids::Same;
        self
    }

    /// Calls have no id at all.
    #[must_use]
    pub fn missing_call_id(mut self) -> Self {
        self.ids = Ids::Missing;
        self
    }

    /// An HTTP status and the error object that goes with it, in place of a stream.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        self.status_with_headers(status, [])
    }

    /// As [`Reply::status`], with headers.
    #[must_use]
    pub fn status_with_headers<const N: usize>(mut self, status: u16, headers: [(&str, &str); N]) -> Self {
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        self.plain = Some(Plain { status, headers, body: self.plain.and_then(|plain| plain.body) });
        self
    }

    /// This body in place of a stream or an error object; `text/html` when it starts with `<`, else JSON. The status
    /// is 200 unless one is set.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        let plain = self.plain.get_or_insert(Plain { status: 200, headers: Vec::new(), body: None });
        plain.body = Some(body.into());
        self
    }

    /// The request is taken and nothing ever answered. Ends when the client leaves.
    #[must_use]
    pub fn stall_before_headers(self) -> Self {
        self.fault(Fault::StallBeforeHeaders)
    }

    /// Nothing more after `events` events, and the connection stays open. Ends when the client leaves.
    #[must_use]
    pub fn stall_after(self, events: usize) -> Self {
        self.fault(Fault::Stall(events))
    }

    /// Nothing more of the reply after `events` events, but signs of life, one every [`BEAT`](crate::BEAT): comments,
    /// and events with nothing in them. Ends when the client leaves.
    #[must_use]
    pub fn beat_after(self, events: usize) -> Self {
        self.fault(Fault::Beat(events))
    }

    /// The connection is closed in good order after `events` events, in the middle of the body.
    #[must_use]
    pub fn cut_after(self, events: usize) -> Self {
        self.fault(Fault::Close(events))
    }

    /// The connection is reset after `events` events.
    #[must_use]
    pub fn reset_after(self, events: usize) -> Self {
        self.fault(Fault::Reset(events))
    }

    /// The connection is closed in the middle of the event that follows `events` whole ones.
    #[must_use]
    pub fn cut_inside_event(self, events: usize) -> Self {
        self.fault(Fault::CloseInside(events))
    }

    /// A body that claims to be a stream of events and is neither events, nor JSON, nor UTF-8.
    #[must_use]
    pub fn garbage(self) -> Self {
        self.fault(Fault::Garbage)
    }

    fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The body ends in good order without the event that completes the reply.
    #[must_use]
    pub fn no_completed(self) -> Self {
        self.finish(Finish::Nothing)
    }

    /// The reply ends early for this reason (`max_output_tokens`, `content_filter`), in the words of the wire:
    /// `response.incomplete` on Responses.
    #[must_use]
    pub fn incomplete(self, reason: impl Into<String>) -> Self {
        self.finish(Finish::Incomplete(reason.into()))
    }

    /// The reply ends with an error inside the stream: `response.failed` on Responses.
    #[must_use]
    pub fn failed(self, code: impl Into<String>, message: impl Into<String>) -> Self {
        self.finish(Finish::Failed { code: code.into(), message: message.into() })
    }

    fn finish(mut self, finish: Finish) -> Self {
        self.finish = finish;
        self
    }

    /// The body comes in chunks of `bytes` bytes, through the middle of characters too. 0 counts as 1.
    #[must_use]
    pub fn split_bytes(mut self, bytes: usize) -> Self {
        self.shape.split = Some(bytes.max(1));
        self
    }

    /// Lines end with carriage return and line feed.
    #[must_use]
    pub fn crlf(mut self) -> Self {
        self.shape.crlf = true;
        self
    }

    /// A comment line stands before each event.
    #[must_use]
    pub fn comments(mut self) -> Self {
        self.shape.comments = true;
        self
    }

    /// Events have no `event:` line.
    #[must_use]
    pub fn nameless(mut self) -> Self {
        self.shape.nameless = true;
        self
    }

    /// Events of several items come in turns, so that a later item may be whole before an earlier one.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.shape.interleaved = true;
        self
    }

    /// The stream ends with `data: [DONE]`, as it always does on the Chat wire.
    #[must_use]
    pub fn done_line(mut self) -> Self {
        self.shape.done_line = true;
        self
    }

    /// Items are not announced one by one; they stand in `response.completed` only. Of the Responses wire alone.
    #[must_use]
    pub fn unannounced(mut self) -> Self {
        self.shape.unannounced = true;
        self
    }

    /// One JSON object in place of a stream, as a server gives it that does not stream.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.shape.whole = true;
        self
    }

    /// The second event is of an unknown type and has `bytes` bytes of padding.
    #[must_use]
    pub fn huge_event(mut self, bytes: usize) -> Self {
        self.shape.huge = Some(bytes);
        self
    }

    /// Nothing is sent, no header either, until `gate` is open.
    #[must_use]
    pub fn wait_for(mut self, gate: &Gate) -> Self {
        self.timing.gate = Some(gate.clone());
        self
    }

    /// After `events` events nothing more is sent until `gate` is open.
    #[must_use]
    pub fn wait_after(mut self, events: usize, gate: &Gate) -> Self {
        self.timing.gate_after = Some((events, gate.clone()));
        self
    }

    /// `gate` is opened when the reply has been sent, or broken off as its script says.
    #[must_use]
    pub fn then(mut self, gate: &Gate) -> Self {
        self.timing.sent.push(gate.clone());
        self
    }

    /// Waits this long before the headers.
    #[must_use]
    pub fn delay_first(mut self, delay: Duration) -> Self {
        self.timing.first = delay;
        self
    }

    /// Waits this long before each event.
    #[must_use]
    pub fn delay_each(mut self, delay: Duration) -> Self {
        self.timing.each = delay;
        self
    }

    /// Whether the reply calls a tool, so that the model will be asked again.
    pub fn has_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. } | Part::Custom { .. }))
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}
