//! What is done to send a reply, one step after the other; pure, so that the faults can be read in one place.

use std::fmt::Write as _;
use std::time::Duration;

use crate::reply::{Fault, Plain};
use crate::{Gate, Reply, Request, wire};

/// What is sent when a reply is to be garbage: a broken line, bytes that are not UTF-8, broken JSON.
const GARBAGE: &[u8] = b"\xff\xfe<<not an event\n\ndata: {\"type\": \"response.completed\", \n\ndata: \xc3\x28]]\n\n";

/// Between two signs of life of a server that sends nothing else.
pub const BEAT: Duration = Duration::from_millis(20);

/// One step.
pub(crate) enum Step {
    /// These bytes go out.
    Write(Vec<u8>),
    /// Nothing happens for this long.
    Pause(Duration),
    /// Nothing happens until the gate is open.
    Wait(Gate),
    /// Nothing happens any more.
    Stall,
    /// These bytes go out again and again.
    Beat(Vec<u8>),
    /// The connection ends in good order.
    Close,
    /// The connection is reset.
    Reset,
}

/// All steps of a reply.
pub(crate) fn steps(request: &Request, reply: &Reply) -> Vec<Step> {
    let mut script = Script { steps: Vec::new(), body: Vec::new(), split: reply.shape.split };
    if let Some(gate) = &reply.timing.gate {
        script.steps.push(Step::Wait(gate.clone()));
    }
    script.pause(reply.timing.first);
    if matches!(reply.fault, Some(Fault::StallBeforeHeaders)) {
        script.steps.push(Step::Stall);
    } else if let Some(answer) = &reply.plain {
        script.plain(answer);
    } else if reply.shape.whole {
        script.plain(&Plain { status: 200, headers: Vec::new(), body: Some(wire::whole(request, reply)) });
    } else {
        script.stream(request, reply);
    }
    script.steps
}

struct Script {
    steps: Vec<Step>,
    /// Pieces of the body that wait to become chunks.
    body: Vec<Vec<u8>>,
    split: Option<usize>,
}

impl Script {
    fn plain(&mut self, answer: &Plain) {
        let error = || {
            let message = format!("scripted status {}", answer.status);
            serde_json::json!({"error": {"message": message, "type": null, "code": null}}).to_string()
        };
        let body = answer.body.clone().unwrap_or_else(error);
        let kind = if body.starts_with('<') { "text/html" } else { "application/json" };
        let mut head = format!(
            "HTTP/1.1 {} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n",
            answer.status,
            body.len()
        );
        for (name, value) in &answer.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        self.write(format!("{head}\r\n{body}").into_bytes());
    }

    fn stream(&mut self, request: &Request, reply: &Reply) {
        self.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_vec(),
        );
        if matches!(reply.fault, Some(Fault::Garbage)) {
            self.body.push(GARBAGE.to_vec());
            return self.finish();
        }
        let events = wire::events(request, reply);
        let whole = match reply.fault {
            Some(Fault::Stall(n) | Fault::Beat(n) | Fault::Close(n) | Fault::Reset(n) | Fault::CloseInside(n)) => {
                n.min(events.len())
            }
            _ => events.len(),
        };
        for (index, event) in events[..whole].iter().enumerate() {
            self.gate(reply, index);
            self.pause(reply.timing.each);
            self.body.push(event.clone());
        }
        self.gate(reply, whole);
        if let (Some(Fault::CloseInside(_)), Some(event)) = (reply.fault, events.get(whole)) {
            self.body.push(event[..event.len() / 2].to_vec());
        }
        let end = match reply.fault {
            Some(Fault::Stall(_)) => Step::Stall,
            Some(Fault::Beat(_)) => Step::Beat(chunk(wire::beat(request))),
            Some(Fault::Close(_) | Fault::CloseInside(_)) => Step::Close,
            Some(Fault::Reset(_)) => Step::Reset,
            _ => return self.finish(),
        };
        self.flush();
        self.steps.push(end);
    }

    fn gate(&mut self, reply: &Reply, index: usize) {
        if let Some((after, gate)) = &reply.timing.gate_after
            && *after == index
        {
            self.flush();
            self.steps.push(Step::Wait(gate.clone()));
        }
    }

    fn pause(&mut self, time: Duration) {
        if !time.is_zero() {
            self.flush();
            self.steps.push(Step::Pause(time));
        }
    }

    /// The last chunk goes out in one write with the end of the body, so that a client that has all it wants and
    /// leaves was sent everything.
    fn finish(&mut self) {
        self.flush();
        self.write(b"0\r\n\r\n".to_vec());
    }

    /// Turns what waits into chunks: of the given size, or one an event.
    fn flush(&mut self) {
        let body = std::mem::take(&mut self.body);
        let chunks: Vec<Vec<u8>> = match self.split {
            Some(size) => body.concat().chunks(size).map(<[u8]>::to_vec).collect(),
            None => body,
        };
        let mut wire = Vec::new();
        for piece in chunks {
            wire.extend_from_slice(&chunk(&piece));
        }
        if !wire.is_empty() {
            self.write(wire);
        }
    }

    /// Bytes that nothing separates are one write.
    fn write(&mut self, bytes: Vec<u8>) {
        match self.steps.last_mut() {
            Some(Step::Write(before)) => before.extend_from_slice(&bytes),
            _ => self.steps.push(Step::Write(bytes)),
        }
    }
}

/// A piece of a body as it stands on the wire.
fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut wire = format!("{:x}\r\n", piece.len()).into_bytes();
    wire.extend_from_slice(piece);
    wire.extend_from_slice(b"\r\n");
    wire
}
