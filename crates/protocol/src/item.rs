//! An item of a conversation, kept as the bytes it has on the wire.
//!
//! The form is that of the OpenAI Responses API, whatever provider the item came from; other wires translate at
//! their edge. The bytes are never rewritten, so that fields we do not know survive and a request's prefix stays
//! the same to the last byte.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One item. Cheap to clone.
#[derive(Clone)]
pub struct Item {
    raw: Arc<RawValue>,
    kind: ItemKind,
}

/// What an item is; everything else about it is read from its bytes when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Text of somebody.
    Message(Role),
    /// The model calls a tool with JSON arguments.
    FunctionCall,
    /// The model calls a tool with free text.
    CustomCall,
    /// What a call of either kind gave.
    Output,
    /// Reasoning, opaque.
    Reasoning,
    /// A kind this version does not know. Kept and sent back.
    Other,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The model.
    Assistant,
    /// A person, or what stands in for one.
    User,
    /// The program.
    #[serde(alias = "system")]
    Developer,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id; servers repeat them, so nothing is derived from it.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// JSON of a function call, free text of a custom one.
    pub arguments: String,
    /// Whether it is a custom call.
    pub custom: bool,
}

/// These bytes are not an item.
#[derive(Debug, thiserror::Error)]
#[error("not a conversation item: {0}")]
pub struct NotAnItem(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    role: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
struct Body {
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    output: Option<Content>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    phase: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Content {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
                let texts: Vec<String> = parts.into_iter().filter_map(|p| p.text.or(p.refusal)).collect();
                texts.join("\n")
            }
            Self::Other(_) => String::new(),
        }
    }
}

impl Item {
    /// Takes an item as it stands on the wire. Line breaks between tokens become blanks, so that it fits on a line.
    ///
    /// # Errors
    /// When the bytes are not a JSON object with the shape of an item.
    pub fn from_raw(raw: Box<RawValue>) -> Result<Self, NotAnItem> {
        let raw = if raw.get().contains(['\n', '\r']) {
            RawValue::from_string(raw.get().replace(['\n', '\r'], " "))?
        } else {
            raw
        };
        if !raw.get().trim_start().starts_with('{') {
            return Err(NotAnItem(serde::de::Error::custom("expected an object")));
        }
        let head: Head<'_> = serde_json::from_str(raw.get())?;
        let kind = match head.kind.as_deref() {
            Some("message") | None => match head.role.as_deref() {
                Some("assistant") => ItemKind::Message(Role::Assistant),
                Some("user") => ItemKind::Message(Role::User),
                Some("developer" | "system") => ItemKind::Message(Role::Developer),
                _ => ItemKind::Other,
            },
            Some("function_call") => ItemKind::FunctionCall,
            Some("custom_tool_call") => ItemKind::CustomCall,
            Some("function_call_output" | "custom_tool_call_output") => ItemKind::Output,
            Some("reasoning") => ItemKind::Reasoning,
            Some(_) => ItemKind::Other,
        };
        Ok(Self { raw: raw.into(), kind })
    }

    /// As [`Item::from_raw`], from text.
    ///
    /// # Errors
    /// When the text is not a JSON object with the shape of an item.
    pub fn parse(json: &str) -> Result<Self, NotAnItem> {
        Self::from_raw(RawValue::from_string(json.to_owned())?)
    }

