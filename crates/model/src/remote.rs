//! A model behind HTTP: everything that the wires share.
//!
//! A wire adds a [`Dialect`]: how a body is built from a request, what the events of a reply mean, and which path and
//! headers it has. Sending, decoding, caps, silence, early ends and refusals are the same for all of them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Auth, Http, Post};
use stdx::Secret;

use crate::fault::Origin;
use crate::sse::Event;
use crate::{BoxStream, Head, Model, ModelError, ModelEvent, ModelRequest, Provider, ToolWire, Wire};

mod exchange;
mod patience;

pub(crate) use exchange::nonsense;
pub use exchange::{MAX_ERROR_BODY, MAX_REPLY};

/// What a reply has given so far and nobody has taken yet.
pub(crate) type Events = VecDeque<Result<ModelEvent, ModelError>>;

/// A wire.
pub(crate) trait Dialect: fmt::Debug + Send + Sync + 'static {
    /// Turns the events of one reply into ours.
    type Normaliser: Normalise;

    /// Which wire it is.
    const WIRE: Wire;

    /// Serialises the tools.
    fn head(&self, tools: &[ToolWire]) -> Arc<Head>;

    /// How a key travels.
    fn auth(key: Secret) -> Auth {
        Auth::Bearer(key)
    }

    /// Headers of its own, beside those that every wire has.
    fn headers(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Builds the body of a request, and what reads its reply.
    fn prepare(&self, origin: &Origin, request: &ModelRequest) -> (String, Self::Normaliser);
}

/// Reads one reply.
pub(crate) trait Normalise: Send + Sync {
    /// Whether anything of the protocol was seen.
    fn understood(&self) -> bool;

    /// Whether the reply could be complete as it stands: then the end of the stream is its end, not a fault.
    fn may_end(&self) -> bool {
        false
    }

    /// Takes one event; what it means is appended to `out`. The reply's end is returned instead, because the caller
    /// has something to do first.
    fn take(&mut self, origin: &Origin, event: &Event, out: &mut Events) -> Result<Option<ModelEvent>, ModelError>;

    /// Ends a reply that may end.
    fn end(&mut self, origin: &Origin, out: &mut Events) -> Result<Option<ModelEvent>, ModelError> {
        let _ = (origin, out);
        Ok(None)
    }

    /// Takes a reply that came as one document. `None` when it is no reply at all.
    fn whole(&mut self, origin: &Origin, body: &[u8], out: &mut Events) -> Result<Option<ModelEvent>, ModelError>;
}

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    id: String,
    window: Option<u64>,
    unreachable_for: Duration,
    dialect: D,
    server: Arc<Server>,
}

/// What every request to the provider needs.
#[derive(Debug)]
struct Server {
    origin: Origin,
    url: String,
    key: Option<Secret>,
    idle: Duration,
    progress: Duration,
    http: Http,
}

impl Server {
    /// For a reply that begins now.
    fn patience(&self) -> patience::Patience {
        patience::Patience::new(self.idle, self.progress, tokio::time::Instant::now())
    }
}

impl<D: Dialect> Remote<D> {
    pub(crate) fn new(dialect: D, provider: &Provider, model: &str, window: Option<u64>, http: Http) -> Self {
        let base_url = provider.base_url.trim_end_matches('/').to_owned();
        let server = Server {
            url: format!("{base_url}{}", D::WIRE.path()),
            key: provider.api_key.clone(),
            idle: provider.idle_timeout,
            progress: provider.progress_timeout,
            http: http.connecting_within(provider.connect_timeout),
            origin: Origin {
                provider: provider.name.clone(),
                model: model.to_owned(),
                wire: D::WIRE,
                base_url,
                key_env: provider.key_env.clone(),
            },
        };
        let unreachable_for = provider.unreachable_for;
        Self { id: format!("{}/{model}", provider.name), window, unreachable_for, dialect, server: Arc::new(server) }
    }

    fn post(&self, request: &ModelRequest, body: String) -> Post {
        // Who asks, on every wire alike: a server that knows these names keeps a conversation together by them.
        let mut extra = vec![("session-id", request.tree.to_string()), ("thread-id", request.agent.thread.to_string())];
        extra.extend(self.dialect.headers());
        extra.push(("accept", "text/event-stream".to_owned()));
        // Names this very request, so that a provider's support can find it.
        extra.push(("x-client-request-id", uuid::Uuid::now_v7().to_string()));
        Post {
            url: self.server.url.clone(),
            auth: self.server.key.clone().map(D::auth),
            extra,
            body: Bytes::from(body),
        }
    }
}

impl<D: Dialect> Model for Remote<D> {
    fn id(&self) -> &str {
        &self.id
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn unreachable_for(&self) -> Option<Duration> {
        Some(self.unreachable_for)
    }

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        self.dialect.head(tools)
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        let (body, normaliser) = self.dialect.prepare(&self.server.origin, &request);
        let exchange = exchange::Exchange::new(Arc::clone(&self.server), self.post(&request, body), normaliser);
        Box::pin(stream::unfold(exchange, async |mut exchange| {
            let event = exchange.next().await?;
            Some((event, exchange))
        }))
    }
}

#[cfg(test)]
mod tests;
