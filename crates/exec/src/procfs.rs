//! What `/proc` says about processes. Where there is none, every question is answered with "not known".

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use protocol::Token;

use crate::TOKEN_VARIABLE;

/// The place of the start time among the fields after the program's name: field 22 of all, the third being the
/// first after the name.
const START_TIME: usize = 19;

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    pub(crate) group: i32,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
    /// The mark in its environment; read by [`marks`] alone.
    pub(crate) token: Option<Token>,
    /// The mark among its limits, if it has one that may be one; read by [`marks`] alone.
    pub(crate) number: Option<u64>,
}

/// The id of the machine's current boot; `unknown` where the system does not tell.
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let text = text.trim();
        if text.is_empty() { "unknown".to_owned() } else { text.to_owned() }
    })
}

/// Whether there is a `/proc` to ask.
pub(crate) fn available() -> bool {
    Path::new("/proc/self/stat").exists()
}

/// A process that lives. One that has ended and only waits to be reaped does not.
pub(crate) fn alive(pid: i32) -> Option<Seen> {
    parse(pid, &fs::read(file(pid, "stat")).ok()?)
}

/// Whether the process that was started then lives. One that has ended and only waits to be reaped does not.
pub fn lives(pid: i32, start_time: u64) -> bool {
    alive(pid).is_some_and(|seen| seen.start_time == start_time)
}

/// When the kernel started a process, reaped or not, in clock ticks since boot.
pub fn start_time(pid: i32) -> Option<u64> {
    fields(&fs::read(file(pid, "stat")).ok()?).and_then(|fields| fields.get(START_TIME)?.parse().ok())
}

/// All processes, with their marks. Reading another's environment may wait for it: not for a thread that serves others.
pub(crate) fn marks() -> Vec<Seen> {
    let mark = |seen: Seen| Seen { token: token(seen.pid), number: number(seen.pid), ..seen };
    pids().filter_map(alive).map(mark).collect()
}

/// The processes of one group, without their marks.
pub(crate) fn group(id: i32) -> Vec<Seen> {
    pids().filter_map(alive).filter(|seen| seen.group == id).collect()
}

/// The mark in a process's environment as it was when it was started.
pub(crate) fn token(pid: i32) -> Option<Token> {
    let environment = fs::read(file(pid, "environ")).ok()?;
    let value = environment
        .split(|b| *b == 0)
        .find_map(|entry| entry.strip_prefix(TOKEN_VARIABLE.as_bytes())?.strip_prefix(b"="))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The mark among the limits of a process.
pub(crate) fn number(pid: i32) -> Option<u64> {
    limit(&fs::read_to_string(file(pid, "limits")).ok()?)
}

/// The soft limit of real time; `None` when it is unlimited.
fn limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// All processes that may descend from `pid`: those with a number above it, or everybody when numbers have begun anew
/// since.
pub(crate) fn younger(pid: i32) -> impl Iterator<Item = i32> {
    let newest = fs::read_to_string("/proc/loadavg").ok();
    let newest = newest.and_then(|text| text.split_ascii_whitespace().last()?.parse::<i32>().ok());
    let begun_anew = newest.is_none_or(|newest| newest < pid);
    pids().filter(move |other| begun_anew || *other > pid)
}

fn file(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

fn pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fields after the program's name. The name may hold blanks and brackets, so the last bracket counts.
fn fields(stat: &[u8]) -> Option<Vec<&str>> {
    let after = stat.iter().rposition(|b| *b == b')')? + 1;
    Some(std::str::from_utf8(stat.get(after..)?).ok()?.split_ascii_whitespace().collect())
}

fn parse(pid: i32, stat: &[u8]) -> Option<Seen> {
    let fields = fields(stat)?;
    let state = *fields.first()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    Some(Seen {
        pid,
        group: fields.get(2)?.parse().ok()?,
        start_time: fields.get(START_TIME)?.parse().ok()?,
        token: None,
        number: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stat: &str, expect: Option<(i32, u64)>) {
        assert_eq!(parse(1, stat.as_bytes()).map(|seen| (seen.group, seen.start_time)), expect, "{stat}");
    }

    #[test]
    fn names_may_be_hostile() {
        let rest = "1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        check(&format!("9 (sh) S {rest}"), Some((77, 4242)));
        check(&format!("9 (a) S 1 (b) R {rest}"), Some((77, 4242)));
        check(&format!("9 ()) S 3) S {rest}"), Some((77, 4242)));
        check(&format!("9 (sh) Z {rest}"), None);
        check("9 (sh) S 1 2", None);
        check("", None);
    }

    #[test]
    fn limits() {
        let check =
            |line: &str, expect| assert_eq!(limit(&format!("Limit  Soft  Hard  Units\n{line}\n")), expect, "{line}");
        check(
            "Max realtime timeout      2305843009213693951  unlimited            us        ",
            Some(2_305_843_009_213_693_951),
        );
        check("Max realtime timeout      unlimited            unlimited            us        ", None);
        check("Max realtime priority     0                    0                    ", None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_seen() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let seen = alive(pid).unwrap();
        assert!(marks().iter().any(|other| other.pid == pid));
        assert!(group(seen.group).contains(&seen));
        assert_eq!(start_time(pid), Some(seen.start_time));
        assert!(lives(pid, seen.start_time) && !lives(pid, seen.start_time + 1));
        assert_eq!(boot_id().len(), 36);
    }
}
