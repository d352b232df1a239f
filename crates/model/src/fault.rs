//! What a server's refusal means: from status, code and words to a kind of fault.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use stdx::one_line;

use crate::{ErrorKind, ModelError, Wire};

/// Most characters of a server's words in our messages: one line of a terminal and a half.
pub(crate) const MAX_QUOTE: usize = 200;

/// Who was asked; what hints need to know.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The provider's name.
    pub(crate) provider: String,
    /// The model's name there.
    pub(crate) model: String,
    /// The protocol it is asked in.
    pub(crate) wire: Wire,
    /// Where the provider lives.
    pub(crate) base_url: String,
    /// The variable that holds its key.
    pub(crate) key_env: Option<String>,
}

/// What the server said about a fault. Every part may be missing.
#[derive(Debug, Default)]
pub(crate) struct Fault<'a> {
    /// The HTTP status, when it was not a 200.
    pub(crate) status: Option<u16>,
    /// The code, or the type when there is no code.
    pub(crate) code: Cow<'a, str>,
    /// The words.
    pub(crate) message: Cow<'a, str>,
    /// How long the server's headers asked us to wait.
    pub(crate) after: Option<Duration>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<Inner<'a>>,
    #[serde(borrow, default)]
    code: Option<Code<'a>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    detail: Option<Inner<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Inner<'a> {
    Object {
        #[serde(borrow, default)]
        code: Option<Code<'a>>,
        #[serde(borrow, default, rename = "type")]
        kind: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        status: Option<Code<'a>>,
        #[serde(borrow, default)]
        message: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        metadata: Option<Metadata<'a>>,
    },
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(serde::de::IgnoredAny),
}

/// What a provider of providers says about the one that failed.
#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    raw: Option<Code<'a>>,
    #[serde(borrow, default)]
    provider_name: Option<Code<'a>>,
}

/// Some servers repeat the status as a number where others have a word.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code<'a> {
    Word(#[serde(borrow)] Cow<'a, str>),
    Status(u16),
    Other(serde::de::IgnoredAny),
}

impl<'a> Code<'a> {
    fn word(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Word(word) if !word.is_empty() && word.parse::<u16>().is_err() => Some(word),
            _ => None,
        }
    }

    fn status(&self) -> Option<u16> {
        let status = match self {
            Self::Status(status) => Some(*status),
            Self::Word(word) => word.parse().ok(),
            Self::Other(_) => None,
        };
        status.filter(|status| (400..600).contains(status))
    }
}

impl Metadata<'_> {
    /// Who failed, and its words.
    fn words(self) -> Option<String> {
        let raw = self.raw.and_then(Code::word)?;
        let name = self.provider_name.and_then(Code::word).unwrap_or_default();
        Some(if name.is_empty() { raw.into_owned() } else { format!("{name}: {raw}") })
    }
}

impl<'a> Fault<'a> {
    /// Reads the usual shapes of an error body: `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`,
    /// and a list of one of them.
    pub(crate) fn parse(body: &'a str) -> Option<Self> {
        let body: Body<'a> = match serde_json::from_str(body) {
            Ok(body) => body,
            Err(_) => serde_json::from_str::<Vec<Body<'a>>>(body).ok()?.into_iter().next()?,
        };
        let mut status = body.code.as_ref().and_then(Code::status);
        // Beside a message the type is a code; alone it names the document.
        let kind = body.kind.filter(|kind| body.message.is_some() && kind != "error");
        let (mut code, mut message) = (body.code.and_then(Code::word).or(kind), body.message);
        match body.error.or(body.detail) {
            Some(Inner::Object { code: inner, kind, status: word, message: words, metadata }) => {
                status = inner.as_ref().and_then(Code::status).or(status);
                code = inner.and_then(Code::word).or(kind).or(word.and_then(Code::word)).or(code);
                message = words.or(message);
                if let Some(more) = metadata.and_then(Metadata::words) {
                    message = Some(format!("{} ({more})", message.unwrap_or_default()).into());
                }
            }
            Some(Inner::Text(words)) => message = message.or(Some(words)),
            Some(Inner::Other(_)) | None => {}
        }
        if code.is_none() && message.is_none() {
            return None;
        }
        Some(Self { status, code: code.unwrap_or_default(), message: message.unwrap_or_default(), after: None })
    }

    /// The error that a server put into its reply.
    pub(crate) fn in_stream(origin: &Origin, json: &str) -> ModelError {
        Fault::parse(json).unwrap_or_default().error(origin, "ended its reply with an error")
    }

    /// The kind of fault. A code that we know says more than a status.
    pub(crate) fn kind(&self) -> ErrorKind {
        let after = self.after.or_else(|| asked_in_words(&self.message));
        if let Some(kind) = self.known_code(after) {
            return kind;
        }
        match self.status {
            // Said in words only, and with whatever status or kind comes to hand.
            None | Some(400 | 413 | 422 | 500) if self.speaks_of_window() => ErrorKind::WindowExceeded,
            Some(400 | 403) if self.speaks_of_money() => ErrorKind::Quota,
            Some(401 | 403) => ErrorKind::Refused,
            Some(402) => ErrorKind::Quota,
            Some(413) => ErrorKind::WindowExceeded,
            Some(429) => ErrorKind::RateLimited { after },
            Some(408 | 500..) => ErrorKind::Server { after },
            Some(_) => ErrorKind::Rejected,
            // Inside a stream there is no status. `invalid_…` blames the request; the rest is the server's own.
            None if self.code.to_ascii_lowercase().starts_with("invalid") => ErrorKind::Rejected,
            None => ErrorKind::Server { after },
        }
    }

    fn known_code(&self, after: Option<Duration>) -> Option<ErrorKind> {
        Some(match &*self.code {
            "context_length_exceeded" | "exceed_context_size_error" | "request_too_large" => ErrorKind::WindowExceeded,
            "insufficient_quota"
            | "billing_hard_limit_reached"
            | "usage_limit_reached"
            | "usage_not_included"
            | "billing_error" => ErrorKind::Quota,
            "rate_limit_exceeded"
            | "rate_limit_error"
            | "too_many_requests"
            | "tokens"
            | "requests"
            | "RESOURCE_EXHAUSTED" => ErrorKind::RateLimited { after },
            "server_overloaded"
            | "server_is_overloaded"
            | "overloaded_error"
            | "slow_down"
            | "server_error"
            | "internal_error"
            | "internal_server_error"
            | "service_unavailable"
            | "UNAVAILABLE"
            | "vector_store_timeout" => ErrorKind::Server { after },
            // Anthropic's word for its own faults, and others' for anything.
            "api_error" if !matches!(self.status, Some(400..=499)) => ErrorKind::Server { after },
            "invalid_api_key" | "authentication_error" | "permission_error" | "account_deactivated" => {
                ErrorKind::Refused
            }
            "invalid_prompt"
            | "content_filter"
            | "content_policy_violation"
            | "model_not_found"
            | "not_found_error"
            | "cyber_policy" => ErrorKind::Rejected,
            _ => return None,
        })
    }

    /// Servers without a code of their own say it in words.
    fn speaks_of_window(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        [
            "maximum context length",
            "context window",
            "context size",
            "context length",
            "context limit",
            "context the overflows",
            "prompt is too long",
            "input is too long",
            "exceeds the maximum number of tokens",
            "reduce the length",
        ]
        .iter()
        .any(|phrase| words.contains(phrase))
    }

    fn speaks_of_money(&self) -> bool {
        let words = self.message.to_ascii_lowercase();
        words.contains("credit balance") || words.contains("insufficient balance")
    }

    /// The fault as an error for a person; `what` says what the server did, for example `answered 401`.
    pub(crate) fn error(&self, origin: &Origin, what: &str) -> ModelError {
        let kind = self.kind();
        let words = one_line(&self.message, MAX_QUOTE);
        let message = match (words.is_empty(), self.code.is_empty()) {
            (false, _) => format!("{} {what}: {words}", origin.provider),
            (true, false) => format!("{} {what}: {}", origin.provider, one_line(&self.code, MAX_QUOTE)),
            (true, true) => format!("{} {what}", origin.provider),
        };
        ModelError { kind, message, hints: hints(kind, self.status, origin) }
    }
}

