//! Bad input: what is wrong, where, and what to do; and what is mended without asking.

use std::fs;

use testkit::{Agent, Home, Reply, Request, Run, Server};

use crate::play::{agent, command, end, home, shell, tree};

/// A server that says `fine` to everything.
fn fine() -> (Server, Home) {
    let server = Server::start(|request: &Request| Reply::new().text(format!("fine: {}", request.told())));
    let home = home(&server);
    (server, home)
}

/// Fails the test unless the command ends with `code` and says all `words` on stderr, after `error: `, and nothing on
/// stdout.
#[track_caller]
fn refuses(run: &Run, code: u8, words: &[&str]) {
    run.assert_code(i32::from(code));
    assert_eq!(run.stdout, "");
    let (_, error) = run.stderr.split_once("error: ").unwrap_or_else(|| panic!("no error: {}", run.stderr));
    for word in words {
        assert!(error.contains(word), "`{word}` is not in\n{}", run.stderr);
    }
}

/// As [`refuses`], with 2 for wrong usage or configuration; no model is asked and no tree is made.
#[track_caller]
fn refuses_at_once(server: &Server, home: &Home, words: &[&str], expected: &[&str]) {
    let run = command(home, words).run();
    refuses(&run, 2, expected);
    assert!(server.requests().is_empty() && home.rollouts().is_empty(), "{}", run.stderr);
}

#[test]
fn words_that_mean_nothing() {
    let (server, home) = fine();
    for (words, expected) in [
        (&["run", "--roles", "explorer,wizard", "x"][..], &["wizard", "explorer", "worker", "default"][..]),
        (&["run", "--model", "nowhere/x", "x"], &["nowhere", "hint: ", "mock"]),
        (&["run", "--model", "gpt", "x"], &["gpt", "PROVIDER/NAME"]),
        (&["run", ""], &["the task is empty", "hint: "]),
        (&["run", " \n\t"], &["the task is empty"]),
        (&["run"], &["the task is empty"]),
        (&["run", "-C", "not-there", "x"], &["cannot work in not-there", "No such file or directory", "-C DIR"]),
        (&["run", "--max-running", "0", "x"], &["max", "--max-running"]),
        (&["run", "--max-running", "many", "x"], &["--max-running", "many"]),
        (&["run", "-c", "max_depth", "x"], &["`-c max_depth`", "key=value"]),
        (&["run", "--profile", "fast", "x"], &["no profile `fast`"]),
        (&["run", "--sandbox", "tight", "x"], &["sandbox", "tight", "read-only"]),
        (&["run", "--model", "rehersal", "x"], &["rehersal", "hint: did you mean `rehearsal`?"]),
        (&["run", "--model", "tape:x", "x"], &["tapes are not built yet", "script:FILE"]),
        (&["fly", "x"], &["fly", "\n  hint: to give a task: agent run \"fly x\"\n"]),
        (&["fix the tests"], &["\n  hint: to give a task: agent run \"fix the tests\"\n"]),
        (&["-p", "hi"], &["'-p'", "\n  hint: to give a task: agent run \"hi\"\n"]),
        (&["run", "fix", "the", "tests"], &["'the'", "hint: put the task in quotes: agent run \"fix the tests\"\n"]),
        (&["run", "--tree", "0123", "x"], &["--tree chooses a tree that exists", "hint: `agent resume"]),
        (&["run", "--last", "x"], &["--last chooses a tree that exists", "hint: without --last"]),
        (&["tree", "--json", "--format", "dot"], &["--json and this --format", "hint: "]),
        (&["tree", "--json", "--format", "mermaid"], &["--json and this --format"]),
        (&["send", "/root/a"], &["MESSAGE"]),
        (&["send", "/root/a", "x"], &["no tree was made in", "hint: `agent run"]),
        (&["resume", "--last"], &["there is no tree yet", "hint: `agent run"]),
        (&["tree", "--tree", "0123"], &["no tree begins with `0123`"]),
    ] {
        refuses_at_once(&server, &home, words, expected);
    }
}

