//! Which servers of models run on this machine.

use std::time::Duration;

use futures::future::join_all;
use http::Http;
use serde::Deserialize;
use tokio::time::timeout;

/// How long a local server may take to name its models. Over loopback it is a matter of milliseconds; where nothing
/// listens the refusal comes at once; and a person waits for all of this before anything begins.
pub const LOCAL_TIMEOUT: Duration = Duration::from_millis(300);

/// The longest list that is read, in bytes: hundreds of models with all that servers say about each.
const MAX_LIST: usize = 1024 * 1024;

#[derive(Deserialize, Default)]
#[serde(default)]
struct List {
    data: Option<Vec<Entry>>,
    models: Option<Vec<Entry>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    id: Option<String>,
    name: Option<String>,
}

/// Asks all of them at once. Those that answer like a server of models, with the models they name, in the order given.
pub(crate) async fn servers(http: &Http, servers: &[(&str, &str)], within: Duration) -> Vec<(String, Vec<String>)> {
    let asked = servers.iter().map(async |(name, base_url)| {
        let url = format!("{}/models", base_url.trim_end_matches('/'));
        // Whatever is wrong with a server that nobody named, it is not there.
        let models = timeout(within, models(http, &url)).await.ok().flatten()?;
        Some(((*name).to_owned(), models))
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn models(http: &Http, url: &str) -> Option<Vec<String>> {
    let mut response = http.get(url).await.ok()?;
    if response.status() != 200 {
        return None;
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_LIST {
            return None;
        }
    }
    let list: List = serde_json::from_slice(&body).ok()?;
    let entries = list.data.or(list.models)?;
    Some(entries.into_iter().filter_map(|entry| entry.id.or(entry.name)).filter(|id| !id.is_empty()).collect())
}

#[cfg(test)]
mod tests;
