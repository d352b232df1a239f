use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::fixture::Home;

/// Set for a copy of this test program that is to take the lock.
const HOLD: &str = "ROLLOUT_TEST_HOLD_LOCK";

fn hint(pid: u32) -> OwnerHint {
    OwnerHint { pid, start_time: 12, socket: None }
}

#[test]
fn one_owner_at_a_time() {
    let home = Home::new();
    let tree = crate::fixture::id(1);
    assert_eq!(home.store.owner(tree), None);
    let lock = home.store.lock(tree, &hint(41)).unwrap();
    let Err(LockError::Owned(seen)) = home.again().lock(tree, &hint(42)) else { panic!("two owners") };
    assert_eq!(seen, hint(41));
    let socket = AbsPath::new("/run/agent/control.sock").unwrap();
    let listening = OwnerHint { socket: Some(socket), ..hint(41) };
    lock.say(&listening).unwrap();
    assert_eq!(home.store.owner(tree), Some(listening));
    lock.say(&hint(4)).unwrap();
    assert_eq!(home.store.owner(tree), Some(hint(4)));
    drop(lock);
    // The file stays; whoever comes next locks the same one.
    assert_eq!(home.store.owner(tree), Some(hint(4)));
    drop(home.store.lock(tree, &hint(43)).unwrap());
    assert!(home.store.lock(crate::fixture::id(2), &hint(44)).is_ok());
}

#[test]
fn a_hint_may_say_nothing() {
    let home = Home::new();
    let tree = crate::fixture::id(1);
    let lock = home.store.lock(tree, &hint(41)).unwrap();
    for bytes in [&b""[..], b"{\"pid\":4", b"\xff", b"[]"] {
        fs::write(home.store.tree_folder(tree).join(NAME), bytes).unwrap();
        let Err(LockError::Owned(seen)) = home.again().lock(tree, &hint(42)) else { panic!("two owners") };
        assert_eq!(seen, OwnerHint::default());
    }
    drop(lock);
}

/// Nobody waits for it, and it is called by its name.
#[test]
fn what_is_no_lock_is_told() {
    let home = Home::new();
    let (tree, folder) = (crate::fixture::id(1), home.store.tree_folder(crate::fixture::id(1)));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(NAME);
    let told = |what: &str| {
        assert_eq!(home.store.owner(tree), None);
        let error = home.store.lock(tree, &hint(42)).unwrap_err();
        let place = path.display();
        let said = format!("`{place}` is {what}, where a lock should be; move it away, then give this command again");
        assert_eq!(error.to_string(), said);
    };
    fs::create_dir(&path).unwrap();
    told("a folder");
    fs::remove_dir(&path).unwrap();
    #[cfg(target_os = "linux")]
    {
        crate::fixture::pipe(&path);
        told("a pipe");
        fs::remove_file(&path).unwrap();
    }
    #[cfg(unix)]
    {
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        told("a socket or a device");
        fs::remove_file(&path).unwrap();
    }
    assert!(home.store.lock(tree, &hint(42)).is_ok());
}

#[test]
fn a_lock_that_cannot_be_made_says_what_to_do() {
    use rustix::io::Errno;
    let file = AbsPath::new("/x/owner.lock").unwrap();
    let said = |errno: Errno| LockError::io(&file, errno.into()).to_string();
    let errnos = [Errno::NOSPC, Errno::ROFS, Errno::MFILE, Errno::ACCESS];
    expect_test::expect![[r#"
        cannot lock `/x/owner.lock`: the disk is full; free some space
        cannot lock `/x/owner.lock`: the file system is read-only; mount it for writing, or set AGENT_HOME to a folder on another
        cannot lock `/x/owner.lock`: too many open files; raise the limit with `ulimit -n`, or lower max_resident or max_running
        cannot lock `/x/owner.lock`: Permission denied (os error 13); check that the folder exists and belongs to you"#]]
    .assert_eq(&errnos.map(said).join("\n"));
}

/// Not a test of its own: what the process that the next test starts does.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test tells its own copy what to do")]
fn hold_the_lock_when_told_to() {
    let Some(folder) = std::env::var_os(HOLD) else { return };
    let _lock = lock(&AbsPath::new(folder).unwrap(), &hint(std::process::id())).unwrap();
    println!("\nlocked");
    // Ends with this process: the other side never writes and never closes.
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a lock between processes needs a second process")]
fn holder(folder: &AbsPath) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["lock::tests::hold_the_lock_when_told_to", "--exact", "--nocapture", "--test-threads=1"])
        .env(HOLD, folder.as_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = io::BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "locked"), "the other process did not take the lock");
    child
}

#[test]
fn a_killed_owner_owns_nothing() {
    let home = Home::new();
    let tree = crate::fixture::id(1);
    let mut child = holder(&home.store.tree_folder(tree));
    let Err(LockError::Owned(seen)) = home.store.lock(tree, &hint(42)) else { panic!("two owners") };
    assert_eq!(seen, hint(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    let lock = home.store.lock(tree, &hint(42)).unwrap();
    assert_eq!(home.store.owner(tree), Some(hint(42)));
    drop(lock);
}