fn hints(kind: ErrorKind, status: Option<u16>, origin: &Origin) -> Vec<String> {
    let hint = match kind {
        ErrorKind::Refused => match &origin.key_env {
            Some(variable) => {
                format!("check the key in {variable}, and that it may use the model `{}`", origin.model)
            }
            None => format!(
                "this provider is used without a key; name the variable that holds one: \
                 `api_key_env = \"…\"` in [providers.{}]",
                origin.provider
            ),
        },
        ErrorKind::Quota => {
            format!("look at the plan and billing page of {}, or use another provider", origin.provider)
        }
        ErrorKind::WindowExceeded => {
            "give the rest of the task to a new agent, or use a model with a larger window".to_owned()
        }
        ErrorKind::Rejected if status == Some(404) => format!(
            "check that `{}` serves `{}` (often the address must end in /v1) and knows the model `{}`",
            origin.base_url,
            origin.wire.path(),
            origin.model
        ),
        ErrorKind::Rejected if status.is_some_and(|code| (300..400).contains(&code)) => {
            format!("redirects are not followed; set base_url of [providers.{}] to the final address", origin.provider)
        }
        _ => return Vec::new(),
    };
    vec![hint]
}

/// How long the headers of an answer ask us to wait. `now_ms` is the server's clock when it told it, else ours:
/// a date is only as good as the clock it is compared with.
pub(crate) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: i64) -> Option<Duration> {
    if let Some(ms) = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let text = header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let now = header("date").and_then(http_date).unwrap_or(now_ms);
    // A date in the past means now.
    Some(Duration::from_millis(u64::try_from(http_date(text)? - now).unwrap_or(0)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT` in milliseconds since the epoch.
fn http_date(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text.trim()).ok().map(|time| time.timestamp().as_millisecond())
}

/// `… try again in 1m2.5s …`, `… retry in 34s …`: some servers only say it in words.
fn asked_in_words(message: &str) -> Option<Duration> {
    let words = message.to_ascii_lowercase();
    let (_, mut rest) = words.split_once("try again in ").or_else(|| words.split_once("retry in "))?;
    let mut total = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        // A full stop that ends the sentence is not part of the number.
        let Ok(number) = rest.get(..digits)?.parse::<f64>() else { return total };
        let unit_at = rest.get(digits..)?.trim_start();
        let (scale, unit) = [("ms", 0.001), ("min", 60.0), ("m", 60.0), ("hour", 3600.0), ("h", 3600.0), ("s", 1.0)]
            .iter()
            .find(|(unit, _)| unit_at.starts_with(unit))
            .map(|(unit, scale)| (*scale, *unit))?;
        let more = Duration::try_from_secs_f64(number * scale).ok()?;
        total = Some(total.unwrap_or(Duration::ZERO).checked_add(more)?);
        rest = unit_at.get(unit.len()..)?;
    }
}

#[cfg(test)]
mod tests;
