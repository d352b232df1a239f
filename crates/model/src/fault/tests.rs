use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[track_caller]
fn check(status: impl Into<Option<u16>>, body: &str, kind: ErrorKind) {
    let mut fault = Fault::parse(body).unwrap_or_default();
    fault.status = status.into();
    assert_eq!(fault.kind(), kind, "{body}");
}

#[test]
fn kinds() {
    use ErrorKind as K;
    check(401, "", K::Refused);
    check(403, r#"{"error":{"message":"no"}}"#, K::Refused);
    check(402, "", K::Quota);
    check(404, r#"{"detail":"Not Found"}"#, K::Rejected);
    check(307, "", K::Rejected);
    check(408, "", K::Server { after: None });
    check(413, "", K::WindowExceeded);
    check(400, r#"{"error":{"code":"context_length_exceeded"}}"#, K::WindowExceeded);
    check(400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"x"}}"#, K::WindowExceeded);
    check(400, r#"{"error":"This model's maximum context length is 4096 tokens"}"#, K::WindowExceeded);
    check(400, r#"{"error":{"message":"bad field"}}"#, K::Rejected);
    check(422, r#"{"message":"bad field"}"#, K::Rejected);
    check(429, "", K::RateLimited { after: None });
    check(429, r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}"#, K::Quota);
    check(
        429,
        r#"{"error":{"code":"rate_limit_exceeded","message":"Please try again in 1.5s."}}"#,
        K::RateLimited { after: Some(ms(1500)) },
    );
    check(500, "<html>", K::Server { after: None });
    check(503, r#"{"error":{"type":"overloaded_error"}}"#, K::Server { after: None });
    check(529, "", K::Server { after: None });
    check(None, r#"{"error":{"code":"server_error","message":"x"}}"#, K::Server { after: None });
    check(
        None,
        r#"{"code":"rate_limit_exceeded","message":"try again in 20ms"}"#,
        K::RateLimited { after: Some(ms(20)) },
    );
    check(None, r#"{"error":{"code":"invalid_prompt"}}"#, K::Rejected);
    check(None, r#"{"error":{"code":"invalid_request_error"}}"#, K::Rejected);
    check(None, r#"{"error":{"code":"never heard of"}}"#, K::Server { after: None });
    check(None, r#"{"error":null}"#, K::Server { after: None });
}

#[test]
fn waits_in_words() {
    let check = |text: &str, wait| assert_eq!(asked_in_words(text), wait, "{text}");
    check("Try again in 1.5s.", Some(ms(1500)));
    check("please TRY AGAIN IN 20ms", Some(ms(20)));
    check("try again in 1m2.5s", Some(ms(62_500)));
    check("try again in 2 minutes", Some(ms(120_000)));
    check("try again in 1h", Some(ms(3_600_000)));
    check("try again in 3 seconds.", Some(ms(3000)));
    check("try again in a while", None);
    check("try again in 9 parsecs", None);
    check("try again in 999999999999999999999999s", None);
    check("try later", None);
}

#[test]
fn waits_in_headers() {
    // 2026-11-30T15:13:02Z, read off a calendar.
    let now = 1_796_051_582_000;
    let check = |headers: &[(&str, &'static str)], wait| {
        let find = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        assert_eq!(retry_after(find, now), wait, "{headers:?}");
    };
    check(&[], None);
    check(&[("retry-after", "2")], Some(ms(2000)));
    check(&[("retry-after", " 0.5 ")], Some(ms(500)));
    check(&[("retry-after-ms", "150"), ("retry-after", "2")], Some(ms(150)));
    check(&[("retry-after", "Mon, 30 Nov 2026 15:14:02 GMT")], Some(ms(60_000)));
    check(&[("retry-after", "Mon, 30 Nov 2026 15:12:02 GMT")], Some(ms(0)));
    check(
        &[("retry-after", "Mon, 30 Nov 2026 15:14:02 GMT"), ("date", "Mon, 30 Nov 2026 15:14:00 GMT")],
        Some(ms(2000)),
    );
    check(&[("retry-after", "soon")], None);
    check(&[("retry-after", "-3")], None);
    check(&[("retry-after", "1e400")], None);
}
