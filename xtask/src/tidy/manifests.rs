//! Rules about manifests: floors and arrows, lints, versions, default members.

use toml::Value;

use super::Fault;
use super::rules::{ABSENCES, TOP};
use super::workspace::{Member, Workspace, at, strings};

pub(super) fn check(workspace: &Workspace, faults: &mut Vec<Fault>) {
    let default = strings(workspace.table.get("default-members"));
    for member in &workspace.members {
        floor(member, faults);
        arrows(workspace, member, faults);
        versions(member, faults);
        if at(&member.table, &["lints", "workspace"]).and_then(Value::as_bool) != Some(true) {
            faults.push(Fault::new(
                &member.file,
                "the lints of the workspace are not on",
                "add `[lints]` with `workspace = true`",
            ));
        }
        if !default.contains(&member.folder.as_str()) {
            faults.push(Fault::new(
                "Cargo.toml",
                format!("`{}` is a member but not a default member", member.folder),
                "add it to `default-members`, so that a plain `cargo test` tests it",
            ));
        }
    }
}

fn floor(member: &Member, faults: &mut Vec<Fault>) {
    let (top, packages) = TOP;
    let is_top = member.folder == "." || packages.contains(&member.name.as_str());
    match member.floor() {
        None => faults.push(Fault::new(
            &member.file,
            format!("`{}` has no floor", member.name),
            "add `[package.metadata.tidy]` with `floor = N`, one above the highest floor it depends on",
        )),
        Some(floor) if is_top && floor != top => faults.push(Fault::new(
            &member.file,
            format!("`{}` is on floor {floor}", member.name),
            format!("set `floor = {top}`, the top floor"),
        )),
        Some(_) => {}
    }
}

fn arrows(workspace: &Workspace, member: &Member, faults: &mut Vec<Fault>) {
    let floors = workspace.floors();
    let absent = ABSENCES.iter().filter(|(name, ..)| *name == member.name);
    let absent: Vec<_> = absent.flat_map(|(_, names, why)| names.iter().map(move |name| (*name, *why))).collect();
    for dependency in member.dependencies().iter().filter(|dependency| dependency.is_arrow()) {
        let name = dependency.value.get("package").and_then(Value::as_str).unwrap_or(dependency.name);
        if let Some((_, why)) = absent.iter().find(|(absent, _)| *absent == name) {
            faults.push(Fault::new(
                &member.file,
                format!("`{}` must not depend on `{name}`", member.name),
                format!("take it out: {why}"),
            ));
        }
        let (Some(from), Some(to)) = (member.floor(), floors.get(name)) else { continue };
        if *to >= from {
            faults.push(Fault::new(
                &member.file,
                format!("`{}` on floor {from} depends on `{name}` on floor {to}", member.name),
                "move what is shared to a lower floor; an arrow must point down",
            ));
        }
    }
}

fn versions(member: &Member, faults: &mut Vec<Fault>) {
    for dependency in member.dependencies() {
        if dependency.value.get("workspace").and_then(Value::as_bool) != Some(true) {
            faults.push(Fault::new(
                &member.file,
                format!("`{}` in [{}] does not come from the workspace", dependency.name, dependency.section),
                format!("write `{}.workspace = true` and its version in [workspace.dependencies]", dependency.name),
            ));
        }
    }
}
