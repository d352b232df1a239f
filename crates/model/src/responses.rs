//! The `OpenAI` Responses wire over streaming HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{Http, Post};
use stdx::Secret;

use crate::fault::Origin;
use crate::{BoxStream, Head, Model, ModelError, ModelEvent, ModelRequest, Provider, ToolWire, tools};

mod body;
mod exchange;
mod normal;
mod output;

pub use exchange::{MAX_ERROR_BODY, MAX_REPLY};

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Responses {
    id: String,
    window: Option<u64>,
    custom_tools: bool,
    server: Arc<Server>,
}

/// What every request to the provider needs.
#[derive(Debug)]
struct Server {
    origin: Origin,
    url: String,
    bearer: Option<Secret>,
    idle: Duration,
    http: Http,
}

impl Responses {
    pub(crate) fn new(provider: &Provider, model: &str, window: Option<u64>, http: Http) -> Self {
        let base_url = provider.base_url.trim_end_matches('/').to_owned();
        let server = Server {
            url: format!("{base_url}/responses"),
            bearer: provider.api_key.clone(),
            idle: provider.idle_timeout,
            http,
            origin: Origin {
                provider: provider.name.clone(),
                model: model.to_owned(),
                base_url,
                key_env: provider.key_env.clone(),
            },
        };
        Self {
            id: format!("{}/{model}", provider.name),
            window,
            custom_tools: provider.custom_tools,
            server: Arc::new(server),
        }
    }

    fn post(&self, request: &ModelRequest) -> Post {
        Post {
            url: self.server.url.clone(),
            bearer: self.server.bearer.clone(),
            extra: vec![
                ("accept", "text/event-stream".to_owned()),
                ("session-id", request.tree.to_string()),
                ("thread-id", request.agent.thread.to_string()),
                // Names this very request, so that a provider's support can find it.
                ("x-client-request-id", uuid::Uuid::now_v7().to_string()),
            ],
            body: Bytes::from(body::build(&self.server.origin.model, request)),
        }
    }
}

impl Model for Responses {
    fn id(&self) -> &str {
        &self.id
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn head(&self, tools: &[ToolWire]) -> Arc<Head> {
        tools::head(tools, self.custom_tools)
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<Result<ModelEvent, ModelError>> {
        let exchange = exchange::Exchange::new(Arc::clone(&self.server), self.post(&request));
        Box::pin(stream::unfold(exchange, async |mut exchange| {
            let event = exchange.next().await?;
            Some((event, exchange))
        }))
    }
}

#[cfg(test)]
mod tests;
