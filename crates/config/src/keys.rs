//! Every key there is: its name, its type, its documentation, and where its value goes.
//!
//! Checking, the known names in warnings, and the reference page all read this table.

use std::time::Duration;

use protocol::{Approval, MAX_DEPTH_HARD, Sandbox};

use crate::shape::Shape;
use crate::{Config, ModelFacts, Provider, Wire};

/// One key of a table that is read into a `T`.
pub(crate) struct Key<T: 'static> {
    pub(crate) name: &'static str,
    /// The flag that sets it too.
    pub(crate) flag: Option<&'static str>,
    pub(crate) doc: &'static str,
    /// A value, as it stands in a file.
    pub(crate) example: &'static str,
    pub(crate) shape: Shape<T>,
    /// The value in force, as it stands in a file; `None` when there is none.
    pub(crate) show: fn(&T) -> Option<String>,
}

/// A table of tables: `[name.NAME]`.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// How its tables are called in documentation.
    pub(crate) header: &'static str,
    pub(crate) doc: &'static str,
}

/// Turns at once. A machine that could drive more would be limited by its provider long before.
const MAX_RUNNING_LIMIT: u64 = 10_000;
/// Sessions in memory. Each costs its context, so a larger number is a mistake.
const MAX_RESIDENT_LIMIT: u64 = 10_000;
/// Agents of one tree, each a file.
const MAX_AGENTS_LIMIT: u64 = 1_000_000;
/// Tokens of one tree; more than any tree has used, and far from where sums overflow.
const BUDGET_TOKENS_LIMIT: u64 = 1_000_000_000_000;
/// US dollars of one tree.
const BUDGET_USD_LIMIT: f64 = 1_000_000.0;
/// US dollars for a million tokens.
const PRICE_LIMIT: f64 = 1_000_000.0;
/// Tokens of a context window: below, not even the instructions fit; above, a digit too many was typed.
const WINDOW: (u64, u64) = (1_024, 100_000_000);
/// Milliseconds of silence: below a second every slow network would break; above a day nobody waits.
const IDLE_TIMEOUT: (u64, u64) = (1_000, 86_400_000);
/// Milliseconds until a connection stands: below, none does over a slow line; above, the system gives up itself.
const CONNECT_TIMEOUT: (u64, u64) = (100, 600_000);
/// Milliseconds that a provider is tried at whose address nobody answers; 0 does not try again.
const UNREACHABLE_FOR: (u64, u64) = (0, 86_400_000);
/// Milliseconds without progress until an agent counts as stalled; 0 never says so.
const STALL_AFTER: (u64, u64) = (0, 86_400_000);

