//! The roles that are always there.

use crate::role::{Limits, Origin, Role};

/// The role of the root, and of a child whose spawner names none.
pub const DEFAULT: &str = "default";

/// Reads and searches, changes nothing.
pub const EXPLORER: &str = "explorer";

/// Changes the files it owns.
pub const WORKER: &str = "worker";

/// What an explorer has: hands to look with, and words. No `apply_patch`, no children.
const EXPLORER_TOOLS: [&str; 4] = ["exec_command", "write_stdin", "send_message", "list_agents"];

pub(crate) fn builtin() -> Vec<Role> {
    let role = |name: &str, description: &str, instructions: &str| Role {
        name: name.to_owned(),
        description: description.to_owned(),
        instructions: instructions.trim().to_owned(),
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
    };
    let default = role(
        DEFAULT,
        "A capable agent without a specialty. Use it when a part of the work needs both finding out and changing, or \
         fits neither explorer nor worker.",
        include_str!("text/default.md"),
    );
    let mut explorer = role(
        EXPLORER,
        "Answers one precise question about the code or the machine, with file and line. It reads and searches and \
         changes nothing. Ask one question an explorer, start several at once when the questions do not depend on \
         each other, and build on the answer instead of looking again.",
        include_str!("text/explorer.md"),
    );
    // The sandbox is the parent's: a narrower one that nothing enforces would only be refused, or be a false promise.
    explorer.tools = Some(EXPLORER_TOOLS.map(str::to_owned).to_vec());
    let worker = role(
        WORKER,
        "Carries out a change that you can describe: a feature, a fix, a refactoring, tests. Name in its task the \
         files it owns, tell it that others work in the same folder, and how it can check its work. It reports what \
         it changed and which tests it ran.",
        include_str!("text/worker.md"),
    );
    vec![default, explorer, worker]
}
