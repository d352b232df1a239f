//! A conversation as wires of turns want it: who speaks alternates, every call is answered right after the turn that
//! made it, and what the program says later than at the start is marked, because these wires have no place for it.
//!
//! A pure rule over the items, oldest first, that never looks back: a conversation that grew at its end gives the
//! same turns with more at their end.

use std::borrow::Cow;
use std::collections::VecDeque;

use protocol::{Item, ItemKind, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::opaque::{self, Opaque};
use crate::{Wire, json};

mod ids;
mod settle;

pub(crate) use ids::Ids;
pub(crate) use settle::{Place, Speaker};

/// What is said to a model whose own words are the last: most servers of these wires refuse to be asked without a
/// word from somebody else, or take the last turn for the beginning of the reply. It stands at the end of a request
/// only, after a reply that broke off.
const GO_ON: &str = "<system_note>\\nGo on.\\n</system_note>";

/// What an unanswered call is answered with. The runtime answers every call; this keeps a damaged rollout usable.
const NO_OUTPUT: &str = "[no output was recorded]";

/// A JSON string without its quotes, still escaped.
pub(crate) type Escaped<'a> = Cow<'a, str>;

/// A conversation.
#[derive(Debug, Default)]
pub(crate) struct Turns<'a> {
    /// What the program says at the start.
    pub(crate) system: Vec<Escaped<'a>>,
    /// The rest.
    pub(crate) turns: Vec<Turn<'a>>,
    /// Whether the last turn is the note that says "go on", which is not there any more once the conversation grows.
    pub(crate) noted: bool,
}

/// One turn. No two of a kind follow each other, except for the model's after its calls were answered.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// What others say.
    User(Vec<Escaped<'a>>),
    /// What the model says and calls.
    Assistant(Vec<Part<'a>>),
    /// What its calls gave.
    Results(Vec<Answer<'a>>),
}

/// A part of the model's turn.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Text.
    Text(Escaped<'a>),
    /// Reasoning of this very wire and provider. Something else always follows it.
    Opaque(Opaque<'a>),
    /// A call.
    Call(Asked<'a>),
}

/// A call.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// Its id on the wire: the only call of the conversation that has it.
    pub(crate) id: String,
    /// Its id in the item.
    pub(crate) original: Cow<'a, str>,
    /// The tool.
    pub(crate) name: String,
    /// A JSON object.
    pub(crate) arguments: Cow<'a, str>,
}

/// What a call gave.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    /// The call's id on the wire.
    pub(crate) id: String,
    /// The text.
    pub(crate) text: Escaped<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    call_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
}

/// Reads a conversation for one wire of one provider.
pub(crate) fn read<'a>(items: &'a [Item], wire: Wire, provider: &str) -> Turns<'a> {
    let mut reader = Reader::new(wire, Known::default());
    for item in items {
        reader.take(item, provider);
    }
    reader.finish().0
}

/// What has to be known of the items before those that are read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The ids given to calls.
    ids: Ids,
    /// Who spoke last.
    last: Option<Speaker>,
}

impl Known {
    /// Whether nothing was said before.
    pub(crate) fn is_nothing(&self) -> bool {
        self.last.is_none()
    }
}

/// Reads a conversation on, from a place where it had settled, and says up to where it has settled now. Then that is
/// what is known, and else it is what it was.
pub(crate) fn read_on<'a>(
    items: &'a [Item],
    wire: Wire,
    provider: &str,
    known: &mut Known,
) -> (Turns<'a>, Option<Place>) {
    let mut reader = Reader::new(wire, std::mem::take(known));
    let mut settling = settle::Settling::default();
    for (n, item) in items.iter().enumerate() {
        reader.take(item, provider);
        let place = Place { items: n + 1, turns: reader.out.turns.len(), ids: reader.known.ids.changes() };
        settling.look(place, &reader.out.turns, reader.is_open(), reader.last());
    }
    // What closes the conversation for now is not part of it.
    let settled = settling.settled();
    let (turns, mut now) = reader.finish();
    if let Some(place) = settled {
        now.ids.settle(place.ids);
        now.last = place.turns.checked_sub(1).and_then(|at| Some(turns.turns.get(at)?.speaker())).or(now.last);
    }
    now.ids.give_back();
    *known = now;
    (turns, settled)
}

