//! Several programs at one mirror: copies of this test program that each drive a tree of their own.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use protocol::{ThreadId, TreeId};
use stdx::AbsPath;

use crate::Trouble;
use crate::fixture::{Home, id, split, turn};

/// Set for a copy that is to note: the home.
const HOME: &str = "MIRROR_TEST_HOME";
/// The first of its agents.
const FIRST: &str = "MIRROR_TEST_FIRST";
/// How often it writes to each of them.
const ROUNDS: &str = "MIRROR_TEST_ROUNDS";

const AGENTS: u64 = 5;

/// Not a test of its own: what the copies do.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test tells its own copies what to do")]
async fn note_when_told_to() {
    let Some(home) = std::env::var_os(HOME) else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let home = Home::at(AbsPath::new(home).unwrap());
    let (mirror, trouble) = home.open();
    assert!(matches!(trouble, None | Some(Trouble::Busy { .. })), "{trouble:?}");
    let writers = home.tree(number(FIRST), AGENTS).await;
    println!("\nready");
    for round in 0..number(ROUNDS) {
        for writer in &writers {
            writer.append_synced(&[turn(round)]).await.unwrap();
            mirror.note(writer.synced_summary().unwrap());
        }
        println!("round {round}");
    }
    // The others hold it now and then, but none for long.
    let mut written = mirror.flush().await;
    while let Err(Trouble::Busy { .. }) = written {
        written = mirror.flush().await;
    }
    written.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "several programs at one mirror need several programs")]
fn program(home: &Home, first: u64, rounds: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["processes::note_when_told_to", "--exact", "--nocapture", "--test-threads=1"])
        .env(HOME, home.path().as_path())
        .env(FIRST, first.to_string())
        .env(ROUNDS, rounds.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

#[tokio::test]
async fn programs_note_at_once() {
    const PROGRAMS: u64 = 4;
    let home = Home::new();
    // Nobody has made the database: they do, all at once.
    let programs: Vec<_> = (0..PROGRAMS).map(|n| program(&home, 1 + 100 * n, 40)).collect();
    for (mut child, lines) in programs {
        let said: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success(), "{said:#?}");
    }
    let mirror = home.mirror();
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.trouble), (((PROGRAMS * AGENTS) as usize, 0), None));
    let second = mirror.catalogue(&home.store, Some(TreeId::from(id::<ThreadId>(101)))).unwrap();
    assert_eq!(split(&second), (AGENTS as usize, 0));
    assert!(!home.names().iter().any(|name| name.contains("damaged")));
}

#[tokio::test]
async fn a_program_that_is_killed_harms_nobody() {
    const ROUNDS_BEFORE: usize = 10;
    let home = Home::new();
    for n in 0..5 {
        let (mut child, mut lines) = program(&home, 1 + 100 * n, u64::MAX);
        // Somewhere in the middle of writing, each time later.
        let wanted = format!("round {}", ROUNDS_BEFORE + 3 * n as usize);
        assert!(lines.any(|line| line.unwrap() == wanted), "it ended too early");
        child.kill().unwrap();
        child.wait().unwrap();
        let (mirror, trouble) = home.open();
        assert_eq!(trouble, None);
        let catalogue = home.catalogue(&mirror);
        assert_eq!((catalogue.agents.len() as u64, catalogue.trouble), ((n + 1) * AGENTS, None));
        // What the killed one did not get to write was read; nothing else was.
        let read = catalogue.agents.iter().filter(|known| !known.trusted && known.summary.meta.id < id(1 + 100 * n));
        assert_eq!(read.filter(|known| home.store.load(known.summary.meta.id).unwrap().torn == 0).count(), 0);
        mirror.flush().await.unwrap();
        let again = home.catalogue(&mirror);
        assert_eq!(again.agents.len(), catalogue.agents.len());
        // A write that the kill cut in two is at the end of its file until somebody takes the tree over.
        for known in again.agents.iter().filter(|known| !known.trusted) {
            assert!(home.store.load(known.summary.meta.id).unwrap().torn > 0, "{:?}", known.summary);
        }
    }
}
