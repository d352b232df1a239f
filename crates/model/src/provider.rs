//! Providers, and how a name such as `openai/gpt-5.5` becomes a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Http;
use stdx::{AbsPath, Secret, nearest};

use crate::chat::Chat;
use crate::messages::Messages;
use crate::remote::Remote;
use crate::responses::Responses;
use crate::script::Script;
use crate::{Model, OpenError, local, rehearsal};

/// How long a server may send nothing, before its answer begins or within it, until we take it for dead. Reasoning
/// models are silent for minutes on servers that stream no reasoning; beyond this a person would give up too.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// How long a server may beat (comments, pings, empty pieces) and send nothing of a reply, until the request is given
/// up. Three times [`IDLE_TIMEOUT`]: a server that beats lives, and the largest models think for ten minutes and more
/// behind such beats before their first word; beyond this the request is more likely lost than thought about.
pub const PROGRESS_TIMEOUT: Duration = Duration::from_mins(15);

/// How long a server at whose address nobody answers is tried, from the first refusal on: a local one needs this to
/// load a model.
pub const UNREACHABLE_FOR: Duration = Duration::from_secs(30);

/// The protocol a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions.
    Chat,
    /// Anthropic Messages.
    Messages,
}

impl Wire {
    /// Its name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// What stands behind a provider's address.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }

    /// Its name for people.
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Responses => "Responses",
            Self::Chat => "Chat Completions",
            Self::Messages => "Messages",
        }
    }
}

/// A server and how to speak to it.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name: what stands before the slash.
    pub name: String,
    /// Where it lives, without `/responses`, `/chat/completions` or `/messages`.
    pub base_url: String,
    /// Its protocol.
    pub wire: Wire,
    /// Its key, if one was found.
    pub api_key: Option<Secret>,
    /// The variable its key comes from; none for a server that wants no key.
    pub key_env: Option<String>,
    /// Whether it takes free-text tools with a grammar on the Responses wire. Others get functions instead, and so does
    /// every provider on the other wires.
    pub custom_tools: bool,
    /// How long it may be silent.
    pub idle_timeout: Duration,
    /// How long it may send signs of life only, and nothing of a reply.
    pub progress_timeout: Duration,
    /// How long a connection to it may take to stand.
    pub connect_timeout: Duration,
    /// How long it is tried while nobody answers at its address.
    pub unreachable_for: Duration,
}

impl Provider {
    /// A provider without a key. Only the official `openai` is taken to know free-text tools.
    pub fn new(name: impl Into<String>, base_url: impl Into<String>, wire: Wire) -> Self {
        let name = name.into();
        Self {
            custom_tools: name == "openai",
            name,
            base_url: base_url.into(),
            wire,
            api_key: None,
            key_env: None,
            idle_timeout: IDLE_TIMEOUT,
            progress_timeout: PROGRESS_TIMEOUT,
            connect_timeout: http::CONNECT_TIMEOUT,
            unreachable_for: UNREACHABLE_FOR,
        }
    }

    /// Says which variable the key comes from, and the key if it is there. A blank key counts as none.
    #[must_use]
    pub fn with_key(mut self, variable: impl Into<String>, key: Option<Secret>) -> Self {
        self.key_env = Some(variable.into());
        self.api_key = key.filter(|key| !key.expose().trim().is_empty());
        self
    }
}

/// Everything that can be opened by name.
#[derive(Debug)]
pub struct Catalog {
    providers: BTreeMap<String, Provider>,
    http: Http,
    windows: BTreeMap<String, u64>,
    cwd: AbsPath,
}

impl Catalog {
    /// Takes the providers in force, the connections, the known windows (tokens, by `provider/name`) and the folder
    /// that relative script files are looked up in. Nothing is read or connected before it is needed.
    pub fn new(
        providers: impl IntoIterator<Item = Provider>,
        http: Http,
        windows: BTreeMap<String, u64>,
        cwd: AbsPath,
    ) -> Self {
        let providers = providers.into_iter().map(|provider| (provider.name.clone(), provider)).collect();
        Self { providers, http, windows, cwd }
    }

    /// Opens `provider/name`, `rehearsal` or `script:FILE`. The file is read here, once; the model's id then holds
    /// its absolute path, so that it can be opened again from anywhere.
    ///
    /// # Errors
    /// When the name means nothing, a key is missing, or the script cannot be used.
    pub fn open(&self, name: &str) -> Result<Arc<dyn Model>, OpenError> {
        if name == rehearsal::NAME {
            return Ok(Arc::new(rehearsal::open()?));
        }
        if let Some(file) = name.strip_prefix("script:") {
            return Ok(Arc::new(Script::read(&self.cwd.join(file))?));
        }
        if name.starts_with("tape:") {
            return Err(OpenError::TapeNotBuilt(name.to_owned()));
        }
        let (provider, model) = match name.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.trim().is_empty() => (provider, model),
            _ => return Err(OpenError::NotAModel(stdx::one_line(name, 80))),
        };
        let provider = self.providers.get(provider).ok_or_else(|| self.unknown(provider))?;
        if let (Some(variable), None) = (&provider.key_env, &provider.api_key) {
            return Err(OpenError::NoKey { provider: provider.name.clone(), variable: variable.clone() });
        }
        let window = self.windows.get(name).copied();
        let http = self.http.clone();
        Ok(match provider.wire {
            Wire::Responses => Arc::new(Remote::new(Responses::new(provider), provider, model, window, http)),
            Wire::Chat => Arc::new(Remote::new(Chat::new(provider), provider, model, window, http)),
            Wire::Messages => Arc::new(Remote::new(Messages::new(provider), provider, model, window, http)),
        })
    }

    /// Asks servers, given by name and address, which models they have: all at once, each within [`LOCAL_TIMEOUT`].
    /// Those that answered, in the order given; a server that has no model yet answers with an empty list.
    ///
    /// [`LOCAL_TIMEOUT`]: crate::LOCAL_TIMEOUT
    pub async fn local_servers(&self, servers: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        local::servers(&self.http, servers, local::LOCAL_TIMEOUT).await
    }

    fn unknown(&self, name: &str) -> OpenError {
        let names = || self.providers.keys().map(String::as_str);
        OpenError::UnknownProvider {
            name: stdx::one_line(name, 80),
            known: names().collect::<Vec<_>>().join(", "),
            meant: nearest(name, names()).map(str::to_owned),
        }
    }
}

/// Whether a model of this name is played by the program itself, without a provider that bills.
pub fn is_played(name: &str) -> bool {
    name == rehearsal::NAME || name.starts_with("script:")
}

#[cfg(test)]
mod tests;
