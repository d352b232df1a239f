//! The arguments of a function call: one documented struct gives both the schema and the reading.

use protocol::Call;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::ToolError;

/// The schema of `T` in the form models know: without titles, formats and null alternatives, which say nothing and
/// are paid for with every request.
pub fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    tidy(&mut schema, false);
    schema
}

fn tidy(value: &mut Value, names: bool) {
    match value {
        Value::Object(map) => {
            // Below `properties` the keys are names of arguments, whatever they are called.
            if !names {
                map.retain(|key, _| !matches!(key.as_str(), "$schema" | "title" | "format" | "minimum" | "default"));
                if let Some(Value::Array(types)) = map.get_mut("type") {
                    types.retain(|kind| kind != "null");
                    if let [only] = types.as_slice() {
                        let only = only.clone();
                        map.insert("type".to_owned(), only);
                    }
                }
                if let Some(Value::String(text)) = map.get_mut("description") {
                    *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                }
            }
            for (key, value) in map {
                tidy(value, !names && key == "properties");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| tidy(value, false)),
        _ => {}
    }
}

/// Reads the arguments of a call. An argument that the tool does not have is refused by name.
///
/// # Errors
/// [`ToolError::RespondToModel`] with the arguments that the tool takes.
pub fn parse<T: DeserializeOwned + JsonSchema>(call: &Call) -> Result<T, ToolError> {
    let tool = &call.name;
    let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
    let map: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| ToolError::respond(format!("{tool}: the arguments are not a JSON object: {error}")))?;
    let given: Vec<String> = map.keys().cloned().collect();
    serde_json::from_value(Value::Object(map)).map_err(|error| {
        let schema = schema::<T>();
        let known: Vec<&str> =
            schema["properties"].as_object().into_iter().flat_map(|map| map.keys().map(String::as_str)).collect();
        let text = match given.iter().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                let meant = stdx::nearest(name, known.iter().copied());
                let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
                format!("{tool}: unknown argument `{name}`{meant}; it takes: {}", known.join(", "))
            }
            None => format!("{tool}: {error}; it takes: {}", known.join(", ")),
        };
        ToolError::respond(text)
    })
}

/// Reads a whole number for serde, also when a model writes it as `5.0` or `"5"`.
///
/// # Errors
/// When it is not one.
pub fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = match Option::<Value>::deserialize(from)? {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    digits.parse().map(Some).map_err(|_| D::Error::custom(format_args!("`{text}` is not a whole number from 0 up")))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Arguments of a test.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read through Debug")]
    struct Input {
        /// A text
        /// on two lines.
        title: String,
        /// A number.
        #[serde(default, deserialize_with = "whole")]
        limit: Option<u64>,
    }

    fn check(arguments: &str, expect: Expect) {
        let call = Call { call_id: "c".into(), name: "t".into(), arguments: arguments.into(), custom: false };
        let seen = match parse::<Input>(&call) {
            Ok(input) => format!("{input:?}"),
            Err(error) => error.to_string(),
        };
        expect.assert_eq(&seen);
    }

    #[test]
    fn reading() {
        check(r#"{"title":"x","limit":5.0}"#, expect![[r#"Input { title: "x", limit: Some(5) }"#]]);
        check(r#"{"title":"x","limit":"7"}"#, expect![[r#"Input { title: "x", limit: Some(7) }"#]]);
        check(r#"{"title":"x","limit":null}"#, expect![[r#"Input { title: "x", limit: None }"#]]);
        check(
            r#"{"title":"x","limit":-1}"#,
            expect!["t: `-1` is not a whole number from 0 up; it takes: limit, title"],
        );
        check("", expect!["t: missing field `title`; it takes: limit, title"]);
        check(
            r#"{"title":"x","limits":5}"#,
            expect!["t: unknown argument `limits` (did you mean `limit`?); it takes: limit, title"],
        );
        check(r#"{"title":"x","zebra":5}"#, expect!["t: unknown argument `zebra`; it takes: limit, title"]);
        check(
            "[1]",
            expect![
                "t: the arguments are not a JSON object: invalid type: sequence, expected a map at line 1 column 0"
            ],
        );
    }

    #[test]
    fn the_schema_is_bare() {
        expect![[r#"{"additionalProperties":false,"description":"Arguments of a test.","properties":{"limit":{"description":"A number.","type":"integer"},"title":{"description":"A text on two lines.","type":"string"}},"required":["title"],"type":"object"}"#]]
            .assert_eq(&schema::<Input>().to_string());
    }
}
