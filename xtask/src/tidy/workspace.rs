//! The manifests of a workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use toml::{Table, Value};

/// Everything the manifests say.
pub(super) struct Workspace {
    /// Where it is.
    pub(super) root: PathBuf,
    /// `[workspace]` of the root manifest.
    pub(super) table: Table,
    /// Its packages, the root package included.
    pub(super) members: Vec<Member>,
}

/// One package.
pub(super) struct Member {
    /// Its folder as `default-members` would name it; `.` is the root package.
    pub(super) folder: String,
    /// Its manifest, from the root.
    pub(super) file: String,
    pub(super) name: String,
    pub(super) table: Table,
}

/// A dependency of a package.
pub(super) struct Dependency<'a> {
    pub(super) name: &'a str,
    /// The table it stands in, for example `dev-dependencies`.
    pub(super) section: &'a str,
    pub(super) value: &'a Value,
}

impl Workspace {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let top = manifest(root, "Cargo.toml")?;
        let table = top.get("workspace").and_then(Value::as_table).cloned().unwrap_or_default();
        let mut folders = Vec::new();
        for pattern in strings(table.get("members")) {
            match pattern.strip_suffix("/*") {
                Some(parent) => folders.extend(packages_in(root, parent)?),
                None => folders.push(pattern.to_owned()),
            }
        }
        if top.contains_key("package") && !folders.iter().any(|folder| folder == ".") {
            folders.push(".".to_owned());
        }
        let mut members = Vec::new();
        for folder in folders {
            let file = if folder == "." { "Cargo.toml".to_owned() } else { format!("{folder}/Cargo.toml") };
            let table = manifest(root, &file)?;
            let name = at(&table, &["package", "name"]).and_then(Value::as_str).unwrap_or(&folder).to_owned();
            members.push(Member { folder, file, name, table });
        }
        Ok(Self { root: root.to_owned(), table, members })
    }

    /// `[workspace.dependencies]`.
    pub(super) fn dependencies(&self) -> Table {
        self.table.get("dependencies").and_then(Value::as_table).cloned().unwrap_or_default()
    }

    /// The floors of the packages that have one.
    pub(super) fn floors(&self) -> BTreeMap<&str, u64> {
        self.members.iter().filter_map(|member| Some((member.name.as_str(), member.floor()?))).collect()
    }
}

impl Member {
    pub(super) fn floor(&self) -> Option<u64> {
        let floor = at(&self.table, &["package", "metadata", "tidy", "floor"])?.as_integer()?;
        u64::try_from(floor).ok()
    }

    /// All dependencies, those of `[target.…]` included.
    pub(super) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let targets = self.table.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
        let tables = std::iter::once(&self.table).chain(targets.filter_map(Value::as_table));
        let sections = ["dependencies", "build-dependencies", "dev-dependencies"];
        tables
            .flat_map(|table| sections.map(|section| (section, table.get(section).and_then(Value::as_table))))
            .flat_map(|(section, table)| table.into_iter().flatten().map(move |(name, value)| (section, name, value)))
            .map(|(section, name, value)| Dependency { name, section, value })
            .collect()
    }
}

impl Dependency<'_> {
    /// Whether it counts for arrows: tests may reach up.
    pub(super) fn is_arrow(&self) -> bool {
        self.section != "dev-dependencies"
    }
}

/// The value at a path of keys.
pub(super) fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(*key))
}

/// The strings of an array.
pub(super) fn strings(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn manifest(root: &Path, file: &str) -> Result<Table> {
    let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
    text.parse().with_context(|| format!("{file} is not valid TOML"))
}

fn packages_in(root: &Path, parent: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(parent)).with_context(|| format!("cannot read the folder {parent}"))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            found.push(format!("{parent}/{}", entry.file_name().to_string_lossy()));
        }
    }
    found.sort();
    Ok(found)
}
