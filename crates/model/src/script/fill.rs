//! `${name}` in replies.

use serde_json::Value;

use super::Found;
use crate::pattern::is_name;

/// A piece of a text with placeholders.
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Cuts a text at its placeholders. `$${` is a `${` that is meant as such; any other `$` is just that.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix("$${") {
            let literal = &rest[1..3];
            rest = after;
            return Some(Piece::Text(literal));
        }
        if let Some((name, after)) = rest.strip_prefix("${").and_then(|inner| inner.split_once('}')) {
            rest = after;
            return Some(Piece::Name(name));
        }
        // At least one character, so that a lone `$` does not stop us.
        let skip = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[skip..].find('$').map_or(rest.len(), |at| skip + at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(piece))
    })
}

/// Puts the values in.
pub(super) fn fill(text: &str, found: &Found) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => out += text,
            // Names were checked when the script was read.
            Piece::Name(name) => out += found.get(name).map_or("", String::as_str),
        }
    }
    out
}

/// Puts the values into every string of a JSON value; keys stay as they are.
pub(super) fn fill_value(value: &Value, found: &Found) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, found)),
        Value::Array(values) => values.iter().map(|value| fill_value(value, found)).collect(),
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), fill_value(value, found))).collect(),
        other => other.clone(),
    }
}

/// Checks that every placeholder is known.
pub(super) fn check(text: &str, known: &[&str]) -> Result<(), String> {
    for piece in pieces(text) {
        let Piece::Name(name) = piece else { continue };
        if !known.contains(&name) {
            let what = if is_name(name) { "is not known" } else { "is not a name" };
            return Err(format!(
                "`${{{name}}}` {what}; known here: {}. A shell variable is written `$NAME` or `$${{NAME}}`",
                known.join(", ")
            ));
        }
    }
    Ok(())
}

/// As [`check`], for every string of a JSON value.
pub(super) fn check_value(value: &Value, known: &[&str]) -> Result<(), String> {
    match value {
        Value::String(text) => check(text, known),
        Value::Array(values) => values.iter().try_for_each(|value| check_value(value, known)),
        Value::Object(map) => map.values().try_for_each(|value| check_value(value, known)),
        _ => Ok(()),
    }
}
