//! `agent doctor`: config, keys, providers, sandbox, stores; each line ok, warn or fail, with what to do.

use config::{Config, Env, Provider};
use http::Http;
use orchestrator::list;
use protocol::Sandbox;
use serde_json::json;
use stdx::{AbsPath, one_line};

use crate::exit::{self, Failure};
use crate::output;
use crate::roles;
use crate::wire::{Setting, proxies};

/// How much room there should be, in MiB: below it a busy tree may fill the disk within a day.
const LOW_DISK_MIB: u64 = 512;

/// How well one thing stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Fail,
}

impl Grade {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

struct Line {
    grade: Grade,
    subject: String,
    text: String,
}

#[derive(Default)]
struct Findings(Vec<Line>);

impl Findings {
    fn add(&mut self, grade: Grade, subject: impl Into<String>, text: impl Into<String>) {
        self.0.push(Line { grade, subject: subject.into(), text: text.into() });
    }
}

pub(super) async fn doctor(setting: &Setting) -> Result<u8, Failure> {
    let mut findings = Findings::default();
    home(setting, &mut findings);
    let config = match setting.load(None) {
        Ok(loaded) => {
            let file = setting.env.tilde(&loaded.file);
            for warning in &loaded.warnings {
                findings.add(Grade::Warn, "config", warning.to_string());
            }
            if loaded.warnings.is_empty() {
                let text = if loaded.file.exists() {
                    format!("{file} is read")
                } else {
                    format!("{file} does not exist: defaults hold")
                };
                findings.add(Grade::Ok, "config", text);
            }
            Some(loaded.config)
        }
        Err(error) => {
            findings.add(Grade::Fail, "config", error.to_string());
            None
        }
    };
    if let Some(config) = &config {
        models(setting, config, &mut findings).await;
        sandbox(config, &mut findings);
        let (known, problems) = roles::load(setting, config);
        for problem in &problems {
            findings.add(Grade::Warn, "roles", problem.to_string());
        }
        findings.add(Grade::Ok, "roles", known.names().join(", "));
        shell(setting, config, &mut findings);
    }
    stores(setting, &mut findings);
    show(setting, &findings);
    let failed = findings.0.iter().any(|line| line.grade == Grade::Fail);
    Ok(if failed { exit::ERRORED } else { exit::DONE })
}

fn show(setting: &Setting, findings: &Findings) {
    if setting.common.json {
        let rows: Vec<_> = findings
            .0
            .iter()
            .map(|line| json!({ "grade": line.grade.as_str(), "subject": line.subject, "text": line.text }))
            .collect();
        return output::answer(&json!(rows).to_string());
    }
    let width = findings.0.iter().map(|line| line.subject.len()).max().unwrap_or(0);
    let text: String = findings
        .0
        .iter()
        .map(|line| format!("{:4}  {:width$}  {}\n", line.grade.as_str(), line.subject, one_line(&line.text, 300)))
        .collect();
    output::answer(&text);
}

/// Whether the home takes files.
fn home(setting: &Setting, findings: &mut Findings) {
    let home = setting.store.home();
    let shown = setting.env.tilde(home);
    let disk = setting.store.disk();
    let probe = home.join(format!(".doctor-{}", protocol::Token::new()));
    let tried = disk.create_dir_all(home).and_then(|()| {
        let file = disk.create_new(&probe)?;
        file.write_all(b"x")?;
        file.sync_data()
    });
    match tried {
        Ok(()) => findings.add(Grade::Ok, "home", format!("{shown} can be written")),
        Err(error) => findings.add(
            Grade::Fail,
            "home",
            format!("{shown} cannot be written: {error}; give it to your user, or set AGENT_HOME to another folder"),
        ),
    }
    // It may not have come to be; then there is nothing to remove.
    let _ = disk.remove(&probe);
    if let Some(mib) = room(home) {
        let grade = if mib < LOW_DISK_MIB { Grade::Warn } else { Grade::Ok };
        let advice = if grade == Grade::Warn { "; free some space" } else { "" };
        findings.add(grade, "disk", format!("{mib} MiB are free where {shown} is{advice}"));
    }
}

fn room(folder: &AbsPath) -> Option<u64> {
    let facts = rustix::fs::statvfs(folder.as_path()).ok()?;
    Some(facts.f_bavail.saturating_mul(facts.f_frsize) >> 20)
}

/// The model that would be used, keys, and whether servers answer.
async fn models(setting: &Setting, config: &Config, findings: &mut Findings) {
    let chosen = config::model_choice(config, &setting.env);
    let provider = match &chosen {
        Ok(model) => {
            findings.add(Grade::Ok, "model", format!("{model} ({})", config.origin("model")));
            model.split_once('/').map(|(provider, _)| provider.to_owned())
        }
        Err(error) => {
            let text = format!("{error}; name one with --model or in config.toml, or try --model rehearsal");
            findings.add(Grade::Warn, "model", text);
            None
        }
    };
    let http = Http::new(proxies(&setting.env));
    for (name, server) in &config.providers {
        let origin = config.origin(&format!("providers.{name}"));
        let own = origin != config::Origin::Default || provider.as_deref() == Some(name);
        let local = config.local_servers().iter().any(|(local, _)| local == name);
        let key = key(&setting.env, server);
        match (own || local, key) {
            (_, Err(variable)) if own => {
                findings.add(Grade::Fail, name, format!("{variable} is not set: export {variable}=…"));
            }
            (true, _) => answers(&http, name, server, own, findings).await,
            (false, Ok(true)) => findings.add(Grade::Ok, name, "its key is set"),
            (false, _) => {}
        }
    }
}

/// Whether a server's key is there; the variable's name when it is missing.
fn key(env: &Env, server: &Provider) -> Result<bool, String> {
    match &server.api_key_env {
        None => Ok(false),
        Some(variable) if env.key(variable).is_some() => Ok(true),
        Some(variable) => Err(variable.clone()),
    }
}

async fn answers(http: &Http, name: &str, server: &Provider, own: bool, findings: &mut Findings) {
    let url = format!("{}/models", server.base_url);
    let asked = tokio::time::timeout(std::time::Duration::from_secs(2), http.get(&url)).await;
    match asked {
        // Any answer shows that somebody is there; most want a key for the list, which is not sent here.
        Ok(Ok(response)) => {
            let status = response.status();
            let key =
                if matches!(status, 401 | 403) { "; whether it takes your key, the first request shows" } else { "" };
            findings.add(Grade::Ok, name, format!("{} answers ({status}){key}", server.base_url));
        }
        Ok(Err(error)) if own => {
            findings.add(
                Grade::Warn,
                name,
                format!("{error}; start the server, or mend base_url in [providers.{name}]"),
            );
        }
        Err(_) if own => findings.add(Grade::Warn, name, format!("{} says nothing within 2 s", server.base_url)),
        Ok(Err(_)) | Err(_) => {}
    }
}

fn sandbox(config: &Config, findings: &mut Findings) {
    if config.sandbox == Sandbox::DangerFullAccess {
        findings.add(Grade::Warn, "sandbox", "none: commands run as you, with everything you may do");
    } else {
        let mode = config.sandbox.as_str();
        let text =
            format!("`{mode}` cannot be enforced by this version: set sandbox = \"danger-full-access\" to run at all");
        findings.add(Grade::Fail, "sandbox", text);
    }
}

fn shell(setting: &Setting, config: &Config, findings: &mut Findings) {
    let environment = exec::Environment::new(setting.env.for_commands(config));
    match exec::Shell::find(&environment) {
        Ok(shell) => findings.add(Grade::Ok, "shell", shell.program().display().to_string()),
        Err(error) => findings.add(Grade::Fail, "shell", error.to_string()),
    }
}

fn stores(setting: &Setting, findings: &mut Findings) {
    match list(&setting.store, setting.mirror()) {
        Ok((trees, problems)) => {
            for problem in &problems {
                findings.add(Grade::Warn, "trees", problem.clone());
            }
            let agents: usize = trees.iter().map(|tree| tree.agents).sum();
            findings.add(Grade::Ok, "trees", format!("{}, {}", counted(trees.len(), "tree"), counted(agents, "agent")));
        }
        Err(error) => findings.add(Grade::Fail, "trees", error.to_string()),
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
