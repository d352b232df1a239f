//! What commands leave in this process: no zombie, no open file. In a program of its own, so that nothing else starts
//! or opens anything meanwhile.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::fs;

use exec::{Environment, Plan, Shell, Stdin, spawn};
use protocol::Token;
use stdx::AbsPath;

/// Enough to tell one left by each from one left by chance.
const COMMANDS: usize = 200;

/// Started at once; the rest wait.
const AT_ONCE: usize = 10;

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Children of this process, ended or not.
fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let stats =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&*me)).collect()
}

#[tokio::test]
async fn two_hundred_commands_leave_nothing() {
    let environment = Environment::new([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
    let shell = Shell::find(&environment).unwrap();
    let run = async |command: &str, kill: bool| {
        let plan = Plan {
            program: shell.program().to_path_buf(),
            arguments: shell.arguments(command, false),
            cwd: AbsPath::new("/").unwrap(),
            environment: &environment,
            token: Token::new(),
            stdin: Stdin::Piped,
        };
        let (process, reaper) = spawn(plan).unwrap();
        let end = tokio::spawn(reaper.run());
        if kill {
            process.kill().await;
        }
        end.await.unwrap();
    };
    // The first one opens what stays open: the runtime's own.
    run("true", false).await;
    let before = open_files();
    for _ in 0..COMMANDS / AT_ONCE {
        futures(AT_ONCE, |n| run(["true", "echo out; exit 3", "sleep 600", "sleep 600 & exit"][n % 4], n % 4 > 1))
            .await;
    }
    assert_eq!(children(), [""; 0]);
    assert_eq!(open_files(), before);
}

/// Runs so many futures side by side.
async fn futures<F: Future<Output = ()>>(count: usize, make: impl Fn(usize) -> F) {
    let mut all: Vec<_> = (0..count).map(|n| Box::pin(make(n))).collect();
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
