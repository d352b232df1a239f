use std::fs;

use expect_test::{Expect, expect};

use super::*;

#[test]
fn this_workspace_is_tidy() {
    let faults = check(crate::root()).unwrap();
    let list: Vec<_> = faults.iter().map(Fault::to_string).collect();
    assert!(faults.is_empty(), "\n{}\n", list.join("\n"));
}

/// A small workspace in order: `agent` at the root, `tools` on floor 4, `base` on floor 0, and `xtask`.
const TIDY: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"agent\"\n[package.metadata.tidy]\nfloor = 6\n[lints]\nworkspace = true\n\
         [dependencies]\ntools.workspace = true\n\
         [workspace]\nmembers = [\".\", \"crates/*\", \"xtask\"]\n\
         default-members = [\".\", \"crates/base\", \"crates/tools\", \"xtask\"]\n\
         [workspace.dependencies]\nbase = { path = \"crates/base\" }\ntools = { path = \"crates/tools\" }\nserde = \"1\"\n",
    ),
    ("Cargo.lock", "version = 4\n[[package]]\nname = \"rustls\"\nversion = \"0.23.1\"\n"),
    ("docs/DEPENDENCIES.md", "| crate | why |\n|---|---|\n| `serde` | wire forms |\n"),
    ("src/main.rs", "fn main() {}\n"),
    (
        "crates/base/Cargo.toml",
        "[package]\nname = \"base\"\n[package.metadata.tidy]\nfloor = 0\n[lints]\nworkspace = true\n\
         [dependencies]\nserde.workspace = true\n[dev-dependencies]\ntools.workspace = true\n",
    ),
    ("crates/base/src/lib.rs", "mod a;\npub use a::{One, Two};\n"),
    (
        "crates/tools/Cargo.toml",
        "[package]\nname = \"tools\"\n[package.metadata.tidy]\nfloor = 4\n[lints]\nworkspace = true\n\
         [dependencies]\nbase.workspace = true\n",
    ),
    (
        "xtask/Cargo.toml",
        "[package]\nname = \"xtask\"\n[package.metadata.tidy]\nfloor = 6\n[lints]\nworkspace = true\n",
    ),
];

/// The faults of the tidy workspace after these files were put into it. In what is put, `HERE` stands for the text
/// that the file has in the tidy workspace.
fn faults(changes: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in TIDY.iter().chain(changes) {
        let path = dir.path().join(file);
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("HERE", &before)).unwrap();
    }
    let lines: Vec<_> = check(dir.path()).unwrap().iter().map(Fault::to_string).collect();
    lines.join("\n")
}

fn fails(changes: &[(&str, &str)], expect: Expect) {
    expect.assert_eq(&faults(changes));
}

/// A manifest of a crate called `name` on `floor` with these lines at its end.
fn manifest(name: &str, floor: u64, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n[package.metadata.tidy]\nfloor = {floor}\n[lints]\nworkspace = true\n{rest}")
}

#[test]
fn the_example_is_tidy() {
    fails(&[], expect![""]);
}

#[test]
fn arrows_point_down() {
    fails(
        &[("crates/base/Cargo.toml", &manifest("base", 0, "[dependencies]\ntools.workspace = true\n"))],
        expect![
            "crates/base/Cargo.toml: `base` on floor 0 depends on `tools` on floor 4; move what is shared to a lower floor; an arrow must point down"
        ],
    );
    fails(
        &[("crates/base/Cargo.toml", &manifest("base", 4, ""))],
        expect![
            "crates/tools/Cargo.toml: `tools` on floor 4 depends on `base` on floor 4; move what is shared to a lower floor; an arrow must point down"
        ],
    );
    fails(
        &[(
            "crates/base/Cargo.toml",
            &manifest("base", 0, "[target.'cfg(unix)'.build-dependencies]\ntools.workspace = true\n"),
        )],
        expect![
            "crates/base/Cargo.toml: `base` on floor 0 depends on `tools` on floor 4; move what is shared to a lower floor; an arrow must point down"
        ],
    );
}

