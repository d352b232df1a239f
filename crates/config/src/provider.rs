//! Who serves models, and what is known of a model.

use std::time::Duration;

use stdx::Secret;

use crate::{ConfigError, Env};

/// How long a provider may say nothing in the middle of a reply, in milliseconds. Five minutes: a local model reads a
/// long prompt for minutes before its first token, and a hosted one may think as long.
pub const IDLE_TIMEOUT_MS: u64 = 300_000;

/// How long a provider may send signs of life only, and nothing of a reply, in milliseconds. Fifteen minutes: three
/// times the silence above, because a server that beats lives, and the largest models think for ten minutes and more.
pub const PROGRESS_TIMEOUT_MS: u64 = 900_000;

/// How long a connection may take to stand, in milliseconds: longer than the slowest usable line needs.
pub const CONNECT_TIMEOUT_MS: u64 = 10_000;

/// How long a provider is tried at whose address nobody answers, in milliseconds: a local server needs this to load a
/// model.
pub const UNREACHABLE_FOR_MS: u64 = 30_000;

/// The protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `POST base_url/responses`, as OpenAI's newer models want it.
    Responses,
    /// `POST base_url/chat/completions`, what nearly every compatible server speaks.
    Chat,
    /// `POST base_url/messages`, as Anthropic's models want it.
    Messages,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }
}

/// A server of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The address before `/responses`, `/chat/completions` or `/messages`, without a slash at its end.
    pub base_url: String,
    /// The protocol it speaks.
    pub wire: Wire,
    /// The variable that holds its key; `None` sends no key.
    pub api_key_env: Option<String>,
    /// How long it may say nothing in the middle of a reply.
    pub idle_timeout: Duration,
    /// How long it may send signs of life only, and nothing of a reply.
    pub progress_timeout: Duration,
    /// How long a connection to it may take to stand.
    pub connect_timeout: Duration,
    /// How long it is tried while nobody answers at its address.
    pub unreachable_for: Duration,
}

impl Provider {
    /// The key to send, if this provider wants one.
    ///
    /// # Errors
    /// When it wants one and its variable is not set.
    pub fn key(&self, name: &str, env: &Env) -> Result<Option<Secret>, ConfigError> {
        let Some(variable) = &self.api_key_env else { return Ok(None) };
        match env.key(variable) {
            Some(key) => Ok(Some(key)),
            None => Err(ConfigError::NoKey { provider: name.to_owned(), variable: variable.clone() }),
        }
    }
}

impl Default for Provider {
    /// A compatible server without a key, still without an address.
    fn default() -> Self {
        Self {
            base_url: String::new(),
            wire: Wire::Chat,
            api_key_env: None,
            idle_timeout: Duration::from_millis(IDLE_TIMEOUT_MS),
            progress_timeout: Duration::from_millis(PROGRESS_TIMEOUT_MS),
            connect_timeout: Duration::from_millis(CONNECT_TIMEOUT_MS),
            unreachable_for: Duration::from_millis(UNREACHABLE_FOR_MS),
        }
    }
}

/// A provider that needs no table: name, address, protocol, key variable.
pub(crate) type Known = (&'static str, &'static str, Wire, Option<&'static str>);

/// The providers that need no table, in the order in which their keys are looked for.
pub(crate) const KNOWN: &[Known] = &[
    ("openai", "https://api.openai.com/v1", Wire::Responses, Some("OPENAI_API_KEY")),
    ("anthropic", "https://api.anthropic.com/v1", Wire::Messages, Some("ANTHROPIC_API_KEY")),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", Wire::Chat, Some("GEMINI_API_KEY")),
    ("openrouter", "https://openrouter.ai/api/v1", Wire::Chat, Some("OPENROUTER_API_KEY")),
    ("deepseek", "https://api.deepseek.com/v1", Wire::Chat, Some("DEEPSEEK_API_KEY")),
    ("ollama", "http://127.0.0.1:11434/v1", Wire::Chat, None),
    ("lmstudio", "http://127.0.0.1:1234/v1", Wire::Chat, None),
    ("llamacpp", "http://127.0.0.1:8080/v1", Wire::Chat, None),
];

pub(crate) fn known() -> impl Iterator<Item = (&'static str, Provider)> {
    KNOWN.iter().map(|&(name, base_url, wire, key)| {
        let provider = Provider {
            base_url: base_url.to_owned(),
            wire,
            api_key_env: key.map(str::to_owned),
            ..Provider::default()
        };
        (name, provider)
    })
}

/// What the user says about a model. Prices are US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// The context window, in tokens.
    pub window: Option<u64>,
    /// Price of input that was not cached.
    pub input_usd_per_mtok: Option<f64>,
    /// Price of input that the server had cached; the full price when it is not set.
    pub cached_input_usd_per_mtok: Option<f64>,
    /// Price of output.
    pub output_usd_per_mtok: Option<f64>,
}
