//! Commands.

use std::time::Instant;

use expect_test::expect;

use super::*;

async fn check(cmd: &str, expect: expect_test::Expect) {
    let desk = Desk::new();
    expect.assert_eq(&steady(&desk.exec(cmd).await));
    assert_eq!(desk.book.kinds(), ["starting", "started", "ended"]);
    assert_eq!(desk.hands.running(), []);
}

#[tokio::test]
async fn commands_that_end() {
    check(
        "printf hi",
        expect![[r"
        Process exited with code 0
        Original token count: 1
        Output:
        hi"]],
    )
    .await;
    check(
        "echo out; echo err >&2; exit 3",
        expect![[r"
        Process exited with code 3
        Original token count: 2
        Output:
        out
        err
    "]],
    )
    .await;
    check(
        "kill -9 $$",
        expect![[r"
        Process exited with code 137
        Original token count: 0
        Output:
    "]],
    )
    .await;
    check(
        r"printf 'a\0b \377 \303\244'",
        expect![[r"
        Process exited with code 0
        Original token count: 2
        Output:
        a␀b � ä"]],
    )
    .await;
    check(
        "cat; echo $TERM",
        expect![[r"
        Process exited with code 0
        Original token count: 2
        Output:
        dumb
    "]],
    )
    .await;
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle() {
    let desk = Desk::new();
    let cmd = "for i in $(seq 1 200000); do echo line $i; done";
    let text = desk.exec(cmd).await;
    // 9 * 7 + 90 * 8 + … + 90,000 * 11 + 100,001 * 12 bytes, a quarter of them tokens.
    assert!(text.contains("Original token count: 572224\nOutput:\nWarning: truncated output (original token count: 572224)\nTotal output lines: 200000\n\nline 1\n"), "{text}");
    assert!(text.ends_with("line 200000\n") && text.contains(" tokens truncated…"));
    assert!((10_000..10_300).contains(&text.len()), "{}", text.len());
    let text = desk.call("exec_command", json!({ "cmd": cmd, "max_output_tokens": 100_000 })).await;
    assert!((39_900..40_300).contains(&text.len()), "{}", text.len());
    let text = desk.call("exec_command", json!({ "cmd": "seq 1000", "max_output_tokens": 5 })).await;
    assert!(body(&text).ends_with("\n\n1\n2\n3\n4\n5\n…969 tokens truncated…\n999\n1000\n"), "{text}");
}

#[tokio::test]
async fn folders_and_shells() {
    let desk = Desk::new();
    fs::create_dir(desk.path().join("below")).unwrap();
    let below = desk.path().join("below").canonicalize().unwrap();
    for workdir in [json!("below"), json!(below)] {
        let text = desk.call("exec_command", json!({ "cmd": "pwd -P", "workdir": workdir })).await;
        assert_eq!(body(&text).trim_end(), below.to_str().unwrap());
    }
    let text = desk
        .call("exec_command", json!({ "cmd": "echo ${BASH_VERSION:-none}", "shell": "/bin/sh", "login": true }))
        .await;
    assert!(text.contains("Process exited with code 0"), "{text}");
    let text = desk.refused("exec_command", json!({ "cmd": "true", "workdir": "missing" })).await;
    assert_eq!(
        text,
        format!(
            "the folder `{}/missing` does not exist; create it first or give another workdir",
            desk.path().display()
        )
    );
    let text = desk.refused("exec_command", json!({ "cmd": "true", "shell": "no-such-shell" })).await;
    assert_eq!(text, "the program `no-such-shell` was not found; give its absolute path or one that is on PATH");
}

#[tokio::test]
async fn what_is_refused_is_refused_in_words() {
    let desk = Desk::new();
    let text = desk.refused("exec_command", json!({ "cmd": "true", "timeout": 5 })).await;
    expect![
        "exec_command: unknown argument `timeout`; it takes: cmd, login, max_output_tokens, shell, stdin, tty, workdir, yield_time_ms"
    ]
    .assert_eq(&text);
    let text = desk.refused("exec_command", json!({ "command": "true" })).await;
    assert!(text.starts_with("exec_command: unknown argument `command`"), "{text}");
    let text = desk.refused("exec_command", json!({ "cmd": "true", "tty": true })).await;
    assert!(text.starts_with("there is no terminal"), "{text}");
    assert!(desk.refused("exec_command", json!({ "cmd": " " })).await.starts_with("`cmd` is empty"));
    let text = desk.refused("write_stdin", json!({ "session_id": 1 })).await;
    assert!(text.starts_with("there is no session 1:") && text.ends_with("open sessions: none"), "{text}");
    assert!(desk.refused("write_stdin", json!({})).await.starts_with("write_stdin: missing field `session_id`"));
    assert_eq!(desk.book.kinds(), [""; 0], "nothing was started");
}

#[tokio::test]
async fn a_command_yields_is_polled_and_ends() {
    let desk = Desk::new();
    let (id, said) = desk.background("echo one; read line; echo got $line; read line; exit 5", true).await;
    assert_eq!(said, "one\n");
    let running = desk.hands.running();
    assert_eq!(running.len(), 1);
    assert!(runs(running[0].pid) && running[0].command.starts_with("echo one; read"));
    let text = desk.say(id, "two\n").await;
    assert!(text.contains(&format!("Process running with session ID {id}\n")) && body(&text) == "got two\n", "{text}");
    // News of the past are no news: this waits its time out.
    let text = desk.call("write_stdin", json!({ "session_id": id, "yield_time_ms": 0 })).await;
    assert_eq!(body(&text), "");
    let text = desk.say(id, "\n").await;
    assert!(text.contains("Process exited with code 5\n") && body(&text).is_empty(), "{text}");
    assert_eq!(desk.hands.running(), []);
    assert_eq!(desk.book.kinds(), ["starting", "started", "ended"]);
    assert!(desk.refused("write_stdin", json!({ "session_id": id })).await.starts_with("there is no session"));
}

#[tokio::test]
async fn a_poll_waits_for_the_end() {
    let desk = Desk::new();
    let fifo = desk.path().join("f");
    let (id, _) = desk.background("mkfifo f; echo; cat f", false).await;
    let (text, ()) = tokio::join!(desk.poll(id), async {
        tokio::task::spawn_blocking(move || fs::write(fifo, "late")).await.unwrap().unwrap();
    });
    assert!(text.contains("Process exited with code 0\n") && body(&text) == "late", "{text}");
}

#[tokio::test]
async fn without_stdin_nothing_is_written() {
    let desk = Desk::new();
    let (id, _) = desk.background("sleep 600", false).await;
    let text = desk.refused("write_stdin", json!({ "session_id": id, "chars": "x" })).await;
    assert!(text.ends_with("start it again with `\"stdin\": true` to write to it"), "{text}");
    assert!(desk.say(id, "\u{3}").await.contains("Process exited with code 130\n"));
}

#[tokio::test]
async fn keys_that_mean_something() {
    let desk = Desk::new();
    let (id, _) = desk.background("cat; printf end", true).await;
    let text = desk.say(id, "last\u{4}").await;
    assert!(text.contains("Process exited with code 0\n") && body(&text) == "lastend", "{text}");
    let (id, _) = desk.background("trap '' INT TERM; echo deaf; while :; do sleep 600; done", false).await;
    assert!(desk.say(id, "\u{1c}").await.contains("Process exited with code 137\n"));
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_is_listed() {
    let desk = Desk::new();
    let before = Instant::now();
    let text = desk.exec("sleep 600 & echo $!").await;
    assert!(before.elapsed() < Duration::from_secs(5));
    let pid: i32 = body(&text).trim().parse().unwrap();
    assert!(text.contains(&format!(
        "Process exited with code 0\nProcesses it started run on as session ID {}\n",
        session(&text)
    )));
    assert!(runs(pid));
    assert_eq!(desk.hands.running().len(), 1);
    assert_eq!(desk.book.kinds(), ["starting", "started"]);
    assert!(desk.say(session(&text), "\u{3}").await.contains("Process exited with code 0\n"));
    assert!(!runs(pid));
    assert_eq!(desk.book.kinds(), ["starting", "started", "ended"]);
}

#[tokio::test]
async fn an_interrupt_leaves_the_process_running() {
    let desk = Desk::new();
    let fifo = desk.path().join("f");
    let call = desk.call("exec_command", json!({ "cmd": "echo begun; mkfifo f; cat f", "yield_time_ms": 30_000 }));
    let (text, ()) = tokio::join!(call, async {
        until(|| fifo.exists()).await;
        desk.cancel.cancel();
    });
    assert!(text.contains("The wait was interrupted; the process runs on\n"), "{text}");
    assert_eq!(desk.hands.running().len(), 1);
    desk.hands.end_processes().await;
    let desk = Desk { cancel: CancellationToken::new(), ..desk };
    let rest = desk.poll(session(&text)).await;
    assert!(rest.contains("Process exited with code 143\n"), "{rest}");
    assert_eq!([body(&text), body(&rest)].concat(), "begun\n", "nothing is lost, nothing comes twice");
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_process_registered() {
    let desk = Desk::new();
    let fifo = desk.path().join("f");
    {
        let call = desk.call("exec_command", json!({ "cmd": "mkfifo f; cat f", "yield_time_ms": 30_000 }));
        tokio::select! {
            text = call => panic!("{text}"),
            () = until(|| fifo.exists()) => {}
        }
    }
    let [running] = &desk.hands.running()[..] else { panic!("it is not registered") };
    assert!(runs(running.pid));
    desk.hands.end_processes().await;
    assert!(!runs(running.pid));
}

#[tokio::test]
async fn the_end_of_an_agent_ends_all_it_started() {
    let desk = Desk::new();
    let text = desk.exec("sleep 600 >/dev/null 2>&1 & echo $!").await;
    let left: i32 = body(&text).trim().parse().unwrap();
    let text = desk
        .exec("setsid sleep 600 >/dev/null 2>&1 & echo $!; until [ $(cut -d' ' -f5 /proc/$!/stat) = $! ]; do :; done")
        .await;
    let daemon: i32 = body(&text).lines().next().unwrap().parse().unwrap();
    let (_, said) = desk.background("trap '' TERM; sleep 600 & echo $!; wait; wait", false).await;
    let deaf: i32 = said.trim().parse().unwrap();
    assert!(runs(left) && runs(daemon) && runs(deaf));
    desk.hands.end_processes().await;
    assert!(!runs(left) && !runs(daemon) && !runs(deaf));
    assert_eq!(desk.hands.running(), []);
    let kinds = desk.book.kinds();
    assert_eq!(kinds.iter().filter(|kind| **kind == "ended").count(), 3);
    // Once more does no harm.
    desk.hands.end_processes().await;
    assert_eq!(desk.book.kinds(), kinds);
}

/// A daemon that cleared its environment: the command is over, its line in the ledger is not.
const DAEMON: &str = "env -i setsid sleep 600 </dev/null >/dev/null 2>&1 & \
                      until [ $(cut -d' ' -f5 /proc/$!/stat) = $! ]; do :; done; echo $!";

#[tokio::test]
async fn a_daemon_is_listed_until_it_ends() {
    let desk = Desk::new();
    let daemon: i32 = body(&desk.exec(DAEMON).await).trim().parse().unwrap();
    let [running] = &desk.hands.running()[..] else { panic!("it is not listed") };
    assert_eq!((running.pid, running.command.as_str()), (daemon, stdx::one_line(DAEMON, 200).as_str()));
    assert_eq!(desk.book.kinds(), ["starting", "started"]);
    // Another agent has nothing to do with it.
    let other =
        AgentFacts { agent: Address { thread: ThreadId::new(), ..desk.facts.agent.clone() }, ..desk.facts.clone() };
    desk.bench.hands(&other).end_processes().await;
    assert!(runs(daemon));
    // Nor does the interrupt of a turn, or going to sleep.
    desk.cancel.cancel();
    assert!(runs(daemon));
    let hands = desk.bench.hands(&desk.facts);
    assert_eq!(hands.running().len(), 1);
    hands.end_processes().await;
    assert!(!runs(daemon));
    assert_eq!(hands.running(), []);
    assert_eq!(desk.book.lines()[2].event, ProcessEvent::Ended { exit_code: Some(0) });
}

#[tokio::test]
async fn a_daemon_that_ends_by_itself_is_taken_off_the_list() {
    let desk = Desk::new();
    let text = desk
        .exec(
            "mkfifo f; env -i setsid cat f >/dev/null 2>&1 & \
                          until [ $(cut -d' ' -f5 /proc/$!/stat) = $! ]; do :; done; echo $!",
        )
        .await;
    let daemon: i32 = body(&text).trim().parse().unwrap();
    assert_eq!(desk.hands.running()[0].pid, daemon);
    let fifo = desk.path().join("f");
    tokio::task::spawn_blocking(move || fs::write(fifo, "end")).await.unwrap().unwrap();
    desk.book.has(3).await;
    assert_eq!(desk.book.lines()[2].event, ProcessEvent::Ended { exit_code: Some(0) });
    until(|| desk.hands.running().is_empty()).await;
}

#[tokio::test]
async fn a_later_owner_sweeps_daemons_of_commands_that_were_over() {
    let desk = Desk::new();
    let daemon: i32 = body(&desk.exec(DAEMON).await).trim().parse().unwrap();
    let swept = Desk::new().bench.sweep(desk.book.lines()).await;
    assert_eq!(swept.iter().map(|left| left.how).collect::<Vec<_>>(), [tool_api::SweptHow::Ended]);
    assert!(!runs(daemon));
}

#[tokio::test]
async fn a_sleeping_agent_keeps_its_processes() {
    let mut desk = Desk::new();
    let (id, _) = desk.background("cat", true).await;
    let facts = desk.facts.clone();
    desk.hands = desk
        .bench
        .hands(&AgentFacts { agent: Address { thread: ThreadId::new(), ..facts.agent.clone() }, ..facts.clone() });
    assert_eq!(desk.hands.running(), [], "another agent has none of them");
    desk.hands = desk.bench.hands(&facts);
    assert_eq!(body(&desk.say(id, "hello").await), "hello");
    desk.hands.end_processes().await;
}

#[tokio::test]
async fn the_end_of_the_workbench_ends_everything() {
    let desk = Desk::new();
    let (_, _) = desk.background("sleep 600", false).await;
    let pid = desk.hands.running()[0].pid;
    let Desk { bench, hands, book, .. } = desk;
    drop(hands);
    assert!(runs(pid));
    drop(bench);
    book.has(3).await;
    assert_eq!(book.lines()[2].event, ProcessEvent::Ended { exit_code: Some(137) });
    assert!(!runs(pid));
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_started() {
    let desk = Desk::new();
    *desk.book.refuses.lock().unwrap() = Some("starting");
    let text = desk.refused("exec_command", json!({ "cmd": "touch started" })).await;
    assert_eq!(text, "the process could not be written down: the disk is full; nothing was started");
    assert!(!desk.path().join("started").exists());
    *desk.book.refuses.lock().unwrap() = Some("started");
    let text = desk.refused("exec_command", json!({ "cmd": "sleep 600" })).await;
    assert!(text.ends_with("it was ended again at once"), "{text}");
    assert_eq!(desk.hands.running(), []);
    let lines = desk.book.lines();
    assert_eq!(desk.book.kinds(), ["starting"]);
    until(|| lines.iter().all(|line| !marked(&line.token.to_string()))).await;
}

/// Whether any process carries this mark.
fn marked(token: &str) -> bool {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let mut environments = pids.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
    environments.any(|bytes| String::from_utf8_lossy(&bytes).contains(token))
}

#[tokio::test]
async fn the_ledger_says_what_there_was() {
    let desk = Desk::new();
    let text = desk.exec("echo $$ $AGENT_PROCESS_TOKEN; exit 9").await;
    let (pid, token) = body(&text).trim().split_once(' ').unwrap();
    let lines = desk.book.lines();
    assert!(lines.iter().all(|line| line.token.to_string() == token));
    let ProcessEvent::Starting { command, boot_id } = &lines[0].event else { panic!() };
    assert_eq!((command.as_str(), boot_id.as_str()), ("echo $$ $AGENT_PROCESS_TOKEN; exit 9", exec::boot_id()));
    let ProcessEvent::Started { pid: started, start_time } = lines[1].event else { panic!() };
    assert_eq!(started.to_string(), pid);
    assert!(start_time > 0);
    assert_eq!(lines[2].event, ProcessEvent::Ended { exit_code: Some(9) });
    // A command that never ran has its two lines, too.
    desk.refused("exec_command", json!({ "cmd": "true", "workdir": "missing" })).await;
    assert_eq!(desk.book.kinds()[3..], ["starting", "ended"]);
}

#[tokio::test]
async fn a_later_owner_sweeps() {
    let desk = Desk::new();
    desk.background("sleep 600", false).await;
    let pid = desk.hands.running()[0].pid;
    desk.exec("true").await;
    let lines = desk.book.lines();
    let other = Desk::new();
    let swept = other.bench.sweep(lines.clone()).await;
    assert_eq!(swept.len(), 1);
    assert_eq!((swept[0].command.as_str(), swept[0].how), ("sleep 600", tool_api::SweptHow::Ended));
    assert!(!runs(pid));
    assert_eq!(other.bench.sweep(lines).await[0].how, tool_api::SweptHow::Gone);
}

#[tokio::test]
async fn sessions_are_limited_and_ended_ones_go_first() {
    let desk = Desk::new();
    let (first, _) = desk.background("read line", true).await;
    let starts = (1..crate::table::MAX_SESSIONS).map(|_| desk.background("sleep 600", false));
    futures::future::join_all(starts).await;
    assert_eq!(desk.hands.running().len(), crate::table::MAX_SESSIONS);
    let text = desk.refused("exec_command", json!({ "cmd": "true" })).await;
    assert!(text.starts_with("64 processes of this agent still run") && text.contains(&first.to_string()), "{text}");
    // It ends, and nobody reads that: its place is given away.
    let interrupted = CancellationToken::new();
    interrupted.cancel();
    let desk = Desk { cancel: interrupted, ..desk };
    desk.say(first, "\n").await;
    let desk = Desk { cancel: CancellationToken::new(), ..desk };
    until(|| desk.hands.running().len() < crate::table::MAX_SESSIONS).await;
    assert!(desk.exec("echo again").await.ends_with("again\n"));
    desk.hands.end_processes().await;
    assert_eq!(desk.hands.running(), []);
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let desk = Desk::new();
    // Neither ends unless both run.
    let (one, two) = tokio::join!(desk.exec("mkfifo a; echo x > a"), desk.exec("until [ -p a ]; do :; done; cat a"));
    assert!(one.contains("code 0") && body(&two) == "x\n");
    assert!(desk.hands.tools().iter().all(|tool| tool.parallel() == (tool.name() != "apply_patch")));
}

#[tokio::test]
async fn roles_take_away() {
    let mut desk = Desk::new();
    let facts = AgentFacts { allowed: Some(vec!["exec_command".into(), "no_such_tool".into()]), ..desk.facts.clone() };
    desk.hands = desk.bench.hands(&facts);
    let names: Vec<String> = desk.hands.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["exec_command"]);
    let text = desk.refused("exec_command", json!({ "cmd": "apply_patch <<'EOF'\n*** Begin Patch\nEOF" })).await;
    assert!(text.starts_with("apply_patch is not among the tools"), "{text}");
}

#[test]
fn descriptions_are_stable() {
    let desk = Desk::new();
    for tool in desk.hands.tools() {
        let spec = tool.spec();
        assert_eq!(spec, tool.spec());
        assert_eq!(spec.name, tool.name());
        let schema = match spec.input {
            ToolInput::Function { parameters } => parameters,
            ToolInput::Freeform { fallback, .. } => fallback,
        };
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["type"].is_string() && property["description"].is_string(), "{name}: {property}");
        }
    }
}
