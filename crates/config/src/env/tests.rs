use expect_test::{Expect, expect};

use super::*;
use crate::Flags;

fn home(pairs: &[(&str, &str)], expect: Expect) {
    let seen = match agent_home(&Env::from_pairs(pairs.iter().copied())) {
        Ok(path) => path.to_string(),
        Err(error) => format!("error: {error}"),
    };
    expect.assert_eq(&seen);
}

#[test]
fn where_everything_is_kept() {
    home(&[("AGENT_HOME", "/data"), ("HOME", "/h")], expect!["/data"]);
    home(&[("HOME", "/h")], expect!["/h/.agent"]);
    home(&[("AGENT_HOME", ""), ("HOME", "/h")], expect!["/h/.agent"]);
    home(
        &[("AGENT_HOME", "data"), ("HOME", "/h")],
        expect!["error: AGENT_HOME is `data`, which is relative; set it to an absolute path"],
    );
    home(
        &[("HOME", "h")],
        expect!["error: HOME is `h`, which is relative; set HOME or AGENT_HOME to an absolute path"],
    );
    home(
        &[("HOME", "")],
        expect!["error: neither AGENT_HOME nor HOME is set; set AGENT_HOME to the folder where trees shall be kept"],
    );
}

#[test]
fn set_to_nothing_is_not_set() {
    let env = Env::from_pairs([("NO_COLOR", ""), ("AGENT_LOG", ""), ("TMPDIR", ""), ("OPENAI_API_KEY", " \n")]);
    assert!(!env.no_color());
    assert_eq!(env.log(), None);
    assert_eq!(env.tmp_dir().unwrap().to_string(), "/tmp");
    assert_eq!(env.key("OPENAI_API_KEY"), None);
    assert_eq!(env.shell(), None);
}

#[test]
fn values_are_read_as_they_are() {
    let env = Env::from_pairs([
        ("NO_COLOR", "0"),
        ("LAB_KEY", "sk-1\n"),
        ("TMPDIR", "/scratch"),
        ("XDG_RUNTIME_DIR", "relative"),
        ("TERM", "dumb"),
        ("PATH", "/bin:/usr/bin"),
    ]);
    assert!(env.no_color());
    assert_eq!(env.key("LAB_KEY").unwrap().expose(), "sk-1");
    assert_eq!(env.tmp_dir().unwrap().to_string(), "/scratch");
    assert_eq!(env.runtime_dir(), None);
    assert_eq!(env.term(), Some("dumb"));
    assert_eq!(env.path().unwrap(), "/bin:/usr/bin");
}

#[test]
fn proxies_in_both_cases() {
    let env = Env::from_pairs([
        ("HTTP_PROXY", "http://upper:1"),
        ("http_proxy", "http://lower:1"),
        ("HTTPS_PROXY", "http://secure:1"),
        ("no_proxy", "localhost"),
    ]);
    let expected = Proxies {
        http: Some("http://lower:1".into()),
        https: Some("http://secure:1".into()),
        all: None,
        no: Some("localhost".into()),
    };
    assert_eq!(env.proxies(), expected);
}

#[test]
fn commands_never_get_the_keys() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[providers.lab]\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"LAB_KEY\"\n\
                  [providers.openai]\napi_key_env = \"WORK_KEY\"\n";
    std::fs::write(dir.path().join("config.toml"), config).unwrap();
    let mut pairs = vec![("AGENT_HOME".to_owned(), dir.path().to_str().unwrap().to_owned())];
    for name in ["PATH", "LAB_KEY", "WORK_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OTHER_KEY"] {
        pairs.push((name.to_owned(), "x".to_owned()));
    }
    let env = Env::from_pairs(pairs);
    let loaded = Config::load(&env, &Flags::default()).unwrap();
    let names: Vec<_> = env.for_commands(&loaded.config).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["AGENT_HOME", "OTHER_KEY", "PATH"]);
}

#[test]
fn the_home_folder_is_a_tilde() {
    let env = Env::from_pairs([("HOME", "/h/ann")]);
    let tilde = |path: &str| env.tilde(&AbsPath::new(path).unwrap());
    assert_eq!(tilde("/h/ann/.agent/config.toml"), "~/.agent/config.toml");
    assert_eq!(tilde("/h/ann"), "~");
    assert_eq!(tilde("/h/anna"), "/h/anna");
}

#[test]
fn debug_shows_no_values() {
    let env = Env::from_pairs([("OPENAI_API_KEY", "sk-secret")]);
    assert_eq!(format!("{env:?}"), "{\"OPENAI_API_KEY\"}");
}

#[test]
fn this_process_has_a_path() {
    assert!(Env::capture().path().is_some());
}
