//! The format of a script's file, and the checks that need no conversation.

use std::time::Duration;

use protocol::Usage;
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::{Arguments, Bounds, Piece, Rule, fill};
use crate::OpenError;
use crate::pattern::Pattern;

/// Placeholders that every rule has.
const ALWAYS: [&str; 5] = ["prompt", "task", "last", "agent", "role"];

/// A script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Rules; the first that matches gives the reply.
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

/// One rule. A matcher that is left out matches everything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    /// Path of the agent; `*` in a segment, `**` as the last one.
    agent: Option<String>,
    /// Its role; `*` for any part of it.
    role: Option<String>,
    /// Must occur in the text of the last item; `*` for anything in between.
    /// Messages and outputs have a text; calls and reasoning have none, so a script never matches its own calls.
    last: Option<String>,
    /// Each must occur in the text of some item.
    #[serde(default)]
    contains: Texts,
    /// None may occur in the text of any item.
    #[serde(default)]
    lacks: Texts,
    /// How many replies the agent has given.
    after: Option<Number>,
    /// How many of them since its newest task.
    step: Option<Number>,
    /// Each must occur in some item, the newest counts; `{name}` is remembered for `${name}` in the reply.
    #[serde(default)]
    capture: Texts,
    /// What the model says and calls, in order.
    reply: Vec<Spanned<RawPiece>>,
    /// Milliseconds before it says anything.
    #[serde(default)]
    delay_ms: u64,
    /// Tokens; estimated when left out.
    usage: Option<RawUsage>,
}

/// One or several texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

/// A number, exactly or between bounds.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number, or { min = N, max = N } with one or both of them")]
enum Number {
    Exactly(u64),
    Between(Between),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Between {
    min: Option<u64>,
    max: Option<u64>,
}

/// One item of a reply: exactly one of `text`, `commentary`, `call` and `custom`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPiece {
    /// Text meant as an answer.
    text: Option<String>,
    /// Text on the way.
    commentary: Option<String>,
    /// A tool to call with JSON `arguments`, or with `cmd` for short.
    call: Option<String>,
    /// A table, or a text that is sent as it stands.
    arguments: Option<Value>,
    /// Short for `arguments = { cmd = "…" }`.
    cmd: Option<String>,
    /// A tool to call with free text.
    custom: Option<String>,
    /// The free text.
    input: Option<String>,
}

/// Tokens of a reply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUsage {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    cached_input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    reasoning: u64,
}

impl Default for Texts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Texts {
    fn list(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// Reads and checks the rules.
pub(super) fn parse(label: &str, text: &str) -> Result<Vec<Rule>, OpenError> {
    let wrong =
        |at: usize, message: String| OpenError::Script { file: label.to_owned(), line: line(text, at), message };
    let file: File = toml::from_str(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message().replace('\n', "; ")))?;
    if file.rule.is_empty() {
        return Err(wrong(0, "a script needs at least one [[rule]]".to_owned()));
    }
    let mut rules = Vec::with_capacity(file.rule.len());
    for raw in file.rule {
        let at = raw.span().start;
        rules.push(rule(raw.into_inner()).map_err(|(piece, message)| wrong(piece.unwrap_or(at), message))?);
    }
    Ok(rules)
}

/// The line of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// Where it is wrong, when that is known more exactly than the rule, and what.
type Wrong = (Option<usize>, String);

fn rule(raw: RawRule) -> Result<Rule, Wrong> {
    let captures = raw.capture.list().iter().map(|text| Pattern::capturing(text)).collect::<Result<Vec<_>, _>>();
    let captures = captures.map_err(|message| (None, message))?;
    let mut known: Vec<&str> = ALWAYS.to_vec();
    for name in captures.iter().flat_map(Pattern::names) {
        if known.contains(&name) {
            return Err((None, format!("the name `{name}` is given twice in `capture`, or is one that always exists")));
        }
        known.push(name);
    }
    if raw.reply.is_empty() {
        return Err((None, "`reply` is empty; a model that says nothing is `reply = [{ text = \"\" }]`".to_owned()));
    }
    let mut reply = Vec::with_capacity(raw.reply.len());
    for entry in raw.reply {
        let at = entry.span().start;
        reply.push(piece(entry.into_inner(), &known).map_err(|message| (Some(at), message))?);
    }
    Ok(Rule {
        agent: raw.agent,
        role: raw.role,
        last: raw.last.as_deref().map(Pattern::plain),
        contains: raw.contains.list().iter().map(|text| Pattern::plain(text)).collect(),
        lacks: raw.lacks.list().iter().map(|text| Pattern::plain(text)).collect(),
        after: bounds("after", raw.after)?,
        step: bounds("step", raw.step)?,
        captures,
        reply,
        delay: Duration::from_millis(raw.delay_ms),
        usage: raw.usage.map(|usage| Usage {
            input: usage.input,
            cached_input: usage.cached_input,
            output: usage.output,
            reasoning: usage.reasoning,
        }),
    })
}

fn bounds(key: &str, number: Option<Number>) -> Result<Bounds, Wrong> {
    let bounds = match number {
        None => Bounds::ANY,
        Some(Number::Exactly(number)) => Bounds { min: number, max: number },
        Some(Number::Between(Between { min, max })) => Bounds { min: min.unwrap_or(0), max: max.unwrap_or(u64::MAX) },
    };
    if bounds.min > bounds.max {
        return Err((None, format!("`{key}`: min is larger than max, so this never matches")));
    }
    Ok(bounds)
}

fn piece(raw: RawPiece, known: &[&str]) -> Result<Piece, String> {
    let for_call = raw.arguments.is_some() || raw.cmd.is_some();
    let for_custom = raw.input.is_some();
    match (raw.text, raw.commentary, raw.call, raw.custom) {
        (Some(text), None, None, None) if !for_call && !for_custom => {
            fill::check(&text, known)?;
            Ok(Piece::Text(text))
        }
        (None, Some(text), None, None) if !for_call && !for_custom => {
            fill::check(&text, known)?;
            Ok(Piece::Commentary(text))
        }
        (None, None, Some(name), None) if !for_custom => {
            let arguments = arguments(raw.arguments, raw.cmd)?;
            match &arguments {
                Arguments::Object(value) => fill::check_value(value, known)?,
                Arguments::Raw(text) => fill::check(text, known)?,
            }
            Ok(Piece::Call { name, arguments })
        }
        (None, None, None, Some(name)) if !for_call => {
            let input = raw.input.unwrap_or_default();
            fill::check(&input, known)?;
            Ok(Piece::Custom { name, input })
        }
        _ => Err("an entry of `reply` has one of `text`, `commentary`, `call` (with `arguments` or `cmd`) and \
                  `custom` (with `input`)"
            .to_owned()),
    }
}

fn arguments(arguments: Option<Value>, cmd: Option<String>) -> Result<Arguments, String> {
    match (arguments, cmd) {
        (None, None) => Ok(Arguments::Object(json!({}))),
        (None, Some(cmd)) => Ok(Arguments::Object(json!({ "cmd": cmd }))),
        (Some(Value::String(text)), None) => Ok(Arguments::Raw(text)),
        (Some(value @ Value::Object(_)), None) => Ok(Arguments::Object(value)),
        (Some(_), None) => Err("`arguments` is a table, or a text that is sent as it stands".to_owned()),
        (Some(_), Some(_)) => Err("a call takes `arguments` or `cmd`, not both".to_owned()),
    }
}
