//! What a value must look like, and where it goes.

use toml::Value;

use crate::error::QUOTE;

/// The type of a key. `put` stores a value that has passed.
pub(crate) enum Shape<T: 'static> {
    /// A whole number, both ends included.
    Whole { min: u64, max: u64, unit: &'static str, put: fn(&mut T, u64) },
    /// An amount of US dollars, from 0.
    Usd { max: f64, put: fn(&mut T, f64) },
    /// A text. `put` says whether it will do.
    Text { expected: &'static str, put: fn(&mut T, &str) -> bool },
    /// The name of an environment variable. What is there instead may be the key itself, so it is never repeated.
    Variable { put: fn(&mut T, &str) },
    /// A list of names.
    Names { put: fn(&mut T, Vec<String>) },
}

impl<T> Shape<T> {
    /// What a person should write, as it stands after "expected".
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Whole { min, max, unit, .. } => {
                let unit = if unit.is_empty() { String::new() } else { format!(" of {unit}") };
                format!("a whole number{unit} from {min} to {max}")
            }
            Self::Usd { max, .. } => format!("an amount of US dollars from 0 to {max}"),
            Self::Text { expected, .. } => (*expected).to_owned(),
            Self::Variable { .. } => {
                "the name of an environment variable, such as \"LAB_KEY\" (the key itself stays out of this file)"
                    .to_owned()
            }
            Self::Names { .. } => "a list of names, such as [\"explorer\", \"worker\"]".to_owned(),
        }
    }

    /// The range of a number, as it stands after "from".
    pub(crate) fn range(&self) -> Option<String> {
        match self {
            Self::Whole { min, max, .. } => Some(format!("{min} to {max}")),
            Self::Usd { max, .. } => Some(format!("0 to {max}")),
            _ => None,
        }
    }

    /// Stores `value`, or says what was found instead.
    pub(crate) fn put(&self, target: &mut T, value: &Value) -> Result<(), String> {
        let stored = match (self, value) {
            (Self::Whole { min, max, put, .. }, Value::Integer(n)) => {
                u64::try_from(*n).ok().filter(|n| (min..=max).contains(&n)).map(|n| put(target, n))
            }
            (Self::Usd { max, put }, Value::Float(n)) => (0.0..=*max).contains(n).then(|| put(target, *n)),
            (Self::Usd { max, put }, Value::Integer(n)) => {
                let n = i32::try_from(*n).map(f64::from).ok();
                n.filter(|n| (0.0..=*max).contains(n)).map(|n| put(target, n))
            }
            (Self::Text { put, .. }, Value::String(text)) => put(target, text).then_some(()),
            (Self::Variable { put }, Value::String(text)) if is_variable(text) => {
                put(target, text);
                Some(())
            }
            (Self::Names { put }, Value::Array(items)) => {
                let names: Option<Vec<_>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                names.filter(|names| names.iter().all(|name| !name.is_empty())).map(|names| put(target, names))
            }
            _ => None,
        };
        stored.ok_or_else(|| match self {
            Self::Variable { .. } => "something else, which is not shown because it may be a key".to_owned(),
            _ => found(value),
        })
    }
}

/// The value on one line, as it stands after "found".
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", stdx::one_line(text, QUOTE)),
        Value::Table(_) => "a table".to_owned(),
        other => stdx::one_line(&other.to_string(), QUOTE),
    }
}

/// Letters, digits and `_`, no digit first; or nothing, which means that there is no variable.
fn is_variable(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !text.starts_with(|c: char| c.is_ascii_digit())
}
