//! The environment, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use stdx::{AbsPath, Secret};

use crate::{Config, ConfigError};

/// What the environment was when the program started. Nothing else of the program looks at it again.
///
/// A variable that is set to nothing counts as not set.
#[derive(Clone, PartialEq, Eq)]
pub struct Env(BTreeMap<OsString, OsString>);

/// Addresses of proxies, as the user wrote them. The lower-case name of a variable wins over the upper-case one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http` addresses: `http_proxy`.
    pub http: Option<String>,
    /// For `https` addresses: `https_proxy`.
    pub https: Option<String>,
    /// For both, where there is none of their own: `all_proxy`.
    pub all: Option<String>,
    /// Hosts that are reached directly: `no_proxy`.
    pub no: Option<String>,
}

impl Env {
    /// The environment of this process.
    #[expect(clippy::disallowed_methods, reason = "this is the crate that reads the environment")]
    pub fn capture() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// An environment of these variables only.
    pub fn from_pairs<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// What a command that an agent runs finds in its environment: everything that was captured, except the
    /// variables that hold a provider's API key (built-in providers and every configured `api_key_env`). A model
    /// decides what runs there, and one `env` would otherwise put the key that pays for the model into its context.
    pub fn for_commands(&self, config: &Config) -> Vec<(OsString, OsString)> {
        let keys = config.key_variables();
        self.0
            .iter()
            .filter(|(name, _)| !keys.iter().any(|key| name.as_os_str() == OsStr::new(key)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The API key in the variable `name`. White space around it is dropped: it comes from a copied line.
    pub fn key(&self, name: &str) -> Option<Secret> {
        let text = self.text(name)?.trim();
        (!text.is_empty()).then(|| Secret::new(text))
    }

    /// `AGENT_LOG`: what is written to the log.
    pub fn log(&self) -> Option<&str> {
        self.text("AGENT_LOG")
    }

    /// `NO_COLOR`: whether output must stay without colour.
    pub fn no_color(&self) -> bool {
        self.get("NO_COLOR").is_some()
    }

    /// The proxies.
    pub fn proxies(&self) -> Proxies {
        let either = |name: &str| {
            let found = self.text(name).or_else(|| self.text(&name.to_ascii_uppercase()));
            found.map(str::to_owned)
        };
        Proxies {
            http: either("http_proxy"),
            https: either("https_proxy"),
            all: either("all_proxy"),
            no: either("no_proxy"),
        }
    }

    /// `HOME`, when it is absolute.
    pub fn home(&self) -> Option<AbsPath> {
        self.folder("HOME")
    }

    /// `PATH`, as it stands.
    pub fn path(&self) -> Option<&OsStr> {
        self.get("PATH")
    }

    /// `SHELL`, when it is absolute.
    pub fn shell(&self) -> Option<AbsPath> {
        self.folder("SHELL")
    }

    /// `TERM`.
    pub fn term(&self) -> Option<&str> {
        self.text("TERM")
    }

    /// `TMPDIR` when it is absolute, else `/tmp`.
    pub fn tmp_dir(&self) -> Option<AbsPath> {
        self.folder("TMPDIR").or_else(|| AbsPath::new("/tmp").ok())
    }

    /// `XDG_RUNTIME_DIR`, when it is absolute.
    pub fn runtime_dir(&self) -> Option<AbsPath> {
        self.folder("XDG_RUNTIME_DIR")
    }

    /// `SSL_CERT_FILE`, when it is absolute.
    pub fn ssl_cert_file(&self) -> Option<AbsPath> {
        self.folder("SSL_CERT_FILE")
    }

    /// `SSL_CERT_DIR`, when it is absolute.
    pub fn ssl_cert_dir(&self) -> Option<AbsPath> {
        self.folder("SSL_CERT_DIR")
    }

    /// `path` the way a person would write it: below their home folder with a `~`.
    pub fn tilde(&self, path: &AbsPath) -> String {
        let below =
            self.home().and_then(|home| path.strip_prefix(home.as_path()).ok().map(std::path::Path::to_path_buf));
        match below {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => path.to_string(),
        }
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    fn folder(&self, name: &str) -> Option<AbsPath> {
        AbsPath::new(self.get(name)?).ok()
    }
}

impl fmt::Debug for Env {
    /// Names only: values may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where everything that must outlive the program is kept: `AGENT_HOME`, else `.agent` in the home folder.
///
/// # Errors
/// When `AGENT_HOME` is relative, or when neither it nor `HOME` says where to look.
pub fn agent_home(env: &Env) -> Result<AbsPath, ConfigError> {
    let not_absolute = |name, value: &OsStr| ConfigError::RelativeHome { name, value: value.to_string_lossy().into() };
    if let Some(value) = env.get("AGENT_HOME") {
        return AbsPath::new(value).map_err(|_| not_absolute("AGENT_HOME", value));
    }
    match env.get("HOME") {
        Some(value) => AbsPath::new(value).map(|home| home.join(".agent")).map_err(|_| not_absolute("HOME", value)),
        None => Err(ConfigError::NoHome),
    }
}

#[cfg(test)]
mod tests;
