//! What a request of the Chat or the Messages wire says, against the items that it was made of.
//!
//! These wires have other bytes than the rollout: texts in a row share a message, what is said between a call and its
//! output comes after it, free text is a function's argument. Contents and their order are the same.

use protocol::{Item, ItemKind, Role};
use serde_json::{Value, json};

use crate::{Request, Wire};

/// What a wire of turns says to a model whose own words are the last.
const GO_ON: &str = "<system_note>\nGo on.\n</system_note>";

/// Between texts that share a message.
const BREAK: &str = "\n\n";

/// The items that a later request must begin with: all but a note at the end that says "go on".
pub(super) fn kept(request: &Request) -> &[Item] {
    match request.items() {
        [kept @ .., last] if request.wire() != Wire::Responses && last.text() == GO_ON => kept,
        all => all,
    }
}

/// Whether `new` is the text `old` with more after it.
pub(super) fn grew(old: &Item, new: &Item) -> bool {
    matches!(old.kind(), ItemKind::Message(_))
        && old.kind() == new.kind()
        && new.text().strip_prefix(&old.text()).is_some_and(|more| more.starts_with(BREAK))
}

/// Whether all that a request says is in these payloads of its agent's rollout.
///
/// # Errors
/// Says what is not.
pub(super) fn written(request: &Request, payloads: &[String]) -> Result<(), String> {
    let lines: Vec<Item> = payloads.iter().filter_map(|payload| Item::parse(payload).ok()).collect();
    let (sent, lines) = (request.items(), lines.as_slice());
    spoken("told", &of(sent, told), &of(lines, told))?;
    spoken("said", &of(sent, said), &of(lines, said))?;
    in_order("call", of(sent, call), of(lines, call), |sent, line| sent == line)?;
    in_order("output", of(sent, output), of(lines, output), |sent, line| sent == line)?;
    in_order("reasoning", of(sent, reasoning), of(lines, reasoning), |sent, line| line.contains(sent.as_str()))
}

fn of<T>(items: &[Item], what: fn(&Item) -> Option<T>) -> Vec<T> {
    items.iter().filter_map(what).collect()
}

/// What somebody other than the model says.
fn told(item: &Item) -> Option<String> {
    matches!(item.kind(), ItemKind::Message(Role::User | Role::Developer)).then(|| item.text())
}

fn said(item: &Item) -> Option<String> {
    (item.kind() == ItemKind::Message(Role::Assistant)).then(|| item.text())
}

/// A call as a function with an object: whatever else it is stands in its one argument.
fn call(item: &Item) -> Option<(String, Value)> {
    let call = item.call()?;
    let text = call.arguments;
    let arguments = match serde_json::from_str(&text) {
        Ok(object @ Value::Object(_)) if !call.custom => object,
        _ if !call.custom && text.trim().is_empty() => json!({}),
        _ => json!({ "input": text }),
    };
    Some((call.name, arguments))
}

fn output(item: &Item) -> Option<String> {
    (item.kind() == ItemKind::Output).then(|| item.text())
}

/// The bytes that only the provider understands, as the wire has them or as they are wrapped up.
fn reasoning(item: &Item) -> Option<String> {
    if item.kind() != ItemKind::Reasoning {
        return None;
    }
    let raw = item.raw();
    let bare = raw.strip_prefix(r#"{"type":"reasoning","#).and_then(|rest| rest.strip_suffix('}'));
    Some(bare.unwrap_or(raw).to_owned())
}

/// Whether each of `sent` is among `lines`, in their order.
fn in_order<T: std::fmt::Debug>(
    what: &str,
    sent: Vec<T>,
    lines: Vec<T>,
    same: impl Fn(&T, &T) -> bool,
) -> Result<(), String> {
    let mut rest = lines.iter();
    match sent.iter().find(|sent| !rest.any(|line| same(sent, line))) {
        Some(sent) => Err(format!("this {what} is not written, or out of order: {sent:?}")),
        None => Ok(()),
    }
}

/// As [`in_order`], of texts: several may have become one.
fn spoken(what: &str, sent: &[String], lines: &[String]) -> Result<(), String> {
    let whole = sent.join(BREAK);
    let mut rest = whole.as_str();
    let mut lines = lines.iter();
    while !rest.is_empty() {
        if let Some(after) = after(rest, GO_ON) {
            rest = after;
            continue;
        }
        let marked = |line: &str| format!("<system_note>\n{line}\n</system_note>");
        match lines.find_map(|line| after(rest, line).or_else(|| after(rest, &marked(line)))) {
            Some(after) => rest = after,
            None => return Err(format!("this was {what} and is not written, or out of order: {rest:?}")),
        }
    }
    Ok(())
}

/// What comes after `text`, when `whole` begins with it.
fn after<'a>(whole: &'a str, text: &str) -> Option<&'a str> {
    let rest = whole.strip_prefix(text).filter(|_| !text.trim().is_empty())?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(BREAK) }
}
