//! The wiring: from flags, environment and files to what a tree is driven with.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use budget::Price;
use config::{Config, ConfigError, Env, Flags, Loaded};
use http::Http;
use mirror::Mirror;
use model::{Catalog, Provider, RetryLimits, Wire};
use orchestrator::Options;
use protocol::{Approval, Sandbox};
use rollout::{Budgets, Disk, Limits, OwnerHint, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stdx::AbsPath;
use tools::Workbench;

use crate::cli::Common;
use crate::exit::Failure;
use crate::{output, roles};

/// What every command starts with.
pub(crate) struct Setting {
    pub(crate) common: Common,
    pub(crate) env: Env,
    pub(crate) cwd: AbsPath,
    /// Where the command was typed: `script:FILE` is relative to it, whatever `-C` says.
    called_in: AbsPath,
    pub(crate) store: Store,
    mirror: OnceLock<Mirror>,
}

impl Setting {
    /// Finds the working folder and the home. Nothing is made yet.
    pub(crate) fn new(common: Common, env: Env, disk: Arc<dyn Disk>) -> Result<Self, Failure> {
        let cwd = folder(common.cd.as_deref())?;
        // With `-C` the present folder need not even exist.
        let called_in = folder(None).unwrap_or_else(|_| cwd.clone());
        let home = config::agent_home(&env)?;
        if home.exists() && !home.is_dir() {
            let failure = Failure::usage(format!("trees are kept in {}, and that is not a folder", env.tilde(&home)));
            return Err(failure.hint("set AGENT_HOME to a folder; it is made when it is not there"));
        }
        Ok(Self { store: Store::new(home, disk), common, env, cwd, called_in, mirror: OnceLock::new() })
    }

    /// The configuration in force. Its warnings go to stderr.
    pub(crate) fn config(&self, roles: Option<Vec<String>>) -> Result<Config, Failure> {
        let loaded = self.load(roles)?;
        for warning in &loaded.warnings {
            output::note(&format!("warning: {warning}"));
        }
        Ok(loaded.config)
    }

    /// The configuration in force, with its warnings.
    pub(crate) fn load(&self, roles: Option<Vec<String>>) -> Result<Loaded, ConfigError> {
        let common = &self.common;
        let flags = Flags {
            profile: common.profile.clone(),
            overrides: common.set.clone(),
            strict: common.strict_config,
            model: common.model.clone(),
            sandbox: common.sandbox.clone(),
            approval: common.approval.clone(),
            roles,
            max_running: common.max_running,
            max_resident: common.max_resident,
            budget_tokens: common.budget_tokens,
            budget_usd: common.budget_usd,
        };
        Config::load(&self.env, &flags)
    }

    /// What follows the rollouts. Opened when it is first asked for.
    pub(crate) fn mirror(&self) -> &Mirror {
        self.mirror.get_or_init(|| {
            let (mirror, trouble) = Mirror::open(self.store.home());
            if let Some(trouble) = trouble {
                output::note(&format!("warning: {trouble}"));
            }
            mirror
        })
    }

    /// What a tree is driven with. `model` is what a new root talks to, or what replaces the models of a tree that
    /// exists.
    pub(crate) fn options(&self, config: &Config, model: Option<String>) -> Result<Options, Failure> {
        refuse_unbuilt(config)?;
        let mut providers = Vec::new();
        for (name, provider) in &config.providers {
            let wire = match provider.wire {
                config::Wire::Responses => Wire::Responses,
                config::Wire::Chat => Wire::Chat,
                config::Wire::Messages => Wire::Messages,
            };
            let mut known = Provider::new(name.clone(), provider.base_url.clone(), wire);
            known.idle_timeout = provider.idle_timeout;
            known.progress_timeout = provider.progress_timeout;
            known.connect_timeout = provider.connect_timeout;
            known.unreachable_for = provider.unreachable_for;
            if let Some(variable) = &provider.api_key_env {
                known = known.with_key(variable.clone(), self.env.key(variable));
            }
            providers.push(known);
        }
        let windows: BTreeMap<String, u64> =
            config.models.iter().filter_map(|(name, facts)| Some((name.clone(), facts.window?))).collect();
        let http = Http::new(proxies(&self.env));
        let environment = exec::Environment::new(self.env.for_commands(config));
        let shell = exec::Shell::find(&environment).map_err(|error| Failure::usage(error.to_string()))?;
        let workbench = Workbench::new(environment).map_err(|error| Failure::usage(error.to_string()))?;
        let limits = Limits {
            max_running: config.max_running,
            max_resident: config.max_resident,
            max_depth: config.max_depth,
            max_agents: config.max_agents,
            roles: config.roles.clone(),
            budgets: Budgets {
                tokens: config.budget_tokens,
                usd: config.budget_usd,
                agent_tokens: config.agent_budget_tokens,
                agent_usd: config.agent_budget_usd,
            },
        };
        let (roles, problems) = roles::load(self, config);
        for problem in problems {
            output::note(&format!("warning: {problem}"));
        }
        let roles = roles.restrict(&limits.roles).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Options {
            store: self.store.clone(),
            mirror: self.mirror().clone(),
            catalog: Arc::new(Catalog::new(providers, http, windows, self.called_in.clone())),
            workshop: Arc::new(workbench),
            roles,
            owner: this_process(),
            alive,
            limits,
            prices: prices(config),
            sandbox: config.sandbox,
            approval: config.approval,
            model,
            effort: None,
            cwd: self.cwd.clone(),
            shell: shell.program().display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            retry: RetryLimits::default(),
            stall_after: config.stall_after,
        })
    }
}

