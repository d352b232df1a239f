//! HTTP to the outside: the only place that builds a client and so the only one that decides about TLS, proxies,
//! connection pools and timeouts.
//!
//! It does not retry, does not follow redirects, decodes no body and never looks at the environment: proxies are
//! handed in. Clients are built on first use, and one that speaks plain http loads no TLS roots.

mod client;
mod error;
mod request;

pub use client::{CONNECT_TIMEOUT, Http, POOL_IDLE, Proxies};
pub use error::Error;
pub use request::{Auth, Post, Response, USER_AGENT};
