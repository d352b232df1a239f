//! Real processes. What a test starts, it ends.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use protocol::{ProcessEvent, ProcessRecord, Token};
use stdx::AbsPath;
use tokio::task::JoinHandle;

use super::*;

fn environment() -> Environment {
    Environment::new([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), ("HOME".into(), "/".into())])
}

struct Started {
    process: Process,
    end: JoinHandle<Option<i32>>,
    token: Token,
}

fn start_in(cwd: &Path, command: &str, stdin: Stdin) -> Result<Started, Error> {
    let environment = environment();
    let shell = Shell::find(&environment)?;
    let token = Token::new();
    let (process, reaper) = spawn(Plan {
        program: shell.program().to_path_buf(),
        arguments: shell.arguments(command, false),
        cwd: AbsPath::new(cwd).unwrap(),
        environment: &environment,
        token,
        stdin,
    })?;
    Ok(Started { process, end: tokio::spawn(reaper.run()), token })
}

fn start(command: &str) -> Started {
    start_in(Path::new("/"), command, Stdin::Null).unwrap()
}

impl Started {
    /// Waits until it has said this much.
    async fn said(&self, bytes: u64) {
        self.process.watch().wait_for(|progress| progress.bytes >= bytes).await.unwrap();
    }

    /// Waits until it has ended, and takes what it said.
    async fn finish(self) -> (Option<i32>, String) {
        let exit = self.end.await.unwrap();
        (exit, text(&self.process.take()))
    }

    fn lines(&self, command: &str) -> Vec<ProcessRecord> {
        let (pid, start_time) = (self.process.pid(), self.process.start_time());
        ledger(self.token, command, pid, start_time)
    }
}

fn ledger(token: Token, command: &str, pid: i32, start_time: u64) -> Vec<ProcessRecord> {
    let starting = ProcessEvent::Starting { command: command.into(), boot_id: boot_id().into() };
    let started = ProcessEvent::Started { pid, start_time };
    [starting, started].map(|event| ProcessRecord { token, event }).into()
}

fn text(chunk: &Chunk) -> String {
    assert_eq!(chunk.omitted, 0);
    String::from_utf8(chunk.head.clone()).unwrap()
}

/// The pid that a command printed on the first line.
async fn printed_pid(started: &Started) -> i32 {
    let mut said = String::new();
    while !said.contains('\n') {
        let before = started.process.progress().bytes;
        said += &text(&started.process.take());
        if !said.contains('\n') {
            started.said(before + 1).await;
        }
    }
    said.lines().next().unwrap().parse().unwrap()
}

async fn check(command: &str, exit: i32, output: &str) {
    assert_eq!(start(command).finish().await, (Some(exit), output.to_owned()), "{command}");
}

#[tokio::test]
async fn exit_codes_and_signals() {
    check("true", 0, "").await;
    check("echo hi; exit 7", 7, "hi\n").await;
    check("kill -KILL $$", 137, "").await;
    check("kill -TERM $$", 143, "").await;
    check("no-such-program-anywhere 2>/dev/null", 127, "").await;
}

#[tokio::test]
async fn both_streams_keep_their_order() {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo out $i; echo err $i >&2; done";
    let expect = (1..10).map(|i| format!("out {i}\nerr {i}\n")).collect::<Vec<_>>().concat();
    check(script, 0, &expect).await;
}

#[tokio::test]
async fn what_a_process_sees() {
    check("echo $TERM $PAGER $GIT_PAGER $NO_COLOR $LANG; pwd; cat", 0, "dumb cat cat 1 C.UTF-8\n/\n").await;
    let started = start("echo $AGENT_PROCESS_TOKEN");
    let token = started.token.to_string();
    assert_eq!(started.finish().await, (Some(0), token + "\n"));
}

#[tokio::test]
async fn two_megabytes_keep_their_ends() {
    let started = start("echo first; head -c 2097152 /dev/zero | tr '\\0' x; echo; echo last");
    assert_eq!(started.end.await.unwrap(), Some(0));
    let chunk = started.process.take();
    assert_eq!(chunk.total(), 2_097_152 + 6 + 1 + 5);
    assert_eq!(chunk.head.len() + chunk.tail.len(), RETAINED);
    assert!(chunk.head.starts_with(b"first\nxxx") && chunk.tail.ends_with(b"x\nlast\n"));
    assert_eq!(chunk.lines, 3);
}

#[tokio::test]
async fn output_comes_once() {
    let started = start_in(Path::new("/"), "echo one; read line; echo $line", Stdin::Piped).unwrap();
    started.said(4).await;
    assert_eq!(text(&started.process.take()), "one\n");
    assert_eq!(text(&started.process.take()), "");
    started.process.write(b"two\n").await.unwrap();
    assert_eq!(started.finish().await, (Some(0), "two\n".into()));
}

