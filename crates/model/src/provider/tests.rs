use expect_test::{Expect, expect};

use super::*;

fn catalog(cwd: &AbsPath) -> Catalog {
    let key = |text: &str| Some(Secret::new(text));
    let providers = [
        Provider::new("openai", "https://api.example/v1", Wire::Responses).with_key("OPENAI_API_KEY", key("sk-1")),
        Provider::new("lab", "http://127.0.0.1:1/v1/", Wire::Responses),
        Provider::new("blank", "http://127.0.0.1:1/v1", Wire::Responses).with_key("BLANK_KEY", key("  ")),
        Provider::new("anthropic", "https://api.example", Wire::Messages).with_key("ANTHROPIC_API_KEY", None),
        Provider::new("claude", "https://api.example", Wire::Messages).with_key("CLAUDE_KEY", key("sk-1")),
        Provider::new("old", "https://api.example", Wire::Chat),
    ];
    let windows = [("openai/gpt-5.5".to_owned(), 400_000)].into();
    Catalog::new(providers, Http::new(http::Proxies::default()), windows, cwd.clone())
}

fn check(name: &str, expect: Expect) {
    let cwd = AbsPath::new("/nowhere").unwrap();
    let seen = match catalog(&cwd).open(name) {
        Ok(model) => format!("{} {:?}", model.id(), model.window()),
        Err(error) => format!("{error}\n- {}", error.hints().join("\n- ")),
    };
    expect.assert_eq(&seen);
}

#[test]
fn names() {
    check("openai/gpt-5.5", expect!["openai/gpt-5.5 Some(400000)"]);
    check("lab/org/model:q4", expect!["lab/org/model:q4 None"]);
    check("rehearsal", expect!["rehearsal None"]);
    check(
        "opnai/gpt-5.5",
        expect![[r#"
        there is no provider called `opnai`; the providers are: anthropic, blank, claude, lab, old, openai
        - did you mean `openai`?
        - or name it in config.toml:
        [providers.opnai]
        base_url = "http://127.0.0.1:8080/v1"
        wire = "chat"
        api_key_env = "OPNAI_KEY""#]],
    );
    for name in ["gpt-5.5", "", "/x", "lab/", "lab/ "] {
        assert!(matches!(catalog(&AbsPath::new("/").unwrap()).open(name), Err(OpenError::NotAModel(_))), "{name}");
    }
    check("old/x", expect!["old/x None"]);
    check("claude/claude-sonnet-5", expect!["claude/claude-sonnet-5 None"]);
    check(
        "blank/x",
        expect![[r"
        the provider `blank` needs a key and BLANK_KEY is not set
        - set it: export BLANK_KEY=…
        - or use a local server, or `--model rehearsal`, which needs no key"]],
    );
    check(
        "tape:x.jsonl",
        expect![[r"
        `tape:x.jsonl`: tapes are not built yet
        - `script:FILE` plays a script"]],
    );
    check(
        "script:missing.toml",
        expect![[r"
        the script /nowhere/missing.toml cannot be read: No such file or directory (os error 2)
        - write `script:FILE` with a file that exists; relative ones start at the working folder"]],
    );
}

#[test]
fn scripts_are_found_again_from_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), "[[rule]]\nreply = [{ text = \"hi\" }]\n").unwrap();
    let model = catalog(&AbsPath::new(dir.path()).unwrap()).open("script:a.toml").unwrap();
    let id = model.id().to_owned();
    assert_eq!(id, format!("script:{}", dir.path().join("a.toml").display()));
    assert_eq!(catalog(&AbsPath::new("/").unwrap()).open(&id).unwrap().id(), id);
}

#[test]
fn nothing_prints_a_key() {
    let text = format!("{:?}", catalog(&AbsPath::new("/").unwrap()));
    assert!(!text.contains("sk-1"), "{text}");
}

#[tokio::test]
async fn no_local_server() {
    // Nobody listens on port 1.
    let found = catalog(&AbsPath::new("/").unwrap()).local_servers(&[("ollama", "http://127.0.0.1:1/v1")]).await;
    assert_eq!(found, []);
}