/// Open files that are enough for the largest tree in memory. Not all that the system allows: commands inherit it, and
/// some programs close every file up to the limit before they begin.
const OPEN_FILES: u64 = 65_536;

/// Lets this process have more open files than a shell gives it: each agent in memory has its rollout open, each
/// command its pipes. Where that is refused, what there is has to do.
pub(crate) fn raise_limits() {
    let files = getrlimit(Resource::Nofile);
    let wanted = files.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if files.current.is_some_and(|now| now < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: files.maximum });
    }
}

/// The proxies that the environment names.
pub(crate) fn proxies(env: &Env) -> http::Proxies {
    let proxies = env.proxies();
    http::Proxies { http: proxies.http, https: proxies.https, all: proxies.all, none: proxies.no }
}

/// What this process says about itself to others who want its tree.
pub(crate) fn this_process() -> OwnerHint {
    let pid = std::process::id();
    let start_time = i32::try_from(pid).ok().and_then(exec::start_time).unwrap_or(0);
    OwnerHint { pid, start_time, socket: None }
}

/// Whether the process that a hint names still lives.
pub(crate) fn alive(owner: &OwnerHint) -> bool {
    i32::try_from(owner.pid).is_ok_and(|pid| exec::lives(pid, owner.start_time))
}

/// What models cost. One whose input or output has no price has none.
fn prices(config: &Config) -> BTreeMap<String, Price> {
    let price = |facts: &config::ModelFacts| {
        let (input, output) = (facts.input_usd_per_mtok?, facts.output_usd_per_mtok?);
        Some(Price { input, cached_input: facts.cached_input_usd_per_mtok.unwrap_or(input), output })
    };
    config.models.iter().filter_map(|(name, facts)| Some((name.clone(), price(facts)?))).collect()
}

/// A mode that nothing enforces yet is refused, not pretended.
fn refuse_unbuilt(config: &Config) -> Result<(), Failure> {
    if config.sandbox != Sandbox::DangerFullAccess {
        let origin = config.origin("sandbox");
        return Err(Failure::usage(format!(
            "sandbox `{}` ({origin}) cannot be enforced by this version: it has no sandbox yet",
            config.sandbox.as_str()
        ))
        .hint("`--sandbox danger-full-access` runs commands with everything you may do"));
    }
    if config.approval != Approval::Never {
        let origin = config.origin("approval");
        return Err(Failure::usage(format!(
            "approval `{}` ({origin}) cannot be kept by this version: it asks nobody yet",
            config.approval.as_str()
        ))
        .hint("`--approval never` says so"));
    }
    Ok(())
}

/// The folder to work in, as the system knows it.
#[expect(clippy::disallowed_methods, reason = "the command is the one place that knows a working directory")]
fn folder(cd: Option<&Path>) -> Result<AbsPath, Failure> {
    let (path, shown) = match cd {
        Some(cd) => (std::fs::canonicalize(cd), cd.display().to_string()),
        None => (std::env::current_dir(), "the working folder".to_owned()),
    };
    let path =
        path.map_err(|error| Failure::usage(format!("cannot work in {shown}: {error}")).hint("-C DIR names another"))?;
    if !path.is_dir() {
        return Err(Failure::usage(format!("cannot work in {shown}: it is not a folder")).hint("-C DIR names another"));
    }
    AbsPath::new(path).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            refuse_unbuilt(&config).err().map(|failure| (failure.code(), failure.message))
        };
        assert!(with(|_| ()).is_none(), "the defaults are");
        for (change, key) in [
            ((|c| c.sandbox = Sandbox::ReadOnly) as fn(&mut Config), "sandbox `read-only`"),
            (|c| c.approval = Approval::Untrusted, "approval `untrusted`"),
        ] {
            let (code, message) = with(change).unwrap();
            assert!(code == crate::exit::USAGE && message.starts_with(key), "{message}");
        }
    }
}