struct Reader<'a> {
    wire: Wire,
    known: Known,
    out: Turns<'a>,
    /// Calls without an answer: their ids in the items and on the wire.
    open: VecDeque<(Cow<'a, str>, String)>,
    /// What was said while calls were open: their answers must follow them directly.
    held: Vec<Escaped<'a>>,
    /// Reasoning whose reply has not said anything yet. It is dropped if it never does.
    thoughts: Vec<Opaque<'a>>,
}

impl<'a> Reader<'a> {
    fn new(wire: Wire, known: Known) -> Self {
        Self { wire, known, out: Turns::default(), open: VecDeque::new(), held: Vec::new(), thoughts: Vec::new() }
    }

    /// Who spoke last.
    fn last(&self) -> Option<Speaker> {
        self.out.turns.last().map(Turn::speaker).or(self.known.last)
    }

    /// Whether something waits for what comes next.
    fn is_open(&self) -> bool {
        !(self.open.is_empty() && self.held.is_empty() && self.thoughts.is_empty())
    }

    fn take(&mut self, item: &'a Item, provider: &str) {
        let body = || serde_json::from_str::<Body<'a>>(item.raw()).unwrap_or_default();
        match item.kind() {
            ItemKind::Message(role) => self.said(role, text(body().content)),
            ItemKind::FunctionCall => {
                let body = body();
                let arguments = body.arguments.map_or(Cow::Borrowed(""), plain);
                self.called(body, object(arguments));
            }
            ItemKind::CustomCall => {
                let body = body();
                let input = body.input.and_then(json::inner).unwrap_or_default();
                // The schema that stands in for free text has one required string of this name.
                self.called(body, Cow::Owned(format!("{{\"input\":\"{input}\"}}")));
            }
            ItemKind::Output => {
                let body = body();
                self.answered(body.call_id.unwrap_or_default(), text(body.output));
            }
            ItemKind::Reasoning => self.thoughts.extend(opaque::read(item, self.wire, provider)),
            ItemKind::Other => {}
        }
    }

    fn said(&mut self, role: Role, text: Escaped<'a>) {
        if json::blank(&text) {
            return;
        }
        match role {
            Role::Assistant => self.spoke(Part::Text(text)),
            Role::User => self.told(text),
            Role::Developer if self.last().is_none() => self.out.system.push(text),
            Role::Developer => self.told(Cow::Owned(format!("<system_note>\\n{text}\\n</system_note>"))),
        }
    }

    /// Somebody else speaks.
    fn told(&mut self, text: Escaped<'a>) {
        self.thoughts.clear();
        if !self.open.is_empty() {
            self.held.push(text);
        } else if let Some(Turn::User(texts)) = self.out.turns.last_mut() {
            texts.push(text);
        } else {
            self.out.turns.push(Turn::User(vec![text]));
        }
    }

    /// The model speaks.
    fn spoke(&mut self, part: Part<'a>) {
        let after_note = self.thoughts.iter().any(|thought| thought.after_note);
        if after_note || !self.held.is_empty() || self.last() == Some(Speaker::Results) {
            self.close();
        }
        let needed = match self.last() {
            // Nobody may begin a conversation but somebody else.
            None => true,
            Some(Speaker::Assistant) => after_note,
            Some(_) => false,
        };
        if needed {
            self.out.turns.push(Turn::User(vec![Cow::Borrowed(GO_ON)]));
        }
        if !matches!(self.out.turns.last(), Some(Turn::Assistant(_))) {
            self.out.turns.push(Turn::Assistant(Vec::new()));
        }
        if let Some(Turn::Assistant(parts)) = self.out.turns.last_mut() {
            parts.extend(self.thoughts.drain(..).map(Part::Opaque));
            parts.push(part);
        }
    }

