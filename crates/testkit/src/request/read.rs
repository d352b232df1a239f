//! Bodies of every wire as canonical items. It takes what a strict server of the wire takes, and nothing else.

use protocol::{Call, Item, Role};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Wire;

#[derive(Deserialize)]
struct Responses<'a> {
    input: Vec<Item>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Chat<'a> {
    messages: Vec<Said>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

/// A message of the Chat wire.
#[derive(Deserialize)]
struct Said {
    role: String,
    content: Option<String>,
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Asked>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Messages<'a> {
    max_tokens: u64,
    #[serde(default)]
    system: Vec<Text>,
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
    },
    #[serde(other)]
    Opaque,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

/// The items of a body, and the bytes of its tools.
///
/// # Errors
/// Says why a server would refuse it.
pub(super) fn body(wire: Wire, raw: &[u8]) -> Result<(Vec<Item>, String), String> {
    let (items, tools) = match wire {
        Wire::Responses => {
            let body: Responses<'_> = parse(raw)?;
            (body.input, body.tools)
        }
        Wire::Chat => {
            let body: Chat<'_> = parse(raw)?;
            (chat(body.messages)?, body.tools)
        }
        Wire::Messages => {
            let body: Messages<'_> = parse(raw)?;
            if body.max_tokens == 0 {
                return Err("max_tokens is nought".to_owned());
            }
            (messages(body.system, &body.messages)?, body.tools)
        }
    };
    Ok((items, tools.map_or("", RawValue::get).to_owned()))
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(raw).map_err(|error| error.to_string())
}

fn chat(messages: Vec<Said>) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for (at, said) in messages.into_iter().enumerate() {
        let refused = |why: &str| Err(format!("message {at} ({}): {why}", said.role));
        let text = said.content.as_deref();
        if said.role != "tool" && !open.is_empty() {
            return refused("a call before it is not answered");
        }
        match (said.role.as_str(), text) {
            ("system", Some(text)) if at == 0 => items.push(Item::message(Role::Developer, text)),
            ("system", _) => return refused("a system message stands at the beginning only"),
            ("user", Some(text)) => items.extend(texts(text).iter().map(|text| Item::message(Role::User, text))),
            ("assistant", _) => {
                if let Some(reasoning) = said.reasoning_content.as_deref().filter(|text| !text.is_empty()) {
                    items.push(opaque("text", &Value::from(reasoning).to_string())?);
                }
                items.extend(text.map(|text| Item::message(Role::Assistant, text)));
                if text.is_none() && said.tool_calls.is_empty() {
                    return refused("it says nothing");
                }
                for asked in said.tool_calls {
                    object(&asked.function.arguments)?;
                    items.push(Item::function_call(&asked.id, &asked.function.name, &asked.function.arguments));
                    open.push(asked.id);
                }
            }
            ("tool", Some(text)) => {
                let id = said.tool_call_id.clone().unwrap_or_default();
                let Some(call) = open.iter().position(|open| *open == id) else {
                    return refused("it answers no call of the message before it");
                };
                open.remove(call);
                items.push(output(&id, text));
            }
            _ => return refused("unknown role, or no content"),
        }
    }
    if open.is_empty() { Ok(items) } else { Err(format!("calls are not answered: {open:?}")) }
}

fn messages(system: Vec<Text>, messages: &[Message<'_>]) -> Result<Vec<Item>, String> {
    let mut items: Vec<Item> = system.iter().map(|text| Item::message(Role::Developer, &text.text)).collect();
    let mut open: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let refused = |why: &str| Err(format!("message {at} ({}): {why}", message.role));
        if message.role != ["user", "assistant"][at % 2] {
            return refused("users and assistants alternate, and a user begins");
        }
        let user = message.role == "user";
        for raw in &message.content {
            let block: Block = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
            match block {
                Block::ToolResult { tool_use_id, content } if user => {
                    let Some(call) = open.iter().position(|open| *open == tool_use_id) else {
                        return refused("it answers no call of the message before it");
                    };
                    open.remove(call);
                    items.push(output(&tool_use_id, &content));
                }
                Block::Text { .. } if user && !open.is_empty() => return refused("results stand before texts"),
                Block::Text { text } if text.trim().is_empty() => return refused("a text is empty"),
                Block::Text { text } => {
                    items.push(Item::message(if user { Role::User } else { Role::Assistant }, &text));
                }
                Block::ToolUse { id, name } if !user => {
                    let Input { input } = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
                    object(input.get())?;
                    items.push(Item::function_call(&id, &name, input.get()));
                    open.push(id);
                }
                Block::Opaque if !user => items.push(opaque("block", raw.get())?),
                _ => return refused("a block that has no place there"),
            }
        }
        if user && !open.is_empty() {
            return refused("it does not answer all calls of the message before it");
        }
    }
    if open.is_empty() && messages.len() % 2 == 1 { Ok(items) } else { Err("the last word is the model's".to_owned()) }
}

fn output(id: &str, text: &str) -> Item {
    let call = Call { call_id: id.to_owned(), name: String::new(), arguments: String::new(), custom: false };
    Item::output(&call, text)
}

/// What only its provider understands. The value is JSON text.
fn opaque(field: &str, value: &str) -> Result<Item, String> {
    Item::parse(&format!(r#"{{"type":"reasoning","{field}":{value}}}"#)).map_err(|error| error.to_string())
}

fn object(arguments: &str) -> Result<(), String> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(_)) => Ok(()),
        _ => Err(format!("arguments are no object: {arguments}")),
    }
}

/// The texts that share a message: each fragment between markers is one, and so is what stands between fragments.
fn texts(whole: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    let mut rest = whole;
    while !rest.is_empty() {
        let end = fragment(rest).unwrap_or_else(|| {
            let starts = rest.match_indices("\n\n<").map(|(at, _)| at);
            starts.into_iter().find(|at| fragment(&rest[at + 2..]).is_some()).unwrap_or(rest.len())
        });
        texts.push(&rest[..end]);
        rest = rest[end..].strip_prefix("\n\n").unwrap_or(&rest[end..]);
    }
    texts
}

/// Where the fragment ends that `text` begins with: `<name …>`, and the first `</name>` at the start of a line after
/// which the text ends or a blank line comes.
fn fragment(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('<')?;
    let name = &inside[..inside.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?];
    if name.is_empty() || !inside[name.len()..].starts_with(['>', ' ']) {
        return None;
    }
    let close = format!("\n</{name}>");
    let mut ends = text.match_indices(&close).map(|(at, _)| at + close.len());
    ends.find(|end| text[*end..].is_empty() || text[*end..].starts_with("\n\n"))
}
