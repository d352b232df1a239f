//! Tasks of the workspace: `cargo xtask tidy` checks the rules that no compiler checks, `cargo xtask gen` writes the
//! pages that are made from code, `cargo xtask bench` measures the program, `cargo xtask torture` kills it
//! as often as there is time for.
//!
//! Whatever the first checks is also a test, so that a plain `cargo test` means everything.

mod bench;
mod pages;
mod tidy;
mod torture;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Tasks of the workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Checks the rules of the house: floors, lints, versions, file lengths, words. One line a fault.
    Tidy,
    /// Writes the pages of docs/ that are made from code.
    Gen,
    Bench(bench::Bench),
    Torture(torture::Torture),
}

fn main() -> Result<ExitCode> {
    let root = root();
    let mut out = std::io::stdout().lock();
    match Task::parse() {
        Task::Tidy => {
            let faults = tidy::check(root)?;
            for fault in &faults {
                writeln!(out, "{fault}")?;
            }
            if faults.is_empty() {
                writeln!(out, "tidy")?;
                return Ok(ExitCode::SUCCESS);
            }
            return Ok(ExitCode::FAILURE);
        }
        Task::Bench(args) => {
            drop(out);
            return bench::bench(root, &args);
        }
        Task::Torture(args) => {
            drop(out);
            return torture::torture(root, &args);
        }
        Task::Gen => {
            for path in pages::write(root)? {
                writeln!(out, "wrote {path}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The root of the workspace this program was built in.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
