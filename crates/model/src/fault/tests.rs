use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[track_caller]
fn check(status: impl Into<Option<u16>>, body: &str, kind: ErrorKind) {
    let mut fault = Fault::parse(body).unwrap_or_default();
    fault.status = status.into().or(fault.status);
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
    check(400, r#"[{"error":{"code":400,"message":"bad field","status":"INVALID_ARGUMENT"}}]"#, K::Rejected);
    check(
        400,
        r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}"#,
        K::WindowExceeded,
    );
    check(500, r#"{"error":{"code":500,"message":"context size has been exceeded"}}"#, K::WindowExceeded);
    check(404, r#"{"error":{"type":"api_error","message":"model not found"}}"#, K::Rejected);
    check(500, r#"{"error":{"type":"api_error","message":"Internal"}}"#, K::Server { after: None });
    check(402, r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#, K::Quota);
    check(400, r#"{"error":{"message":"Your credit balance is too low"}}"#, K::Quota);
    check(503, r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#, K::Server { after: None });
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
    // Inside a stream a number stands in for the status.
    check(None, r#"{"error":{"code":401,"message":"who are you"}}"#, K::Refused);
    check(None, r#"{"error":{"code":"429","message":"slow down"}}"#, K::RateLimited { after: None });
    check(None, r#"{"error":{"code":0,"message":"odd"}}"#, K::Server { after: None });
    check(None, r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#, K::WindowExceeded);
    check(None, r#"{"object":"error","message":"no","type":"BadRequestError","code":400}"#, K::Rejected);
    check(None, r#"{"type":"error","message":"no"}"#, K::Server { after: None });
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
    check("Please retry in 34.07s.", Some(ms(34_070)));
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
