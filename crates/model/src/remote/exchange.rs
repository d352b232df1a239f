//! One request over HTTP: sending, the head of the answer, reading, and every way in which that ends.

use std::sync::Arc;
use std::time::Duration;

use http::{Post, Response};
use stdx::one_line;
use tokio::time::{Instant, timeout};

use super::patience::{Over, Patience};
use super::{Events, Normalise, Server};
use crate::fault::{Fault, MAX_QUOTE, Origin, retry_after};
use crate::sse::{Decoder, Event, MAX_EVENT};
use crate::{ErrorKind, ModelError, ModelEvent};

/// The largest reply, in bytes. The longest outputs of today's models take a few MiB with every delta counted; a
/// server that sends more is broken or hostile, and everything it sends would sit in memory.
pub const MAX_REPLY: usize = 64 * 1024 * 1024;

/// How much of an error's body is read, in bytes: a code and a sentence are at its beginning.
pub const MAX_ERROR_BODY: usize = 64 * 1024;

/// How long to wait for the end of a body whose last event has come. A connection whose body was read to its end is
/// used again; most servers end it in the same breath, and one that does not is not worth waiting for.
const DRAIN: Duration = Duration::from_millis(50);

/// How much of an answer's beginning is kept to be quoted when it turns out not to be the protocol.
const KEPT_BEGINNING: usize = 1024;

/// The state of one request.
pub(super) struct Exchange<N> {
    server: Arc<Server>,
    normaliser: N,
    phase: Phase,
    ready: Events,
}

enum Phase {
    Unsent(Box<Post>),
    Reading(Box<Reading>),
    Over,
}

struct Reading {
    response: Response,
    decoder: Decoder,
    read: usize,
    beginning: Vec<u8>,
    patience: Patience,
}

impl<N: Normalise> Exchange<N> {
    pub(super) fn new(server: Arc<Server>, post: Post, normaliser: N) -> Self {
        Self { server, normaliser, phase: Phase::Unsent(Box::new(post)), ready: Events::new() }
    }

    /// The next event; `None` after the end or an error.
    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let phase = std::mem::replace(&mut self.phase, Phase::Over);
            let went = match phase {
                Phase::Over => return None,
                Phase::Unsent(post) => self.begin(*post).await,
                Phase::Reading(reading) => self.read(reading).await,
            };
            match went {
                Ok(phase) => self.phase = phase,
                Err(error) => self.ready.push_back(Err(error)),
            }
        }
    }

    async fn begin(&mut self, post: Post) -> Result<Phase, ModelError> {
        let server = &self.server;
        let response = match timeout(server.idle, server.http.post(post)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(not_sent(&server.origin, error)),
            Err(_) => {
                let text = format!("did not begin to answer within {}", seconds(server.idle));
                return Err(interrupted(&server.origin, &text));
            }
        };
        if !(200..300).contains(&response.status()) {
            return Err(self.refused(response).await);
        }
        let kind = response.header("content-type").unwrap_or_default().trim_start().to_ascii_lowercase();
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            return self.whole(response, Vec::new(), kind.starts_with("text/html"), server.patience()).await;
        }
        Ok(Phase::Reading(Box::new(Reading {
            response,
            decoder: Decoder::new(MAX_EVENT),
            read: 0,
            beginning: Vec::new(),
            patience: server.patience(),
        })))
    }

    /// The error of an answer that is not a success.
    async fn refused(&self, mut response: Response) -> ModelError {
        let origin = &self.server.origin;
        let status = response.status();
        let after = retry_after(|name| response.header(name), stdx::now().as_millis());
        let mut body = Vec::new();
        // What has come of the body is enough: an error while reading it is not the fault to report.
        let reading = async {
            while body.len() < MAX_ERROR_BODY
                && let Ok(Some(piece)) = response.chunk().await
            {
                body.extend_from_slice(&piece);
            }
        };
        drop(timeout(self.server.idle, reading).await);
        body.truncate(MAX_ERROR_BODY);
        let body = String::from_utf8_lossy(&body);
        let mut fault =
            Fault::parse(&body).unwrap_or_else(|| Fault { message: first_line(&body).into(), ..Fault::default() });
        fault.status = Some(status);
        fault.after = after;
        fault.error(origin, &format!("answered {status}"))
    }

    /// An answer that is one document: a server that does not stream, or no model server at all.
    async fn whole(
        &mut self,
        mut response: Response,
        mut body: Vec<u8>,
        html: bool,
        mut patience: Patience,
    ) -> Result<Phase, ModelError> {
        let server = Arc::clone(&self.server);
        let most = if html { MAX_ERROR_BODY } else { MAX_REPLY };
        while let Some(piece) = chunk(&server, &mut response, &patience).await? {
            // Some servers send blanks while their model thinks.
            if !piece.trim_ascii().is_empty() {
                patience.moved(Instant::now());
            }
            if body.len() + piece.len() > most {
                if html {
                    break;
                }
                return Err(too_large(&server.origin, "reply", MAX_REPLY));
            }
            body.extend_from_slice(&piece);
        }
        if !html && let Some(done) = self.normaliser.whole(&server.origin, &body, &mut self.ready)? {
            self.ready.push_back(Ok(done));
            return Ok(Phase::Over);
        }
        Err(nonsense(&server.origin, &body))
    }

    async fn read(&mut self, mut reading: Box<Reading>) -> Result<Phase, ModelError> {
        let server = Arc::clone(&self.server);
        let origin = &server.origin;
        let complete = self.normaliser.may_end();
        if complete {
            reading.patience.complete(Instant::now());
        }
        let piece = match chunk(&server, &mut reading.response, &reading.patience).await {
            Ok(Some(piece)) => piece,
            Ok(None) => return self.ended(*reading),
            // Nothing that the reply needs is missing: how the connection goes is of no interest any more.
            Err(_) if complete => return self.ended(*reading),
            Err(error) => return Err(error),
        };
        let first = reading.beginning.trim_ascii().is_empty();
        let keep = KEPT_BEGINNING.saturating_sub(reading.beginning.len()).min(piece.len());
        reading.beginning.extend_from_slice(&piece[..keep]);
        if first && matches!(piece.trim_ascii_start().first(), Some(b'{' | b'[')) {
            // No line of an event stream begins so: it is a document, whatever the headers call it.
            return self.whole(reading.response, piece.to_vec(), false, reading.patience).await;
        }
        reading.read += piece.len();
        if reading.read > MAX_REPLY {
            return Err(too_large(origin, "reply", MAX_REPLY));
        }
        let mut events: Vec<Event> = Vec::new();
        let pushed = reading.decoder.push(&piece, &mut events);
        // Nothing waits when a piece is read, so what is there afterwards came of it.
        for event in events {
            if let Some(done) = self.normaliser.take(origin, &event, &mut self.ready)? {
                drain(&mut reading.response).await;
                self.ready.push_back(Ok(done));
                return Ok(Phase::Over);
            }
        }
        pushed.map_err(|_| too_large(origin, "event", MAX_EVENT))?;
        if self.ready.iter().flatten().any(ModelEvent::is_progress) {
            reading.patience.moved(Instant::now());
        }
        Ok(Phase::Reading(reading))
    }

    /// The body ended before the reply said that it does, unless only its last blank line is missing.
    fn ended(&mut self, reading: Reading) -> Result<Phase, ModelError> {
        let origin = &self.server.origin;
        let mut done = None;
        if let Some(event) = reading.decoder.finish() {
            done = self.normaliser.take(origin, &event, &mut self.ready)?;
        }
        if done.is_none() && self.normaliser.may_end() {
            done = self.normaliser.end(origin, &mut self.ready)?;
        }
        if let Some(done) = done {
            self.ready.push_back(Ok(done));
            return Ok(Phase::Over);
        }
        if self.normaliser.understood() || reading.beginning.trim_ascii().is_empty() {
            return Err(interrupted(origin, "ended the stream before its reply was complete"));
        }
        Err(nonsense(origin, &reading.beginning))
    }
}

