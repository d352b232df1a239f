//! What Linux says in /proc about the machine and about who used it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Units of /proc/*/stat a second: the same on every Linux machine that Rust runs on.
const TICKS: f64 = 100.0;
/// How long the machine is watched to know whether it is calm.
const WATCH: Duration = Duration::from_millis(500);
/// Cores that others may use on a calm machine.
const CALM: f64 = 0.25;

/// CPU seconds used so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cpu {
    /// By the whole machine.
    pub(super) machine: f64,
    /// By this process.
    pub(super) own: f64,
    /// By the processes that it started and waited for, and those that they waited for.
    pub(super) children: f64,
}

impl Cpu {
    /// Reads it. Each figure is exact to a hundredth of a second.
    pub(super) fn now() -> Result<Self> {
        let own = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
        let machine = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        Self::parse(&own, &machine).context("/proc/self/stat or /proc/stat is not as Linux writes it")
    }

    pub(super) fn parse(own: &str, machine: &str) -> Option<Self> {
        // The name of the program may hold anything, so it counts from the last bracket.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: &str| field.parse::<f64>().ok();
        let sum =
            |range: std::ops::Range<usize>| fields.get(range)?.iter().map(|field| ticks(field)).sum::<Option<f64>>();
        let all: Vec<f64> = machine.lines().next()?.split_whitespace().skip(1).map(ticks).collect::<Option<_>>()?;
        // user, nice, system, idle, iowait, irq, softirq, steal; time of guests is part of user.
        let idle: f64 = all.get(3..5)?.iter().sum();
        let busy = all.iter().take(8).sum::<f64>() - idle;
        Some(Self { machine: busy / TICKS, own: sum(11..13)? / TICKS, children: sum(13..15)? / TICKS })
    }

    /// CPU seconds since `earlier` of everybody but this process and its children.
    pub(super) fn others(self, earlier: Self) -> f64 {
        let all = self.machine - earlier.machine;
        (all - (self.own - earlier.own) - (self.children - earlier.children)).max(0.0)
    }
}

/// Returns when others use little of the machine, or after `patience`.
pub(super) fn calm(patience: Duration) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < patience {
        let before = Cpu::now()?;
        std::thread::sleep(WATCH);
        if Cpu::now()?.others(before) < CALM * WATCH.as_secs_f64() {
            break;
        }
    }
    Ok(())
}

/// The peak of the resident memory of a process in MiB; none when it has ended.
pub(super) fn peak(pid: u32) -> Option<f64> {
    peak_of(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

pub(super) fn peak_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

/// The machine in one line; `folder` is where the homes are.
pub(super) fn describe(folder: &Path) -> String {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let memory = read("/proc/meminfo");
    let kib = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    let gib = kib.and_then(|kib| kib.trim().parse::<f64>().ok()).unwrap_or_default() / f64::from(1 << 20);
    let kernel = read("/proc/sys/kernel/osrelease");
    let disk = disk(&read("/proc/mounts"), folder).unwrap_or_else(|| "an unknown file system".to_owned());
    format!("{cores} cores ({model}), {gib:.0} GiB, Linux {}, homes on {disk}", kernel.trim())
}

/// The file system of a folder: that of the longest mount point above it.
pub(super) fn disk(mounts: &str, folder: &Path) -> Option<String> {
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = fields.filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}