#[test]
fn every_package_has_a_floor() {
    fails(
        &[("crates/base/Cargo.toml", "[package]\nname = \"base\"\n[lints]\nworkspace = true\n")],
        expect![
            "crates/base/Cargo.toml: `base` has no floor; add `[package.metadata.tidy]` with `floor = N`, one above the highest floor it depends on"
        ],
    );
    fails(
        &[("xtask/Cargo.toml", &manifest("xtask", 5, ""))],
        expect!["xtask/Cargo.toml: `xtask` is on floor 5; set `floor = 6`, the top floor"],
    );
}

#[test]
fn every_package_has_the_lints() {
    fails(
        &[("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n[package.metadata.tidy]\nfloor = 6\n")],
        expect!["xtask/Cargo.toml: the lints of the workspace are not on; add `[lints]` with `workspace = true`"],
    );
}

#[test]
fn versions_stand_in_one_place() {
    fails(
        &[("xtask/Cargo.toml", &manifest("xtask", 6, "[dependencies]\nserde = \"1\"\n"))],
        expect![
            "xtask/Cargo.toml: `serde` in [dependencies] does not come from the workspace; write `serde.workspace = true` and its version in [workspace.dependencies]"
        ],
    );
    fails(
        &[("xtask/Cargo.toml", &manifest("xtask", 6, "[dev-dependencies]\nbase = { path = \"../crates/base\" }\n"))],
        expect![
            "xtask/Cargo.toml: `base` in [dev-dependencies] does not come from the workspace; write `base.workspace = true` and its version in [workspace.dependencies]"
        ],
    );
}

#[test]
fn every_member_is_tested_by_default() {
    fails(
        &[("crates/new/Cargo.toml", &manifest("new", 1, ""))],
        expect![
            "Cargo.toml: `crates/new` is a member but not a default member; add it to `default-members`, so that a plain `cargo test` tests it"
        ],
    );
}

#[test]
fn some_packages_must_not_know_others() {
    let workspace = "HEREtokio = \"1\"\n";
    let docs = "HERE| `tokio` | waiting |\n";
    for name in ["agent-graph", "mailbox", "patch", "policy", "protocol", "roles", "shell"] {
        let manifest = manifest(name, 3, "[dependencies]\ntokio.workspace = true\n");
        let seen = faults(&[
            ("Cargo.toml", workspace),
            ("docs/DEPENDENCIES.md", docs),
            ("crates/tools/Cargo.toml", &manifest),
        ]);
        assert!(seen.contains(&format!("`{name}` must not depend on `tokio`")), "{seen}");
    }
    fails(
        &[
            ("Cargo.toml", workspace),
            ("docs/DEPENDENCIES.md", docs),
            ("crates/base/Cargo.toml", &manifest("mailbox", 3, "[dev-dependencies]\ntokio.workspace = true\n")),
        ],
        expect![""],
    );
    fails(
        &[("crates/base/Cargo.toml", &manifest("runtime", 5, "[dependencies]\ntools.workspace = true\n"))],
        expect![
            "crates/base/Cargo.toml: `runtime` must not depend on `tools`; take it out: one agent sees tools, a model stream, a rollout sink and an approver"
        ],
    );
}

#[test]
fn some_packages_are_banned() {
    for name in ["aws-lc-sys", "openssl-sys", "libgit2-sys", "onig_sys"] {
        let lock = format!("HERE[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n");
        let seen = faults(&[("Cargo.lock", &lock)]);
        assert!(seen.starts_with(&format!("Cargo.lock: `{name}` is banned: ")), "{seen}");
        assert_eq!(seen.lines().count(), 1, "{seen}");
    }
    fails(
        &[("Cargo.lock", "HERE[[package]]\nname = \"rustls\"\nversion = \"0.22.0\"\n")],
        expect![
            "Cargo.lock: `rustls` is there in 2 versions: two would install two sets of roots and two providers; find out who brings it with `cargo tree -i rustls` and turn that feature off"
        ],
    );
}

