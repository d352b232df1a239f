use std::path::Path;

use expect_test::{Expect, expect};

use super::*;

/// Loads `text` as `~/.agent/config.toml`.
fn load(text: &str, flags: &Flags) -> Result<Loaded, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".agent")).unwrap();
    fs::write(home.path().join(".agent/config.toml"), text).unwrap();
    Config::load(&env(home.path()), flags)
}

fn env(home: &Path) -> Env {
    Env::from_pairs([("HOME", home)])
}

fn overrides(all: &[&str]) -> Flags {
    Flags { overrides: all.iter().map(|text| (*text).to_owned()).collect(), ..Flags::default() }
}

fn say(loaded: Result<Loaded, ConfigError>) -> String {
    match loaded {
        Ok(loaded) => {
            let warnings = loaded.warnings.iter().map(|warning| format!("warning: {warning}\n"));
            warnings.collect::<String>() + "ok"
        }
        Err(error) => {
            let hints = error.hints().into_iter().map(|hint| format!("\nhint: {hint}"));
            format!("error: {error}{}", hints.collect::<String>())
        }
    }
}

fn check(text: &str, expect: Expect) {
    expect.assert_eq(&say(load(text, &Flags::default())));
}

fn check_override(argument: &str, expect: Expect) {
    expect.assert_eq(&say(load("", &overrides(&[argument]))));
}

#[test]
fn bad_values() {
    check(
        "\n\nmax_running = \"many\"",
        expect![[
            r#"error: bad value for max_running in ~/.agent/config.toml:3: expected a whole number from 1 to 10000, found "many""#
        ]],
    );
    check(
        "max_running = 0",
        expect![
            "error: bad value for max_running in ~/.agent/config.toml:1: expected a whole number from 1 to 10000, found 0"
        ],
    );
    check(
        "max_depth = 17",
        expect![
            "error: bad value for max_depth in ~/.agent/config.toml:1: expected a whole number from 0 to 16, found 17"
        ],
    );
    check(
        "max_agents = -1",
        expect![
            "error: bad value for max_agents in ~/.agent/config.toml:1: expected a whole number from 1 to 1000000, found -1"
        ],
    );
    check(
        "budget_tokens = 99999999999999999999",
        expect![[
            r#"error: bad value for budget_tokens in ~/.agent/config.toml:1: expected a whole number of tokens from 1 to 1000000000000, found "99999999999999999999""#
        ]],
    );
    check(
        "budget_usd = nan",
        expect![
            "error: bad value for budget_usd in ~/.agent/config.toml:1: expected an amount of US dollars from 0 to 1000000, found nan"
        ],
    );
    check(
        "sandbox = \"read_only\"",
        expect![[
            r#"error: bad value for sandbox in ~/.agent/config.toml:1: expected "read-only", "workspace-write" or "danger-full-access", found "read_only""#
        ]],
    );
    check(
        "approval = true",
        expect![[
            r#"error: bad value for approval in ~/.agent/config.toml:1: expected "untrusted", "on-request" or "never", found true"#
        ]],
    );
    check(
        "model = \" \"",
        expect![[
            r#"error: bad value for model in ~/.agent/config.toml:1: expected PROVIDER/NAME, such as "openai/gpt-5.5", found """#
        ]],
    );
    check(
        "roles = \"explorer\"",
        expect![[
            r#"error: bad value for roles in ~/.agent/config.toml:1: expected a list of names, such as ["explorer", "worker"], found "explorer""#
        ]],
    );
    check(
        "[max_running]\na = 1",
        expect![
            "error: bad value for max_running in ~/.agent/config.toml:1: expected a whole number from 1 to 10000, found a table"
        ],
    );
    check(
        "providers = 3",
        expect!["error: bad value for providers in ~/.agent/config.toml:1: expected a table, found 3"],
    );
    check(
        "[profiles]\na = 1",
        expect!["error: bad value for profiles.a in ~/.agent/config.toml:2: expected a table, found 1"],
    );
}

