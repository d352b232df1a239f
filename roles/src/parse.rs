//! Reading a role file.

use std::ops::Range;

use protocol::Sandbox;
use stdx::one_line;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::Problem;
use crate::role::{Layer, Parsed, Workspace};

/// Bytes of a role file. Whatever is larger is not a role.
pub const MAX_FILE: usize = 64 * 1024;

/// Bytes of a description. It is in every request of every agent that may spawn.
pub const MAX_DESCRIPTION: usize = 1_000;

/// Bytes of instructions. With the base instructions they stay below the cap of the first item of a context.
pub const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// Characters of a nickname.
pub const MAX_NICKNAME: usize = 32;

/// Names, tools or nicknames in a list; longer lists are a mistake.
const MAX_LIST: usize = 200;

const KEYS: [&str; 12] = [
    "name",
    "description",
    "instructions",
    "model",
    "effort",
    "tools",
    "sandbox",
    "workspace",
    "budget_tokens",
    "budget_usd",
    "max_depth",
    "nicknames",
];

/// Keys that look as if a role could set them, and what they would decide.
const FORBIDDEN: [(&str, &str); 6] = [
    ("approval", "when a person is asked"),
    ("approval_policy", "when a person is asked"),
    ("reviewer", "who reviews"),
    ("approvals_reviewer", "who reviews"),
    ("cwd", "the working folder"),
    ("workdir", "the working folder"),
];

/// Reads the role file `text`. `file` names it in messages, and its stem names the role when the file does not.
///
/// # Errors
/// At the first thing that is wrong, with its line and key.
pub fn parse(layer: Layer, file: &str, text: &str) -> Result<Parsed, Problem> {
    let reader = Reader { file, text };
    if text.len() > MAX_FILE {
        return Err(reader.problem(None, None, format!("the file is over {} KiB: a role is shorter", MAX_FILE / 1024)));
    }
    let table = DeTable::parse(text)
        .map_err(|error| reader.problem(error.span(), None, format!("not TOML: {}", one_line(error.message(), 200))))?;
    let mut role = Parsed::new(layer, file);
    let mut named = false;
    let mut fields: Vec<_> = table.get_ref().iter().collect();
    fields.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in fields {
        let field = Field { reader, key: key.get_ref(), at: key.span(), value };
        match field.key {
            "name" => {
                role.name = field.name()?;
                named = true;
            }
            "description" => role.description = Some(field.line(MAX_DESCRIPTION)?),
            "instructions" => role.instructions = Some(field.text(MAX_INSTRUCTIONS)?),
            "model" => role.model = Some(field.model()?),
            "effort" => role.effort = Some(field.word()?),
            "tools" => role.tools = Some(field.tools()?),
            "sandbox" => role.sandbox = Some(field.one_of(&SANDBOXES, Sandbox::as_str)?),
            "workspace" => role.workspace = Some(field.one_of(&WORKSPACES, Workspace::as_str)?),
            "budget_tokens" => role.budget_tokens = Some(field.number(1_024, u64::MAX)?),
            "budget_usd" => role.budget_usd = Some(field.dollars()?),
            "max_depth" => {
                let depth = field.number(1, protocol::MAX_DEPTH_HARD as u64)?;
                role.max_depth = usize::try_from(depth).ok();
            }
            "nicknames" => role.nicknames = Some(field.nicknames()?),
            _ => return Err(field.unknown()),
        }
    }
    if !named {
        let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let stem = stem.strip_suffix(".toml").unwrap_or(stem);
        if !is_name(stem) {
            let message = format!("`{}` cannot name a role: add name = \"…\" ({NAME_RULE})", one_line(stem, 80));
            return Err(reader.problem(None, Some("name"), message));
        }
        stem.clone_into(&mut role.name);
    }
    Ok(role)
}

const NAME_RULE: &str = "1 to 64 of a-z, 0-9, _ and -";

const SANDBOXES: [Sandbox; 3] = [Sandbox::ReadOnly, Sandbox::WorkspaceWrite, Sandbox::DangerFullAccess];

const WORKSPACES: [Workspace; 2] = [Workspace::Shared, Workspace::Worktree];

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// Makes problems of one file.
#[derive(Clone, Copy)]
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn problem(&self, at: Option<Range<usize>>, key: Option<&str>, message: String) -> Problem {
        let line = at.map(|at| self.text.bytes().take(at.start).filter(|b| *b == b'\n').count() + 1);
        Problem { file: self.file.to_owned(), line, key: key.map(|key| one_line(key, 80)), message }
    }
}

/// One key with its value.
struct Field<'a> {
    reader: Reader<'a>,
    key: &'a str,
    at: Range<usize>,
    value: &'a Spanned<DeValue<'a>>,
}