pub(crate) const TOP: &[Key<Config>] = &[
    Key {
        name: "model",
        flag: Some("--model"),
        doc: "The model that agents use: `provider/name`, or `rehearsal`, `script:FILE`. When it is not set, the first provider whose key variable is set gives its default model, else a local server that answers.",
        example: "\"openai/gpt-5.5\"",
        shape: Shape::Text {
            expected: "PROVIDER/NAME, such as \"openai/gpt-5.5\"",
            put: |c, text| {
                c.model = Some(text.trim().to_owned());
                !text.trim().is_empty()
            },
        },
        show: |c| c.model.as_deref().map(quoted),
    },
    Key {
        name: "sandbox",
        flag: Some("--sandbox"),
        doc: "How far commands may reach: `read-only`, `workspace-write` or `danger-full-access`. This version takes the last one only.",
        example: "\"danger-full-access\"",
        shape: Shape::Text {
            expected: "\"read-only\", \"workspace-write\" or \"danger-full-access\"",
            put: |c, text| {
                let all = [Sandbox::ReadOnly, Sandbox::WorkspaceWrite, Sandbox::DangerFullAccess];
                all.into_iter().find(|s| s.as_str() == text).map(|s| c.sandbox = s).is_some()
            },
        },
        show: |c| Some(quoted(c.sandbox.as_str())),
    },
    Key {
        name: "approval",
        flag: Some("--approval"),
        doc: "When a person is asked: `untrusted` (before everything not known to be harmless), `on-request` (when the model asks to go beyond the sandbox) or `never`. This version takes `never` only.",
        example: "\"never\"",
        shape: Shape::Text {
            expected: "\"untrusted\", \"on-request\" or \"never\"",
            put: |c, text| {
                let all = [Approval::Untrusted, Approval::OnRequest, Approval::Never];
                all.into_iter().find(|a| a.as_str() == text).map(|a| c.approval = a).is_some()
            },
        },
        show: |c| Some(quoted(c.approval.as_str())),
    },
    Key {
        name: "roles",
        flag: Some("--roles"),
        doc: "The roles that a tree may use. An empty list allows all.",
        example: "[\"explorer\", \"worker\"]",
        shape: Shape::Names { put: |c, names| c.roles = names },
        show: |c| Some(format!("[{}]", c.roles.iter().map(|r| quoted(r)).collect::<Vec<_>>().join(", "))),
    },
    Key {
        name: "trusted_projects",
        flag: None,
        doc: "Folders of projects whose own files (`.agent/agents/*.toml`) are read. Anybody who can write to a repository can write those files, so none is read without being named here.",
        example: "[\"/somewhere/project\"]",
        shape: Shape::Names { put: |c, names| c.trusted_projects = names },
        show: |c| Some(format!("[{}]", c.trusted_projects.iter().map(|r| quoted(r)).collect::<Vec<_>>().join(", "))),
    },
    Key {
        name: "max_running",
        flag: Some("--max-running"),
        doc: "How many turns of a tree may work at once. Further ones are queued.",
        example: "4",
        shape: Shape::Whole { min: 1, max: MAX_RUNNING_LIMIT, unit: "", put: |c, n| c.max_running = size(n) },
        show: |c| Some(c.max_running.to_string()),
    },
    Key {
        name: "max_resident",
        flag: Some("--max-resident"),
        doc: "How many agents of a tree may be in memory at once. Beyond it, the least recently used idle one is unloaded; it stays in the tree.",
        example: "16",
        shape: Shape::Whole { min: 1, max: MAX_RESIDENT_LIMIT, unit: "", put: |c, n| c.max_resident = size(n) },
        show: |c| Some(c.max_resident.to_string()),
    },
    Key {
        name: "max_depth",
        flag: None,
        doc: "How many levels a tree may have below its root. 0 lets the root spawn nobody.",
        example: "2",
        shape: Shape::Whole { min: 0, max: MAX_DEPTH_HARD as u64, unit: "", put: |c, n| c.max_depth = size(n) },
        show: |c| Some(c.max_depth.to_string()),
    },
    Key {
        name: "max_agents",
        flag: None,
        doc: "How many agents may ever be spawned in a tree, closed ones included.",
        example: "100",
        shape: Shape::Whole { min: 1, max: MAX_AGENTS_LIMIT, unit: "", put: |c, n| c.max_agents = size(n) },
        show: |c| Some(c.max_agents.to_string()),
    },
    Key {
        name: "stall_after_ms",
        flag: None,
        doc: "How many milliseconds an agent may work, or wait for its model or a tool, without anything coming of it, until it is said to be stalled: to you, and to the agent that waits for it. Nothing is ended by that. 0 never says so.",
        example: "120_000",
        shape: Shape::Whole {
            min: STALL_AFTER.0,
            max: STALL_AFTER.1,
            unit: "milliseconds",
            put: |c, n| c.stall_after = (n > 0).then(|| Duration::from_millis(n)),
        },
        show: |c| Some(c.stall_after.map_or(0, |after| after.as_millis()).to_string()),
    },
    Key {
        name: "budget_tokens",
        flag: Some("--budget-tokens"),
        doc: "How many tokens a whole tree may use, input and output together. The request that would go beyond it is not sent. No limit when it is not set.",
        example: "2_000_000",
        shape: Shape::Whole { min: 1, max: BUDGET_TOKENS_LIMIT, unit: "tokens", put: |c, n| c.budget_tokens = Some(n) },
        show: |c| c.budget_tokens.map(|n| n.to_string()),
    },
    Key {
        name: "budget_usd",
        flag: Some("--budget-usd"),
        doc: "How many US dollars a whole tree may use, by the prices in `[models.\"NAME\"]`; every model of the tree needs one. The request that would go beyond it is not sent. No limit when it is not set.",
        example: "2.50",
        shape: Shape::Usd { max: BUDGET_USD_LIMIT, put: |c, n| c.budget_usd = Some(n) },
        show: |c| c.budget_usd.map(usd),
    },
    Key {
        name: "agent_budget_tokens",
        flag: None,
        doc: "How many tokens any single agent may use, those below it left out. No limit when it is not set.",
        example: "500_000",
        shape: Shape::Whole {
            min: 1,
            max: BUDGET_TOKENS_LIMIT,
            unit: "tokens",
            put: |c, n| c.agent_budget_tokens = Some(n),
        },
        show: |c| c.agent_budget_tokens.map(|n| n.to_string()),
    },
    Key {
        name: "agent_budget_usd",
        flag: None,
        doc: "How many US dollars any single agent may use, those below it left out. No limit when it is not set.",
        example: "0.75",
        shape: Shape::Usd { max: BUDGET_USD_LIMIT, put: |c, n| c.agent_budget_usd = Some(n) },
        show: |c| c.agent_budget_usd.map(usd),
    },
];

