//! Writing to the terminal. A closed pipe is no error.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use config::Env;
use protocol::TreeEvent;
use tracing_subscriber::EnvFilter;

use crate::exit::Failure;
use crate::live::Live;
use crate::progress::Progress;

/// The first reason for which stdout did not take something.
static LOST: Mutex<Option<String>> = Mutex::new(None);

/// Warnings that were told.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The living part of the display, while there is one. A std mutex: held for one write.
static LIVE: Mutex<Option<Live>> = Mutex::new(None);

/// Events that this command has printed as JSON. They are numbered as they are printed: without gaps, whoever drove the
/// tree meanwhile and however much had happened there before.
static PRINTED: AtomicU64 = AtomicU64::new(0);

/// Writes text to stdout and flushes it. Whoever stopped reading has seen enough.
pub(crate) fn answer(text: &str) {
    let _left = pour(text);
}

/// As [`answer`]; false when nobody reads any more.
pub(crate) fn pour(text: &str) -> bool {
    let mut out = io::stdout().lock();
    // What a model or a command wrote must not steer the terminal that it is read on.
    let text = if out.is_terminal() { Cow::Owned(tame(text)) } else { Cow::Borrowed(text) };
    let end: &[u8] = if text.ends_with('\n') || text.is_empty() { b"" } else { b"\n" };
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(end)).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| error.to_string());
    }
    written.is_ok()
}

/// Why stdout did not take something, if it did not. A reader that has left is no reason.
pub(crate) fn lost() -> Option<String> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Control characters but line breaks and tabs as pictures.
fn tame(text: &str) -> String {
    let picture = |c: char| match u32::from(c) {
        0x09 | 0x0a => c,
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(' '),
        0x7f..0xa0 => '\u{2421}',
        _ => c,
    };
    text.chars().map(picture).collect()
}

/// Writes one line to stderr. The same warning twice is one: several things may stumble over one cause.
pub(crate) fn note(line: &str) {
    if line.starts_with("warning: ") {
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if told.iter().any(|told| told == line) {
            return;
        }
        told.push(line.to_owned());
    }
    write(Some(line));
}

/// Shows the living part of the display from now on, when stderr is a terminal that can.
pub(crate) fn live(env: &Env) -> bool {
    let shows = colour(env);
    if shows {
        *lock() = Some(Live::default());
    }
    shows
}

/// Brings the living part up to date.
pub(crate) fn tick() {
    write(None);
}

/// Takes the living part off the screen.
pub(crate) fn still() {
    if let Some(mut live) = lock().take() {
        let _ = io::stderr().lock().write_all(live.erase().as_bytes());
    }
}

/// Writes a line, if there is one, above the living part, in one write so that nothing flickers.
fn write(line: Option<&str>) {
    let mut live = lock();
    let mut text = String::new();
    if let Some(live) = &mut *live {
        text += &live.erase();
    }
    if let Some(line) = line {
        text += line;
        text.push('\n');
    }
    if let Some(live) = &mut *live {
        text += &live.block(columns().unwrap_or(80), Instant::now());
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn lock() -> MutexGuard<'static, Option<Live>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows an event: as JSON on stdout, or as a line for people on stderr when it is worth one.
pub(crate) fn event(event: &TreeEvent, json: bool, progress: &mut Progress) {
    if let Some(live) = &mut *lock() {
        live.take(event, Instant::now());
    }
    if json {
        let numbered = TreeEvent { seq: PRINTED.fetch_add(1, Ordering::Relaxed) + 1, ..event.clone() };
        match serde_json::to_string(&numbered) {
            Ok(line) => answer(&line),
            Err(error) => note(&format!("warning: an event has no JSON form: {error}")),
        }
    } else if let Some(line) = progress.line(event, columns()) {
        note(&line);
    }
}

/// Writes a failure to stderr: the sentence, then the hints.
pub(crate) fn failure(failure: &Failure) {
    let hints = failure.hints.iter().map(|hint| format!("\n  hint: {}", hint.replace('\n', "\n        ")));
    note(&format!("error: {}{}", failure.message, hints.collect::<String>()));
}

/// How wide the screen is on which stderr is read; `None` when it is no screen, or one that does not say.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Whether stderr may be coloured.
pub(crate) fn colour(env: &Env) -> bool {
    !env.no_color() && env.term() != Some("dumb") && io::stderr().is_terminal()
}

/// Turns tracing on when somebody asked for it: `AGENT_LOG`, or `-v`.
pub(crate) fn trace(env: &Env, verbose: u8) {
    let filter = match (env.log(), verbose) {
        (Some(filter), _) => filter.to_owned(),
        (None, 0) => return,
        (None, 1) => "info".to_owned(),
        (None, _) => "debug".to_owned(),
    };
    let filter = EnvFilter::try_new(&filter).unwrap_or_else(|error| {
        note(&format!("warning: AGENT_LOG is not a filter ({error}); using `info`"));
        EnvFilter::new("info")
    });
    // A second subscriber in one process (tests) keeps the first.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour(env)).try_init();
}