    fn called(&mut self, body: Body<'a>, arguments: Cow<'a, str>) {
        let name = match (body.namespace, body.name.unwrap_or_default()) {
            (Some(space), name) if !space.is_empty() => format!("{space}.{name}"),
            (_, name) => name.into_owned(),
        };
        let original = body.call_id.unwrap_or_default();
        let id = self.id(&original);
        self.spoke(Part::Call(Asked { id: id.clone(), original: original.clone(), name, arguments }));
        self.open.push_back((original, id));
    }

    fn answered(&mut self, call_id: Cow<'a, str>, text: Escaped<'a>) {
        self.thoughts.clear();
        let Some(at) = self.open.iter().position(|(original, _)| *original == call_id) else {
            // Its call is gone, so it has no place of its own any more; what it says is kept.
            return self.told(Cow::Owned(format!("[output of an earlier call]\\n{text}")));
        };
        if let Some((_, id)) = self.open.remove(at) {
            self.answer(Answer { id, text });
        }
        if self.open.is_empty() {
            self.release();
        }
    }

    fn answer(&mut self, answer: Answer<'a>) {
        match self.out.turns.last_mut() {
            Some(Turn::Results(answers)) => answers.push(answer),
            _ => self.out.turns.push(Turn::Results(vec![answer])),
        }
    }

    /// Ends the wait for answers.
    fn close(&mut self) {
        while let Some((_, id)) = self.open.pop_front() {
            self.answer(Answer { id, text: Cow::Borrowed(NO_OUTPUT) });
        }
        self.release();
    }

    fn release(&mut self) {
        for text in std::mem::take(&mut self.held) {
            self.told(text);
        }
    }

    fn finish(mut self) -> (Turns<'a>, Known) {
        self.close();
        if !matches!(self.last(), Some(Speaker::User | Speaker::Results)) {
            self.out.turns.push(Turn::User(vec![Cow::Borrowed(GO_ON)]));
            self.out.noted = true;
        }
        (self.out, self.known)
    }

    /// An id that no other call has, made of the item's. Servers repeat ids, and other wires allow more characters.
    fn id(&mut self, original: &str) -> String {
        let base = match self.wire {
            Wire::Messages => original.replace(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'), "_"),
            Wire::Responses | Wire::Chat => original.to_owned(),
        };
        self.known.ids.take(if base.is_empty() { "call" } else { &base })
    }
}

/// The text of a message or an output: a string, or the texts of its parts.
fn text(raw: Option<&RawValue>) -> Escaped<'_> {
    let Some(raw) = raw else { return Cow::Borrowed("") };
    if let Some(text) = json::inner(raw) {
        return Cow::Borrowed(text);
    }
    let pieces: Vec<Piece<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
    json::joined(pieces.iter().filter_map(|piece| json::inner(piece.text.or(piece.refusal)?)), "\\n")
}

/// Arguments as JSON: mostly a string that holds it, from some servers the JSON itself.
fn plain(raw: &RawValue) -> Cow<'_, str> {
    match json::inner(raw) {
        Some(escaped) if !escaped.contains('\\') => Cow::Borrowed(escaped),
        Some(escaped) => Cow::Owned(json::decode(escaped)),
        None => Cow::Borrowed(raw.get()),
    }
}

/// Arguments as an object. These wires, or the templates behind them, take nothing else; what a model left broken is
/// kept as text, so that it sees its own fault.
fn object(arguments: Cow<'_, str>) -> Cow<'_, str> {
    if json::is_object(&arguments) {
        arguments
    } else if arguments.trim().is_empty() {
        Cow::Borrowed("{}")
    } else {
        Cow::Owned(format!("{{\"input\":{}}}", json::quote(&arguments)))
    }
}

#[cfg(test)]
mod tests;
