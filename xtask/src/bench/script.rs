//! The scripts that play the model. None waits, none asks a server.

use super::scenario::{GAPS, RESTING, Scenario};

/// The root's last words; a run without them counts for nothing.
pub(super) const ANSWER: &str = "measured";

/// What a spawn is told, and what makes it a fork.
const SPAWNED: &str = r#"message = "go" }"#;
const FORKED: &str = r#"message = "go", fork_turns = "all" }"#;

/// How long a root waits at the most before it gives up, in milliseconds. A run that comes to this is thrown away.
const PATIENCE: u64 = 60_000;

/// The script of a scenario that needs a model.
pub(super) fn script(scenario: Scenario) -> String {
    let mut rules = Vec::new();
    match scenario {
        Scenario::Exec(calls) => {
            let max = calls - 1;
            rules.push(rule(&format!("step = {{ max = {max} }}"), &[exec("true")]));
        }
        Scenario::Gap(_) => rules.push(rule(&format!("step = {{ max = {} }}", GAPS - 1), &[exec("true")])),
        Scenario::Parallel(calls) => rules.push(rule("step = 0", &vec![exec("sleep 0.2"); calls])),
        Scenario::Spawn(children, _) => {
            let names: Vec<_> = names(children).collect();
            rules.extend(parent("/root", &names, ANSWER));
            rules.extend(leaf("/root/*", 1));
        }
        Scenario::Idle(children) => {
            let names: Vec<_> = names(children).collect();
            rules.extend(parent("/root", &names, ANSWER));
            rules.extend(leaf("/root/*", RESTING));
        }
        Scenario::Fork(children) => {
            let names: Vec<_> = names(children).collect();
            rules.extend(leaf("/root/*", 1));
            rules.extend(parent("/root", &names, ANSWER).map(|rule| rule.replace(SPAWNED, FORKED)));
        }
        Scenario::Tree(depth, breadth) => {
            let names: Vec<_> = names(breadth).collect();
            let at = |level: usize| format!("/root{}", "/*".repeat(level));
            rules.extend(parent(&at(0), &names, ANSWER));
            rules.extend((1..depth).flat_map(|level| parent(&at(level), &names, "done")));
            rules.extend(leaf(&at(depth), 1));
        }
        Scenario::Echo
        | Scenario::Resume(_)
        | Scenario::Wake(..)
        | Scenario::Body(..)
        | Scenario::Reopen(_)
        | Scenario::Log(_)
        | Scenario::Look(..)
        | Scenario::Mail(_) => {}
    }
    rules.push(rule("", &[text(ANSWER)]));
    rules.join("\n")
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("w{n}"))
}

/// Spawns everybody in one reply, waits until nobody works and nothing is left to read, then answers.
fn parent(agent: &str, names: &[String], answer: &str) -> [String; 4] {
    let of = |more: &str| format!("agent = \"{agent}\"\n{more}");
    let spawns: Vec<_> = names
        .iter()
        .map(|name| format!(r#"{{ call = "spawn_agent", arguments = {{ task_name = "{name}", message = "go" }} }}"#))
        .collect();
    let targets: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    // The root waits for everybody; others name their own, since those above them never rest.
    let targets = if agent == "/root" { String::new() } else { format!("targets = [{}], ", targets.join(", ")) };
    let wait = format!(r#"{{ call = "wait_agent", arguments = {{ {targets}timeout_ms = {PATIENCE} }} }}"#);
    [
        rule(&of("step = 0"), &spawns),
        rule(&of(r#"last = '"woke":"settled"'"#), &[text(answer)]),
        rule(&of(r#"last = '"woke":"timeout"'"#), &[text("gave up")]),
        rule(&of(""), &[wait]),
    ]
}

fn leaf(agent: &str, calls: usize) -> [String; 2] {
    [
        rule(&format!("agent = \"{agent}\"\nstep = {{ max = {} }}", calls - 1), &[exec("true")]),
        rule(&format!("agent = \"{agent}\""), &[text("done")]),
    ]
}

fn exec(command: &str) -> String {
    format!(r#"{{ call = "exec_command", cmd = "{command}" }}"#)
}

fn text(text: &str) -> String {
    format!(r#"{{ text = "{text}" }}"#)
}

fn rule(matchers: &str, reply: &[String]) -> String {
    format!("[[rule]]\n{}\nreply = [\n    {},\n]\n", matchers.trim(), reply.join(",\n    "))
}
