//! The body of a request.

use super::limits;
use crate::body::Body;
use crate::fault::Origin;
use crate::json::quote;
use crate::turns::{self, Part, Turn};
use crate::{ModelRequest, Wire};

/// Builds the body, and says whether it ends with the note that says "go on". `messages` stands last, so that the
/// bodies of a conversation share a prefix.
pub(super) fn build(origin: &Origin, anthropic: bool, request: &ModelRequest) -> (Body, bool) {
    let head = &request.head;
    let items = request.input.items();
    let read = turns::read(items, Wire::Messages, &origin.provider);
    let most = request.max_output.unwrap_or_else(|| limits::max_tokens(&origin.model));
    let size: usize = items.iter().map(|item| item.raw().len()).sum();
    let mut out = Body { json: String::with_capacity(size + head.tools.len() + 1024), kept: 0 };
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
    if !read.system.is_empty() {
        out += ",\"system\":[";
        for (n, text) in read.system.iter().enumerate() {
            out += if n > 0 { ",{\"type\":\"text\",\"text\":\"" } else { "{\"type\":\"text\",\"text\":\"" };
            out += text;
            out += "\"";
            if n + 1 == read.system.len() {
                // Tools and instructions are the same for every agent of a role: they are cached on their own.
                out += ",\"cache_control\":{\"type\":\"ephemeral\"}";
            }
            out += "}";
        }
        out += "]";
    }
    out += ",\"messages\":[";
    messages(&mut out, &read.turns, read.noted);
    out += "]}";
    (out, read.noted)
}

fn messages(out: &mut Body, turns: &[Turn<'_>], noted: bool) {
    let real = turns.len() - usize::from(noted);
    // The role of the message that is being written: results and what is said after them share one.
    let mut role = "";
    for (n, turn) in turns.iter().enumerate() {
        let speaker = match turn {
            Turn::User(_) | Turn::Results(_) => "user",
            Turn::Assistant(_) => "assistant",
        };
        let mut first = speaker != role;
        if first {
            *out += if role.is_empty() { "{\"role\":\"" } else { "]},{\"role\":\"" };
            *out += speaker;
            *out += "\",\"content\":[";
            role = speaker;
        }
        let mut block = |out: &mut Body, pieces: &[&str]| {
            if !std::mem::take(&mut first) {
                *out += ",";
            }
            for piece in pieces {
                *out += piece;
            }
            if n < real {
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
    if !role.is_empty() {
        *out += "]}";
    }
}