impl Field<'_> {
    fn wrong(&self, message: impl Into<String>) -> Problem {
        self.reader.problem(Some(self.at.clone()), Some(self.key), message.into())
    }

    fn unknown(&self) -> Problem {
        if let Some((_, what)) = FORBIDDEN.iter().find(|(key, _)| *key == self.key) {
            return self
                .wrong(format!("a role cannot decide {what}: an agent takes that from its parent; remove the key"));
        }
        self.wrong(match stdx::nearest(self.key, KEYS) {
            Some(nearest) => format!("unknown key, did you mean `{nearest}`?"),
            None => format!("unknown key; a role may set {}", KEYS.join(", ")),
        })
    }

    /// Text that is not blank, without blanks at its ends.
    fn text(&self, max: usize) -> Result<String, Problem> {
        let DeValue::String(text) = self.value.get_ref() else { return Err(self.wrong("expected text in quotes")) };
        let text = text.trim();
        if text.is_empty() {
            return Err(self.wrong("must not be blank: remove the key or write something"));
        }
        if text.len() > max {
            return Err(self.wrong(format!("has {} bytes and may have {max}: shorten it", text.len())));
        }
        Ok(text.to_owned())
    }

    /// Text folded to one line: it stands in a list.
    fn line(&self, max: usize) -> Result<String, Problem> {
        Ok(one_line(&self.text(max)?, max))
    }

    fn name(&self) -> Result<String, Problem> {
        let name = self.text(usize::MAX)?;
        if is_name(&name) {
            Ok(name)
        } else {
            Err(self.wrong(format!("`{}` cannot name a role: {NAME_RULE}", one_line(&name, 80))))
        }
    }

    fn word(&self) -> Result<String, Problem> {
        let word = self.text(64)?;
        if word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            Ok(word)
        } else {
            Err(self.wrong("expected one word, for example \"low\", \"medium\" or \"high\""))
        }
    }

    fn model(&self) -> Result<String, Problem> {
        let model = self.text(200)?;
        let whole = model.split_once('/').is_none_or(|(provider, name)| !provider.is_empty() && !name.is_empty());
        if whole && !model.contains(char::is_whitespace) {
            Ok(model)
        } else {
            Err(self.wrong("expected \"provider/name\", for example \"openai/gpt-5.5\""))
        }
    }

    fn one_of<T: Copy>(&self, choices: &[T], name: fn(T) -> &'static str) -> Result<T, Problem> {
        let found = match self.value.get_ref() {
            DeValue::String(text) => choices.iter().find(|choice| name(**choice) == text.trim()),
            _ => None,
        };
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|choice| name(*choice)).collect();
            self.wrong(format!("expected one of {}", names.join(", ")))
        })
    }

    fn number(&self, min: u64, max: u64) -> Result<u64, Problem> {
        let expected = || {
            let upper = if max == u64::MAX { "up".to_owned() } else { format!("to {max}") };
            self.wrong(format!("expected a whole number from {min} {upper}"))
        };
        let DeValue::Integer(number) = self.value.get_ref() else { return Err(expected()) };
        let number = u64::from_str_radix(number.as_str(), number.radix()).map_err(|_| expected())?;
        if (min..=max).contains(&number) { Ok(number) } else { Err(expected()) }
    }

    fn dollars(&self) -> Result<budget::Usd, Problem> {
        let text = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => "",
        };
        let dollars = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
        dollars.map(budget::Usd::new).ok_or_else(|| self.wrong("expected US dollars above 0, for example 2.50"))
    }

    fn list(&self, each: impl Fn(&str) -> Result<(), String>) -> Result<Vec<String>, Problem> {
        let expected = "expected a list of texts, for example [\"one\", \"two\"]";
        let DeValue::Array(values) = self.value.get_ref() else { return Err(self.wrong(expected)) };
        if values.len() > MAX_LIST {
            return Err(self.wrong(format!("has {} entries and may have {MAX_LIST}", values.len())));
        }
        let mut list: Vec<String> = Vec::new();
        for value in values {
            let at = |message: String| self.reader.problem(Some(value.span()), Some(self.key), message);
            let DeValue::String(text) = value.get_ref() else { return Err(at(expected.to_owned())) };
            let text = text.trim();
            each(text).map_err(at)?;
            if list.iter().any(|known| known == text) {
                return Err(at(format!("`{text}` stands there twice")));
            }
            list.push(text.to_owned());
        }
        Ok(list)
    }

    /// Names of tools. An empty list is an agent that only thinks.
    fn tools(&self) -> Result<Vec<String>, Problem> {
        self.list(|tool| {
            let fits = (1..=64).contains(&tool.len()) && tool.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if fits { Ok(()) } else { Err(format!("`{}` is not the name of a tool", one_line(tool, 80))) }
        })
    }

    fn nicknames(&self) -> Result<Vec<String>, Problem> {
        let names = self.list(|name| {
            let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            if !name.is_empty() && name.len() <= MAX_NICKNAME && letters {
                Ok(())
            } else {
                Err(format!(
                    "`{}` is not a nickname: 1 to {MAX_NICKNAME} of letters, digits, blank, - and _",
                    one_line(name, 80)
                ))
            }
        })?;
        if names.is_empty() {
            return Err(self.wrong("must not be empty: remove the key or name somebody"));
        }
        Ok(names)
    }
}

impl Parsed {
    fn new(layer: Layer, file: &str) -> Self {
        Self {
            name: String::new(),
            layer,
            file: file.to_owned(),
            description: None,
            instructions: None,
            model: None,
            effort: None,
            tools: None,
            sandbox: None,
            workspace: None,
            budget_tokens: None,
            budget_usd: None,
            max_depth: None,
            nicknames: None,
        }
    }
}

#[cfg(test)]
mod tests;
