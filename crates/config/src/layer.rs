//! One layer of settings: a tree of keys that knows where each one stands.

use std::ops::Range;

use toml::Value;
use toml::de::{DeTable, DeValue};

use crate::error::QUOTE;
use crate::{ConfigError, Origin};

/// A key's value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) body: Body,
    pub(crate) origin: Origin,
}

/// A table, its keys in the order in which they stand, or anything else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Table(Table),
    Leaf(Value),
}

pub(crate) type Table = Vec<(String, Node)>;

/// Reads the text of a file; `file` is its name as shown to a person.
pub(crate) fn file(file: &str, text: &str) -> Result<Table, ConfigError> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(table) => Ok(from_table(table.get_ref(), &|span| Origin::File {
            file: file.to_owned(),
            line: lines.at(span.start).0,
        })),
        Err(error) => {
            let (line, start) = lines.at(error.span().map_or(text.len(), |span| span.start));
            let whole = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let before = error.span().and_then(|span| text.get(start..span.start)).unwrap_or(whole);
            Err(ConfigError::Malformed {
                file: file.to_owned(),
                line,
                column: before.chars().count() + 1,
                reason: error.message().lines().collect::<Vec<_>>().join(", "),
                quote: quote(line, whole, before),
            })
        }
    }
}

/// Reads the argument of a `-c`: a dotted key, `=`, and a TOML value; what is not TOML is taken as a string.
pub(crate) fn pair(argument: &str) -> Result<Table, ConfigError> {
    let origin = Origin::Override(argument.to_owned());
    let bad = || ConfigError::Override(stdx::one_line(argument, QUOTE));
    let (key, value) = split(argument).ok_or_else(bad)?;
    // The key alone first, so that a value can never smuggle in a second key.
    let key = format!("{key} = 0");
    let mut keys = match DeTable::parse(&key) {
        Ok(table) if !key.contains('\n') => from_table(table.get_ref(), &|_| origin.clone()),
        _ => return Err(bad()),
    };
    let value = value.trim();
    let parsed = format!("v = {value}");
    let body = match DeTable::parse(&parsed) {
        Ok(table) => match from_table(table.get_ref(), &|_| origin.clone()).as_slice() {
            [(name, node)] if name == "v" => node.body.clone(),
            _ => Body::Leaf(Value::String(value.to_owned())),
        },
        Err(_) => Body::Leaf(Value::String(value.to_owned())),
    };
    *innermost(&mut keys).ok_or_else(bad)? = body;
    Ok(keys)
}

/// `value` under a key of the top level.
pub(crate) fn single(key: &str, value: Value, origin: Origin) -> (String, Node) {
    (key.to_owned(), Node { body: Body::Leaf(value), origin })
}

/// The table as plain TOML, for what is kept and not interpreted.
pub(crate) fn plain(table: &[(String, Node)]) -> toml::Table {
    let value = |node: &Node| match &node.body {
        Body::Leaf(value) => value.clone(),
        Body::Table(table) => Value::Table(plain(table)),
    };
    table.iter().map(|(key, node)| (key.clone(), value(node))).collect()
}

/// Adds `new` to `old`: tables grow together, everything else is replaced.
pub(crate) fn merge(old: &mut toml::Table, new: toml::Table) {
    for (key, value) in new {
        match (old.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, value) => {
                old.insert(key, value);
            }
        }
    }
}

/// Key and value around the first `=` that is not inside quotes.
fn split(argument: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in argument.char_indices() {
        match quote {
            None if c == '=' => return Some((&argument[..at], &argument[at + 1..])),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
    }
    None
}

fn innermost(table: &mut Table) -> Option<&mut Body> {
    let (_, node) = table.first_mut()?;
    let mut body = &mut node.body;
    while let Body::Table(inner) = body {
        body = &mut inner.first_mut()?.1.body;
    }
    Some(body)
}

fn from_table(table: &DeTable<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Table {
    let mut keys: Vec<_> = table.iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    let node = |value: &DeValue<'_>, span| Node {
        body: match value {
            DeValue::Table(table) => Body::Table(from_table(table, origin)),
            other => Body::Leaf(leaf(other)),
        },
        origin: origin(span),
    };
    keys.into_iter().map(|(key, value)| (key.get_ref().to_string(), node(value.get_ref(), key.span()))).collect()
}

fn leaf(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        // A number too large for its type stays a text, so that the message can show it.
        DeValue::Integer(n) => {
            let digits = n.as_str();
            i64::from_str_radix(digits, n.radix()).map_or_else(|_| Value::String(digits.to_owned()), Value::Integer)
        }
        DeValue::Float(n) => n.as_str().parse().map_or_else(|_| Value::String(n.as_str().to_owned()), Value::Float),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(time) => Value::Datetime(*time),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| leaf(item.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(plain(&from_table(table, &|_| Origin::Default))),
    }
}

/// The line with a mark below the character at which `before` ends.
fn quote(line: usize, whole: &str, before: &str) -> String {
    let number = line.to_string();
    let gap: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    // A line too long for a terminal is cut; the mark would then point past it.
    if whole.chars().count() > QUOTE {
        return format!("  {number} | {}", stdx::one_line(whole, QUOTE));
    }
    format!("  {number} | {whole}\n  {} | {gap}^", " ".repeat(number.len()))
}

/// Byte offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line, from 1, that holds the byte `at`, and where it begins.
    fn at(&self, at: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= at).max(1);
        (line, self.0.get(line - 1).copied().unwrap_or(0))
    }
}
