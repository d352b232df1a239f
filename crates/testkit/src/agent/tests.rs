use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::signal::unix::{SignalKind, signal};

use super::*;

fn shell(script: &str, home: &Home) -> Agent {
    Agent::new("/bin/sh", home).args(["-c", script])
}

#[test]
fn a_run_is_clean_and_caught() {
    let home = Home::new();
    let run = shell("env; pwd >&2; cat; exit 3", &home).env("EXTRA", "1").run();
    assert_eq!((run.code, run.left_behind), (3, false));
    assert_eq!(run.stderr.trim(), home.work().canonicalize().unwrap().to_str().unwrap());
    let mut names: Vec<&str> = run.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    // The shell itself sets these.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["AGENT_HOME", "EXTRA", "HOME", "PATH", "TMPDIR"]);
    assert!(run.stdout.contains(&format!("AGENT_HOME={}", home.path().display())));
    assert!(catch_unwind(|| run.assert_code(0)).is_err());
    run.assert_code(3);
}

#[test]
fn json_lines_are_read() {
    let home = Home::new();
    assert_eq!(shell("echo '{\"a\":1}'; echo 2", &home).run_ok().json_lines()[0]["a"], 1);
    let run = shell("echo no", &home).run_ok();
    assert!(catch_unwind(|| run.json_lines().len()).is_err());
}

#[test]
fn a_run_that_hangs_is_killed_and_shown() {
    let home = Home::new();
    let hangs = shell("echo begun; echo $$ >pid; exec sleep 1000", &home).timeout(Duration::from_millis(300));
    let message = catch_unwind(AssertUnwindSafe(|| hangs.run())).unwrap_err().downcast::<String>().unwrap();
    assert!(message.starts_with("no end after 300ms of `/bin/sh -c") && message.contains("begun"), "{message}");
    let pid = std::fs::read_to_string(home.work().join("pid")).unwrap().trim().parse().unwrap();
    assert!(rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_err(), "it is gone");
}

/// Takes a SIGINT, says so, and ends with 7.
///
/// No shell does that when it was started with SIGINT ignored, and whoever starts these tests in the background of a
/// script hands that down.
#[expect(clippy::disallowed_methods, reason = "the exit code is what the test looks at")]
fn catch_interrupt() -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut interrupts = signal(SignalKind::interrupt()).unwrap();
        println!("ready");
        interrupts.recv().await.unwrap();
        println!("caught");
    });
    std::process::exit(7);
}

#[test]
fn signals_reach_it() {
    if child_value().is_some() {
        catch_interrupt();
    }
    let home = Home::new();
    let running = Agent::this_test("agent::tests::signals_reach_it", "", &home).spawn();
    running.until_stdout("ready");
    assert!(running.is_running());
    running.interrupt();
    let run = running.wait();
    assert!(run.code == 7 && run.stdout.contains("caught"), "{run:?}");
    for (send, code) in [(Running::kill as fn(&Running), 137), (Running::terminate, 143)] {
        let running = shell("echo ready >&2; exec sleep 1000", &home).spawn();
        running.until_stderr("ready");
        send(&running);
        assert_eq!(running.wait().code, code);
    }
}

#[test]
fn a_text_that_never_comes_fails() {
    let home = Home::new();
    let running = shell("echo other", &home).spawn();
    assert!(catch_unwind(AssertUnwindSafe(|| running.until_stdout("this"))).is_err());
    assert_eq!(running.wait().code, 0);
}

#[test]
fn dropping_kills() {
    let home = Home::new();
    let running = shell("echo ready; exec sleep 1000", &home).spawn();
    running.until_stdout("ready");
    let pid = running.pid;
    drop(running);
    assert!(rustix::process::test_kill_process(pid).is_err());
}

#[test]
fn what_is_left_behind_shows() {
    let home = Home::new();
    let run = shell("sleep 1000 & echo $!", &home).run();
    let pid = Pid::from_raw(run.stdout.trim().parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert!(run.left_behind);
}

#[test]
fn a_test_runs_itself() {
    if let Some(value) = child_value() {
        println!("child has {value}");
        return;
    }
    let home = Home::new();
    let run = Agent::this_test("agent::tests::a_test_runs_itself", "a word", &home).run_ok();
    assert!(run.stdout.contains("child has a word"), "{}", run.stdout);
}
