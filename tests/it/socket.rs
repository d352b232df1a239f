//! Where the owner of a tree listens, and what happens when it cannot.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use testkit::{Agent, Gate, Home, Reply, Request, Running, Server};

use crate::play::{agent, command, end, home};

fn echo(request: &Request) -> Reply {
    Reply::new().text(format!("heard: {}", request.told()))
}

/// A server that holds its first reply, which says nothing but what it was told.
fn held() -> (Server, Gate) {
    let gate = Gate::new();
    let hold = gate.clone();
    let server = Server::start(move |request: &Request| match request.told().as_str() {
        "Hold" => Reply::new().call("exec_command", serde_json::json!({"cmd": "true"})).wait_for(&hold),
        _ => echo(request),
    });
    (server, gate)
}

fn socket(home: &Home) -> PathBuf {
    home.path().join("trees").join(home.rollout("/root").tree()).join("control.sock")
}

#[test]
fn a_path_that_is_too_long_is_replaced_by_a_short_one() {
    let (server, gate) = held();
    let home = home(&server);
    let deep = home.path().join("very_long_name_of_a_folder/".repeat(8));
    fs::create_dir_all(&deep).unwrap();
    fs::copy(home.path().join("config.toml"), deep.join("config.toml")).unwrap();
    let runtime = tempfile::tempdir().unwrap();
    let at = |words: &[&str]| -> Agent {
        let command = agent(&home).args(words.iter().copied());
        command.env("AGENT_HOME", &deep).env("XDG_RUNTIME_DIR", runtime.path())
    };
    let owner = at(&["run", "Hold"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    let folder = fs::read_dir(runtime.path()).unwrap().flatten().next().unwrap().path();
    let short = fs::read_dir(&folder).unwrap().flatten().next().unwrap();
    assert!(short.file_type().unwrap().is_socket(), "{short:?}");
    let sent = at(&["send", "--last", "/root", "over there"]).spawn();
    sent.until_stderr("is working and takes this in");
    gate.open();
    for run in [sent, owner].map(Running::wait) {
        run.assert_code(0);
        assert_eq!(run.stdout, "heard: over there\n", "{}", run.stderr);
        assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "the socket goes with its owner");
    testkit::assert_invariants(&deep, &server.requests());
}

#[test]
fn something_else_of_its_name_is_left_alone_and_told() {
    let (server, gate) = held();
    let home = home(&server);
    command(&home, &["run", "Begin"]).run_ok();
    let socket = socket(&home);
    for folder in [false, true] {
        if folder {
            fs::remove_file(&socket).unwrap();
            fs::create_dir(&socket).unwrap();
        } else {
            fs::write(&socket, "mine").unwrap();
        }
        let run = command(&home, &["send", "/root", "go on"]).run_ok();
        assert_eq!(run.stdout, "heard: go on\n");
        assert!(run.stderr.contains("warning: other commands cannot reach this tree"), "{}", run.stderr);
        assert!(socket.exists() && socket.is_dir() == folder);
        end(&home, &server, &run);
    }
    // Others are told why they do not get through, and whom to ask.
    let owner = command(&home, &["send", "/root", "Hold"]).spawn();
    server.wait_until(|seen| seen.last().is_some_and(|request| request.told() == "Hold"));
    let run = command(&home, &["send", "/root", "x"]).run();
    run.assert_code(5);
    for says in [&format!("process {} drives this tree", owner.pid()), "is not a socket"] {
        assert!(run.stderr.contains(says), "{}", run.stderr);
    }
    owner.interrupt();
    owner.wait().assert_code(130);
    gate.open();
}

#[test]
fn a_socket_that_a_dead_owner_left_is_replaced() {
    let (server, gate) = held();
    let home = home(&server);
    for n in 0..2 {
        let words: &[&str] = if n == 0 { &["run", "Hold"] } else { &["send", "/root", "Hold"] };
        let owner = command(&home, words).spawn();
        server.wait_until(|seen| seen.len() == n + 1);
        owner.kill();
        assert_eq!(owner.wait().code, 137);
        assert!(fs::symlink_metadata(socket(&home)).unwrap().file_type().is_socket());
        // Looking and controlling find nobody there.
        command(&home, &["tree"]).run_ok();
        let run = command(&home, &["interrupt", "/root"]).run_ok();
        assert!(run.stderr.contains("nobody drives this tree"), "{}", run.stderr);
    }
    let run = command(&home, &["send", "/root", "at last"]).run_ok();
    assert_eq!(run.stdout, "heard: at last\n");
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    assert!(!socket(&home).exists());
    gate.open();
    end(&home, &server, &run);
}