#[test]
fn paths_that_lead_nowhere() {
    let (server, home) = fine();
    command(&home, &["run", "x"]).run_ok();
    for (path, expected) in [
        ("/root/nobody", &["no open agent at /root/nobody", "open agents: /root"][..]),
        ("/elsewhere", &["does not start at the root agent", "/root/worker_a"]),
        ("../a", &["`..`", "worker_a"]),
        ("", &["must not be empty", "worker_a"]),
        ("Ärger", &["`Ärger` is not an agent name"]),
    ] {
        refuses(&command(&home, &["send", path, "hello"]).run(), 2, expected);
    }
    refuses(&command(&home, &["send", "/root", " "]).run(), 2, &["the message is empty"]);
    refuses(&command(&home, &["log", "/root/nobody"]).run(), 2, &["/root/nobody", "agents: /root"]);
    assert_eq!(server.requests().len(), 1);
    let run = command(&home, &["send", "/root", "still well"]).run_ok();
    assert_eq!(run.stdout, "fine: still well\n");
    end(&home, &server, &run);
}

#[test]
fn the_slash_before_root_may_be_left_out() {
    let (server, home) = fine();
    command(&home, &["run", "x"]).run_ok();
    let run = command(&home, &["send", "root", "hello"]).run_ok();
    assert_eq!(run.stdout, "fine: hello\n");
    let log = command(&home, &["log", "root"]).run_ok();
    assert!(log.stdout.contains("user: hello"), "{}", log.stdout);
    refuses(&command(&home, &["send", "root/nobody", "hello"]).run(), 2, &["no open agent at /root/nobody"]);
    let run = command(&home, &["interrupt", "root"]).run_ok();
    assert!(run.stderr.contains("nothing runs at /root:"), "{}", run.stderr);
    let run = command(&home, &["close", "root"]).run_ok();
    assert!(run.stderr.contains("/root is closed"), "{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn trees_that_are_not_meant() {
    let (server, home) = fine();
    let ids: Vec<String> = ["one", "two", "three", "four", "five", "six"]
        .map(|task| {
            command(&home, &["run", task]).run_ok();
            tree(&home)["tree"].as_str().unwrap().to_owned()
        })
        .into();
    let folder = home.work().display().to_string();
    // Those that were used last are named, each with its title and folder; the first one is beyond the fifth.
    let run = command(&home, &["tree", "--tree", "zzz"]).run();
    refuses(&run, 2, &["no tree begins with `zzz`", &ids[5], &ids[1], "  two  ", &folder, "and 1 more: `agent list`"]);
    assert!(!run.stderr.contains(&ids[0]), "{}", run.stderr);
    // Ids begin with the time, so all of them fit.
    let run = command(&home, &["log", "--tree", &ids[0][..4]]).run();
    refuses(&run, 2, &["fits 6 trees: give more of the id", &ids[5], "  six  ", "and 1 more"]);
    refuses(&command(&home, &["tree", "--tree", ""]).run(), 2, &["no tree begins with ``"]);
    let run = command(&home, &["tree", "--tree", &ids[2]]).run_ok();
    assert!(run.stdout.contains("three"), "{}", run.stdout);
    // A folder below one with trees.
    let below = home.work().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let run = command(&home, &["tree", "-C", below.to_str().unwrap()]).run();
    let above = format!("one was made in {folder}, above this folder: -C {folder} takes it");
    refuses(&run, 2, &["no tree was made in", "deep", &above, &ids[5], "--last"]);
    // And one that has nothing to do with them.
    let run = command(&home, &["tree", "-C", home.user().to_str().unwrap()]).run();
    refuses(&run, 2, &["no tree was made in", "--last takes the one used last in any folder"]);
    assert!(!run.stderr.contains("above this folder"), "{}", run.stderr);
    end(&home, &server, &run);
}

#[test]
fn configurations_that_cannot_be_read() {
    let (server, home) = fine();
    home.write("config.toml", "model = \"mock/model\"\n\n[providers.mock\nbase_url = 1\n");
    refuses_at_once(&server, &home, &["run", "x"], &["config.toml:3:", "is not valid TOML", "[providers.mock"]);
    let rest = format!("[providers.mock]\nbase_url = \"{}\"\nwire = \"responses\"\n", server.base_url());
    home.write("config.toml", &format!("model = \"mock/model\"\nmax_running = \"two\"\n{rest}"));
    refuses_at_once(&server, &home, &["run", "x"], &["bad value for max_running", "config.toml:2", "\"two\""]);
    home.write("config.toml", &format!("model = \"mock/model\"\nmax_runing = 2\n{rest}"));
    refuses_at_once(&server, &home, &["run", "--strict-config", "x"], &["unknown key max_runing", "config.toml:2"]);
    let run = command(&home, &["run", "x"]).run_ok();
    let warning = run.stderr.lines().find(|line| line.starts_with("warning: ")).unwrap();
    for word in ["unknown key max_runing", "config.toml:2", "max_running"] {
        assert!(warning.contains(word), "{warning}");
    }
    assert_eq!(run.stdout, "fine: x\n");
    end(&home, &server, &run);
}

#[test]
fn homes_that_are_none() {
    let (server, home) = fine();
    refuses(&shell(&home, "env -u HOME -u AGENT_HOME \"$AGENT\" run x"), 2, &["neither AGENT_HOME nor HOME is set"]);
    refuses(&shell(&home, "AGENT_HOME=here \"$AGENT\" run x"), 2, &["AGENT_HOME is `here`, which is relative"]);
    let file = home.work().join("file");
    fs::write(&file, "x").unwrap();
    let key = format!("providers.mock.base_url={}", server.base_url());
    for words in [&["run", "--model", "mock/model", "-c", &key, "x"][..], &["resume"], &["tree"]] {
        let run = command(&home, words).env("AGENT_HOME", &file).run();
        refuses(&run, 2, &[file.to_str().unwrap(), "is not a folder", "hint: set AGENT_HOME"]);
    }
    assert!(server.requests().is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
    // Without AGENT_HOME it is ~/.agent, made when it is needed.
    fs::create_dir(home.user().join(".agent")).unwrap();
    fs::copy(home.path().join("config.toml"), home.user().join(".agent/config.toml")).unwrap();
    let run = shell(&home, "env -u AGENT_HOME \"$AGENT\" run x");
    assert_eq!(run.stdout, "fine: x\n", "{}", run.stderr);
    assert!(!run.left_behind);
    testkit::assert_invariants(home.user().join(".agent"), &server.requests());
}

#[test]
fn prompts_come_from_stdin_too() {
    let (server, home) = fine();
    for line in ["printf 'from a pipe' | \"$AGENT\" run -", "printf 'from a pipe' | \"$AGENT\" run"] {
        let run = shell(&home, line);
        run.assert_code(0);
        assert_eq!(run.stdout, "fine: from a pipe\n");
    }
    let run = shell(&home, "printf 'and more' | \"$AGENT\" send /root -");
    assert_eq!(run.stdout, "fine: and more\n", "{}", run.stderr);
    let run = shell(&home, "printf 'once more' | \"$AGENT\" resume -");
    assert_eq!(run.stdout, "fine: once more\n", "{}", run.stderr);
    refuses(&shell(&home, "printf ' ' | \"$AGENT\" run -"), 2, &["the task is empty"]);
    end(&home, &server, &run);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (server, home) = fine();
    for words in ["run x", "run --json x", "resume", "tree", "log"] {
        let run = shell(&home, &format!("\"$AGENT\" {words} | head -c0; exit ${{PIPESTATUS[0]}}"));
        run.assert_code(0);
        assert!(!run.stderr.contains("panicked") && !run.stderr.contains("roken pipe"), "{}", run.stderr);
    }
    let run = shell(&home, "\"$AGENT\" run x >&-");
    run.assert_code(0);
    let run = shell(&home, "\"$AGENT\" run x 2>&-");
    run.assert_code(0);
    assert_eq!(run.stdout, "fine: x\n");
    end(&home, &server, &run);
}

#[test]
fn rollouts_that_are_damaged() {
    let (server, home) = fine();
    command(&home, &["run", "first"]).run_ok();
    let file = home.rollout("/root").file().to_owned();
    let whole = fs::read_to_string(&file).unwrap();
    // A line in the middle that is not JSON is passed over, counted and told; the file is left as it is.
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.insert(lines.len() - 2, "{\"timestamp\": oops");
    // And the end of a write that a crash cut short.
    let torn = "{\"timestamp\":\"2026-01-01T00:0";
    fs::write(&file, lines.join("\n") + "\n" + torn).unwrap();
    let shown = command(&home, &["tree"]).run_ok();
    assert!(
        shown.stderr.contains("warning: ") && shown.stderr.contains("1 line could not be read"),
        "{}",
        shown.stderr
    );
    let run = command(&home, &["log"]).run_ok();
    assert!(run.stdout.contains("user: first") && run.stdout.contains("assistant: fine: first"), "{}", run.stdout);
    let lost = format!("{}: 1 line could not be read", file.display());
    for words in [&["log"][..], &["log", "--json"], &["tree"], &["tree", "--json"], &["list"], &["list", "--json"]] {
        let run = command(&home, words).run_ok();
        assert!(run.stderr.contains(&lost), "{words:?}: {}", run.stderr);
    }
    assert!(shown.stdout.contains("1 line unreadable"), "{}", shown.stdout);
    assert_eq!(command(&home, &["tree", "--json"]).run_ok().json_lines()[0]["agents"][0]["skipped"], 1);
    assert!(run.stderr.contains(&format!("the last {} bytes are an unfinished write", torn.len())), "{}", run.stderr);
    let run = command(&home, &["resume"]).run_ok();
    let cut = format!("/root: an unfinished write of {} bytes was cut off", torn.len());
    for line in [cut.as_str(), "/root: passed over 1 line that could not be read"] {
        assert!(run.stderr.contains(line), "`{line}` is not in\n{}", run.stderr);
    }
    // At rest, and so taken from its row: that does not make it whole.
    for words in [&["resume"][..], &["resume", "--json"]] {
        let run = command(&home, words).run_ok();
        let lost = format!("/root: passed over 1 line that could not be read ({})", file.display());
        assert!(run.stderr.contains(&lost), "{words:?}: {}", run.stderr);
        if words.len() > 1 {
            assert_eq!(run.json_lines()[0]["agents"][0]["skipped"], 1);
        }
    }
    let run = command(&home, &["resume", "second"]).run_ok();
    assert_eq!(run.stdout, "fine: second\n");
    assert!(!run.stderr.contains("unfinished write"), "it was cut off before: {}", run.stderr);
    assert!(fs::read_to_string(&file).unwrap().contains("oops"), "what was read over is not taken out");
    let last = server.requests().pop().unwrap();
    assert!(last.contains("first") && last.contains("fine: first"));
    end(&home, &server, &run);
}

#[test]
fn rollouts_that_are_empty() {
    let (server, home) = fine();
    command(&home, &["run", "first"]).run_ok();
    let file = home.rollout("/root").file().to_owned();
    let beside = |id: &str| {
        let name = file.file_name().unwrap().to_str().unwrap();
        file.with_file_name(name.replace(home.rollout("/root").thread(), id))
    };
    let stranger = beside("018f0000-0000-7000-8000-000000000000");
    fs::write(&stranger, "").unwrap();
    let nonsense = beside("018f0000-0000-7000-8000-000000000001");
    fs::write(&nonsense, "not a rollout\n").unwrap();
    let run = command(&home, &["resume", "second"]).run_ok();
    assert_eq!(run.stdout, "fine: second\n");
    assert!(run.stderr.contains("warning: ") && run.stderr.contains(nonsense.to_str().unwrap()), "{}", run.stderr);
    assert!(stranger.exists() && nonsense.exists(), "what belongs to nobody known is left alone");
    assert_eq!(tree(&home)["agents"].as_array().unwrap().len(), 1);
    end(&home, &server, &run);
    // The root itself.
    fs::write(&file, "").unwrap();
    let run = agent(&home).args(["resume"]).run();
    refuses(&run, 2, &["no tree was made in", "hint: "]);
}

#[test]
fn help_and_version_are_no_errors() {
    let home = Home::new();
    let help = Agent::new(env!("CARGO_BIN_EXE_agent"), &home).arg("--help").run_ok();
    for word in ["run", "send", "resume", "tree", "log", "--max-running"] {
        assert!(help.stdout.contains(word), "{}", help.stdout);
    }
    assert_eq!(help.stderr, "");
    let version = command(&home, &["--version"]).run_ok();
    assert_eq!(version.stdout, format!("agent {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is made");
}

/// A limit of file sizes is an error like a full disk, in words, and never the end of the process.
#[test]
fn a_limit_of_file_sizes_is_told() {
    let home = Home::new();
    let run = shell(&home, "ulimit -f 8; \"$AGENT\" run --model rehearsal x");
    assert!(run.code == 1 && run.stderr.contains("error: "), "{run:?}");
    let looked = shell(&home, "ulimit -f 8; \"$AGENT\" tree");
    assert!(looked.code == 0 && looked.stderr.contains("nothing is lost"), "{looked:?}");
}