pub(crate) const PROVIDER: &[Key<Provider>] = &[
    Key {
        name: "base_url",
        flag: None,
        doc: "The address before `/responses`, `/chat/completions` or `/messages`. A provider of your own needs one.",
        example: "\"http://127.0.0.1:8080/v1\"",
        shape: Shape::Text {
            expected: "an address that starts with http:// or https://, such as \"http://127.0.0.1:8080/v1\"",
            put: |p, text| {
                let text = text.trim().trim_end_matches('/');
                let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
                text.clone_into(&mut p.base_url);
                rest.is_some_and(|rest| {
                    !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace)
                })
            },
        },
        show: |p| (!p.base_url.is_empty()).then(|| quoted(&p.base_url)),
    },
    Key {
        name: "wire",
        flag: None,
        doc: "The protocol it speaks: `responses`, `chat` or `messages`.",
        example: "\"responses\"",
        shape: Shape::Text {
            expected: "\"responses\", \"chat\" or \"messages\"",
            put: |p, text| Wire::ALL.into_iter().find(|w| w.as_str() == text).map(|w| p.wire = w).is_some(),
        },
        show: |p| Some(quoted(p.wire.as_str())),
    },
    Key {
        name: "api_key_env",
        flag: None,
        doc: "The environment variable that holds its key. Not set, or \"\": no key is sent. Commands that agents run do not get this variable.",
        example: "\"LAB_KEY\"",
        shape: Shape::Variable { put: |p, name| p.api_key_env = (!name.is_empty()).then(|| name.to_owned()) },
        show: |p| p.api_key_env.as_deref().map(quoted),
    },
    Key {
        name: "idle_timeout_ms",
        flag: None,
        doc: "How many milliseconds it may say nothing in the middle of a reply before the request is tried again.",
        example: "60_000",
        shape: Shape::Whole {
            min: IDLE_TIMEOUT.0,
            max: IDLE_TIMEOUT.1,
            unit: "milliseconds",
            put: |p, n| p.idle_timeout = Duration::from_millis(n),
        },
        show: |p| Some(p.idle_timeout.as_millis().to_string()),
    },
    Key {
        name: "progress_timeout_ms",
        flag: None,
        doc: "How many milliseconds it may send signs of life only (comments, pings, empty pieces) and nothing of a reply before the request is tried again. Longer than the silence above: a model may think for minutes while its server beats.",
        example: "1_800_000",
        shape: Shape::Whole {
            min: IDLE_TIMEOUT.0,
            max: IDLE_TIMEOUT.1,
            unit: "milliseconds",
            put: |p, n| p.progress_timeout = Duration::from_millis(n),
        },
        show: |p| Some(p.progress_timeout.as_millis().to_string()),
    },
    Key {
        name: "connect_timeout_ms",
        flag: None,
        doc: "How many milliseconds a connection to it may take to stand, name look-up and TLS included.",
        example: "3_000",
        shape: Shape::Whole {
            min: CONNECT_TIMEOUT.0,
            max: CONNECT_TIMEOUT.1,
            unit: "milliseconds",
            put: |p, n| p.connect_timeout = Duration::from_millis(n),
        },
        show: |p| Some(p.connect_timeout.as_millis().to_string()),
    },
    Key {
        name: "unreachable_for_ms",
        flag: None,
        doc: "How many milliseconds it is tried again while nobody answers at its address, before the task ends with that error. 0 does not try again.",
        example: "120_000",
        shape: Shape::Whole {
            min: UNREACHABLE_FOR.0,
            max: UNREACHABLE_FOR.1,
            unit: "milliseconds",
            put: |p, n| p.unreachable_for = Duration::from_millis(n),
        },
        show: |p| Some(p.unreachable_for.as_millis().to_string()),
    },
];

