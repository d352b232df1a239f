use expect_test::{Expect, expect};

use super::*;

fn check(text: &str, expect: Expect) {
    let seen = match parse(Layer::User, "agents/tester.toml", text) {
        Ok(role) => format!("{role:#?}"),
        Err(problem) => problem.to_string(),
    };
    expect.assert_eq(&seen);
}

#[test]
fn a_whole_file() {
    check(
        r#"
        name = "test-runner"
        description = """
        Runs the tests
        and reads them."""
        instructions = " Run them. "
        model = "openai/gpt-5.5"
        effort = "low"
        tools = ["exec_command", "write_stdin"]
        sandbox = "read-only"
        workspace = "worktree"
        budget_tokens = 100_000
        budget_usd = 2.5
        max_depth = 0x2
        nicknames = ["Hare", "Big-Hare 2"]
        "#,
        expect![[r#"
            Parsed {
                name: "test-runner",
                layer: User,
                file: "agents/tester.toml",
                description: Some(
                    "Runs the tests and reads them.",
                ),
                instructions: Some(
                    "Run them.",
                ),
                model: Some(
                    "openai/gpt-5.5",
                ),
                effort: Some(
                    "low",
                ),
                tools: Some(
                    [
                        "exec_command",
                        "write_stdin",
                    ],
                ),
                sandbox: Some(
                    ReadOnly,
                ),
                workspace: Some(
                    Worktree,
                ),
                budget_tokens: Some(
                    100000,
                ),
                budget_usd: Some(
                    Usd(
                        2500000000,
                    ),
                ),
                max_depth: Some(
                    2,
                ),
                nicknames: Some(
                    [
                        "Hare",
                        "Big-Hare 2",
                    ],
                ),
            }"#]],
    );
}

#[test]
fn the_stem_names_the_role() {
    let name =
        |file: &str| parse(Layer::Project, file, "").map(|role| role.name).map_err(|problem| problem.to_string());
    assert_eq!(name("agents/tester.toml").unwrap(), "tester");
    assert_eq!(name("tester").unwrap(), "tester");
    expect!["My Role.toml: name: `My Role` cannot name a role: add name = \"…\" (1 to 64 of a-z, 0-9, _ and -)"]
        .assert_eq(&name("My Role.toml").unwrap_err());
    assert!(name("agents/.toml").is_err());
}

#[test]
fn keys() {
    check(
        "\ndescripton = \"x\"",
        expect!["agents/tester.toml:2: descripton: unknown key, did you mean `description`?"],
    );
    check(
        "zzz = 1",
        expect![
            "agents/tester.toml:1: zzz: unknown key; a role may set name, description, instructions, model, effort, tools, sandbox, workspace, budget_tokens, budget_usd, max_depth, nicknames"
        ],
    );
    check(
        "model = \"a/b\"\n\napproval = \"never\"",
        expect![
            "agents/tester.toml:3: approval: a role cannot decide when a person is asked: an agent takes that from its parent; remove the key"
        ],
    );
    check(
        "reviewer = \"x\"",
        expect![
            "agents/tester.toml:1: reviewer: a role cannot decide who reviews: an agent takes that from its parent; remove the key"
        ],
    );
    check(
        "cwd = \"/\"",
        expect![
            "agents/tester.toml:1: cwd: a role cannot decide the working folder: an agent takes that from its parent; remove the key"
        ],
    );
}

#[test]
fn malformed_files() {
    check("a = [", expect!["agents/tester.toml:1: not TOML: unclosed array, expected `]`"]);
    check("name = \"a\"\nname = \"b\"", expect!["agents/tester.toml:2: not TOML: duplicate key"]);
    check(
        "\n\n= 3",
        expect!["agents/tester.toml:3: not TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`"],
    );
    check("[description]\nx = 1", expect!["agents/tester.toml:1: description: expected text in quotes"]);
    check(&"#".repeat(MAX_FILE + 1), expect!["agents/tester.toml: the file is over 64 KiB: a role is shorter"]);
}

#[test]
fn values() {
    check(
        "description = \" \"",
        expect!["agents/tester.toml:1: description: must not be blank: remove the key or write something"],
    );
    check(
        "instructions = \"\"",
        expect!["agents/tester.toml:1: instructions: must not be blank: remove the key or write something"],
    );
    check(
        "name = \"Tester\"",
        expect!["agents/tester.toml:1: name: `Tester` cannot name a role: 1 to 64 of a-z, 0-9, _ and -"],
    );
    check(
        "model = \"/gpt\"",
        expect![[r#"agents/tester.toml:1: model: expected "provider/name", for example "openai/gpt-5.5""#]],
    );
    check(
        "effort = \"very high\"",
        expect![[r#"agents/tester.toml:1: effort: expected one word, for example "low", "medium" or "high""#]],
    );
    check(
        "sandbox = \"none\"",
        expect!["agents/tester.toml:1: sandbox: expected one of read-only, workspace-write, danger-full-access"],
    );
    check("workspace = 1", expect!["agents/tester.toml:1: workspace: expected one of shared, worktree"]);
    check("max_depth = 17", expect!["agents/tester.toml:1: max_depth: expected a whole number from 1 to 16"]);
    check("max_depth = \"2\"", expect!["agents/tester.toml:1: max_depth: expected a whole number from 1 to 16"]);
    check("budget_usd = 0", expect!["agents/tester.toml:1: budget_usd: expected US dollars above 0, for example 2.50"]);
    check(
        "budget_usd = \"2\"",
        expect!["agents/tester.toml:1: budget_usd: expected US dollars above 0, for example 2.50"],
    );
    check("budget_tokens = -1", expect!["agents/tester.toml:1: budget_tokens: expected a whole number from 1024 up"]);
    check(
        "tools = \"exec_command\"",
        expect![[r#"agents/tester.toml:1: tools: expected a list of texts, for example ["one", "two"]"#]],
    );
    check(
        "tools = [\n  \"exec_command\",\n  \"rm -rf\"]",
        expect!["agents/tester.toml:3: tools: `rm -rf` is not the name of a tool"],
    );
    check("tools = [\"a\", \"a\"]", expect!["agents/tester.toml:1: tools: `a` stands there twice"]);
    check(
        "nicknames = []",
        expect!["agents/tester.toml:1: nicknames: must not be empty: remove the key or name somebody"],
    );
    check(
        "nicknames = [\"é\"]",
        expect!["agents/tester.toml:1: nicknames: `é` is not a nickname: 1 to 32 of letters, digits, blank, - and _"],
    );
    check(
        &format!("description = \"{}\"", "x".repeat(MAX_DESCRIPTION + 1)),
        expect!["agents/tester.toml:1: description: has 1001 bytes and may have 1000: shorten it"],
    );
}

proptest::proptest! {
    #[test]
    fn no_input_breaks_it(text in r#"([a-z_]{1,12} = ("[^"]{0,6}"|[0-9\[\]]{0,6})?\n|\PC{0,20}){0,8}"#) {
        if let Err(problem) = parse(Layer::User, "x.toml", &text) {
            proptest::prop_assert!(problem.line.is_none_or(|line| line <= text.lines().count() + 1));
            proptest::prop_assert!(!problem.message.is_empty());
        }
    }
}
