//! A temporary `AGENT_HOME` with its surroundings, and what is found in it after a run.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

use crate::Server;
use crate::fail::{fail, must};

/// Folders for one run of the product, gone when it is dropped: `AGENT_HOME`, a user's home, a folder to work in and
/// one for temporary files. As a path it is `AGENT_HOME`.
pub struct Home {
    root: TempDir,
    agent: PathBuf,
    work: Arc<TempDir>,
    config: toml::Table,
}

impl Home {
    /// Empty folders, no configuration.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        Self::around(Arc::new(must("no temporary folder", tempfile::tempdir())), toml::Table::new())
    }

    fn around(work: Arc<TempDir>, config: toml::Table) -> Self {
        let root = must("no temporary folder", tempfile::tempdir());
        let home = Self { agent: root.path().join("agent"), root, work, config };
        for name in ["agent", "user", "tmp"] {
            must("no temporary folder", fs::create_dir(home.root.path().join(name)));
        }
        home
    }

    /// Writes `server` into the configuration as a provider called `name`; the first one becomes the model, as
    /// `name/model`. Writing the same name again moves the provider to another server.
    #[must_use]
    #[track_caller]
    pub fn provider(self, name: &str, server: &Server) -> Self {
        self.provider_at(name, &server.base_url())
    }

    /// As [`Home::provider`], for a server that is not ours or not there.
    #[must_use]
    #[track_caller]
    pub fn provider_at(mut self, name: &str, base_url: &str) -> Self {
        let mut provider = toml::Table::new();
        provider.insert("base_url".into(), base_url.into());
        provider.insert("wire".into(), "responses".into());
        self.config.entry("model").or_insert_with(|| format!("{name}/model").into());
        let providers = self.config.entry("providers").or_insert_with(|| toml::Table::new().into());
        if let Some(providers) = providers.as_table_mut() {
            providers.insert(name.into(), provider.into());
        }
        self.save();
        self
    }

    /// Sets a key of the configuration. A dotted key goes into tables: `models.mock.window`.
    #[must_use]
    #[track_caller]
    pub fn set(mut self, key: &str, value: impl Into<toml::Value>) -> Self {
        let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut at = &mut self.config;
        for table in tables.split('.').filter(|name| !name.is_empty()) {
            let inner = at.entry(table).or_insert_with(|| toml::Table::new().into());
            at = match inner.as_table_mut() {
                Some(inner) => inner,
                None => fail(format_args!("`{table}` of `{key}` is not a table")),
            };
        }
        at.insert(last.into(), value.into());
        self.save();
        self
    }

    #[track_caller]
    fn save(&self) {
        let text = must("the configuration is not TOML", toml::to_string(&self.config));
        self.write("config.toml", &text);
    }

    /// Writes a file below `AGENT_HOME`, and the folders it needs.
    #[track_caller]
    pub fn write(&self, name: &str, text: &str) {
        write(&self.path().join(name), text);
    }

    /// Writes a file below the folder to work in, and the folders it needs.
    #[track_caller]
    pub fn write_work(&self, name: &str, text: &str) {
        write(&self.work().join(name), text);
    }

    /// `AGENT_HOME`.
    pub fn path(&self) -> &Path {
        &self.agent
    }

    /// The folder to work in. Copies of a home share it, since its path stands in the rollouts.
    pub fn work(&self) -> &Path {
        self.work.path()
    }

    /// `HOME`.
    pub fn user(&self) -> PathBuf {
        self.root.path().join("user")
    }

    /// `TMPDIR`.
    pub fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Leaves its folders where they are when it is dropped, for somebody to look at: the folder of all of them.
    pub fn keep(&mut self) -> PathBuf {
        self.root.disable_cleanup(true);
        self.root.path().to_owned()
    }

    /// A second home with the same files under `AGENT_HOME`, as they are now. No process should be writing them.
    #[must_use]
    #[track_caller]
    pub fn copy(&self) -> Self {
        let copy = Self::around(self.work.clone(), self.config.clone());
        copy_folder(self.path(), copy.path());
        copy
    }

    /// All rollouts, by time of their making.
    #[track_caller]
    pub fn rollouts(&self) -> Vec<Rollout> {
        rollouts(self.path())
    }

    /// The newest rollout of the agent at `path`; fails the test when there is none.
    #[track_caller]
    pub fn rollout(&self, path: &str) -> Rollout {
        let mut all = self.rollouts();
        let paths: Vec<String> = all.iter().map(|rollout| rollout.path().to_owned()).collect();
        match all.iter().rposition(|rollout| rollout.path() == path) {
            Some(index) => all.swap_remove(index),
            None => fail(format_args!("no rollout of `{path}`; there are {paths:?}")),
        }
    }
}

impl AsRef<Path> for Home {
    fn as_ref(&self) -> &Path {
        self.path()
    }
}

/// One rollout file, read anew at each question.
#[derive(Clone, Debug)]
pub struct Rollout {
    file: PathBuf,
    meta: Value,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

impl Rollout {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The payload of its `session_meta` line.
    pub fn meta(&self) -> &Value {
        &self.meta
    }

    /// The thread's id.
    pub fn thread(&self) -> &str {
        self.meta["id"].as_str().unwrap_or_default()
    }

    /// The tree's id.
    pub fn tree(&self) -> &str {
        self.meta["session_id"].as_str().unwrap_or_default()
    }

    /// The agent's path.
    pub fn path(&self) -> &str {
        self.meta["agent_path"].as_str().unwrap_or_default()
    }

    /// The text of the file.
    #[track_caller]
    pub fn text(&self) -> String {
        let bytes = must(self.file.display(), fs::read(&self.file));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its lines, but for those that are not JSON: a kill may have torn the last.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The payloads of the lines of one type.
    #[track_caller]
    pub fn payloads(&self, kind: &str) -> Vec<Value> {
        let lines = self.lines().into_iter().filter(|line| line["type"] == kind);
        lines.map(|mut line| line["payload"].take()).collect()
    }

    /// As [`Rollout::payloads`], as the bytes that stand in the file.
    #[track_caller]
    pub fn raw(&self, kind: &str) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line<'_>>(line).ok());
        lines.filter(|line| line.kind == kind).map(|line| line.payload.get().to_owned()).collect()
    }

    /// How many lines there are of one type.
    #[track_caller]
    pub fn count(&self, kind: &str) -> usize {
        self.raw(kind).len()
    }
}

/// All rollouts below `home`, by time of their making: file names begin with it.
#[track_caller]
pub(crate) fn rollouts(home: &Path) -> Vec<Rollout> {
    let mut files = Vec::new();
    collect(&home.join("sessions"), &mut files);
    files.sort();
    files.into_iter().filter_map(|file| Some(Rollout { meta: meta(&file)?, file })).collect()
}

/// The payload of a file's first line, when that is a `session_meta`.
fn meta(file: &Path) -> Option<Value> {
    let bytes = fs::read(file).ok()?;
    let first = bytes.split(|byte| *byte == b'\n').next()?;
    let mut line: Value = serde_json::from_slice(first).ok()?;
    (line["type"] == "session_meta").then(|| line["payload"].take())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
}

#[track_caller]
fn write(file: &Path, text: &str) {
    let made = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    must(file.display(), made);
}

#[track_caller]
fn copy_folder(from: &Path, to: &Path) {
    must(to.display(), fs::create_dir_all(to));
    for entry in must(from.display(), fs::read_dir(from)).flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy_folder(&from, &to),
            Ok(kind) if kind.is_file() => drop(must(from.display(), fs::copy(&from, &to))),
            // A socket is the door of a process and means nothing in a copy.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
