//! One request and its answer.

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use stdx::Secret;

use crate::Error;

/// How we name ourselves to servers.
pub const USER_AGENT: &str = concat!("agent/", env!("CARGO_PKG_VERSION"));

/// A key, and the header that it travels in.
#[derive(Clone, Debug)]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer(Secret),
    /// The bare key in the header of this name.
    Header(&'static str, Secret),
}

/// A POST of JSON.
#[derive(Clone, Debug)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// The key, if there is one.
    pub auth: Option<Auth>,
    /// Further headers.
    pub extra: Vec<(&'static str, String)>,
    /// The body, as it goes out.
    pub body: Bytes,
}

impl Post {
    pub(crate) fn headers(&self) -> Result<HeaderMap, Error> {
        let mut map = HeaderMap::with_capacity(self.extra.len() + 3);
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        map.insert(reqwest::header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        for (name, text) in &self.extra {
            insert(&mut map, name, text, false)?;
        }
        match &self.auth {
            Some(Auth::Bearer(secret)) => {
                insert(&mut map, AUTHORIZATION.as_str(), &format!("Bearer {}", secret.expose()), true)?;
            }
            Some(Auth::Header(name, secret)) => insert(&mut map, name, secret.expose(), true)?,
            None => {}
        }
        Ok(map)
    }
}

/// Adds a header. A sensitive one stays out of debug output and of HTTP/2's header compression table.
fn insert(map: &mut HeaderMap, name: &str, text: &str, sensitive: bool) -> Result<(), Error> {
    let wrong = || Error::Header(name.to_owned());
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let mut value = HeaderValue::from_str(text).map_err(|_| wrong())?;
    value.set_sensitive(sensitive);
    map.insert(key, value);
    Ok(())
}

/// An answer whose head has come. Its body is read piece by piece; a connection goes back to the pool once the body
/// was read to its end.
#[derive(Debug)]
pub struct Response {
    inner: reqwest::Response,
    address: String,
}

impl Response {
    pub(crate) fn new(inner: reqwest::Response, address: String) -> Self {
        Self { inner, address }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// A header's text, if it is there and is text. Names are compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// Scheme, host and port that answered.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The next piece of the body as it came in; `None` at its end. Safe to drop while it waits.
    ///
    /// # Errors
    /// When the connection breaks before the body's end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.inner.chunk().await.map_err(|error| Error::reading(&error, &self.address))
    }
}
