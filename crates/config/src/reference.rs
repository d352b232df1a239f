//! The reference page of all keys, made from the table.

use std::fmt::Write as _;

use crate::keys::{self, Family, Key};
use crate::{Config, ModelFacts, Provider, provider};

const INTRO: &str = "\
# Configuration

<!-- Made by `cargo xtask gen` from the table in crates/config/src/keys.rs. Change that, not this. -->

Settings are read from `$AGENT_HOME/config.toml` (`~/.agent/config.toml` when `AGENT_HOME` is not set). A file that
is not there is no error. Each of these replaces what the ones before it say, key by key:

1. the defaults below
2. `config.toml`
3. the profile chosen with `--profile NAME`
4. `-c key=value`, in the order given; the value is TOML, and what is not TOML is taken as a string
5. flags

A wrong value is an error that names the file, the line and the key. An unknown key is a warning that names the
nearest known one; with `--strict-config` it is an error.

Some keys are known, and checked, before anything can keep what they promise. Setting one of those to a value that
cannot be kept ends the command with exit code 2 and a sentence that names the key; nothing is pretended. README.md
lists what is not built yet.
";

const ENVIRONMENT: &[(&str, &str)] = &[
    ("AGENT_HOME", "where everything is kept; an absolute path"),
    ("HOME", "the folder that holds `.agent` when `AGENT_HOME` is not set"),
    ("NO_COLOR", "no colour in output when it is set"),
    ("AGENT_LOG", "what is written to the log, for example `debug`"),
    ("http_proxy, https_proxy, all_proxy, no_proxy", "proxies; also in upper case"),
    ("SSL_CERT_FILE, SSL_CERT_DIR", "certificates to trust instead of the system's"),
    ("PATH, SHELL, TERM, TMPDIR, XDG_RUNTIME_DIR", "as everywhere"),
];

/// The reference page, in Markdown.
pub fn reference() -> String {
    let mut page = INTRO.to_owned();
    page.push_str("\n## Keys\n\n| key | default | flag | meaning |\n|---|---|---|---|\n");
    let defaults = Config::default();
    for key in keys::TOP {
        let flag = key.flag.map(|flag| format!("`{flag}`")).unwrap_or_default();
        row(&mut page, &[&code(key.name), &default(key, &defaults), &flag, &meaning(key)]);
    }
    family(&mut page, &keys::PROVIDERS, keys::PROVIDER, &Provider::default());
    page.push_str("\nBuilt in:\n\n| name | base_url | wire | api_key_env |\n|---|---|---|---|\n");
    for &(name, base_url, wire, variable) in provider::KNOWN {
        let variable = variable.map(code).unwrap_or_default();
        row(&mut page, &[&code(name), &code(base_url), &code(wire.as_str()), &variable]);
    }
    family(&mut page, &keys::MODELS, keys::MODEL, &ModelFacts::default());
    family::<()>(&mut page, &keys::PERMISSIONS, &[], &());
    family::<()>(&mut page, &keys::PROFILES, &[], &());
    page.push_str("\n## Example\n\n```toml\n");
    page.push_str(&example());
    page.push_str("```\n\n## Environment\n\nBesides the variables that hold keys, these are read and no others:\n\n");
    page.push_str("| variable | meaning |\n|---|---|\n");
    for (names, meaning) in ENVIRONMENT {
        let names: Vec<_> = names.split(", ").map(code).collect();
        row(&mut page, &[&names.join(" "), meaning]);
    }
    page
}

/// A file that sets every key. It can be used as it stands.
pub(crate) fn example() -> String {
    let mut text = String::new();
    lines(&mut text, keys::TOP);
    text.push_str("\n[providers.lab]\n");
    lines(&mut text, keys::PROVIDER);
    text.push_str("\n[models.\"openai/gpt-5.5\"]\n");
    lines(&mut text, keys::MODEL);
    text.push_str("\n[profiles.careful]\nmax_running = 1\nmax_depth = 1\n");
    text
}

fn lines<'a, T: 'static>(text: &mut String, keys: impl IntoIterator<Item = &'a Key<T>>) {
    for key in keys {
        let _infallible = writeln!(text, "{} = {}", key.name, key.example);
    }
}

fn family<T>(page: &mut String, family: &Family, keys: &[Key<T>], defaults: &T) {
    let _infallible = write!(page, "\n## `{}`\n\n{}\n", family.header, family.doc);
    if keys.is_empty() {
        return;
    }
    page.push_str("\n| key | default | meaning |\n|---|---|---|\n");
    for key in keys {
        row(page, &[&code(key.name), &default(key, defaults), &meaning(key)]);
    }
}

fn row(page: &mut String, cells: &[&str]) {
    let _infallible = writeln!(page, "| {} |", cells.join(" | "));
}

fn default<T>(key: &Key<T>, defaults: &T) -> String {
    (key.show)(defaults).map(|text| code(&text)).unwrap_or_default()
}

fn meaning<T>(key: &Key<T>) -> String {
    match key.shape.range() {
        Some(range) => format!("{} From {range}.", key.doc),
        None => key.doc.to_owned(),
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests;
