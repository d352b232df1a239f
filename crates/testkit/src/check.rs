//! What must hold for all requests of a run, whatever the run was. Each check has two faces: one that answers, and
//! one that fails the test.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use protocol::{Item, TreeId};
use rollout::{RealDisk, Record, Store};
use stdx::AbsPath;

use crate::fail::must;
use crate::home::rollouts;
use crate::{Request, Rollout, Wire};

mod meaning;

/// Most bytes of one item: 10,000 tokens of four bytes, the hard cap of whatever enters a context.
const MAX_ITEM: usize = 40_000;

/// How much of an item is shown when a check fails, in bytes.
const SHOWN: usize = 300;

/// Whether each request of an agent begins with all items of the one before it over the same wire, and offers the same
/// tools, to the byte.
///
/// The wires of turns, Chat and Messages, may take back their last word when it is the note that says "go on", and on
/// the Chat wire the last text may grow by what is said right after it: texts in a row share a message there.
///
/// # Errors
/// Says which request does not, and where it departs.
pub fn append_only(requests: &[Request]) -> Result<(), String> {
    let mut before: HashMap<(&str, Wire), &Request> = HashMap::new();
    for request in requests {
        readable(request)?;
        let Some(earlier) = before.insert((request.thread(), request.wire()), request) else { continue };
        let at = place(request);
        let kept = meaning::kept(earlier);
        for (index, old) in kept.iter().enumerate() {
            let new = request.items().get(index);
            let last = index + 1 == kept.len() && request.wire() == Wire::Chat;
            if new != Some(old) && !(last && new.is_some_and(|new| meaning::grew(old, new))) {
                let new = new.map_or("nothing".to_owned(), show);
                let old = show(old);
                return Err(format!(
                    "{at} does not begin with request {}: item {index} was\n  {old}\nand is\n  {new}",
                    earlier.sequence()
                ));
            }
        }
        if request.raw_tools() != earlier.raw_tools() {
            return Err(format!("{at} has other tools than request {}", earlier.sequence()));
        }
    }
    Ok(())
}

/// Whether in every request each call has exactly one output, in the order of the calls.
///
/// # Errors
/// Says which request has which call open, or an output too many or out of order.
pub fn closed(requests: &[Request]) -> Result<(), String> {
    for request in requests {
        readable(request)?;
        let mut open = VecDeque::new();
        for (index, item) in request.items().iter().enumerate() {
            if let Some(call) = item.call() {
                open.push_back(call);
            } else if let Some(id) = item.answered_call_id() {
                let at = place(request);
                match open.pop_front() {
                    Some(call) if call.call_id == id => {}
                    Some(call) => {
                        return Err(format!(
                            "{at}: item {index} answers `{id}` and `{}` ({}) was to be answered first",
                            call.call_id, call.name
                        ));
                    }
                    None => return Err(format!("{at}: item {index} answers `{id}` and no call is open")),
                }
            }
        }
        if let Some(call) = open.front() {
            return Err(format!("{}: call `{}` ({}) has no output", place(request), call.call_id, call.name));
        }
    }
    Ok(())
}

/// Whether every item of every request is in the rollout of the agent that sent it, to the byte and in the same order.
/// Asked after a run it shows that nothing reached a model that is not on disk.
///
/// Over the Chat and Messages wires, whose bytes are others, the contents are compared: what was told, what the model
/// said, its calls, their outputs and its reasoning, each in the order of the rollout.
///
/// # Errors
/// Says which request holds which item that is not there.
pub fn written(home: impl AsRef<Path>, requests: &[Request]) -> Result<(), String> {
    let rollouts: HashMap<String, Rollout> =
        rollouts(home.as_ref()).into_iter().map(|rollout| (rollout.thread().to_owned(), rollout)).collect();
    for request in requests {
        readable(request)?;
        let Some(rollout) = rollouts.get(request.thread()) else {
            return Err(format!("{}: this agent has no rollout", place(request)));
        };
        let payloads = payloads(rollout, home.as_ref())?;
        if request.wire() != Wire::Responses {
            meaning::written(request, &payloads)
                .map_err(|error| format!("{}: {error} ({})", place(request), rollout.file().display()))?;
            continue;
        }
        let mut rest = payloads.iter();
        for (index, item) in request.items().iter().enumerate() {
            if !rest.any(|payload| payload == item.raw()) {
                let anywhere = payloads.iter().any(|payload| payload == item.raw());
                let how = if anywhere { "out of order or fewer times" } else { "not at all" };
                return Err(format!(
                    "{}: item {index} is in {} {how}:\n  {}",
                    place(request),
                    rollout.file().display(),
                    show(item)
                ));
            }
        }
    }
    Ok(())
}

