//! Why an exchange failed.

use std::error::Error as _;
use std::io;

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address cannot be used at all.
    #[error("`{url}` is not an http or https address: {cause}")]
    Address {
        /// The address as given.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A header has characters that HTTP does not allow.
    #[error("the header `{0}` has characters that HTTP does not allow; look for line breaks in its value")]
    Header(String),
    /// A proxy that was handed in cannot be used.
    #[error("the proxy `{url}` cannot be used: {cause}")]
    Proxy {
        /// The proxy as given, without its password.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The client could not be built, for example because the system has no TLS roots.
    #[error("no https client could be set up: {0}")]
    Setup(String),
    /// No connection: refused, unknown host, TLS, or nobody answered in time.
    #[error("no connection to {address}: {cause}")]
    Unreachable {
        /// Scheme, host and port.
        address: String,
        /// The innermost cause.
        cause: String,
    },
    /// The connection broke after it was made.
    #[error("the connection to {address} broke: {cause}")]
    Broken {
        /// Scheme, host and port.
        address: String,
        /// The innermost cause.
        cause: String,
    },
}

impl Error {
    pub(crate) fn sending(error: &reqwest::Error, address: &str) -> Self {
        let (address, cause) = (address.to_owned(), innermost(error));
        if error.is_builder() {
            Self::Address { url: address, cause }
        } else if error.is_connect() {
            Self::Unreachable { address, cause }
        } else {
            Self::Broken { address, cause }
        }
    }

    pub(crate) fn reading(error: &reqwest::Error, address: &str) -> Self {
        Self::Broken { address: address.to_owned(), cause: innermost(error) }
    }
}

/// The cause at the bottom of the chain: the layers above it only say that something below them went wrong.
pub(crate) fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "nobody answered in time".to_owned();
    }
    let mut cause = error.source();
    let mut text = None;
    while let Some(inner) = cause {
        // An I/O error prints as the error it wraps; its kind says more than an empty text would.
        text = Some(match inner.downcast_ref::<io::Error>() {
            Some(io) if io.to_string().is_empty() => io.kind().to_string(),
            _ => inner.to_string(),
        });
        cause = inner.source();
    }
    stdx::one_line(&text.unwrap_or_else(|| error.to_string()), MAX_CAUSE)
}

/// Most characters of a cause: it shares a line of the terminal with what was being done.
const MAX_CAUSE: usize = 160;
