//! Writing to the terminal. A closed pipe is no error.

use std::io::{self, IsTerminal as _, Write as _};

use config::Env;
use protocol::TreeEvent;
use tracing_subscriber::EnvFilter;

use crate::exit::Failure;
use crate::progress::Progress;

/// Writes text to stdout and flushes it. Whoever stopped reading has seen enough.
pub(crate) fn answer(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Writes one line to stderr.
pub(crate) fn note(line: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{line}");
}

/// Shows an event: as JSON on stdout, or as a line for people on stderr when it is worth one.
pub(crate) fn event(event: &TreeEvent, json: bool, progress: &mut Progress) {
    if json {
        match serde_json::to_string(event) {
            Ok(line) => answer(&line),
            Err(error) => note(&format!("warning: an event has no JSON form: {error}")),
        }
    } else if let Some(line) = progress.line(event) {
        note(&line);
    }
}

/// Writes a failure to stderr: the sentence, then the hints.
pub(crate) fn failure(failure: &Failure) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "error: {}", failure.message);
    for hint in &failure.hints {
        let _ = writeln!(out, "  hint: {}", hint.replace('\n', "\n        "));
    }
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
