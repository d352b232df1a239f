//! The instructions of an agent: what holds for everybody, what follows from its place, and its role's own.

use protocol::{AgentPath, Sandbox};

use crate::Role;

const BASE: &str = include_str!("text/base.md");
const ROOT: &str = include_str!("text/root.md");
const CHILD: &str = include_str!("text/child.md");
const PATCH: &str = include_str!("text/patch.md");
const SPLIT: &str = include_str!("text/split.md");

/// What an agent's instructions depend on beside its role.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Where it lives.
    pub path: &'a AgentPath,
    /// How far its commands may reach, as it is enforced.
    pub sandbox: Sandbox,
    /// The tools it has, by name; what it has not is not explained to it.
    pub tools: &'a [&'a str],
}

impl Role {
    /// The whole instructions of an agent of this role at this place. The same inputs give the same bytes.
    pub fn brief(&self, place: &Place<'_>) -> String {
        let has = |tool: &str| self.allows(tool) && place.tools.contains(&tool);
        let parent = place.path.parent();
        let mut parts = vec![BASE, if parent.is_some() { CHILD } else { ROOT }];
        if has("apply_patch") {
            parts.push(PATCH);
        }
        if has("spawn_agent") {
            parts.push(SPLIT);
        }
        let text: Vec<&str> = parts.into_iter().map(str::trim).collect();
        let text = text
            .join("\n\n")
            .replace("{path}", place.path.as_str())
            .replace("{parent}", parent.as_ref().map_or("", AgentPath::as_str))
            .replace("{role}", &self.name)
            .replace("{reach}", reach(place.sandbox));
        // Last and untouched: what a user wrote is not a template.
        format!("{text}\n\n# Your role: {}\n\n{}\n", self.name, self.instructions)
    }
}

fn reach(sandbox: Sandbox) -> &'static str {
    match sandbox {
        Sandbox::DangerFullAccess => {
            "Commands run on the user's machine, as the user, without a sandbox: nothing stands between a command and \
             the user's files, accounts and network. Stay inside the working folder unless the task leads out of it."
        }
        Sandbox::WorkspaceWrite => {
            "Commands run on the user's machine in a sandbox: they can write below the working folder and the \
             temporary folder, and have no network. A command that needs more fails; say so instead of working around it."
        }
        Sandbox::ReadOnly => {
            "Commands run on the user's machine in a sandbox: they can read and write nothing, and have no network. A \
             command that needs more fails; say so instead of working around it."
        }
    }
}

#[cfg(test)]
mod tests;
