use expect_test::{Expect, expect};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::{Limits, Roles};

const TOOLS: [&str; 5] = ["exec_command", "write_stdin", "apply_patch", "spawn_agent", "send_message"];

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn check(has: Option<&[&str]>, wanted: Option<&[&str]>, expect: Expect) {
    let mut role = Roles::builtin().get("worker").unwrap().clone();
    role.tools = wanted.map(strings);
    let parent = Granted {
        sandbox: Sandbox::WorkspaceWrite,
        tools: has.map(strings),
        max_depth: 4,
        budget_tokens: None,
        budget_usd: None,
    };
    let seen = match narrow(&parent, &role) {
        Ok(granted) => format!("{:?}", granted.tools),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&seen);
}

#[test]
fn tools() {
    check(None, None, expect!["None"]);
    check(None, Some(&["a"]), expect![[r#"Some(["a"])"#]]);
    check(Some(&["a", "b"]), None, expect![[r#"Some(["a", "b"])"#]]);
    check(Some(&["a", "b", "c"]), Some(&["c", "x", "a"]), expect![[r#"Some(["a", "c"])"#]]);
    check(Some(&["a"]), Some(&[]), expect!["Some([])"]);
    check(
        Some(&["a"]),
        Some(&["b", "c"]),
        expect!["role `worker` works with b, c, and you have none of them: choose another role"],
    );
}

fn sandbox() -> impl Strategy<Value = Sandbox> {
    select(vec![Sandbox::ReadOnly, Sandbox::WorkspaceWrite, Sandbox::DangerFullAccess])
}

fn toolset() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(subsequence(TOOLS.to_vec(), 0..=TOOLS.len()).prop_map(|tools| strings(&tools)))
}

fn has(granted: &Granted, tool: &str) -> bool {
    granted.tools.as_ref().is_none_or(|tools| tools.iter().any(|t| t == tool))
}

proptest! {
    /// Down a chain of roles nobody ever has what somebody above lacks, and no role what it did not ask for.
    #[test]
    fn narrowing_only(
        top in (sandbox(), toolset(), 1..16usize, option::of(0..9_000u64)),
        chain in proptest::collection::vec((option::of(sandbox()), toolset(), option::of(1..16usize), option::of(0..9_000u64)), 1..6),
    ) {
        let mut parent = Granted { sandbox: top.0, tools: top.1, max_depth: top.2, budget_tokens: top.3, budget_usd: None };
        for (sandbox, tools, max_depth, budget_tokens) in chain {
            let mut role = Roles::builtin().get("default").unwrap().clone();
            role.sandbox = sandbox;
            role.tools = tools;
            role.limits = Limits { max_depth };
            role.budget_tokens = budget_tokens;
            let Ok(child) = narrow(&parent, &role) else {
                // Refused only when there is nothing in common.
                prop_assert!(TOOLS.iter().all(|tool| !(has(&parent, tool) && role.allows(tool))));
                break;
            };
            prop_assert!(child.sandbox <= parent.sandbox);
            prop_assert!(role.sandbox.is_none_or(|wanted| child.sandbox <= wanted));
            prop_assert!(child.max_depth <= parent.max_depth);
            for tool in TOOLS {
                prop_assert_eq!(has(&child, tool), has(&parent, tool) && role.allows(tool));
            }
            for bound in [parent.budget_tokens, role.budget_tokens].into_iter().flatten() {
                prop_assert!(child.budget_tokens.is_some_and(|tokens| tokens <= bound));
            }
            parent = child;
        }
    }
}