#[tokio::test]
async fn stdin_ends_when_closed() {
    let started = start_in(Path::new("/"), "cat; echo end", Stdin::Piped).unwrap();
    started.process.write(b"text\n").await.unwrap();
    started.process.close_stdin().await.unwrap();
    assert!(matches!(started.process.write(b"more").await, Err(Error::StdinClosed)));
    assert_eq!(started.finish().await, (Some(0), "text\nend\n".into()));
    let started = start("sleep 600");
    assert!(matches!(started.process.write(b"x").await, Err(Error::NoStdin)));
    started.process.kill().await;
}

#[tokio::test]
async fn a_process_that_does_not_read_holds_nobody_up() {
    let started = start_in(Path::new("/"), "sleep 600", Stdin::Piped).unwrap();
    let error = started.process.write(&vec![b'x'; 200_000]).await.unwrap_err();
    assert!(matches!(error, Error::StdinFull { written: 1..200_000, len: 200_000 }), "{error}");
    started.process.kill().await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hold_the_call() {
    let started = start("sleep 600 & echo $!");
    let mut watch = started.process.watch();
    let before = Instant::now();
    let progress = *watch.wait_for(|progress| progress.phase != Phase::Running).await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(5));
    assert_eq!((progress.exit, progress.phase), (Some(0), Phase::Lingering));
    let pid = printed_pid(&started).await;
    assert!(procfs::alive(pid).is_some(), "it is left alone");
    started.process.kill().await;
    assert_eq!(procfs::alive(pid), None);
    assert_eq!(started.finish().await, (Some(0), String::new()));
}

#[tokio::test]
async fn what_a_left_behind_process_says_is_still_heard() {
    let folder = tempfile::tempdir().unwrap();
    let started = start_in(folder.path(), "mkfifo f; (cat f; echo done) & echo $!", Stdin::Null).unwrap();
    started.process.watch().wait_for(|progress| progress.phase == Phase::Lingering).await.unwrap();
    printed_pid(&started).await;
    // Opening the pipe waits for the reader, which is there by now or comes.
    let fifo = folder.path().join("f");
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "late\n")).await.unwrap().unwrap();
    assert_eq!(started.finish().await, (Some(0), "late\ndone\n".into()));
}

#[tokio::test]
async fn kill_ends_the_whole_group_and_may_be_repeated() {
    // The trap makes the shell deaf to the request, so that force is needed.
    let started = start("trap '' TERM; sleep 600 & echo $!; wait; wait");
    let pid = printed_pid(&started).await;
    started.process.kill().await;
    started.process.kill().await;
    assert_eq!(procfs::alive(pid), None);
    assert_eq!(started.end.await.unwrap(), Some(137));
}

#[tokio::test]
async fn kill_asks_first() {
    let started = start("trap 'echo bye; exit 3' TERM; echo; sleep 600 & wait");
    started.said(1).await;
    started.process.kill().await;
    assert_eq!(started.finish().await, (Some(3), "\nbye\n".into()));
}

#[tokio::test]
async fn a_dropped_handle_kills() {
    let Started { process, end, .. } = start("sleep 600");
    drop(process);
    assert_eq!(end.await.unwrap(), Some(137));
    let Started { process, end, .. } = start("sleep 600");
    let pid = process.pid();
    end.abort();
    assert!(end.await.is_err());
    assert_eq!(process.progress().phase, Phase::Gone);
    until(|| procfs::alive(pid).is_none()).await;
}

/// Waits for something that nobody tells. Fails the test after 50 s.
async fn until(mut is: impl FnMut() -> bool) {
    let came = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), came).await.expect("what the test waits for did not come");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    assert!(matches!(start_in(&missing, "true", Stdin::Null), Err(Error::NoFolder(path)) if path == missing));
    std::fs::write(&missing, "").unwrap();
    assert!(matches!(start_in(&missing, "true", Stdin::Null), Err(Error::NotAFolder(_))));
    assert!(matches!(start_in(folder.path(), "a\0b", Stdin::Null), Err(Error::Nul)));
    assert!(matches!(start_in(folder.path(), &"x".repeat(1 << 22), Stdin::Null), Err(Error::TooLong)));
}

#[tokio::test]
async fn a_daemon_is_found_by_its_mark() {
    let started = start("setsid sleep 600 >/dev/null 2>&1 & echo; exit 0");
    let token = started.token;
    let found = || procfs::marks().into_iter().find(|seen| seen.token == Some(token) && seen.group == seen.pid);
    until(|| found().is_some_and(|seen| seen.pid != started.process.pid())).await;
    let pid = found().unwrap().pid;
    assert_eq!(started.finish().await, (Some(0), "\n".into()), "its group is empty");
    assert_eq!(end_marked([token]).await, HashSet::new());
    assert_eq!(procfs::alive(pid), None);
}

/// A process of a command that has cleared its environment, has a session of its own and none of its files.
const WASHED: &str = "env -i setsid sleep 600 </dev/null >/dev/null 2>&1 &";

