//! One run of the program: started, watched, waited for.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use stdx::cut_end;

use super::machine::{Cpu, peak};

/// How often the memory is looked at. The kernel keeps the peak, so only what grows after the last look is missed.
const LOOK: Duration = Duration::from_millis(2);
/// Bytes of the output that are kept at least; the rest is counted only.
const KEPT: usize = 1024 * 1024;

/// What one run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// Seconds from the start of the process until it was waited for.
    pub(super) wall: f64,
    /// User and system seconds of the process and of those that it waited for.
    pub(super) cpu: f64,
    /// Peak of the resident memory of the process itself, in MiB.
    pub(super) peak: Option<f64>,
    /// CPU seconds that others used meanwhile.
    pub(super) others: f64,
    /// Seconds from the start of the process until its first request, of a session that comes back.
    pub(super) first: Option<f64>,
    /// KiB that an agent more takes which rests in memory, beside its history.
    pub(super) resting: Option<f64>,
    /// Bytes that rollouts have more after it than before, of a fork.
    pub(super) written: Option<f64>,
}

impl Sample {
    /// Of a run in this process, of which nothing else is known yet.
    pub(super) fn of(wall: f64) -> Self {
        Self { wall, cpu: 0.0, peak: None, others: 0.0, first: None, resting: None, written: None }
    }
}

/// What a run printed.
pub(super) struct Printed {
    pub(super) bytes: usize,
    /// The end of it.
    pub(super) tail: String,
}

/// The folders of one run.
#[derive(Clone, Copy)]
pub(super) struct Folders<'a> {
    pub(super) home: &'a Path,
    pub(super) work: &'a Path,
    pub(super) scratch: &'a Path,
}

/// Runs `binary` to its end.
///
/// # Errors
/// When it cannot be run, or ends with anything but 0; the end of its stderr is in the error.
#[expect(clippy::disallowed_methods, reason = "a benchmark of a program has to start it")]
pub(super) fn run(binary: &Path, args: &[String], folders: Folders<'_>) -> Result<(Sample, Printed)> {
    let complaints = folders.scratch.join("stderr");
    let mut command = Command::new(binary);
    command
        .args(args)
        .current_dir(folders.work)
        .env("AGENT_HOME", folders.home)
        // No profile of a shell and no configuration of whoever measures takes part.
        .env("HOME", folders.scratch)
        .env_remove("AGENT_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&complaints)?);
    let before = Cpu::now()?;
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
    let pid = child.id();
    let stdout = child.stdout.take();
    let over = AtomicBool::new(false);
    let (status, wall, peak, printed) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(pid, &over));
        let reader = scope.spawn(move || stdout.map(drain).transpose());
        let status = child.wait();
        let wall = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        (status, wall, watcher.join().unwrap_or_default(), reader.join().unwrap_or(Ok(None)))
    });
    let after = Cpu::now()?;
    let (status, printed) = (status?, printed?.context("its output was not read")?);
    if !status.success() {
        let text = fs::read_to_string(&complaints).unwrap_or_default();
        let tail: String =
            text.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
        bail!("`agent {}` ended with {status}:\n{}", cut_end(&args.join(" "), 200), tail);
    }
    let cpu = after.children - before.children;
    Ok((Sample { cpu, peak, others: after.others(before), ..Sample::of(wall) }, printed))
}

/// Follows the peak until the process has ended.
fn watch(pid: u32, over: &AtomicBool) -> Option<f64> {
    let mut last = None;
    while !over.load(Ordering::Relaxed) {
        let Some(seen) = peak(pid) else { break };
        last = Some(seen);
        std::thread::sleep(LOOK);
    }
    last
}

fn drain(mut from: impl Read) -> Result<Printed> {
    let mut buffer = vec![0; KEPT];
    let mut tail = Vec::new();
    let mut bytes = 0;
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        bytes += read;
        tail.extend_from_slice(&buffer[..read]);
        if tail.len() > 2 * KEPT {
            tail.drain(..tail.len() - KEPT);
        }
    }
    Ok(Printed { bytes, tail: String::from_utf8_lossy(&tail).into_owned() })
}
