//! What can be wrong with the settings, each in one sentence, with hints that say what to do.

use std::fmt;

use crate::Origin;

/// Characters of a wrong value or a wrong line that a message repeats: enough to recognise it.
pub(crate) const QUOTE: usize = 120;

/// Why the settings cannot be used. The text is one sentence; [`ConfigError::hints`] has what helps further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Neither `AGENT_HOME` nor `HOME` is set.
    #[error("neither AGENT_HOME nor HOME is set; set AGENT_HOME to the folder where trees shall be kept")]
    NoHome,
    /// The folder is relative, so it would be another one in every working folder.
    #[error("{name} is `{value}`, which is relative; set {} to an absolute path", if *.name == "HOME" { "HOME or AGENT_HOME" } else { "it" })]
    RelativeHome {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The file is there and cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{file}:{line}:{column} is not valid TOML: {reason}\n{quote}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
        /// The line with a mark below the character.
        quote: String,
    },
    /// A `-c` that is not `key=value`.
    #[error("`-c {0}` is not key=value; write it as in `-c max_running=4`")]
    Override(String),
    /// A value of the wrong type or out of range.
    #[error("bad value for {key} in {origin}: expected {expected}, found {found}")]
    Value {
        /// The key, with its table.
        key: String,
        /// Where it is.
        origin: Origin,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// An unknown key, under `--strict-config`.
    #[error("unknown key {} in {}; {}", .0.key, .0.origin, .0.advice)]
    Strict(Warning),
    /// No such profile.
    #[error("there is no profile `{name}` in {file}; {}", one_of("profiles there", .known, "add a table [profiles.NAME] or leave --profile out"))]
    NoProfile {
        /// The name asked for.
        name: String,
        /// Where it was looked for.
        file: String,
        /// The names there.
        known: Vec<String>,
    },
    /// A provider of the user's own without an address.
    #[error(
        "provider `{name}` in {origin} has no base_url; add base_url = \"http://127.0.0.1:8080/v1\" or whatever its address is"
    )]
    NoBaseUrl {
        /// The provider.
        name: String,
        /// Where it is.
        origin: Origin,
    },
    /// A model that is not `provider/name`.
    #[error("model `{model}` in {origin} names no provider; write PROVIDER/NAME, for example `{example}`")]
    ModelForm {
        /// The model.
        model: String,
        /// Where it is.
        origin: Origin,
        /// The form filled in.
        example: String,
    },
    /// `script:` without a file.
    #[error("model `{model}` in {origin} names no file; write it as in `{model}demo.toml`")]
    ModelFile {
        /// The model.
        model: String,
        /// Where it is.
        origin: Origin,
    },
    /// A model of a provider that nobody described.
    #[error("model `{model}` in {origin} names the unknown provider `{}`{}", provider_of(.model), did_you_mean(.nearest.as_deref()))]
    NoProvider {
        /// The model.
        model: String,
        /// Where it is.
        origin: Origin,
        /// The known provider nearest to its own.
        nearest: Option<String>,
        /// All known providers.
        known: Vec<String>,
    },
    /// No model is set and no key is there to choose one by.
    #[error("no model is set and none of the key variables is")]
    NoModel {
        /// The key variables that were looked at.
        variables: Vec<String>,
    },
    /// A provider whose key variable is not set.
    #[error("provider `{provider}` needs a key, and {variable} is not set; run `export {variable}=…` first")]
    NoKey {
        /// The provider.
        provider: String,
        /// The variable that should hold the key.
        variable: String,
    },
}

impl ConfigError {
    /// What to do about it, beyond what the sentence says; each is a line of its own.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoModel { variables } => vec![
                format!("set a key: export {}=…", variables.join("=…, or ")),
                "name a model: --model PROVIDER/NAME, for example --model openai/gpt-5.5 or --model ollama/qwen3"
                    .to_owned(),
                "describe a server of your own in config.toml:\n\
                 [providers.lab]\n\
                 base_url = \"http://127.0.0.1:8080/v1\"\n\
                 wire = \"responses\""
                    .to_owned(),
                "try it out with --model rehearsal: it needs neither a key nor a network, and cannot think".to_owned(),
            ],
            Self::NoProvider { known, model, .. } => vec![
                format!("known providers: {}", known.join(", ")),
                format!(
                    "or describe it in config.toml: [providers.{}] with base_url = \"…\" and wire = \"responses\"",
                    provider_of(model)
                ),
            ],
            Self::ModelForm { model, .. } => {
                let meant = stdx::nearest(model, ["rehearsal"]).map(|meant| format!("did you mean `{meant}`?"));
                let without = "`rehearsal` and `script:FILE` are the only models without a provider".to_owned();
                meant.into_iter().chain([without]).collect()
            }
            Self::NoKey { .. } => vec!["`--model rehearsal` needs neither a key nor a network".to_owned()],
            Self::Strict(_) => vec!["without --strict-config this is a warning and the key is ignored".to_owned()],
            _ => Vec::new(),
        }
    }
}

/// Something in the settings that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The key, with its table.
    pub key: String,
    /// Where it is.
    pub origin: Origin,
    /// What to do about it.
    pub advice: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown key {} in {} is ignored; {}", self.key, self.origin, self.advice)
    }
}

fn provider_of(model: &str) -> &str {
    model.split('/').next().unwrap_or(model)
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default()
}

fn one_of(what: &str, known: &[String], none: &str) -> String {
    if known.is_empty() { none.to_owned() } else { format!("{what}: {}", known.join(", ")) }
}
