//! Putting one layer over the settings so far.

use std::collections::BTreeMap;

use crate::keys::{self, Key};
use crate::layer::{self, Body, Node};
use crate::shape::found;
use crate::{Config, ConfigError, Origin, Warning};

/// What is remembered beside the values.
#[derive(Default)]
pub(crate) struct Log {
    /// What was passed over.
    pub(crate) warnings: Vec<Warning>,
    /// Where each key that is set was set last.
    pub(crate) origins: BTreeMap<String, Origin>,
}

/// Letters of a name that are enough to know which one was begun.
const BEGINNING: usize = 3;

type Keys = [(String, Node)];

/// Applies a file, then its profile of the name asked for. The other profiles are checked too: a mistake should show
/// when it is made, not on the day the profile is first used.
pub(crate) fn apply_file(
    config: &mut Config,
    table: &Keys,
    profile: Option<&str>,
    shown: &str,
    log: &mut Log,
) -> Result<(), ConfigError> {
    let mut known = Vec::new();
    let mut chosen = None;
    for key in table {
        let (name, node) = key;
        if name != keys::PROFILES.name {
            apply(config, std::slice::from_ref(key), &[], log)?;
            continue;
        }
        for (name, node) in inner(node, &[keys::PROFILES.name])? {
            let path = [keys::PROFILES.name, name];
            let keys = inner(node, &path)?;
            let mut aside = Log::default();
            apply(&mut Config::default(), keys, &path, &mut aside)?;
            log.warnings.append(&mut aside.warnings);
            known.push(name.clone());
            if profile == Some(name) {
                chosen = Some(keys);
            }
        }
    }
    match (profile, chosen) {
        (None, _) => Ok(()),
        (Some(_), Some(keys)) => {
            // Its warnings are there already, from the check.
            let said = log.warnings.len();
            apply(config, keys, &[], log)?;
            log.warnings.truncate(said);
            Ok(())
        }
        (Some(name), None) => Err(ConfigError::NoProfile { name: name.to_owned(), file: shown.to_owned(), known }),
    }
}

/// Applies the keys of `table`, which stands below `above`: nothing, or the name of a profile.
pub(crate) fn apply(config: &mut Config, table: &Keys, above: &[&str], log: &mut Log) -> Result<(), ConfigError> {
    for key in table {
        let (family, node) = key;
        let path = below(above, family);
        if family == keys::PROVIDERS.name {
            for (name, node) in inner(node, &path)? {
                let path = below(&path, name);
                check_provider(name, &path, node)?;
                log.origins.insert(dotted(&path), node.origin.clone());
                fill(
                    config.providers.entry(name.clone()).or_default(),
                    keys::PROVIDER,
                    inner(node, &path)?,
                    &path,
                    log,
                )?;
            }
        } else if family == keys::MODELS.name {
            for (name, node) in inner(node, &path)? {
                let path = below(&path, name);
                if name.contains('/') {
                    fill(config.models.entry(name.clone()).or_default(), keys::MODEL, inner(node, &path)?, &path, log)?;
                } else {
                    let advice = "a model's table is named PROVIDER/NAME in quotes, as in [models.\"openai/gpt-5.5\"]";
                    warn(&path, node, advice.to_owned(), log);
                }
            }
        } else if family == keys::PERMISSIONS.name {
            for (name, node) in inner(node, &path)? {
                let raw = layer::plain(inner(node, &below(&path, name))?);
                layer::merge(config.permissions.entry(name.clone()).or_default(), raw);
            }
        } else {
            fill(config, keys::TOP, std::slice::from_ref(key), above, log)?;
        }
    }
    Ok(())
}

/// Stores the values of `table`, which stands at `above`, in `target`.
fn fill<T>(target: &mut T, known: &[Key<T>], table: &Keys, above: &[&str], log: &mut Log) -> Result<(), ConfigError> {
    for (name, node) in table {
        let path = below(above, name);
        let Some(key) = known.iter().find(|key| key.name == name) else {
            warn(&path, node, advice(name, known, above), log);
            continue;
        };
        let stored = match &node.body {
            Body::Leaf(value) => key.shape.put(target, value),
            Body::Table(_) => Err("a table".to_owned()),
        };
        stored.map_err(|found| bad(&path, node, key.shape.expected(), found))?;
        log.origins.insert(dotted(&path), node.origin.clone());
    }
    Ok(())
}

/// What to say about a name that is not known.
fn advice<T>(name: &str, known: &[Key<T>], above: &[&str]) -> String {
    let families = match above {
        [] => &keys::FAMILIES[..],
        [first, _] if *first == keys::PROFILES.name => &keys::FAMILIES[..3],
        _ => &[],
    };
    let all: Vec<_> = known.iter().map(|key| key.name).chain(families.iter().map(|family| family.name)).collect();
    // The beginning of a name is near to it however long the rest: `api_key` for `api_key_env`.
    let begun = all.iter().copied().find(|known| name.len() >= BEGINNING && known.starts_with(name));
    match begun.or_else(|| stdx::nearest(name, all.iter().copied())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", all.join(", ")),
    }
}

fn warn(path: &[&str], node: &Node, advice: String, log: &mut Log) {
    log.warnings.push(Warning { key: dotted(path), origin: node.origin.clone(), advice });
}

fn bad(path: &[&str], node: &Node, expected: String, found: String) -> ConfigError {
    ConfigError::Value { key: dotted(path), origin: node.origin.clone(), expected, found }
}

/// A provider's name stands before the first slash of a model, so it can have none itself.
fn check_provider(name: &str, path: &[&str], node: &Node) -> Result<(), ConfigError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(fits) {
        return Ok(());
    }
    let expected = "a provider's name of letters, digits, - and _".to_owned();
    Err(bad(path, node, expected, found(&toml::Value::String(name.to_owned()))))
}

/// The keys of a table.
fn inner<'a>(node: &'a Node, path: &[&str]) -> Result<&'a Keys, ConfigError> {
    match &node.body {
        Body::Table(keys) => Ok(keys),
        Body::Leaf(value) => Err(bad(path, node, "a table".to_owned(), found(value))),
    }
}

fn below<'a>(above: &[&'a str], name: &'a str) -> Vec<&'a str> {
    above.iter().copied().chain([name]).collect()
}

/// The key as it would stand in a file.
fn dotted(path: &[&str]) -> String {
    let bare =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let parts = path.iter().map(|name| if bare(name) { (*name).to_owned() } else { format!("{name:?}") });
    parts.collect::<Vec<_>>().join(".")
}
