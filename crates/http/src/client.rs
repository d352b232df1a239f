//! The clients: one for plain http, one for https, each built when it is first needed.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{Client, NoProxy, Proxy, RequestBuilder, Url, redirect, retry};

use crate::error::innermost;
use crate::{Error, Post, Response, USER_AGENT};

/// How long a connection may take to stand, name look-up and TLS included. Longer than the slowest usable line
/// needs, short enough that an address behind a silent firewall is noticed.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept. Most tool calls of a turn are over by then; common servers and load
/// balancers drop idle connections soon after, and a dropped one costs a failed request.
pub const POOL_IDLE: Duration = Duration::from_secs(90);

/// How often a connection that carries a request is asked whether the other side still lives (HTTP/2 only), and how
/// long it may take to say so. A laptop that slept finds its connection dead in this time, not after the idle timeout.
const PING: Duration = Duration::from_secs(30);

/// Hosts that no proxy ever sees, whatever is configured: a local server is not reachable from there.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

/// Proxies, as the user's environment or configuration names them. Debug output leaves passwords out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For http addresses.
    pub http: Option<String>,
    /// For https addresses.
    pub https: Option<String>,
    /// For both, where nothing more special is set.
    pub all: Option<String>,
    /// Hosts to reach directly, separated by commas, in the usual `NO_PROXY` form.
    pub none: Option<String>,
}

/// Makes requests over pooled connections. Cheap to clone; all clones share the pools.
#[derive(Clone)]
pub struct Http {
    shared: Arc<Shared>,
}

struct Shared {
    proxies: Proxies,
    connect_timeout: Duration,
    plain: OnceLock<Result<Client, Error>>,
    secure: OnceLock<Result<Client, Error>>,
}

impl Http {
    /// Takes the proxies in. Builds nothing yet.
    pub fn new(proxies: Proxies) -> Self {
        Self::with(proxies, CONNECT_TIMEOUT)
    }

    fn with(proxies: Proxies, connect_timeout: Duration) -> Self {
        let shared = Shared { proxies, connect_timeout, plain: OnceLock::new(), secure: OnceLock::new() };
        Self { shared: Arc::new(shared) }
    }

    /// The same, but a connection may take so long to stand. With another time than before it has pools of its own.
    #[must_use]
    pub fn connecting_within(&self, connect_timeout: Duration) -> Self {
        if connect_timeout == self.shared.connect_timeout {
            return self.clone();
        }
        Self::with(self.shared.proxies.clone(), connect_timeout)
    }

    /// Sends one POST and waits for the head of the answer, whatever its status. There is no timeout beyond
    /// that of connecting: the caller knows how long an answer may take. Dropping the future ends the request.
    ///
    /// # Errors
    /// When the address is unusable, nobody answers there, or the connection breaks before an answer came.
    pub async fn post(&self, post: Post) -> Result<Response, Error> {
        let url = parse(&post.url)?;
        let address = address(&url);
        let request = self.client(&url)?.post(url).headers(post.headers()?).body(post.body);
        send(request, address).await
    }

    /// Sends one GET without a key and waits for the head of the answer. Like [`Http::post`] in all else.
    ///
    /// # Errors
    /// As for [`Http::post`].
    pub async fn get(&self, url: &str) -> Result<Response, Error> {
        let url = parse(url)?;
        let address = address(&url);
        let request = self.client(&url)?.get(url).header(reqwest::header::USER_AGENT, USER_AGENT);
        send(request, address).await
    }

    fn client(&self, url: &Url) -> Result<Client, Error> {
        let secure = url.scheme() == "https";
        let cell = if secure { &self.shared.secure } else { &self.shared.plain };
        cell.get_or_init(|| build(&self.shared.proxies, self.shared.connect_timeout, secure)).clone()
    }
}

async fn send(request: RequestBuilder, address: String) -> Result<Response, Error> {
    match request.send().await {
        Ok(response) => Ok(Response::new(response, address)),
        Err(error) => Err(Error::sending(&error, &address)),
    }
}

/// Checks an address and splits it.
fn parse(text: &str) -> Result<Url, Error> {
    let wrong = |cause: String| Error::Address { url: stdx::one_line(text, 120), cause };
    let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("its scheme is `{other}`"))),
    }
}

/// Scheme, host and port: what a person checks first, without a path or a password.
fn address(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that builds clients")]
fn build(proxies: &Proxies, connect_timeout: Duration, secure: bool) -> Result<Client, Error> {
    // Without a provider a client cannot be built at all. Whoever installed one first is kept: the call only fails
    // when there is one.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .connect_timeout(connect_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy();
    let mut roots = secure;
    let except = match &proxies.none {
        Some(hosts) => format!("{hosts},{LOOPBACK}"),
        None => LOOPBACK.to_owned(),
    };
    let special = if secure { &proxies.https } else { &proxies.http };
    if let Some(url) = special.as_ref().or(proxies.all.as_ref()).filter(|url| !url.trim().is_empty()) {
        let proxy =
            Proxy::all(url).map_err(|error| Error::Proxy { url: without_password(url), cause: innermost(&error) })?;
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(&except)));
        roots |= url.starts_with("https:");
    }
    if !roots {
        // No roots: reading the system's bundle costs milliseconds and memory that plain http has no use for.
        builder = builder.tls_certs_only([]).http1_only();
    }
    builder.build().map_err(|error| Error::Setup(innermost(&error)))
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |url: &Option<String>| url.as_deref().map(without_password);
        f.debug_struct("Proxies")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("all", &shown(&self.all))
            .field("none", &self.none)
            .finish()
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The clients print the proxies they were built with, passwords included.
        f.debug_struct("Http").field("proxies", &self.shared.proxies).finish_non_exhaustive()
    }
}

/// A proxy's address for people.
fn without_password(url: &str) -> String {
    let shown = match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => url.to_owned(),
    };
    stdx::one_line(&shown, 120)
}

#[cfg(test)]
mod tests;