pub(crate) const MODEL: &[Key<ModelFacts>] = &[
    Key {
        name: "window",
        flag: None,
        doc: "Its context window.",
        example: "400_000",
        shape: Shape::Whole { min: WINDOW.0, max: WINDOW.1, unit: "tokens", put: |m, n| m.window = Some(n) },
        show: |m| m.window.map(|n| n.to_string()),
    },
    Key {
        name: "input_usd_per_mtok",
        flag: None,
        doc: "US dollars for a million tokens of input.",
        example: "1.25",
        shape: Shape::Usd { max: PRICE_LIMIT, put: |m, n| m.input_usd_per_mtok = Some(n) },
        show: |m| m.input_usd_per_mtok.map(usd),
    },
    Key {
        name: "cached_input_usd_per_mtok",
        flag: None,
        doc: "US dollars for a million tokens of input that the server had cached. Not set: the full price.",
        example: "0.125",
        shape: Shape::Usd { max: PRICE_LIMIT, put: |m, n| m.cached_input_usd_per_mtok = Some(n) },
        show: |m| m.cached_input_usd_per_mtok.map(usd),
    },
    Key {
        name: "output_usd_per_mtok",
        flag: None,
        doc: "US dollars for a million tokens of output, reasoning included.",
        example: "10.0",
        shape: Shape::Usd { max: PRICE_LIMIT, put: |m, n| m.output_usd_per_mtok = Some(n) },
        show: |m| m.output_usd_per_mtok.map(usd),
    },
];

pub(crate) const PROVIDERS: Family = Family {
    name: "providers",
    header: "[providers.NAME]",
    doc: "A server of models. A table named like a built-in provider changes only the keys it names.",
};

pub(crate) const MODELS: Family = Family {
    name: "models",
    header: "[models.\"PROVIDER/NAME\"]",
    doc: "What is known of a model. The name stands in quotes, because it has a slash and often a dot.",
};

pub(crate) const PERMISSIONS: Family = Family {
    name: "permissions",
    header: "[permissions.NAME]",
    doc: "A named permission profile. Its keys are kept as they are; nothing interprets them yet.",
};

pub(crate) const PROFILES: Family = Family {
    name: "profiles",
    header: "[profiles.NAME]",
    doc: "Settings under a name, chosen with `--profile NAME`: any key and table of this page except `profiles`.",
};

pub(crate) const FAMILIES: [Family; 4] = [PROVIDERS, MODELS, PERMISSIONS, PROFILES];

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn usd(n: f64) -> String {
    toml::Value::Float(n).to_string()
}

/// Ranges are checked before, so it always fits.
fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