#[test]
fn every_dependency_has_a_reason() {
    fails(
        &[("Cargo.toml", "HEREtoml = \"1\"\n")],
        expect![
            "docs/DEPENDENCIES.md: nothing says why `toml` is a dependency; add a row `| toml | why | instead of | where |`, the name in back quotes"
        ],
    );
    fails(
        &[("docs/DEPENDENCIES.md", "HERE| `anyhow` | errors |\n")],
        expect!["docs/DEPENDENCIES.md: `anyhow` is no dependency any more; take its row out"],
    );
}

#[test]
fn no_mod_rs() {
    fails(
        &[("crates/base/src/a/mod.rs", "\n")],
        expect![
            "crates/base/src/a/mod.rs: a file named mod.rs says nothing in a list of open files; name it after its folder and put it beside it"
        ],
    );
}

#[test]
fn no_globs_are_re_exported() {
    fails(
        &[("crates/base/src/lib.rs", "mod a;\nuse a::*;\npub use a::*;\n")],
        expect!["crates/base/src/lib.rs:3: a glob is re-exported; name what is exported"],
    );
    fails(
        &[("crates/base/src/lib.rs", "pub use a::{\n    b::*,\n    One,\n};\n")],
        expect!["crates/base/src/lib.rs:1: a glob is re-exported; name what is exported"],
    );
}

#[test]
fn files_fit_in_the_head() {
    let code = |lines: usize| "// code\n".repeat(lines);
    let tests = |lines: usize| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// test\n".repeat(lines - 3));
    let at = |text: String, expect| fails(&[("crates/base/src/lib.rs", &text)], expect);
    at(code(500), expect![""]);
    at(
        code(501),
        expect![
            "crates/base/src/lib.rs: 501 lines without tests are more than 500; cut it in two, or put it on the list of long files with a reason"
        ],
    );
    at(code(500) + &tests(300), expect![""]);
    at(
        code(500) + &tests(301),
        expect![
            "crates/base/src/lib.rs: 801 lines are more than 800; cut it in two, or put it on the list of long files with a reason"
        ],
    );
    at(
        code(501) + &tests(100),
        expect![
            "crates/base/src/lib.rs: 501 lines without tests are more than 500; cut it in two, or put it on the list of long files with a reason"
        ],
    );
    fails(&[("crates/base/src/a/tests.rs", &code(800)), ("tests/tree.rs", &code(800))], expect![""]);
    fails(
        &[("crates/base/src/a/tests.rs", &code(801))],
        expect![
            "crates/base/src/a/tests.rs: 801 lines are more than 800; cut it in two, or put it on the list of long files with a reason"
        ],
    );
}

#[test]
fn no_paths_of_one_machine() {
    for folder in rules::MACHINE_FOLDERS {
        let text = format!("let a = \"/{folder}/me/b\";\nlet b = \"/tmp/{folder}/b\";\n");
        let seen = faults(&[("crates/base/src/lib.rs", &text)]);
        assert!(seen.starts_with("crates/base/src/lib.rs:1: an absolute path below "), "{seen}");
        assert_eq!(seen.lines().count(), 1, "{seen}");
    }
    let text = format!("see /{}/me\n", rules::MACHINE_FOLDERS[0]);
    for file in ["README.md", "docs/a/b.md", ".ci/run", ".cargo/config.toml", "examples/a.sh"] {
        let seen = faults(&[(file, &text)]);
        assert!(seen.starts_with(&format!("{file}:1: ")), "{seen}");
    }
    for file in ["target/a.md", ".git/a.md", "a.png"] {
        assert_eq!(faults(&[(file, &text)]), "");
    }
}

#[test]
fn a_lock_file_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
    let lines: Vec<_> = check(dir.path()).unwrap().iter().map(Fault::to_string).collect();
    expect!["Cargo.lock: there is none; run `cargo generate-lockfile` and commit it"].assert_eq(&lines.join("\n"));
}
