//! The roles of one tree.

use crate::builtin::{DEFAULT, builtin};
use crate::role::{Layer, Limits, Origin, Parsed, Role};
use crate::{Problem, UnknownRole};

/// Roles that one tree may have. Their descriptions are in every request of an agent that may spawn.
pub const MAX_ROLES: usize = 32;

/// The roles in force, in the order in which a model is told about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    all: Vec<Role>,
    /// Places in `all` of the roles that may be spawned.
    allowed: Vec<usize>,
}

impl Roles {
    /// The built-in roles.
    pub fn builtin() -> Self {
        let all = builtin();
        Self { allowed: (0..all.len()).collect(), all }
    }

    /// Lays role files over these roles, field by field: a project's over the user's, the user's over what is there.
    /// What cannot be used is left out and told. Called before [`restrict`](Self::restrict).
    pub fn merge(&mut self, parsed: Vec<Parsed>) -> Vec<Problem> {
        let mut parsed = parsed;
        parsed.sort_by_key(|file| file.layer);
        let mut problems = Vec::new();
        let mut seen: Vec<(Layer, String, String)> = Vec::new();
        // By role and not by file, so that what one layer leaves out the next one may say.
        let mut names: Vec<String> = Vec::new();
        let mut layers: Vec<Parsed> = Vec::new();
        for file in parsed {
            let first = seen.iter().find(|(layer, name, _)| *layer == file.layer && *name == file.name);
            if let Some((_, _, first)) = first {
                let message = format!("role `{}` is already defined by {first}: remove one of the two", file.name);
                problems.push(Problem { file: file.file, line: None, key: Some("name".to_owned()), message });
                continue;
            }
            seen.push((file.layer, file.name.clone(), file.file.clone()));
            if !names.contains(&file.name) {
                names.push(file.name.clone());
            }
            layers.push(file);
        }
        for name in names {
            let (files, rest) = layers.into_iter().partition(|file| file.name == name);
            layers = rest;
            if let Err(problem) = self.lay(&name, files) {
                problems.push(problem);
            }
        }
        problems
    }

    fn lay(&mut self, name: &str, files: Vec<Parsed>) -> Result<(), Problem> {
        let place = self.all.iter().position(|role| role.name == name);
        let last = files.last().map(|file| file.file.clone()).unwrap_or_default();
        let problem = |key: Option<&str>, message: String| Problem {
            file: last.clone(),
            line: None,
            key: key.map(str::to_owned),
            message,
        };
        if place.is_none() && self.all.len() >= MAX_ROLES {
            let message = format!("there are {MAX_ROLES} roles already, which is the limit: remove one");
            return Err(problem(None, message));
        }
        let mut role = place.and_then(|at| self.all.get(at)).cloned().unwrap_or_else(|| empty(name));
        for file in files {
            overlay(&mut role, file);
        }
        for (key, text) in [("description", &role.description), ("instructions", &role.instructions)] {
            if text.is_empty() {
                return Err(problem(Some(key), format!("a new role needs one: add {key} = \"…\"")));
            }
        }
        if let Some(old) = place.and_then(|at| self.all.get_mut(at)) {
            *old = role;
        } else {
            self.allowed.push(self.all.len());
            self.all.push(role);
        }
        Ok(())
    }

    /// These roles cut down to `names`, in that order; all of them when there are none. A tree's root and agents that
    /// exist keep their roles: see [`stored`](Self::stored).
    ///
    /// # Errors
    /// When a name is not known.
    pub fn restrict(&self, names: &[impl AsRef<str>]) -> Result<Self, UnknownRole> {
        let mut allowed = Vec::new();
        for name in names {
            let name = name.as_ref().trim();
            let place = self.allowed.iter().find(|at| self.all.get(**at).is_some_and(|role| role.name == name));
            match place {
                Some(at) if allowed.contains(at) => {}
                Some(at) => allowed.push(*at),
                None => return Err(self.unknown(name)),
            }
        }
        if allowed.is_empty() {
            allowed.clone_from(&self.allowed);
        }
        Ok(Self { all: self.all.clone(), allowed })
    }

    /// The role called `name`, if it may be spawned.
    ///
    /// # Errors
    /// When it is not known or not allowed; the message lists those that are.
    pub fn get(&self, name: &str) -> Result<&Role, UnknownRole> {
        let name = name.trim();
        self.iter().find(|role| role.name == name).ok_or_else(|| self.unknown(name))
    }

    /// The role called `name`, whether or not it may be spawned: for the root, and for agents that exist already.
    /// `None` when its file is gone; then no other role stands in for it here, because that one could allow more.
    pub fn stored(&self, name: &str) -> Option<&Role> {
        self.all.iter().find(|role| role.name == name)
    }

    /// The role of a child whose spawner names none: `default` when it may be spawned, else the first that may.
    pub fn unnamed(&self) -> Option<&Role> {
        self.iter().find(|role| role.name == DEFAULT).or_else(|| self.iter().next())
    }

    /// The roles that may be spawned, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Role> {
        self.allowed.iter().filter_map(|at| self.all.get(*at))
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.iter().map(|role| role.name.as_str()).collect()
    }

    /// The roles as the spawn tool describes them: a line each, with what the spawner cannot choose.
    pub fn listing(&self) -> String {
        self.iter().map(line).collect()
    }

    fn unknown(&self, name: &str) -> UnknownRole {
        UnknownRole { name: name.to_owned(), known: self.names().into_iter().map(str::to_owned).collect() }
    }
}

fn line(role: &Role) -> String {
    let fixed: Vec<String> = [("model", &role.model), ("reasoning effort", &role.effort)]
        .into_iter()
        .filter_map(|(what, value)| value.as_ref().map(|value| format!("{what} {value}")))
        .collect();
    let fixed = if fixed.is_empty() { String::new() } else { format!(" (Fixed: {}.)", fixed.join(", ")) };
    format!("- `{}`: {}{fixed}\n", role.name, role.description)
}

fn empty(name: &str) -> Role {
    Role {
        name: name.to_owned(),
        description: String::new(),
        instructions: String::new(),
        model: None,
        effort: None,
        tools: None,
        sandbox: None,
        workspace: None,
        budget_tokens: None,
        budget_usd: None,
        limits: Limits::default(),
        nicknames: Vec::new(),
        origin: Origin::BuiltIn,
    }
}

fn overlay(role: &mut Role, file: Parsed) {
    fn over<T>(field: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *field = value;
        }
    }
    over(&mut role.description, file.description);
    over(&mut role.instructions, file.instructions);
    over(&mut role.nicknames, file.nicknames);
    role.model = file.model.or(role.model.take());
    role.effort = file.effort.or(role.effort.take());
    role.tools = file.tools.or(role.tools.take());
    role.sandbox = file.sandbox.or(role.sandbox);
    role.workspace = file.workspace.or(role.workspace);
    role.budget_tokens = file.budget_tokens.or(role.budget_tokens);
    role.budget_usd = file.budget_usd.or(role.budget_usd);
    role.limits.max_depth = file.max_depth.or(role.limits.max_depth);
    role.origin = match file.layer {
        Layer::User => Origin::User(file.file),
        Layer::Project => Origin::Project(file.file),
    };
}

#[cfg(test)]
mod tests;
