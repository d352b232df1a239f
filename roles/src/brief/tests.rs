use super::*;
use crate::{MAX_INSTRUCTIONS, Roles};

const ALL: [&str; 4] = ["exec_command", "apply_patch", "spawn_agent", "wait_agent"];

fn brief(role: &str, path: &str, tools: &[&str]) -> String {
    let path = path.parse().unwrap();
    Roles::builtin().get(role).unwrap().brief(&Place { path: &path, sandbox: Sandbox::DangerFullAccess, tools })
}

/// The headings of a brief, in their order.
fn check(role: &str, path: &str, tools: &[&str], expect: expect_test::Expect) {
    let text = brief(role, path, tools);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    expect.assert_eq(&headings.join("\n"));
}

#[test]
fn parts() {
    check(
        "default",
        "/root",
        &ALL,
        expect_test::expect![[r"
            # How to work
            # Commands
            # Mail
            # Your final message
            # You are the root
            # Changing files
            # Splitting work
            # Your role: default"]],
    );
    check(
        "explorer",
        "/root/look",
        &ALL,
        expect_test::expect![[r"
            # How to work
            # Commands
            # Mail
            # Your final message
            # You are a child
            # Your role: explorer"]],
    );
    check(
        "worker",
        "/root/look/fix",
        &["exec_command", "apply_patch"],
        expect_test::expect![[r"
            # How to work
            # Commands
            # Mail
            # Your final message
            # You are a child
            # Changing files
            # Your role: worker"]],
    );
}

#[test]
fn every_place_is_filled() {
    for role in ["default", "explorer", "worker"] {
        for path in ["/root", "/root/a/b"] {
            let text = brief(role, path, &ALL);
            for hole in ["{path}", "{parent}", "{role}", "{reach}"] {
                assert!(!text.contains(hole), "{role} at {path}: {hole}");
            }
            assert!(text.contains(&format!("the agent at `{path}`")));
            assert!(text.contains("without a sandbox"));
        }
    }
    assert!(brief("worker", "/root/a/b", &ALL).contains("spawned by `/root/a`"));
}

#[test]
fn the_sandbox_that_holds_is_the_one_told() {
    let path = AgentPath::root();
    let roles = Roles::builtin();
    let role = roles.get("default").unwrap();
    let told = |sandbox| role.brief(&Place { path: &path, sandbox, tools: &[] });
    assert!(told(Sandbox::ReadOnly).contains("write nothing"));
    assert!(told(Sandbox::WorkspaceWrite).contains("below the working folder"));
    assert!(!told(Sandbox::WorkspaceWrite).contains("without a sandbox"));
}

/// Holes in a user's text are the user's.
#[test]
fn instructions_are_taken_as_they_are() {
    let mut role = Roles::builtin().get("worker").unwrap().clone();
    role.instructions = "Replace {path} and {reach} in templates.".to_owned();
    let text = role.brief(&Place { path: &AgentPath::root(), sandbox: Sandbox::ReadOnly, tools: &[] });
    assert!(text.ends_with("\n\nReplace {path} and {reach} in templates.\n"));
}

/// 32,000 bytes is the cap of the first item of a context; beyond it the end, a role's own part, would be cut off.
#[test]
fn the_longest_brief_fits() {
    let mut role = Roles::builtin().get("default").unwrap().clone();
    role.instructions = "x".repeat(MAX_INSTRUCTIONS);
    role.name = "n".repeat(64);
    let path = AgentPath::root().resolve(&vec!["a".repeat(64); 16].join("/")).unwrap();
    let text = role.brief(&Place { path: &path, sandbox: Sandbox::WorkspaceWrite, tools: &ALL });
    assert!(text.len() <= 32_000, "{}", text.len());
}
