//! Ending processes by their marks: those that left their group, and those that a crash left.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use protocol::{ProcessEvent, ProcessRecord, Token};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::procfs::Seen;
use crate::{GRACE, boot_id, mark, procfs};

/// How often everybody is looked for again after force was used: a process may start others while it is being ended, and
/// a busy machine takes its time to end one. A second in all, after which something hangs in the kernel.
const ROUNDS: usize = 100;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// A process of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its mark.
    pub token: Token,
    /// Its command line as given.
    pub command: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a process of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It, or something it started, ran on and has been ended.
    Ended,
    /// It was gone already, or its pid belongs to somebody else now.
    Gone,
    /// It runs on, or nobody can tell.
    Survives,
}

/// The marks of some processes, to be found again.
struct Marks {
    tokens: HashSet<Token>,
    numbers: HashMap<u64, Token>,
}

impl Marks {
    fn new(tokens: impl IntoIterator<Item = Token>) -> Self {
        let tokens: HashSet<Token> = tokens.into_iter().collect();
        let numbers = tokens.iter().map(|token| (mark::number(*token), *token)).collect();
        Self { tokens, numbers }
    }

    fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Whose mark a process carries. The number first: an environment can be copied.
    fn of(&self, seen: &Seen) -> Option<Token> {
        let numbered = seen.number.and_then(|number| self.numbers.get(&number).copied());
        numbered.or_else(|| seen.token.filter(|token| self.tokens.contains(token)))
    }
}

/// What a ledger says about one process.
struct Entry {
    token: Token,
    command: String,
    this_boot: bool,
    started: Option<(i32, u64)>,
    ended: bool,
}

impl Entry {
    /// The process itself, if pid *and* start time are what was written down. The mark is compared by the caller.
    fn find<'a>(&self, all: &'a [Seen]) -> Option<&'a Seen> {
        let (pid, start_time) = self.started?;
        all.iter().find(|seen| seen.pid == pid && seen.start_time == start_time)
    }
}

/// Ends what the lines of a ledger, in their order, leave running, and whatever carries the mark of any process in it.
///
/// Only what was started in this boot is looked at. A pid alone is never trusted: the process itself is ended when
/// boot, start time and mark all match, its group only together with it, and others when they carry the mark.
/// A process that ended in good order is reported only if something of it still ran.
pub async fn sweep(records: &[ProcessRecord]) -> Vec<Leftover> {
    let entries = entries(records);
    let here = Marks::new(entries.iter().filter(|entry| entry.this_boot).map(|entry| entry.token));
    let all = if here.is_empty() { Vec::new() } else { look().await };
    let groups: HashMap<i32, Token> = entries
        .iter()
        .filter(|entry| entry.this_boot)
        .filter_map(|entry| entry.find(&all))
        .filter_map(|seen| Some((seen.pid, here.of(seen)?)))
        .collect();
    let mine = |seen: &Seen| here.of(seen).or_else(|| groups.get(&seen.group).copied());
    let targets: Vec<(Token, Seen)> = all.iter().filter_map(|seen| Some((mine(seen)?, *seen))).collect();
    let found: HashSet<Token> = targets.iter().map(|(token, _)| *token).collect();
    let survive = end(targets, &here).await;
    let fate = |entry: &Entry| {
        let unmarked = entry.find(&all).is_some_and(|seen| here.of(seen) != Some(entry.token));
        match () {
            () if !entry.this_boot => Fate::Gone,
            () if survive.contains(&entry.token) => Fate::Survives,
            () if found.contains(&entry.token) => Fate::Ended,
            // By pid and start time it is the one, but it shows no mark: not ours to end, and not gone either.
            () if unmarked || (!entry.ended && !procfs::available()) => Fate::Survives,
            () => Fate::Gone,
        }
    };
    entries
        .iter()
        .map(|entry| Leftover { token: entry.token, command: entry.command.clone(), fate: fate(entry) })
        .zip(&entries)
        .filter(|(leftover, entry)| !entry.ended || leftover.fate != Fate::Gone)
        .map(|(leftover, _)| leftover)
        .collect()
}

