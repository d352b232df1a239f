//! JSON text as it stands. What is only passed on is never decoded, so translating an item costs one look at it.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// `text` as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// `text` as it stands between the quotes of a JSON string.
pub(crate) fn escape(text: &str) -> String {
    let quoted = quote(text);
    quoted[1..quoted.len() - 1].to_owned()
}

/// What stands between the quotes of a JSON string, still escaped; `None` when it is no string.
pub(crate) fn inner(raw: &RawValue) -> Option<&str> {
    raw.get().strip_prefix('"')?.strip_suffix('"')
}

/// The text of an escaped one. Half of a surrogate pair, which some servers leave when they cut a text into pieces,
/// becomes a replacement character instead of costing the whole text.
pub(crate) fn decode(escaped: &str) -> String {
    let parse = |escaped: &str| serde_json::from_str(&format!("\"{escaped}\"")).ok();
    parse(escaped).or_else(|| parse(&without_halves(escaped))).unwrap_or_default()
}

/// Whether an escaped text shows nothing: empty or white space.
pub(crate) fn blank(escaped: &str) -> bool {
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        let white = match c {
            '\\' => matches!(chars.next(), Some('n' | 't' | 'r' | 'f')),
            c => c.is_whitespace(),
        };
        if !white {
            return false;
        }
    }
    true
}

/// Whether `text` is one JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The text of a string value, if it is one.
pub(crate) fn text(raw: Option<&RawValue>) -> Option<String> {
    inner(raw?).map(decode)
}

/// Escaped texts as one, with `between` between them.
pub(crate) fn joined<'a>(parts: impl IntoIterator<Item = &'a str>, between: &str) -> Cow<'a, str> {
    let mut parts = parts.into_iter();
    let mut out = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        let out = out.to_mut();
        out.push_str(between);
        out.push_str(part);
    }
    out
}

fn without_halves(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // An escape is two characters, or six of ASCII; anything else was no JSON to begin with.
        let length = match unit(rest) {
            Some(0xD800..=0xDBFF) if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push('\u{fffd}');
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            None => rest.ceil_char_boundary(2),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out + rest
}

/// The UTF-16 unit that an escape at the beginning of `text` stands for.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_a_pair_are_replaced() {
        assert_eq!(decode(r"a\n\ud83d\ude00\u00e9"), "a\n😀é");
        assert_eq!(decode(r"a\ud83d b\ude00"), "a\u{fffd} b\u{fffd}");
        assert_eq!(decode(r"\\ud83d \ud83d"), "\\ud83d \u{fffd}");
        assert_eq!(decode(r"\ud83d\ud83d\ude00é"), "\u{fffd}😀é");
    }

    #[test]
    fn blank_ones() {
        for text in ["", " \n\t", "\r\n \u{3000}"] {
            assert!(blank(&escape(text)), "{text:?}");
        }
        for text in ["a", " \" ", "\n\\", "\u{0}"] {
            assert!(!blank(&escape(text)), "{text:?}");
        }
    }

    #[test]
    fn objects() {
        assert!(is_object(" {\"a\": [1]}\n"));
        for text in ["", "[]", "{", "{}{}", "{\"a\":}", "null"] {
            assert!(!is_object(text), "{text}");
        }
    }
}
