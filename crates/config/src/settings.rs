//! All settings, and how they are put together.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use protocol::{Approval, Sandbox};
use stdx::AbsPath;
use toml::Value;

use crate::apply::{Log, apply, apply_file};
use crate::layer::{self, Table};
use crate::provider::{self, ModelFacts, Provider};
use crate::{ConfigError, Env, Origin, Warning, agent_home, keys};

/// How far commands may reach unless somebody says otherwise. What is in force is what is shown, so this stays
/// "no sandbox" for as long as there is none.
pub const SANDBOX: Sandbox = Sandbox::DangerFullAccess;
/// When a person is asked unless somebody says otherwise.
pub const APPROVAL: Approval = Approval::Never;
/// Turns that may work at once: what a provider's ordinary rate limit carries.
pub const MAX_RUNNING: usize = 8;
/// Agents in memory at once: several times those that run, so that a parent and its children stay warm.
pub const MAX_RESIDENT: usize = 64;
/// Levels below the root: a task split four times over is as fine as tasks get.
pub const MAX_DEPTH: usize = 4;
/// Agents ever spawned in a tree: a tree that wants more has run away.
pub const MAX_AGENTS: usize = 2_000;
/// How long an agent may work without anything coming of it until it is said to be stalled, in milliseconds. Five
/// minutes: the reply of a model that thinks, and a command that builds, mostly show something before.
pub const STALL_AFTER_MS: u64 = 300_000;
/// Largest `config.toml`, in bytes. A file beyond it is not a configuration.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The settings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The model as the user wrote it; see [`crate::model_choice`].
    pub model: Option<String>,
    /// How far commands may reach.
    pub sandbox: Sandbox,
    /// When a person is asked.
    pub approval: Approval,
    /// The roles a tree may use; empty for all.
    pub roles: Vec<String>,
    /// Folders of projects whose own files are read.
    pub trusted_projects: Vec<String>,
    /// Turns that may work at once.
    pub max_running: usize,
    /// Agents that may be in memory at once.
    pub max_resident: usize,
    /// Levels below the root.
    pub max_depth: usize,
    /// Agents ever spawned in a tree.
    pub max_agents: usize,
    /// How long an agent may work without anything coming of it until it is said to be stalled; `None` never says so.
    pub stall_after: Option<Duration>,
    /// Tokens a tree may use.
    pub budget_tokens: Option<u64>,
    /// US dollars a tree may use.
    pub budget_usd: Option<f64>,
    /// Tokens any single agent may use.
    pub agent_budget_tokens: Option<u64>,
    /// US dollars any single agent may use.
    pub agent_budget_usd: Option<f64>,
    /// Servers of models by name, built-in ones included.
    pub providers: BTreeMap<String, Provider>,
    /// What the user says about models, by `provider/name`.
    pub models: BTreeMap<String, ModelFacts>,
    /// Permission profiles by name, as they stand in the file.
    pub permissions: BTreeMap<String, toml::Table>,
    origins: BTreeMap<String, Origin>,
}

/// What the command line says about settings. `None` leaves a key to the layers below.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// `--profile`.
    pub profile: Option<String>,
    /// The arguments of every `-c`, in their order.
    pub overrides: Vec<String>,
    /// `--strict-config`: whether an unknown key is an error.
    pub strict: bool,
    /// `--model`.
    pub model: Option<String>,
    /// `--sandbox`; checked here, so that a wrong word is explained as in a file.
    pub sandbox: Option<String>,
    /// `--approval`; checked here too.
    pub approval: Option<String>,
    /// `--roles`.
    pub roles: Option<Vec<String>>,
    /// `--max-running`.
    pub max_running: Option<u64>,
    /// `--max-resident`.
    pub max_resident: Option<u64>,
    /// `--budget-tokens`.
    pub budget_tokens: Option<u64>,
    /// `--budget-usd`.
    pub budget_usd: Option<f64>,
}

/// Settings that could be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// What was passed over, in the order in which it stands; for stderr.
    pub warnings: Vec<Warning>,
    /// The file that belongs to them, whether or not it exists.
    pub file: AbsPath,
}