#[test]
fn bad_providers() {
    check(
        "[providers.lab]\nwire = \"chat\"",
        expect![[
            r#"error: provider `lab` in ~/.agent/config.toml:1 has no base_url; add base_url = "http://127.0.0.1:8080/v1" or whatever its address is"#
        ]],
    );
    check(
        "[providers.lab]\nbase_url = \"127.0.0.1:8080\"",
        expect![[
            r#"error: bad value for providers.lab.base_url in ~/.agent/config.toml:2: expected an address that starts with http:// or https://, such as "http://127.0.0.1:8080/v1", found "127.0.0.1:8080""#
        ]],
    );
    check(
        "[providers.lab]\nbase_url = \"http://a\"\nwire = \"completions\"",
        expect![[
            r#"error: bad value for providers.lab.wire in ~/.agent/config.toml:3: expected "responses", "chat" or "messages", found "completions""#
        ]],
    );
    check(
        "[providers.\"a/b\"]\nbase_url = \"http://a\"",
        expect![[
            r#"error: bad value for providers."a/b" in ~/.agent/config.toml:1: expected a provider's name of letters, digits, - and _, found "a/b""#
        ]],
    );
    // A key pasted in the wrong place must not reach the terminal, where it would be copied into a report.
    check(
        "[providers.openai]\napi_key_env = \"sk-secret\"",
        expect![[
            r#"error: bad value for providers.openai.api_key_env in ~/.agent/config.toml:2: expected the name of an environment variable, such as "LAB_KEY" (the key itself stays out of this file), found something else, which is not shown because it may be a key"#
        ]],
    );
}

