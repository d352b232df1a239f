//! The lines of the control socket: one JSON object each.
//!
//! Both sides say hello first. Then the client sends requests, each with an id of its own choice, and the owner sends
//! responses in any order; events and notices come between them. Fields that are not known are passed over. What
//! would not be understood by an older version raises [`PROTOCOL`].

use std::sync::Arc;

use protocol::{TreeEvent, TreeId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use stdx::Timestamp;

use crate::{Code, Fault, Gap, Lagged, Op, Reply};

/// The protocol that this version speaks. Additions do not change it.
pub const PROTOCOL: u32 = 1;

/// The first line of either side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol that it speaks.
    pub protocol: u32,
    /// The version of its program, for people.
    #[serde(default)]
    pub version: String,
    /// Its process.
    #[serde(default)]
    pub pid: u32,
    /// Of an owner: the tree that it drives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Of an owner: when it began to listen. Sequences of events go with the owner: they mean nothing to one that has
    /// another `pid` or `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// What a client sends after its hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The client's own number; the response has it too.
    pub id: u64,
    /// What is asked.
    #[serde(flatten)]
    pub op: Op,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The number of the request.
    pub id: u64,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Settled,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It was done.
    Ok(Reply),
    /// It was not.
    Err(Fault),
}

/// What the owner says without being asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// The first line.
    Hello(Hello),
    /// Something happened in the tree.
    Event(Arc<TreeEvent>),
    /// Events that were asked for are not there any more; those that are follow.
    Gap(Gap),
    /// This client reads too slowly: its subscription is over, and it may subscribe again.
    Lagged(Lagged),
    /// The subscription is over because the owner ends it.
    Ended {},
    /// The connection is over, and why.
    Fault(Fault),
}

/// A line as a client reads it.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Notice(Notice),
    Response(Response),
    /// An event that this version does not know.
    Skipped,
    /// Something else that this version does not know.
    Unknown,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) hello: Hello,
}

impl Hello {
    pub(crate) fn ours(tree: Option<TreeId>, since: Option<Timestamp>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { protocol: PROTOCOL, version, pid: std::process::id(), tree, since }
    }
}

impl From<Settled> for Result<Reply, Fault> {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Ok(reply) => Ok(reply),
            Settled::Err(fault) => Err(fault),
        }
    }
}

impl From<Result<Reply, Fault>> for Settled {
    fn from(result: Result<Reply, Fault>) -> Self {
        match result {
            Ok(reply) => Self::Ok(reply),
            Err(fault) => Self::Err(fault),
        }
    }
}

/// `value` as a line, its break included.
pub(crate) fn line(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Reads a request.
///
/// # Errors
/// A fault, with the id of the request when it has one: then only that request is wrong.
pub(crate) fn request(line: &[u8]) -> Result<Request, (Option<u64>, Fault)> {
    #[derive(Deserialize)]
    struct Head {
        id: u64,
        op: Option<String>,
    }
    let error = match serde_json::from_slice::<Request>(line) {
        Ok(request) => return Ok(request),
        Err(error) => error,
    };
    let Ok(head) = serde_json::from_slice::<Head>(line) else {
        let fault = Fault::new(Code::Usage, format!("this line is not a request: {error}"))
            .hint(r#"a request is a JSON object on one line, for example {"id":1,"op":"ping"}"#);
        return Err((None, fault));
    };
    let fault = match head.op {
        Some(op) if Op::NAMES.contains(&op.as_str()) => {
            Fault::new(Code::Usage, format!("this is no `{op}` request: {error}"))
        }
        Some(op) => Fault::new(Code::Usage, format!("there is no operation `{}`", stdx::one_line(&op, 40)))
            .hint(format!("there are: {}", Op::NAMES.join(", "))),
        None => Fault::new(Code::Usage, "this request names no operation")
            .hint(format!("set `op` to one of: {}", Op::NAMES.join(", "))),
    };
    Err((Some(head.id), fault))
}

/// Reads a line of the owner's.
///
/// # Errors
/// When it is not JSON, or not an object, or a part that must be known is wrong.
pub(crate) fn incoming(line: &[u8]) -> Result<Incoming, serde_json::Error> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        id: Option<u64>,
        #[serde(borrow)]
        ok: Option<&'a RawValue>,
        #[serde(borrow)]
        err: Option<&'a RawValue>,
        #[serde(borrow)]
        event: Option<&'a RawValue>,
        hello: Option<Hello>,
        gap: Option<Gap>,
        lagged: Option<Lagged>,
        ended: Option<serde::de::IgnoredAny>,
        fault: Option<Fault>,
    }
    let shape: Shape<'_> = serde_json::from_slice(line)?;
    let notice = match shape {
        Shape { id: Some(id), ok: Some(reply), .. } => {
            let outcome =
                serde_json::from_str(reply.get()).map_or_else(|error| Settled::Err(strange(&error)), Settled::Ok);
            return Ok(Incoming::Response(Response { id, outcome }));
        }
        Shape { id: Some(id), err: Some(fault), .. } => {
            let fault = serde_json::from_str(fault.get()).unwrap_or_else(|error| strange(&error));
            return Ok(Incoming::Response(Response { id, outcome: Settled::Err(fault) }));
        }
        Shape { event: Some(event), .. } => match serde_json::from_str(event.get()) {
            Ok(event) => Notice::Event(Arc::new(event)),
            Err(_) => return Ok(Incoming::Skipped),
        },
        Shape { hello: Some(hello), .. } => Notice::Hello(hello),
        Shape { gap: Some(gap), .. } => Notice::Gap(gap),
        Shape { lagged: Some(lagged), .. } => Notice::Lagged(lagged),
        Shape { ended: Some(_), .. } => Notice::Ended {},
        Shape { fault: Some(fault), .. } => Notice::Fault(fault),
        _ => return Ok(Incoming::Unknown),
    };
    Ok(Incoming::Notice(notice))
}

/// A reply that this version cannot read. What was asked has been done all the same.
fn strange(error: &serde_json::Error) -> Fault {
    Fault::new(Code::Version, format!("the owner's answer has a form that is not known here: {error}"))
        .hint("what was asked has been done; use the same version of `agent` as the owner of the tree")
}

#[cfg(test)]
mod tests;