impl Default for Config {
    /// The settings when nobody says anything.
    fn default() -> Self {
        Self {
            model: None,
            sandbox: SANDBOX,
            approval: APPROVAL,
            roles: Vec::new(),
            trusted_projects: Vec::new(),
            max_running: MAX_RUNNING,
            max_resident: MAX_RESIDENT,
            max_depth: MAX_DEPTH,
            max_agents: MAX_AGENTS,
            stall_after: Some(Duration::from_millis(STALL_AFTER_MS)),
            budget_tokens: None,
            budget_usd: None,
            agent_budget_tokens: None,
            agent_budget_usd: None,
            providers: provider::known().map(|(name, provider)| (name.to_owned(), provider)).collect(),
            models: BTreeMap::new(),
            permissions: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Puts the layers together, each over the ones before: defaults, `config.toml` in [`agent_home`], the profile,
    /// every `-c`, flags. A file that is not there is an empty one.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML, when a value is wrong in any layer or profile (used or not),
    /// when there is no such profile, and, if [`Flags::strict`] is set, when a key is not known.
    pub fn load(env: &Env, flags: &Flags) -> Result<Loaded, ConfigError> {
        let path = agent_home(env)?.join("config.toml");
        let shown = env.tilde(&path);
        let table = match read(&path, &shown)? {
            Some(text) => layer::file(&shown, &text)?,
            None => Table::new(),
        };
        let mut config = Self::default();
        let mut log = Log::default();
        apply_file(&mut config, &table, flags.profile.as_deref(), &shown, &mut log)?;
        for argument in &flags.overrides {
            apply(&mut config, &layer::pair(argument)?, &[], &mut log)?;
        }
        apply(&mut config, &flags.layer(), &[], &mut log)?;
        config.origins = log.origins;

        let without = config.providers.iter().find(|(_, provider)| provider.base_url.is_empty());
        if let Some((name, _)) = without {
            let origin = config.origin(&format!("providers.{name}"));
            return Err(ConfigError::NoBaseUrl { name: name.clone(), origin });
        }
        match log.warnings.first() {
            Some(warning) if flags.strict => Err(ConfigError::Strict(warning.clone())),
            _ => Ok(Loaded { config, warnings: log.warnings, file: path }),
        }
    }

    /// Where the value of `key` came from, for example of `max_running` or `providers.lab.wire`.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Every key of the top level with its value as it would stand in a file (`None`: not set) and its origin.
    pub fn settings(&self) -> Vec<(&'static str, Option<String>, Origin)> {
        keys::TOP.iter().map(|key| (key.name, (key.show)(self), self.origin(key.name))).collect()
    }

    /// The built-in providers that need no key, in the order in which they are asked when nothing else says which
    /// model to use.
    pub fn local_servers(&self) -> Vec<(&str, &Provider)> {
        let local = provider::KNOWN.iter().filter(|(_, _, _, key)| key.is_none());
        local.filter_map(|(name, ..)| Some((*name, self.providers.get(*name)?))).collect()
    }

    /// The variables that hold keys: those of the built-in providers, even where a table names another one, and all
    /// that tables name.
    pub(crate) fn key_variables(&self) -> Vec<&str> {
        let built_in = provider::KNOWN.iter().filter_map(|&(_, _, _, key)| key);
        built_in.chain(self.providers.values().filter_map(|p| p.api_key_env.as_deref())).collect()
    }
}

impl Flags {
    /// The flags that were given, as a layer.
    fn layer(&self) -> Table {
        let text = |value: &Option<String>| value.clone().map(Value::String);
        // What TOML cannot hold is out of every range; as a text it is refused with its digits.
        let whole = |value: Option<u64>| {
            value.map(|n| i64::try_from(n).map_or_else(|_| Value::String(n.to_string()), Value::Integer))
        };
        let names = |names: &Vec<String>| Value::Array(names.iter().cloned().map(Value::String).collect());
        let given = [
            ("model", "--model", text(&self.model)),
            ("sandbox", "--sandbox", text(&self.sandbox)),
            ("approval", "--approval", text(&self.approval)),
            ("roles", "--roles", self.roles.as_ref().map(names)),
            ("max_running", "--max-running", whole(self.max_running)),
            ("max_resident", "--max-resident", whole(self.max_resident)),
            ("budget_tokens", "--budget-tokens", whole(self.budget_tokens)),
            ("budget_usd", "--budget-usd", self.budget_usd.map(Value::Float)),
        ];
        let set = |(key, flag, value): (&str, _, Option<Value>)| Some(layer::single(key, value?, Origin::Flag(flag)));
        given.into_iter().filter_map(set).collect()
    }
}

/// The text of a file; `None` when there is no such file.
fn read(path: &AbsPath, shown: &str) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { file: shown.to_owned(), reason };
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::PermissionDenied => unreadable("permission denied; make it readable with `chmod u+r`".to_owned()),
        _ => unreadable(error.to_string()),
    };
    // Looked at before it is opened: opening a pipe would wait for a writer.
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(unreadable("it is a folder; settings go into a file of that name".to_owned()));
        }
        Ok(found) if !found.is_file() => return Err(unreadable("it is not an ordinary file".to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(unreadable(format!("it has more than {MAX_CONFIG_BYTES} bytes, which no configuration has")));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|b| *b == b'\n').count();
        unreadable(format!("line {line} is not UTF-8; save the file as UTF-8"))
    })
}

#[cfg(test)]
mod tests;
