//! Ready brains. Each is a function of the request alone, so it answers the same after a crash and a resume as before.

use protocol::{Item, ItemKind, Role};
use serde_json::json;

use crate::{Reply, Request};

/// Times that a spawn is tried before its child is given up.
const MAX_SPAWNS: usize = 3;

/// Times that a parent waits before it answers with what it has: this many, and twice its children.
const MAX_WAITS: usize = 20;

/// How long one `wait_agent` may take, in milliseconds.
const WAIT_MS: u64 = 60_000;

/// Says back what it was told last.
pub fn echo(request: &Request) -> Reply {
    Reply::new().text(format!("echo: {}", request.told()))
}

/// Runs `command` once in a conversation, then answers with its output.
pub fn exec_once(command: impl Into<String>) -> impl Fn(&Request) -> Reply + Send + Sync + Clone + 'static {
    let command = command.into();
    move |request| match request.outputs().pop() {
        Some(output) => Reply::new().text(output),
        None => Reply::new().call("exec_command", json!({ "cmd": command })),
    }
}

/// A root that spawns `n` children in one reply, waits until it has seen the mark of each, and answers
/// `N of n children reported`. The children answer with `child`; its last words get their mark added.
pub fn spawn_n(
    n: usize,
    child: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| grow(request, 1, n, &child)
}

/// A tree of `depth` levels below the root in which every agent that is not a leaf has `breadth` children, all spawned
/// in one reply. Each waits for its own and answers `N of breadth children reported`; the leaves say `leaf`.
pub fn tree(depth: usize, breadth: usize) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    move |request| grow(request, depth, breadth, &|_: &Request| Reply::new().text("leaf"))
}

/// The mark that the last words of the child with this label carry: labels are `0`, `1`, … for children of the root,
/// `0.1` for the second child of the first.
pub fn mark(label: &str) -> String {
    format!("done({label})")
}

/// What an agent of the tree is told by its parent.
fn task(levels: usize, label: &str) -> String {
    format!("node({levels},{label}) of the tree: do the small job and report.")
}

/// Levels below this agent, and its label, from its task; none for a root.
fn place(task: &str) -> Option<(usize, &str)> {
    let (inside, _) = task.split_once("node(")?.1.split_once(')')?;
    let (levels, label) = inside.split_once(',')?;
    Some((levels.parse().ok()?, label))
}

fn grow(request: &Request, depth: usize, breadth: usize, leaf: &dyn Fn(&Request) -> Reply) -> Reply {
    // Wherever the task stands, wrapped or plain: a child that took itself for the root would grow a tree of its own.
    let users = request.items().iter().filter(|item| item.kind() == ItemKind::Message(Role::User));
    let texts: Vec<String> = users.map(Item::text).collect();
    let (levels, label) = match texts.iter().find_map(|text| place(text)) {
        Some((levels, label)) => (levels, Some(label)),
        None => (depth, None),
    };
    let reply = if levels == 0 { leaf(request) } else { raise(request, levels, breadth, label) };
    match label {
        Some(label) if !reply.has_calls() => reply.text(mark(label)),
        _ => reply,
    }
}

/// What a parent does next.
fn raise(request: &Request, levels: usize, breadth: usize, label: Option<&str>) -> Reply {
    let below = |index: usize| label.map_or_else(|| index.to_string(), |label| format!("{label}.{index}"));
    let calls = request.calls();
    let mut reply = Reply::new();
    let mut expected = Vec::new();
    for index in 0..breadth {
        let label = below(index);
        let told = task(levels - 1, &label);
        let tries = calls.iter().filter(|(call, _)| call.name == "spawn_agent" && call.arguments.contains(&told));
        let outputs: Vec<&str> = tries.filter_map(|(_, output)| output.as_deref()).collect();
        if outputs.iter().any(|output| output.contains("\"task_name\"") || output.contains("already exists")) {
            expected.push(mark(&label));
        } else if outputs.len() < MAX_SPAWNS {
            let name = format!("child_{index}");
            reply = reply.call("spawn_agent", json!({"task_name": name, "message": told, "agent_type": "worker"}));
        }
    }
    if reply.has_calls() {
        return reply;
    }
    let reported = expected.iter().filter(|mark| request.heard(mark)).count();
    let waits = calls.iter().filter(|(call, _)| call.name == "wait_agent").count();
    if reported < expected.len() && waits < MAX_WAITS + 2 * breadth {
        return reply.call("wait_agent", json!({ "timeout_ms": WAIT_MS }));
    }
    reply.text(format!("{reported} of {breadth} children reported"))
}

#[cfg(test)]
mod tests;