/// The next piece of a body; silence, beating without an end, and a broken connection are errors.
async fn chunk(
    server: &Server,
    response: &mut Response,
    patience: &Patience,
) -> Result<Option<bytes::Bytes>, ModelError> {
    let (left, over) = patience.left(Instant::now());
    match timeout(left, response.chunk()).await {
        Ok(Ok(piece)) => Ok(piece),
        Ok(Err(error)) => {
            let why = match error {
                http::Error::Broken { cause, .. } => cause,
                other => other.to_string(),
            };
            Err(interrupted(&server.origin, &format!("broke off its reply: {why}")))
        }
        Err(_) => {
            let limit = seconds(patience.limit(over));
            let what = match over {
                Over::Silent | Over::Complete => format!("sent nothing for {limit}"),
                Over::Beats => format!("kept its stream open for {limit} and sent nothing of a reply"),
            };
            Err(interrupted(&server.origin, &what))
        }
    }
}

async fn drain(response: &mut Response) {
    let reading = async { while let Ok(Some(_)) = response.chunk().await {} };
    drop(timeout(DRAIN, reading).await);
}

fn not_sent(origin: &Origin, error: http::Error) -> ModelError {
    let provider = &origin.provider;
    let (kind, message, hint) = match &error {
        http::Error::Unreachable { address, cause } => (
            ErrorKind::Unreachable,
            format!("nobody answers for {provider} at {address}: {cause}"),
            Some(format!("check that the server runs, and base_url of [providers.{provider}] ({})", origin.base_url)),
        ),
        http::Error::Broken { .. } => (ErrorKind::Interrupted, format!("{provider}: {error}"), None),
        http::Error::Address { .. } | http::Error::Header(_) | http::Error::Proxy { .. } | http::Error::Setup(_) => (
            ErrorKind::Rejected,
            format!("the request to {provider} could not be made: {error}"),
            Some(format!("look at [providers.{provider}] and at the proxy settings")),
        ),
    };
    ModelError { kind, message, hints: hint.into_iter().collect() }
}

fn interrupted(origin: &Origin, what: &str) -> ModelError {
    ModelError { kind: ErrorKind::Interrupted, message: format!("{} {what}", origin.provider), hints: Vec::new() }
}

fn too_large(origin: &Origin, what: &str, most: usize) -> ModelError {
    ModelError {
        kind: ErrorKind::Nonsense,
        message: format!("{} sent a larger {what} than {} MiB", origin.provider, most / (1024 * 1024)),
        hints: Vec::new(),
    }
}

/// The answer is not the protocol; its first line says best what it is instead.
pub(crate) fn nonsense(origin: &Origin, answer: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(answer);
    ModelError {
        kind: ErrorKind::Nonsense,
        message: format!(
            "{} answered something that is not the {} protocol: {}",
            origin.provider,
            origin.wire.protocol(),
            first_line(&text)
        ),
        hints: vec![format!(
            "check that `{}` is the address of the API itself (often it must end in /v1) and serves `{}`",
            origin.base_url,
            origin.wire.path()
        )],
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    one_line(line, MAX_QUOTE)
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{} s", time.as_secs()) } else { format!("{:.1} s", time.as_secs_f64()) }
}
