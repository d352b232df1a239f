//! The body of a request.

use super::limits;
use crate::body::Body;
use crate::fault::Origin;
use crate::json::quote;
use crate::turns::{Escaped, Part, Turn};
use crate::written::{self, Hand, Pen};
use crate::{ModelRequest, Wire};

/// Builds the body, and says whether it ends with the note that says "go on". `messages` stands last, so that the
/// bodies of a conversation share a prefix.
pub(super) fn build(origin: &Origin, anthropic: bool, request: &ModelRequest, keep_from: usize) -> (Body, bool) {
    let (mut out, pen, noted) = written::write(&Blocks, &request.input, &origin.provider, keep_from, |system, more| {
        head(origin, anthropic, request, system, more)
    });
    out += if pen.role.is_empty() { "]}" } else { "]}]}" };
    (out, noted)
}

/// What stands before the messages.
fn head(origin: &Origin, anthropic: bool, request: &ModelRequest, system: &str, more: usize) -> Body {
    let head = &request.head;
    let most = request.max_output.unwrap_or_else(|| limits::max_tokens(&origin.model));
    let mut out = Body { json: String::with_capacity(more + system.len() + head.tools.len() + 1024), kept: 0 };
    out += "{\"model\":";
    out += &quote(&origin.model);
    out += ",\"max_tokens\":";
    out += &most.to_string();
    out += ",\"stream\":true";
    if let Some(effort) = &request.effort {
        out += &limits::effort(&origin.model, effort, most);
    }
    if anthropic {
        // The server moves this mark along with the end of the conversation. A mark on a message would have to be
        // taken off it again when the conversation grows, and change what was sent before.
        out += ",\"cache_control\":{\"type\":\"ephemeral\"}";
    }
    if !head.names.is_empty() {
        out += ",\"tools\":";
        out += &head.tools;
    }
    if !system.is_empty() {
        out += ",\"system\":[";
        out += system;
        out += "]";
    }
    out += ",\"messages\":[";
    out
}

/// Writes content as blocks.
struct Blocks;

impl Hand for Blocks {
    const WIRE: Wire = Wire::Messages;

    fn habit(&self) -> bool {
        false
    }

    fn system(&self, out: &mut String, _: &mut Pen, texts: &[Escaped<'_>]) {
        for (n, text) in texts.iter().enumerate() {
            out.push_str(if n > 0 { ",{\"type\":\"text\",\"text\":\"" } else { "{\"type\":\"text\",\"text\":\"" });
            out.push_str(text);
            out.push('"');
            if n + 1 == texts.len() {
                // Tools and instructions are the same for every agent of a role: they are cached on their own.
                out.push_str(",\"cache_control\":{\"type\":\"ephemeral\"}");
            }
            out.push('}');
        }
    }

    /// The last message stays open: results and what is said after them share one.
    fn turns(&self, out: &mut Body, pen: &mut Pen, turns: &[Turn<'_>], noted: bool) {
        let real = turns.len() - usize::from(noted);
        for (n, turn) in turns.iter().enumerate() {
            let speaker = match turn {
                Turn::User(_) | Turn::Results(_) => "user",
                Turn::Assistant(_) => "assistant",
            };
            let before = std::mem::replace(&mut pen.role, speaker);
            let first = speaker != before;
            if first {
                *out += if before.is_empty() { "{\"role\":\"" } else { "]},{\"role\":\"" };
                *out += speaker;
                *out += "\",\"content\":[";
            }
            blocks(out, turn, first, n < real);
        }
    }
}

/// Writes a turn; `first` says whether it begins a message, `stays` whether it is there for good.
fn blocks(out: &mut Body, turn: &Turn<'_>, mut first: bool, stays: bool) {
    let mut block = |out: &mut Body, pieces: &[&str]| {
        if !std::mem::take(&mut first) {
            *out += ",";
        }
        for piece in pieces {
            *out += piece;
        }
        if stays {
            out.keep();
        }
    };
    match turn {
        Turn::User(texts) => {
            for text in texts {
                block(out, &["{\"type\":\"text\",\"text\":\"", text, "\"}"]);
            }
        }
        Turn::Results(answers) => {
            for answer in answers {
                let id = quote(&answer.id);
                block(
                    out,
                    &["{\"type\":\"tool_result\",\"tool_use_id\":", &id, ",\"content\":\"", &answer.text, "\"}"],
                );
            }
        }
        Turn::Assistant(parts) => {
            for part in parts {
                match part {
                    Part::Text(text) => block(out, &["{\"type\":\"text\",\"text\":\"", text, "\"}"]),
                    Part::Opaque(thought) => {
                        if let Some(raw) = thought.block {
                            block(out, &[raw.get()]);
                        }
                    }
                    Part::Call(call) => {
                        let (id, name) = (quote(&call.id), quote(&call.name));
                        block(
                            out,
                            &[
                                "{\"type\":\"tool_use\",\"id\":",
                                &id,
                                ",\"name\":",
                                &name,
                                ",\"input\":",
                                &call.arguments,
                                "}",
                            ],
                        );
                    }
                }
            }
        }
    }
}
