//! Rules about `Cargo.lock`: what must not be built.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::Fault;
use super::rules::{BANNED, SINGLE};

const FILE: &str = "Cargo.lock";

pub(super) fn check(root: &Path, faults: &mut Vec<Fault>) -> Result<()> {
    let Ok(text) = fs::read_to_string(root.join(FILE)) else {
        faults.push(Fault::new(FILE, "there is none", "run `cargo generate-lockfile` and commit it"));
        return Ok(());
    };
    let lock: Table = text.parse().with_context(|| format!("{FILE} is not valid TOML"))?;
    let packages = lock.get("package").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let count = |name: &str| packages.iter().filter(|p| p.get("name").and_then(Value::as_str) == Some(name)).count();
    let find = |name: &str| format!("find out who brings it with `cargo tree -i {name}` and turn that feature off");
    for (name, why) in BANNED {
        if count(name) > 0 {
            faults.push(Fault::new(FILE, format!("`{name}` is banned: {why}"), find(name)));
        }
    }
    for (name, why) in SINGLE {
        let versions = count(name);
        if versions > 1 {
            faults.push(Fault::new(FILE, format!("`{name}` is there in {versions} versions: {why}"), find(name)));
        }
    }
    Ok(())
}
