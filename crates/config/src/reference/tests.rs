use std::collections::BTreeSet;

use super::*;
use crate::{Env, Flags};

#[test]
fn the_page_in_docs_is_current() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIG.md")).unwrap();
    assert!(page == reference(), "docs/CONFIG.md is behind the table of keys; run `cargo xtask gen`");
}

/// A row of the table whose value went nowhere would be documented and do nothing.
#[test]
fn every_example_takes_effect() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.toml"), example()).unwrap();
    let env = Env::from_pairs([("AGENT_HOME", dir.path())]);
    let flags = Flags { strict: true, profile: Some("careful".to_owned()), ..Flags::default() };
    let loaded = Config::load(&env, &flags).unwrap();
    assert_eq!(loaded.config.max_running, 1);

    let config = Config::load(&env, &Flags { strict: true, ..Flags::default() }).unwrap().config;
    changed(keys::TOP, &config, &Config::default(), &["sandbox", "approval"]);
    changed(keys::PROVIDER, &config.providers["lab"], &Provider::default(), &[]);
    changed(keys::MODEL, &config.models["openai/gpt-5.5"], &ModelFacts::default(), &[]);
}

fn changed<T>(keys: &[Key<T>], now: &T, before: &T, same: &[&str]) {
    for key in keys {
        let shown = (key.show)(now).unwrap();
        let value = |text: &str| toml::from_str::<toml::Table>(&format!("v = {text}")).unwrap();
        assert_eq!(value(&shown), value(key.example), "{} does not show what was set", key.name);
        assert_eq!((key.show)(before).as_ref() == Some(&shown), same.contains(&key.name), "{}", key.name);
    }
}

#[test]
fn every_flag_of_the_table_reaches_its_key() {
    let flags = Flags {
        model: Some("a/b".into()),
        sandbox: Some("read-only".into()),
        approval: Some("untrusted".into()),
        roles: Some(vec!["explorer".into()]),
        max_running: Some(1),
        max_resident: Some(1),
        budget_tokens: Some(1),
        budget_usd: Some(1.0),
        ..Flags::default()
    };
    let config = Config::load(&Env::from_pairs([("AGENT_HOME", "/nowhere/at/all")]), &flags).unwrap().config;
    let set: BTreeSet<_> = keys::TOP.iter().map(|key| (key.name, config.origin(key.name).to_string())).collect();
    let named: BTreeSet<_> =
        keys::TOP.iter().map(|key| (key.name, key.flag.unwrap_or("the defaults").to_owned())).collect();
    assert_eq!(set, named);
}