/// Ends every process that carries one of these marks, also those that left their group, and returns the marks of
/// those that could not be ended. Goes through all processes: for the end of an agent, not for a call.
pub async fn end_marked(marks: impl IntoIterator<Item = Token>) -> HashSet<Token> {
    let marks = Marks::new(marks);
    end(marked(&marks).await, &marks).await
}

/// A process, the oldest, that the command of this mark started and that has left the command's group: the command was
/// `pid` and is over. Looks only at those that can be, which are few: for the end of a command.
pub async fn left_behind(token: Token, pid: i32) -> Option<i32> {
    let look = move || {
        let number = mark::number(token);
        // What cleared its environment has kept its number; what changed its limits has kept its environment.
        let ours = |other: &i32| procfs::number(*other) == Some(number) || procfs::token(*other) == Some(token);
        procfs::younger(pid).filter(ours).find(|other| procfs::alive(*other).is_some())
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

async fn end(mut targets: Vec<(Token, Seen)>, marks: &Marks) -> HashSet<Token> {
    if targets.is_empty() {
        return HashSet::new();
    }
    for (_, seen) in &targets {
        signal(seen, Signal::TERM);
    }
    let deadline = Instant::now() + GRACE;
    while targets.iter().any(|(_, seen)| lives(seen)) && Instant::now() < deadline {
        sleep(PAUSE).await;
    }
    for _ in 0..ROUNDS {
        targets.retain(|(_, seen)| lives(seen));
        targets.extend(marked(marks).await);
        if targets.is_empty() {
            break;
        }
        for (_, seen) in &targets {
            signal(seen, Signal::KILL);
        }
        sleep(PAUSE).await;
    }
    targets.retain(|(_, seen)| lives(seen));
    targets.into_iter().map(|(token, _)| token).collect()
}

fn lives(seen: &Seen) -> bool {
    procfs::alive(seen.pid).is_some_and(|now| now.start_time == seen.start_time)
}

/// Sends a signal to the very process that was seen: a pid that was given to another in between is not touched.
#[cfg(target_os = "linux")]
fn signal(seen: &Seen, signal: Signal) {
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(seen.pid).filter(|_| seen.pid > 1) else { return };
    // An error in either means that it is gone, or that it is not ours to end; a later look tells which.
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
        && lives(seen)
    {
        let _gone = pidfd_send_signal(handle, signal);
    }
}

/// Where there is no `/proc` nobody is ever seen, so nobody is ever signalled.
#[cfg(not(target_os = "linux"))]
fn signal(_: &Seen, _: Signal) {}

async fn marked(marks: &Marks) -> Vec<(Token, Seen)> {
    if marks.is_empty() {
        return Vec::new();
    }
    look().await.iter().filter_map(|seen| Some((marks.of(seen)?, *seen))).collect()
}

/// Everybody but this process, which carries the number of a command for the moment in which it starts it.
async fn look() -> Vec<Seen> {
    let me = i32::try_from(std::process::id()).unwrap_or_default();
    let others = move || procfs::marks().into_iter().filter(|seen| seen.pid != me).collect();
    tokio::task::spawn_blocking(others).await.unwrap_or_default()
}

fn entries(records: &[ProcessRecord]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut places: HashMap<Token, usize> = HashMap::new();
    for ProcessRecord { token, event } in records {
        if let ProcessEvent::Starting { command, boot_id: boot } = event {
            places.insert(*token, entries.len());
            entries.push(Entry {
                token: *token,
                command: command.clone(),
                this_boot: boot == boot_id(),
                started: None,
                ended: false,
            });
        }
        let Some(entry) = places.get(token).and_then(|place| entries.get_mut(*place)) else { continue };
        match event {
            ProcessEvent::Starting { .. } => {}
            ProcessEvent::Started { pid, start_time } => entry.started = Some((*pid, *start_time)),
            ProcessEvent::Ended { .. } => entry.ended = true,
        }
    }
    entries
}