    /// A message.
    pub fn message(role: Role, text: &str) -> Self {
        let (name, part) = match role {
            Role::Assistant => ("assistant", "output_text"),
            Role::User => ("user", "input_text"),
            Role::Developer => ("developer", "input_text"),
        };
        Self::build(
            format!(r#"{{"type":"message","role":"{name}","content":[{{"type":"{part}","text":{}}}]}}"#, quote(text)),
            ItemKind::Message(role),
        )
    }

    /// A function call, as a model would make it.
    pub fn function_call(call_id: &str, name: &str, arguments: &str) -> Self {
        Self::build(
            format!(
                r#"{{"type":"function_call","call_id":{},"name":{},"arguments":{}}}"#,
                quote(call_id),
                quote(name),
                quote(arguments)
            ),
            ItemKind::FunctionCall,
        )
    }

    /// A call with free text, as a model would make it.
    pub fn custom_call(call_id: &str, name: &str, input: &str) -> Self {
        Self::build(
            format!(
                r#"{{"type":"custom_tool_call","call_id":{},"name":{},"input":{}}}"#,
                quote(call_id),
                quote(name),
                quote(input)
            ),
            ItemKind::CustomCall,
        )
    }

    /// What `call` gave.
    pub fn output(call: &Call, text: &str) -> Self {
        let kind = if call.custom { "custom_tool_call_output" } else { "function_call_output" };
        Self::build(
            format!(r#"{{"type":"{kind}","call_id":{},"output":{}}}"#, quote(&call.call_id), quote(text)),
            ItemKind::Output,
        )
    }

    fn build(json: String, kind: ItemKind) -> Self {
        // The text above is JSON by construction; `null` can only appear if that stops being true, and a test says so.
        let raw = RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { raw: raw.into(), kind }
    }

    /// What it is.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }

    /// The bytes on the wire, without line breaks.
    pub fn raw(&self) -> &str {
        self.raw.get()
    }

    fn body(&self) -> Body {
        serde_json::from_str(self.raw.get()).unwrap_or_default()
    }

    /// The text of a message or of an output; empty for anything else.
    pub fn text(&self) -> String {
        match self.kind {
            ItemKind::Message(_) => self.body().content.map(Content::text).unwrap_or_default(),
            ItemKind::Output => self.body().output.map(Content::text).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The call, if it is one. A missing id or name is empty.
    pub fn call(&self) -> Option<Call> {
        let custom = match self.kind {
            ItemKind::FunctionCall => false,
            ItemKind::CustomCall => true,
            _ => return None,
        };
        let body = self.body();
        let name = match (body.namespace, body.name.unwrap_or_default()) {
            (Some(space), name) if !space.is_empty() => format!("{space}.{name}"),
            (_, name) => name,
        };
        Some(Call {
            call_id: body.call_id.unwrap_or_default(),
            name,
            arguments: if custom { body.input } else { body.arguments }.unwrap_or_default(),
            custom,
        })
    }

    /// Of an output: the id of its call.
    pub fn answered_call_id(&self) -> Option<String> {
        (self.kind == ItemKind::Output).then(|| self.body().call_id.unwrap_or_default())
    }

    /// Text meant as the answer: of the model, not blank, and not marked as commentary.
    pub fn final_text(&self) -> Option<String> {
        if self.kind != ItemKind::Message(Role::Assistant) {
            return None;
        }
        let body = self.body();
        if body.phase.as_deref() == Some("commentary") {
            return None;
        }
        body.content.map(Content::text).filter(|text| !text.trim().is_empty())
    }
}

/// `text` as a JSON string.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.raw.get() == other.raw.get()
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.raw.get())
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::from_raw(Box::<RawValue>::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_unknown_fields_survive() {
        let json = r#"{ "type":"reasoning","id":"rs_1", "encrypted_content":"Zz==","new_field":[1, 2] }"#;
        let item = Item::parse(json).unwrap();
        assert_eq!(item.kind(), ItemKind::Reasoning);
        assert_eq!(item.raw(), json);
        assert_eq!(serde_json::to_string(&item).unwrap(), json);
    }

    #[test]
    fn line_breaks_between_tokens_become_blanks() {
        let item = Item::parse("{\"type\":\"message\",\n\"role\":\"user\",\r\n\"content\":\"a\\nb\"}").unwrap();
        assert!(!item.raw().contains('\n'));
        assert_eq!(item.text(), "a\nb");
    }

    #[test]
    fn what_is_built_is_read_back() {
        let nasty = "quote \" slash \\ nul \0 break \n end \u{2028}";
        let user = Item::message(Role::User, nasty);
        assert_eq!(Item::parse(user.raw()).unwrap().text(), nasty);
        assert_eq!(user.final_text(), None);
        assert_eq!(Item::message(Role::Assistant, nasty).final_text().as_deref(), Some(nasty));
        assert_eq!(Item::message(Role::Assistant, " \n").final_text(), None);
        for item in [Item::function_call(nasty, "t", nasty), Item::custom_call(nasty, "t", nasty)] {
            let call = Item::parse(item.raw()).unwrap().call().unwrap();
            assert_eq!((call.call_id.as_str(), call.arguments.as_str()), (nasty, nasty));
            let output = Item::output(&call, nasty);
            assert_eq!(Item::parse(output.raw()).unwrap().kind(), ItemKind::Output);
            assert_eq!(output.answered_call_id().as_deref(), Some(nasty));
            assert_eq!(output.text(), nasty);
        }
    }

    #[test]
    fn odd_shapes_do_not_fail() {
        assert_eq!(Item::parse(r#"{"type":"image_generation_call"}"#).unwrap().kind(), ItemKind::Other);
        assert_eq!(Item::parse(r#"{"role":"assistant","content":"hi"}"#).unwrap().final_text().as_deref(), Some("hi"));
        let commentary = r#"{"type":"message","role":"assistant","phase":"commentary","content":"hm"}"#;
        assert_eq!(Item::parse(commentary).unwrap().final_text(), None);
        let call = Item::parse(r#"{"type":"function_call"}"#).unwrap().call().unwrap();
        assert_eq!((call.call_id.as_str(), call.name.as_str()), ("", ""));
        assert!(Item::parse(r#"["message","user"]"#).is_err());
        assert!(Item::parse("7").is_err());
    }
}
