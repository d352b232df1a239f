//! The body of a request.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Habits;
use crate::body::Body;
use crate::fault::Origin;
use crate::json::quote;
use crate::opaque::Opaque;
use crate::turns::{Asked, Escaped, Part, Turn};
use crate::written::{self, Hand, Pen};
use crate::{ModelRequest, Wire};

/// Between texts that have to share a message.
const BREAK: &str = "\\n\\n";

/// Builds the body. `messages` stands last, so that the bodies of a conversation share a prefix.
pub(super) fn build(origin: &Origin, habits: Habits, request: &ModelRequest, keep_from: usize) -> Body {
    let (mut out, ..) = written::write(&habits, &request.input, &origin.provider, keep_from, |system, more| {
        let mut out = head(origin, habits, request, system.len() + more);
        out += system;
        if !system.is_empty() {
            out.keep();
        }
        out
    });
    out += "]}";
    out
}

/// What stands before the messages.
fn head(origin: &Origin, habits: Habits, request: &ModelRequest, more: usize) -> Body {
    let head = &request.head;
    let mut out = Body { json: String::with_capacity(more + head.tools.len() + 1024), kept: 0 };
    out += "{\"model\":";
    out += &quote(&origin.model);
    out += ",\"stream\":true,\"stream_options\":{\"include_usage\":true}";
    if !head.names.is_empty() {
        out += ",\"tools\":";
        out += &head.tools;
        if !habits.gemini {
            out += ",\"parallel_tool_calls\":true";
        }
    }
    if let Some(effort) = &request.effort {
        out += ",\"reasoning_effort\":";
        out += &quote(effort);
    }
    if let Some(most) = request.max_output {
        out += if habits.openai { ",\"max_completion_tokens\":" } else { ",\"max_tokens\":" };
        out += &most.to_string();
    }
    if habits.openai {
        out += ",\"prompt_cache_key\":\"";
        out += &request.tree.to_string();
        out += "\"";
    }
    out += ",\"messages\":[";
    out
}

impl Hand for Habits {
    const WIRE: Wire = Wire::Chat;

    fn habit(&self) -> bool {
        self.deepseek
    }

    fn system(&self, out: &mut String, pen: &mut Pen, texts: &[Escaped<'_>]) {
        if !texts.is_empty() {
            out.push_str("{\"role\":\"system\",\"content\":\"");
            joined(out, texts);
            out.push_str("\"}");
            pen.role = "system";
        }
    }

    fn turns(&self, out: &mut Body, pen: &mut Pen, turns: &[Turn<'_>], noted: bool) {
        let mut open = |out: &mut Body, role: &'static str| {
            if !std::mem::replace(&mut pen.role, role).is_empty() {
                *out += ",";
            }
            *out += "{\"role\":\"";
            *out += role;
            *out += "\"";
        };
        // Reasoning goes back only while the model works with tools: from the first message that calls one to the next
        // word of somebody else. There its provider needs it to go on (DeepSeek, Gemini and others refuse a request
        // without it); elsewhere it is ignored at best, and older reasoning models refuse a request that has it.
        let working = &mut pen.working;
        let real = turns.len() - usize::from(noted);
        for (n, turn) in turns.iter().enumerate() {
            let kept = out.kept;
            match turn {
                Turn::User(texts) => {
                    *working = false;
                    open(out, "user");
                    content(out, texts);
                    *out += "}";
                }
                Turn::Assistant(parts) => {
                    *working |= parts.iter().any(|part| matches!(part, Part::Call(_)));
                    open(out, "assistant");
                    assistant(out, parts, *self, *working);
                    *out += "}";
                }
                Turn::Results(answers) => {
                    for answer in answers {
                        open(out, "tool");
                        *out += ",\"tool_call_id\":";
                        *out += &quote(&answer.id);
                        *out += ",\"content\":\"";
                        *out += &answer.text;
                        *out += "\"}";
                        out.keep();
                    }
                }
            }
            if n >= real {
                out.kept = kept;
            } else if n + 1 < real {
                // Nothing is added to a turn that another one follows.
                out.keep();
            }
        }
    }
}

/// Texts as one string: lists of parts are not known everywhere.
fn content(out: &mut Body, texts: &[Escaped<'_>]) {
    *out += ",\"content\":\"";
    joined(&mut out.json, texts);
    out.keep();
    *out += "\"";
}

fn joined(out: &mut String, texts: &[Escaped<'_>]) {
    for (n, text) in texts.iter().enumerate() {
        if n > 0 {
            out.push_str(BREAK);
        }
        out.push_str(text);
    }
}

fn assistant(out: &mut Body, parts: &[Part<'_>], habits: Habits, working: bool) {
    let texts: Vec<Escaped<'_>> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        })
        .collect();
    if texts.is_empty() {
        *out += ",\"content\":null";
    } else {
        content(out, &texts);
    }
    let kept = out.kept;
    let thoughts: Vec<&Opaque<'_>> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Opaque(thought) if working => Some(thought),
            _ => None,
        })
        .collect();
    reasoning(out, &thoughts, habits);
    let calls: Vec<&Asked<'_>> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
        .collect();
    out.kept = kept;
    if calls.is_empty() {
        return;
    }
    let extra: BTreeMap<&str, &RawValue> =
        thoughts.iter().flat_map(|thought| &thought.extra).map(|(id, extra)| (id.as_str(), &**extra)).collect();
    *out += ",\"tool_calls\":[";
    for (n, call) in calls.iter().enumerate() {
        if n > 0 {
            *out += ",";
        }
        *out += "{\"id\":";
        *out += &quote(&call.id);
        *out += ",\"type\":\"function\",\"function\":{\"name\":";
        *out += &quote(&call.name);
        *out += ",\"arguments\":";
        *out += &quote(&call.arguments);
        *out += "}";
        if let Some(extra) = extra.get(&*call.original) {
            *out += ",\"extra_content\":";
            *out += extra.get();
        }
        *out += "}";
    }
    *out += "]";
}

/// Reasoning, in the fields it came in.
fn reasoning(out: &mut Body, thoughts: &[&Opaque<'_>], habits: Habits) {
    let mut fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for thought in thoughts {
        if let (Some(field), Some(text)) = (&thought.field, thought.text.and_then(crate::json::inner)) {
            fields.entry(field).or_default().push(text);
        }
    }
    if habits.deepseek && fields.is_empty() {
        fields.entry("reasoning_content").or_default();
    }
    for (field, texts) in fields {
        *out += ",";
        *out += &quote(field);
        *out += ":\"";
        *out += &crate::json::joined(texts, BREAK);
        *out += "\"";
    }
    let details: Vec<&str> = thoughts
        .iter()
        .filter_map(|thought| thought.details?.get().strip_prefix('[')?.strip_suffix(']'))
        .filter(|inside| !inside.trim().is_empty())
        .collect();
    if !details.is_empty() {
        *out += ",\"reasoning_details\":[";
        *out += &crate::json::joined(details, ",");
        *out += "]";
    }
}