#[test]
fn malformed_files() {
    check(
        "model = \"a/b\"\nmax_running = [1,\n",
        expect![[r"
            error: ~/.agent/config.toml:2:18 is not valid TOML: unclosed array, expected `]`
              2 | max_running = [1,
                |                  ^"]],
    );
    check(
        "max_running 4",
        expect![[r"
            error: ~/.agent/config.toml:1:13 is not valid TOML: key with no value, expected `=`
              1 | max_running 4
                |             ^"]],
    );
    check(
        "model = \"ä/b\" x",
        expect![[r#"
            error: ~/.agent/config.toml:1:15 is not valid TOML: unexpected key or value, expected newline, `#`
              1 | model = "ä/b" x
                |               ^"#]],
    );
    check(
        "model = \"a/b\"\n\tmodel = \"a/b\"",
        expect![[r#"
            error: ~/.agent/config.toml:2:2 is not valid TOML: duplicate key
              2 | 	model = "a/b"
                | 	^"#]],
    );
}

#[test]
fn unknown_keys() {
    check(
        "max_runing = 4\nzebra = 1",
        expect![[r#"
            warning: unknown key max_runing in ~/.agent/config.toml:1 is ignored; did you mean `max_running`?
            warning: unknown key zebra in ~/.agent/config.toml:2 is ignored; known here: model, sandbox, approval, roles, trusted_projects, max_running, max_resident, max_depth, max_agents, stall_after_ms, budget_tokens, budget_usd, agent_budget_tokens, agent_budget_usd, providers, models, permissions, profiles
            ok"#]],
    );
    check(
        "[provider.lab]\nbase_url = \"http://a\"",
        expect![[r"
            warning: unknown key provider in ~/.agent/config.toml:1 is ignored; did you mean `providers`?
            ok"]],
    );
    check(
        "[providers.openai]\napi_key = \"sk-secret\"\nx = 1",
        expect![[r"
            warning: unknown key providers.openai.api_key in ~/.agent/config.toml:2 is ignored; did you mean `api_key_env`?
            warning: unknown key providers.openai.x in ~/.agent/config.toml:3 is ignored; known here: base_url, wire, api_key_env, idle_timeout_ms, progress_timeout_ms, connect_timeout_ms, unreachable_for_ms
            ok"]],
    );
    check(
        "[models.gpt-5.5]\nwindow = 4000",
        expect![[r#"
            warning: unknown key models.gpt-5 in ~/.agent/config.toml:1 is ignored; a model's table is named PROVIDER/NAME in quotes, as in [models."openai/gpt-5.5"]
            ok"#]],
    );
    check(
        "[profiles.fast]\nmodle = \"a/b\"",
        expect![[r"
            warning: unknown key profiles.fast.modle in ~/.agent/config.toml:2 is ignored; did you mean `model`?
            ok"]],
    );
    let strict = Flags { strict: true, ..Flags::default() };
    expect![[r"
        error: unknown key max-running in ~/.agent/config.toml:1; did you mean `max_running`?
        hint: without --strict-config this is a warning and the key is ignored"]]
    .assert_eq(&say(load("max-running = 4", &strict)));
    assert!(load("[permissions.mine]\nanything = [1]", &strict).is_ok());
}

#[test]
fn overrides_are_explained_too() {
    check_override(
        "max_running=many",
        expect![[
            r#"error: bad value for max_running in `-c max_running=many`: expected a whole number from 1 to 10000, found "many""#
        ]],
    );
    check_override(
        "max_running",
        expect!["error: `-c max_running` is not key=value; write it as in `-c max_running=4`"],
    );
    check_override("=4", expect!["error: `-c =4` is not key=value; write it as in `-c max_running=4`"]);
    check_override("a b=4", expect!["error: `-c a b=4` is not key=value; write it as in `-c max_running=4`"]);
    check_override("a\nb=4", expect!["error: `-c a b=4` is not key=value; write it as in `-c max_running=4`"]);
    check_override(
        "max_runing=4",
        expect![[r"
            warning: unknown key max_runing in `-c max_runing=4` is ignored; did you mean `max_running`?
            ok"]],
    );
    check_override(
        "providers=3",
        expect!["error: bad value for providers in `-c providers=3`: expected a table, found 3"],
    );
    check_override("model=rehearsal\nmax_running=2", expect!["ok"]);
}

#[test]
fn flags_are_explained_too() {
    let check = |flags: Flags, expect: Expect| expect.assert_eq(&say(load("", &flags)));
    check(
        Flags { max_running: Some(0), ..Flags::default() },
        expect!["error: bad value for max_running in --max-running: expected a whole number from 1 to 10000, found 0"],
    );
    check(
        Flags { sandbox: Some("none".into()), ..Flags::default() },
        expect![[
            r#"error: bad value for sandbox in --sandbox: expected "read-only", "workspace-write" or "danger-full-access", found "none""#
        ]],
    );
    check(
        Flags { budget_tokens: Some(u64::MAX), ..Flags::default() },
        expect![
            "error: bad value for budget_tokens in --budget-tokens: expected a whole number of tokens from 1 to 1000000000000, found \"18446744073709551615\""
        ],
    );
}

#[test]
fn profiles() {
    let text = "max_running = 2\n[profiles.fast]\nmax_running = 3\nnope = 1\n[profiles.fast.providers.lab]\nbase_url = \"http://lab/\"\n";
    let with = |profile: &str| load(text, &Flags { profile: Some(profile.into()), ..Flags::default() });
    let fast = with("fast").unwrap();
    assert_eq!(fast.config.max_running, 3);
    assert_eq!(fast.config.origin("max_running").to_string(), "~/.agent/config.toml:3");
    assert_eq!(fast.config.providers["lab"].base_url, "http://lab");
    assert_eq!(fast.warnings.len(), 1, "said once, although it is checked and then applied: {:?}", fast.warnings);
    let none = load(text, &Flags::default()).unwrap();
    assert_eq!(none.config.max_running, 2);
    assert!(!none.config.providers.contains_key("lab"));

    expect!["error: there is no profile `slow` in ~/.agent/config.toml; profiles there: fast"]
        .assert_eq(&say(with("slow")));
    expect![
        "error: there is no profile `x` in ~/.agent/config.toml; add a table [profiles.NAME] or leave --profile out"
    ]
    .assert_eq(&say(load("", &Flags { profile: Some("x".into()), ..Flags::default() })));
    expect!["error: bad value for profiles.slow.max_running in ~/.agent/config.toml:2: expected a whole number from 1 to 10000, found 0"]
        .assert_eq(&say(load("[profiles.slow]\nmax_running = 0", &Flags::default())));
}

#[test]
fn each_layer_replaces_the_ones_before() {
    let text = "max_running = 2\nmax_resident = 2\nmax_depth = 2\nmax_agents = 2\n\
                [profiles.p]\nmax_resident = 3\nmax_depth = 3\nbudget_tokens = 3\n";
    let flags = Flags {
        profile: Some("p".into()),
        overrides: vec!["max_depth=4".into(), "max_depth=5".into(), "budget_tokens=5".into()],
        budget_tokens: Some(6),
        ..Flags::default()
    };
    let config = load(text, &flags).unwrap().config;
    let seen = config
        .settings()
        .into_iter()
        .map(|(key, value, origin)| format!("{key} = {} ({origin})\n", value.as_deref().unwrap_or("not set")));
    expect![[r#"
        model = not set (the defaults)
        sandbox = "danger-full-access" (the defaults)
        approval = "never" (the defaults)
        roles = [] (the defaults)
        trusted_projects = [] (the defaults)
        max_running = 2 (~/.agent/config.toml:1)
        max_resident = 3 (~/.agent/config.toml:6)
        max_depth = 5 (`-c max_depth=5`)
        max_agents = 2 (~/.agent/config.toml:4)
        stall_after_ms = 300000 (the defaults)
        budget_tokens = 6 (--budget-tokens)
        budget_usd = not set (the defaults)
        agent_budget_tokens = not set (the defaults)
        agent_budget_usd = not set (the defaults)
    "#]]
    .assert_eq(&seen.collect::<String>());
}

#[test]
fn overrides_reach_every_table() {
    let flags = overrides(&[
        "model = ollama/qwen3",
        "roles=[\"explorer\"]",
        "budget_usd=2",
        "providers.lab={base_url=\"http://lab/v1/\", wire=\"messages\"}",
        "providers.lab.api_key_env=LAB_KEY",
        "models.\"lab/m=1.5\".window=8_000",
        "permissions.mine.read.deny=[\"/secret\"]",
        "permissions.mine.network=false",
    ]);
    let loaded = load("[permissions.mine.read]\nallow = [\"/\"]", &flags).unwrap();
    let config = loaded.config;
    assert_eq!(loaded.warnings, []);
    assert_eq!(config.model.as_deref(), Some("ollama/qwen3"));
    assert_eq!(config.roles, ["explorer"]);
    assert_eq!(config.budget_usd, Some(2.0));
    let lab = &config.providers["lab"];
    assert_eq!((lab.base_url.as_str(), lab.wire.as_str()), ("http://lab/v1", "messages"));
    assert_eq!(lab.api_key_env.as_deref(), Some("LAB_KEY"));
    assert_eq!(config.models["lab/m=1.5"].window, Some(8_000));
    expect![[r#"
        network = false

        [read]
        allow = ["/"]
        deny = ["/secret"]
    "#]]
    .assert_eq(&config.permissions["mine"].to_string());
}

#[test]
fn a_table_changes_a_built_in_provider_key_by_key() {
    let config = load("[providers.openai]\nbase_url = \"http://127.0.0.1:9/v1\"", &Flags::default()).unwrap().config;
    let openai = &config.providers["openai"];
    assert_eq!(openai.base_url, "http://127.0.0.1:9/v1");
    assert_eq!(openai.wire, crate::Wire::Responses);
    assert_eq!(openai.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
    let config = load("[providers.openai]\napi_key_env = \"\"", &Flags::default()).unwrap().config;
    assert_eq!(config.providers["openai"].api_key_env, None);
    let names: Vec<_> = config.local_servers().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ollama", "lmstudio", "llamacpp"]);
}

#[test]
fn no_file_is_an_empty_file() {
    let home = tempfile::tempdir().unwrap();
    let loaded = Config::load(&env(home.path()), &Flags::default()).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.file.as_path(), home.path().join(".agent/config.toml"));
}

#[test]
fn unreadable_files() {
    let check = |put: &dyn Fn(&Path), expect: Expect| {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".agent")).unwrap();
        put(&home.path().join(".agent/config.toml"));
        expect.assert_eq(&say(Config::load(&env(home.path()), &Flags::default())));
    };
    check(
        &|path| fs::create_dir(path).unwrap(),
        expect!["error: cannot read ~/.agent/config.toml: it is a folder; settings go into a file of that name"],
    );
    check(
        &|path| fs::write(path, b"model = \"a/b\"\n# \xff\n").unwrap(),
        expect!["error: cannot read ~/.agent/config.toml: line 2 is not UTF-8; save the file as UTF-8"],
    );
    check(
        &|path| fs::write(path, vec![b'#'; 2 << 20]).unwrap(),
        expect!["error: cannot read ~/.agent/config.toml: it has more than 1048576 bytes, which no configuration has"],
    );
    #[cfg(unix)]
    check(
        &|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        expect!["error: cannot read ~/.agent/config.toml: it is not an ordinary file"],
    );
}

#[cfg(unix)]
#[test]
fn a_file_without_permission() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".agent")).unwrap();
    let path = home.path().join(".agent/config.toml");
    fs::write(&path, "max_running = 3").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let seen = Config::load(&env(home.path()), &Flags::default());
    // The superuser reads it all the same, so what is right depends on who runs this.
    if File::open(&path).is_ok() {
        assert_eq!(seen.unwrap().config.max_running, 3);
    } else {
        expect!["error: cannot read ~/.agent/config.toml: permission denied; make it readable with `chmod u+r`"]
            .assert_eq(&say(seen));
    }
}
