use expect_test::{Expect, expect};
use protocol::Sandbox;

use super::*;
use crate::parse;

/// Each file is layer, name, text.
fn merged(files: &[(Layer, &str, &str)]) -> (Roles, String) {
    let parsed = files.iter().map(|(layer, name, text)| parse(*layer, name, text).unwrap()).collect();
    let mut roles = Roles::builtin();
    let problems: Vec<String> = roles.merge(parsed).iter().map(ToString::to_string).collect();
    (roles, problems.join("\n"))
}

fn check_merge(files: &[(Layer, &str, &str)], expect: Expect) {
    let (roles, problems) = merged(files);
    expect.assert_eq(&format!("{}\n{problems}", roles.names().join(" ")));
}

#[test]
fn fields_of_the_project_stand_over_the_users() {
    let (roles, problems) = merged(&[
        (Layer::Project, "p/explorer.toml", "effort = \"high\"\nsandbox = \"read-only\""),
        (Layer::User, "u/explorer.toml", "effort = \"low\"\nmodel = \"lab/small\"\nnicknames = [\"Owl\"]"),
    ]);
    assert_eq!(problems, "");
    let builtin = Roles::builtin();
    let before = builtin.get("explorer").unwrap();
    let after = roles.get("explorer").unwrap();
    let expected = Role {
        effort: Some("high".into()),
        model: Some("lab/small".into()),
        sandbox: Some(Sandbox::ReadOnly),
        nicknames: vec!["Owl".into()],
        origin: Origin::Project("p/explorer.toml".into()),
        ..before.clone()
    };
    assert_eq!(after, &expected);
}

#[test]
fn layers_complete_each_other() {
    let (roles, problems) = merged(&[
        (Layer::User, "u/tester.toml", "description = \"Runs tests.\""),
        (Layer::Project, "p/tester.toml", "instructions = \"Run the tests.\""),
    ]);
    assert_eq!(problems, "");
    let tester = roles.get("tester").unwrap();
    assert_eq!((tester.description.as_str(), tester.instructions.as_str()), ("Runs tests.", "Run the tests."));
    assert_eq!(roles.names(), ["default", "explorer", "worker", "tester"]);
}

#[test]
fn what_is_left_out_is_told() {
    check_merge(
        &[(Layer::User, "tester.toml", "instructions = \"Run.\"")],
        expect![[r#"
            default explorer worker
            tester.toml: description: a new role needs one: add description = "…""#]],
    );
    check_merge(
        &[(Layer::User, "tester.toml", "description = \"Runs.\"")],
        expect![[r#"
            default explorer worker
            tester.toml: instructions: a new role needs one: add instructions = "…""#]],
    );
    check_merge(
        &[
            (Layer::User, "a.toml", "name = \"t\"\ndescription = \"A\"\ninstructions = \"A\""),
            (Layer::User, "b.toml", "name = \"t\"\ndescription = \"B\""),
        ],
        expect![[r"
            default explorer worker t
            b.toml: name: role `t` is already defined by a.toml: remove one of the two"]],
    );
}

#[test]
fn there_is_room_for_so_many() {
    let files: Vec<_> = (0..MAX_ROLES)
        .map(|n| parse(Layer::User, &format!("r{n}.toml"), "description = \"x\"\ninstructions = \"y\"").unwrap())
        .collect();
    let mut roles = Roles::builtin();
    let problems = roles.merge(files);
    assert_eq!(roles.names().len(), MAX_ROLES);
    // Three places are taken by the built-in ones.
    assert_eq!(problems.len(), 3);
    expect!["r29.toml: there are 32 roles already, which is the limit: remove one"].assert_eq(&problems[0].to_string());
}

#[test]
fn names() {
    let roles = Roles::builtin();
    assert_eq!(roles.get(" worker ").unwrap().name, "worker");
    expect!["unknown role `wroker`, did you mean `worker`? known roles: default, explorer, worker"]
        .assert_eq(&roles.get("wroker").unwrap_err().to_string());
    expect!["unknown role `plumber`: known roles: default, explorer, worker"]
        .assert_eq(&roles.get("plumber").unwrap_err().to_string());
}

#[test]
fn restricted() {
    let roles = Roles::builtin().restrict(&["worker", "explorer", "worker"]).unwrap();
    assert_eq!(roles.names(), ["worker", "explorer"]);
    expect!["unknown role `default`: known roles: worker, explorer"]
        .assert_eq(&roles.get("default").unwrap_err().to_string());
    assert_eq!(roles.unnamed().unwrap().name, "worker");
    assert_eq!(roles.stored("default").unwrap().name, "default");
    assert_eq!(roles.stored("gone"), None);
    let listing = roles.listing();
    let heads: Vec<_> = listing.lines().filter_map(|line| line.split_once(':')).map(|(head, _)| head).collect();
    assert_eq!(heads, ["- `worker`", "- `explorer`"]);
    assert!(Roles::builtin().restrict(&["worker", "nobody"]).is_err());
    assert_eq!(Roles::builtin().restrict(&[] as &[&str]).unwrap(), Roles::builtin());
    assert_eq!(Roles::builtin().unnamed().unwrap().name, "default");
}

#[test]
fn the_listing_tells_what_is_fixed() {
    let (roles, _) = merged(&[(
        Layer::User,
        "t.toml",
        "description = \"Runs tests.\"\ninstructions = \"Run.\"\nmodel = \"lab/small\"\neffort = \"low\"",
    )]);
    expect!["- `t`: Runs tests. (Fixed: model lab/small, reasoning effort low.)\n"]
        .assert_eq(&roles.restrict(&["t"]).unwrap().listing());
}

#[test]
fn an_explorer_has_no_way_to_change_files() {
    let roles = Roles::builtin();
    let explorer = roles.get(crate::EXPLORER).unwrap();
    assert!(explorer.allows("exec_command"));
    for tool in ["apply_patch", "spawn_agent", "followup_task", "close_agent"] {
        assert!(!explorer.allows(tool), "{tool}");
    }
    assert!(roles.get(crate::WORKER).unwrap().allows("apply_patch"));
}