/// Starts one, and waits until its command is over and its group empty.
async fn washed() -> (Token, Vec<ProcessRecord>, i32) {
    let started = start(&format!("{WASHED} until [ $(cut -d' ' -f5 /proc/$!/stat) = $! ]; do :; done; echo $!"));
    let pid = printed_pid(&started).await;
    let lines = started.lines("sleep");
    let token = started.token;
    assert_eq!(started.finish().await.0, Some(0));
    until(|| procfs::token(pid).is_none() && procfs::alive(pid).is_some()).await;
    (token, lines, pid)
}

#[tokio::test]
async fn nothing_washes_a_mark_off() {
    let (token, lines, pid) = washed().await;
    let ProcessEvent::Started { pid: command, .. } = lines[1].event else { panic!() };
    assert_eq!(left_behind(token, command).await, Some(pid));
    assert_eq!(left_behind(Token::new(), command).await, None, "another command has nothing to do with it");
    assert_eq!(end_marked([Token::new()]).await, HashSet::new());
    assert!(procfs::alive(pid).is_some(), "and does not end it");
    assert_eq!(end_marked([token]).await, HashSet::new());
    assert_eq!(procfs::alive(pid), None);
    assert_eq!(left_behind(token, command).await, None);
}

#[tokio::test]
async fn a_later_owner_finds_what_was_washed() {
    let (_, lines, pid) = washed().await;
    check_sweep(&lines, &[Fate::Ended]).await;
    assert_eq!(procfs::alive(pid), None);
    check_sweep(&lines, &[Fate::Gone]).await;
    // Killed between the fork and its line.
    let (_, lines, pid) = washed().await;
    check_sweep(&lines[..1], &[Fate::Ended]).await;
    assert_eq!(procfs::alive(pid), None);
    // In another boot the same number is a stranger's.
    let (token, mut lines, pid) = washed().await;
    lines[0].event = ProcessEvent::Starting { command: "sleep".into(), boot_id: "an earlier one".into() };
    check_sweep(&lines, &[Fate::Gone]).await;
    assert!(procfs::alive(pid).is_some());
    end_marked([token]).await;
}

#[tokio::test]
async fn side_by_side_each_gets_its_own_mark() {
    let started: Vec<Started> = (0..16).map(|_| start("echo; exec env -i sleep 600")).collect();
    for one in &started {
        one.said(1).await;
        let pid = one.process.pid();
        until(|| procfs::token(pid).is_none()).await;
        assert_eq!(procfs::number(pid), Some(mark::number(one.token)));
    }
    for one in started {
        one.process.kill().await;
    }
    let me = i32::try_from(std::process::id()).unwrap();
    until(|| procfs::number(me).is_none()).await;
}

async fn check_sweep(ledger: &[ProcessRecord], expect: &[Fate]) {
    let fates: Vec<Fate> = sweep(ledger).await.into_iter().map(|leftover| leftover.fate).collect();
    assert_eq!(fates, expect);
}

#[tokio::test]
async fn a_sweep_ends_what_is_ours() {
    let started = start("env -i sleep 600 & setsid sleep 600 & echo $!; exec sleep 600");
    let pid = printed_pid(&started).await;
    let mut lines = started.lines("sleep");
    check_sweep(&lines, &[Fate::Ended]).await;
    assert_eq!(started.end.await.unwrap(), Some(143));
    until(|| procfs::alive(pid).is_none()).await;
    assert!(procfs::group(started.process.pid()).is_empty(), "the group went with it, marked or not");
    check_sweep(&lines, &[Fate::Gone]).await;
    lines.push(ProcessRecord { token: started.token, event: ProcessEvent::Ended { exit_code: None } });
    check_sweep(&lines, &[]).await;
}

#[tokio::test]
async fn a_sweep_finds_what_was_forked_but_not_written_down() {
    let started = start("sleep 600");
    check_sweep(&started.lines("sleep")[..1], &[Fate::Ended]).await;
    assert_eq!(started.end.await.unwrap(), Some(143));
}

#[tokio::test]
async fn a_sweep_never_touches_a_stranger() {
    let stranger = start("echo; exec sleep 600");
    stranger.said(1).await;
    let (pid, start_time) = (stranger.process.pid(), stranger.process.start_time());
    // Another mark: by pid and start time the same, but not provably ours.
    check_sweep(&ledger(Token::new(), "sleep", pid, start_time), &[Fate::Survives]).await;
    // Another start time: the pid was given to somebody else.
    check_sweep(&ledger(Token::new(), "sleep", pid, start_time + 1), &[Fate::Gone]).await;
    // Another boot, though everything else is right.
    let mut lines = stranger.lines("sleep");
    lines[0].event = ProcessEvent::Starting { command: "sleep".into(), boot_id: "an earlier one".into() };
    check_sweep(&lines, &[Fate::Gone]).await;
    assert!(procfs::alive(pid).is_some());
    assert_eq!(stranger.process.progress().phase, Phase::Running);
    stranger.process.kill().await;
    assert_eq!(stranger.end.await.unwrap(), Some(143));
}
