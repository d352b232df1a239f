use expect_test::{Expect, expect};

use super::*;
use crate::Flags;

fn check(pairs: &[(&str, &str)], model: Option<&str>, expect: Expect) {
    check_in("", pairs, model, expect);
}

fn check_in(text: &str, pairs: &[(&str, &str)], model: Option<&str>, expect: Expect) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.toml"), text).unwrap();
    let home = [("AGENT_HOME", dir.path().to_str().unwrap())];
    let env = Env::from_pairs(home.into_iter().chain(pairs.iter().copied()));
    let flags = Flags { model: model.map(str::to_owned), ..Flags::default() };
    let config = Config::load(&env, &flags).unwrap().config;
    let seen = match model_choice(&config, &env) {
        Ok(model) => model,
        Err(error) => {
            let hints = error.hints().into_iter().map(|hint| format!("\nhint: {hint}"));
            format!("error: {error}{}", hints.collect::<String>())
        }
    };
    expect.assert_eq(&seen);
}

#[test]
fn what_is_set_is_taken() {
    let key = [("OPENAI_API_KEY", "k")];
    check(&key, Some("anthropic/claude"), expect!["anthropic/claude"]);
    check(&key, Some("openrouter/qwen/qwen3:free"), expect!["openrouter/qwen/qwen3:free"]);
    check(&key, Some("rehearsal"), expect!["rehearsal"]);
    check(&key, Some("script:demo.toml"), expect!["script:demo.toml"]);
    check(&key, Some("tape:/a b/t.jsonl"), expect!["tape:/a b/t.jsonl"]);
    check_in("[providers.lab]\nbase_url = \"http://lab\"", &[], Some("lab/m"), expect!["lab/m"]);
    check_in("model = \"deepseek/x\"", &[], None, expect!["deepseek/x"]);
}

#[test]
fn else_the_first_key_decides() {
    check(&[("DEEPSEEK_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], None, expect!["anthropic/claude-sonnet-5"]);
    check(&[("OPENAI_API_KEY", ""), ("GEMINI_API_KEY", "k")], None, expect!["gemini/gemini-flash-latest"]);
    check(&[("OPENROUTER_API_KEY", "k")], None, expect!["openrouter/openrouter/auto"]);
    let moved = "[providers.openai]\napi_key_env = \"WORK_KEY\"";
    check_in(moved, &[("WORK_KEY", "k")], None, expect!["openai/gpt-5.5"]);
    check_in(moved, &[("OPENAI_API_KEY", "k"), ("DEEPSEEK_API_KEY", "k")], None, expect!["deepseek/deepseek-chat"]);
}

#[test]
fn nothing_to_choose_by() {
    check(
        &[],
        None,
        expect![[r#"
            error: no model is set and none of the key variables is
            hint: set a key: export OPENAI_API_KEY=…, or ANTHROPIC_API_KEY=…, or GEMINI_API_KEY=…, or OPENROUTER_API_KEY=…, or DEEPSEEK_API_KEY=…
            hint: name a model: --model PROVIDER/NAME, for example --model openai/gpt-5.5 or --model ollama/qwen3
            hint: describe a server of your own in config.toml:
            [providers.lab]
            base_url = "http://127.0.0.1:8080/v1"
            wire = "responses"
            hint: try it out with --model rehearsal: it needs neither a key nor a network, and cannot think"#]],
    );
}

#[test]
fn wrong_forms() {
    check(
        &[],
        Some("gpt-5.5"),
        expect![[r"
            error: model `gpt-5.5` in --model names no provider; write PROVIDER/NAME, for example `openai/gpt-5.5`
            hint: `rehearsal` and `script:FILE` are the only models without a provider"]],
    );
    check(
        &[],
        Some("deepseek/"),
        expect![[r"
            error: model `deepseek/` in --model names no provider; write PROVIDER/NAME, for example `deepseek/deepseek-chat`
            hint: `rehearsal` and `script:FILE` are the only models without a provider"]],
    );
    check(
        &[],
        Some("rehersal"),
        expect![[r"
            error: model `rehersal` in --model names no provider; write PROVIDER/NAME, for example `openai/gpt-5.5`
            hint: did you mean `rehearsal`?
            hint: `rehearsal` and `script:FILE` are the only models without a provider"]],
    );
    check(
        &[],
        Some("opnai/gpt-5.5"),
        expect![[r#"
            error: model `opnai/gpt-5.5` in --model names the unknown provider `opnai`; did you mean `openai`?
            hint: known providers: openai, anthropic, gemini, openrouter, deepseek, ollama, lmstudio, llamacpp
            hint: or describe it in config.toml: [providers.opnai] with base_url = "…" and wire = "responses""#]],
    );
    check(
        &[],
        Some("script:"),
        expect!["error: model `script:` in --model names no file; write it as in `script:demo.toml`"],
    );
}

#[test]
fn every_default_belongs_to_a_known_provider_with_a_key() {
    let with_key: Vec<_> = provider::KNOWN.iter().filter(|p| p.3.is_some()).map(|p| p.0).collect();
    let named: Vec<_> = DEFAULT_MODELS.iter().map(|(provider, _)| *provider).collect();
    assert_eq!(named, with_key);
}

#[test]
fn a_provider_says_which_key_it_misses() {
    let config = Config::default();
    let none = Env::from_pairs([("HOME", "/h")]);
    let error = config.providers["openai"].key("openai", &none).unwrap_err();
    expect!["provider `openai` needs a key, and OPENAI_API_KEY is not set; run `export OPENAI_API_KEY=…` first"]
        .assert_eq(&error.to_string());
    assert_eq!(config.providers["ollama"].key("ollama", &none).unwrap(), None);
    let some = Env::from_pairs([("OPENAI_API_KEY", "k")]);
    assert_eq!(config.providers["openai"].key("openai", &some).unwrap().unwrap().expose(), "k");
}