/// The items of a rollout as they are on the disk, those of its parent that it refers to in their place.
fn payloads(rollout: &Rollout, home: &Path) -> Result<Vec<String>, String> {
    if rollout.count("forked") == 0 {
        return Ok(rollout.raw("response_item"));
    }
    let path = |path: &Path| AbsPath::new(path).map_err(|error| error.to_string());
    let store = Store::new(path(home)?, Arc::new(RealDisk));
    let (mut payloads, mut lacks) = (Vec::new(), None);
    let mut failed = None;
    let walked = store.walk(&path(rollout.file())?, 0, |line| {
        match line.record {
            Record::Item(record) => payloads.push(record.item.raw().to_owned()),
            Record::Forked(fork) => match store.taken_over(&fork, |item| payloads.push(item.raw().to_owned())) {
                Ok(lack) => lacks = lack,
                Err(error) => failed = Some(error),
            },
            _ => {}
        }
        ControlFlow::Continue(())
    });
    match (walked.err().or(failed), lacks) {
        (Some(error), _) => Err(error.to_string()),
        (None, Some(lack)) => Err(format!("{}: {lack}", rollout.file().display())),
        (None, None) => Ok(payloads),
    }
}

/// Whether no item of any request has more than 40,000 bytes.
///
/// # Errors
/// Says which item of which request has how many.
pub fn bounded(requests: &[Request]) -> Result<(), String> {
    for request in requests {
        readable(request)?;
        for (index, item) in request.items().iter().enumerate() {
            let size = item.raw().len();
            if size > MAX_ITEM {
                return Err(format!("{}: item {index} has {size} bytes:\n  {}", place(request), show(item)));
            }
        }
    }
    Ok(())
}

/// Whether the rollouts of each tree bear out what they say of one another: mail that was accepted is there, and so are
/// its sender and the end of the task that it answers.
///
/// # Errors
/// Says which file names what no other one holds.
pub fn agreed(home: impl AsRef<Path>) -> Result<(), String> {
    let home = AbsPath::new(home.as_ref()).map_err(|error| error.to_string())?;
    let store = Store::new(home, Arc::new(RealDisk));
    let trees: BTreeSet<TreeId> =
        store.scan().map_err(|error| error.to_string())?.heads.iter().map(|head| head.meta.session_id).collect();
    for tree in trees {
        let found = store.disagreements(tree).map_err(|error| error.to_string())?;
        if let Some((file, finding)) = found.first() {
            return Err(format!("{file}: {finding}"));
        }
    }
    Ok(())
}

/// Fails the test unless [`append_only`] holds.
#[track_caller]
pub fn assert_append_only(requests: &[Request]) {
    must("requests are not append only", append_only(requests));
}

/// Fails the test unless [`closed`] holds.
#[track_caller]
pub fn assert_closed(requests: &[Request]) {
    must("a transcript is not closed", closed(requests));
}

/// Fails the test unless [`written`] holds.
#[track_caller]
pub fn assert_written(home: impl AsRef<Path>, requests: &[Request]) {
    must("something was sent that is not written", written(home, requests));
}

/// Fails the test unless [`bounded`] holds.
#[track_caller]
pub fn assert_bounded(requests: &[Request]) {
    must("an item is too large", bounded(requests));
}

/// Fails the test unless [`agreed`] holds.
#[track_caller]
pub fn assert_agreed(home: impl AsRef<Path>) {
    must("rollouts disagree", agreed(home));
}

/// Fails the test unless all five checks hold, and there is something for them to hold of.
#[track_caller]
pub fn assert_invariants(home: impl AsRef<Path>, requests: &[Request]) {
    let some = if requests.is_empty() { Err("there is no request") } else { Ok(()) };
    must("nothing to check", some);
    assert_append_only(requests);
    assert_closed(requests);
    assert_written(&home, requests);
    assert_bounded(requests);
    assert_agreed(home);
}

/// A body that cannot be read would pass every check for want of items.
fn readable(request: &Request) -> Result<(), String> {
    if request.items().is_empty() { Err(format!("{} has no items", place(request))) } else { Ok(()) }
}

fn place(request: &Request) -> String {
    format!("request {} of thread `{}`", request.sequence(), request.thread())
}

fn show(item: &Item) -> String {
    let raw = item.raw();
    let end = raw.floor_char_boundary(SHOWN);
    if end < raw.len() { format!("{}… ({} bytes)", &raw[..end], raw.len()) } else { raw.to_owned() }
}

#[cfg(test)]
mod tests;
