//! `agent roles`.

use roles::Role;
use serde_json::json;

use crate::cli::{Roles as Args, RolesWhat};
use crate::exit::{self, Failure};
use crate::output;
use crate::roles::load;
use crate::wire::Setting;

pub(super) fn roles(setting: &Setting, args: Args) -> Result<u8, Failure> {
    let config = setting.config(None)?;
    let (roles, problems) = load(setting, &config);
    for problem in problems {
        output::note(&format!("warning: {problem}"));
    }
    match args.what.unwrap_or(RolesWhat::List) {
        RolesWhat::List if setting.common.json => {
            let all: Vec<_> = roles.iter().map(row).collect();
            output::answer(&json!(all).to_string());
        }
        RolesWhat::List => {
            let width = roles.iter().map(|role| role.name.len()).max().unwrap_or(0);
            let line = |role: &Role| format!("{:width$}  {} ({})\n", role.name, role.description, role.origin);
            output::answer(&roles.iter().map(line).collect::<String>());
        }
        RolesWhat::Show { name } => {
            let role = roles.get(&name).map_err(|error| Failure::usage(error.to_string()))?;
            if setting.common.json {
                output::answer(&row(role).to_string());
            } else {
                output::answer(&whole(role));
            }
        }
    }
    Ok(exit::DONE)
}

fn row(role: &Role) -> serde_json::Value {
    json!({
        "name": role.name,
        "description": role.description,
        "instructions": role.instructions,
        "model": role.model,
        "effort": role.effort,
        "tools": role.tools,
        "sandbox": role.sandbox,
        "workspace": role.workspace.map(roles::Workspace::as_str),
        "budget_tokens": role.budget_tokens,
        "budget_usd": role.budget_usd.map(budget::Usd::dollars),
        "max_depth": role.limits.max_depth,
        "nicknames": role.nicknames,
        "origin": role.origin.to_string(),
    })
}

fn whole(role: &Role) -> String {
    let none = || "its parent's".to_owned();
    let fields = [
        ("origin", role.origin.to_string()),
        ("model", role.model.clone().unwrap_or_else(none)),
        ("effort", role.effort.clone().unwrap_or_else(none)),
        ("tools", role.tools.as_ref().map_or_else(none, |tools| tools.join(", "))),
        ("sandbox", role.sandbox.map_or_else(none, |sandbox| sandbox.as_str().to_owned())),
        ("workspace", role.workspace.map_or_else(none, |workspace| workspace.as_str().to_owned())),
        ("budget_tokens", role.budget_tokens.map_or_else(none, |tokens| tokens.to_string())),
        ("budget_usd", role.budget_usd.map_or_else(none, |usd| usd.to_string())),
        ("max_depth", role.limits.max_depth.map_or_else(none, |depth| depth.to_string())),
    ];
    let mut text = format!("{}: {}\n", role.name, role.description);
    for (key, value) in fields {
        text += &format!("  {key:13} {value}\n");
    }
    format!("{text}\n{}\n", role.instructions.trim_end())
}
