//! What an agent waits for, in detail: for whoever looks at a tree and wonders why nothing happens.

use std::fmt;

use serde::{Deserialize, Serialize};
use stdx::Timestamp;

use crate::AgentPath;

/// What an agent with a turn waits for. Wire names are frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum Waits {
    /// The reply of its model.
    Model,
    /// The time at which a request is sent again.
    Retry {
        /// When.
        until: Timestamp,
    },
    /// Calls of tools that run.
    Tool {
        /// What each does, in a few words, in the order of the calls.
        #[serde(default)]
        calls: Vec<String>,
    },
    /// Other agents.
    Agents {
        /// Which; none for whoever comes first.
        #[serde(default)]
        paths: Vec<AgentPath>,
    },
    /// A running slot.
    Slot {
        /// Its place in the queue, from 1.
        position: usize,
    },
    /// Room in the budget, which requests under way have reserved.
    Budget,
    /// Something this version does not know.
    #[serde(other)]
    Other,
}

impl fmt::Display for Waits {
    /// As it stands after "waits for".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("its model"),
            Self::Retry { until } => write!(f, "its provider until {until}"),
            Self::Tool { calls } if calls.is_empty() => f.write_str("a tool"),
            Self::Tool { calls } => f.write_str(&calls.join(", ")),
            Self::Agents { paths } if paths.is_empty() => f.write_str("other agents"),
            Self::Agents { paths } => {
                let paths: Vec<&str> = paths.iter().map(AgentPath::as_str).collect();
                f.write_str(&paths.join(", "))
            }
            Self::Slot { position } => write!(f, "a running slot, number {position}"),
            Self::Budget => f.write_str("room in the budget"),
            Self::Other => f.write_str("something that this version does not know"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(waits: &Waits, json: &str, words: &str) {
        assert_eq!(serde_json::to_string(waits).unwrap(), json);
        assert_eq!(serde_json::from_str::<Waits>(json).unwrap(), *waits);
        assert_eq!(waits.to_string(), words);
    }

    #[test]
    fn forms() {
        let until = Timestamp::EPOCH;
        let a: AgentPath = "/root/a".parse().unwrap();
        check(&Waits::Model, r#"{"for":"model"}"#, "its model");
        check(
            &Waits::Retry { until },
            r#"{"for":"retry","until":"1970-01-01T00:00:00.000Z"}"#,
            "its provider until 1970-01-01T00:00:00.000Z",
        );
        check(&Waits::Tool { calls: vec!["$ make".into()] }, r#"{"for":"tool","calls":["$ make"]}"#, "$ make");
        check(&Waits::Agents { paths: vec![a] }, r#"{"for":"agents","paths":["/root/a"]}"#, "/root/a");
        check(&Waits::Agents { paths: vec![] }, r#"{"for":"agents","paths":[]}"#, "other agents");
        check(&Waits::Slot { position: 2 }, r#"{"for":"slot","position":2}"#, "a running slot, number 2");
        let newer = serde_json::from_str::<Waits>(r#"{"for":"moon","phase":1}"#).unwrap();
        assert_eq!(newer, Waits::Other);
    }
}
