//! `cargo xtask torture`: random trees that are killed at random, taken over and counted, for as long as there is time.
//!
//! The lives themselves are in `tests/kill`, because what is killed there is the program itself on a disk that kills it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

/// The test that lives them.
const TEST: &str = "torture::a_few_random_lives";
/// In its environment: what it is to do.
const ORDERS: &str = "TESTKIT_CHILD";

/// Kills random trees at random places, takes them over, and counts that nothing is lost and nothing there twice.
///
/// Each life is drawn from its seed: the tree, what its agents and its people do, the limits, the habits of the model,
/// the kills. A life that does not hold is printed with its seed, its home is kept, and the command exits with 1.
#[derive(clap::Args)]
pub(crate) struct Torture {
    /// For how long
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with_all = ["lives", "sweep"])]
    minutes: u64,
    /// So many lives instead
    #[arg(long, value_name = "N")]
    lives: Option<u64>,
    /// The seed of the first life; each further one has the next (default: drawn from the clock)
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Lives at a time (default: two for each core)
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// Instead: the tree of the tests, killed before, in the middle of and after every single effect
    #[arg(long)]
    sweep: bool,
}

/// Does what the command line says.
#[expect(clippy::disallowed_methods, reason = "the lives are a test, and cargo runs those")]
pub(crate) fn torture(root: &Path, args: &Torture) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.unwrap_or(2 * cores);
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["test", "--quiet", "--package", "agent", "--test", "kill", "--", TEST, "--exact"]);
    cargo.args(["--nocapture", "--test-threads=1"]).env(ORDERS, orders(args, jobs)).env("RUST_BACKTRACE", "0");
    let status = cargo.status().context("cargo does not start")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The orders, as the test reads them.
fn orders(args: &Torture, jobs: usize) -> String {
    // Apart from all that were drawn before, and short enough to be typed again.
    let seed = args.seed.unwrap_or_else(|| stdx::now().as_millis().unsigned_abs() % 1_000_000_000);
    let (lives, seconds) = match args.lives {
        Some(lives) => (lives, "null".to_owned()),
        None => (0, (args.minutes * 60).to_string()),
    };
    let sweep = args.sweep;
    format!(r#"{{"seed":{seed},"seconds":{seconds},"lives":{lives},"jobs":{jobs},"sweep":{sweep}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_what_the_test_reads() {
        let check = |lives: Option<u64>, expect: &str| {
            let args = Torture { minutes: 2, lives, seed: Some(7), jobs: None, sweep: false };
            assert_eq!(orders(&args, 4), expect);
        };
        check(None, r#"{"seed":7,"seconds":120,"lives":0,"jobs":4,"sweep":false}"#);
        check(Some(3), r#"{"seed":7,"seconds":null,"lives":3,"jobs":4,"sweep":false}"#);
    }
}
