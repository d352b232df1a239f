use super::*;

fn error(kind: ErrorKind) -> ModelError {
    ModelError { kind, message: "lab failed".to_owned(), hints: Vec::new() }
}

/// Feeds the same error until the rule ends; time passes only by waiting. Returns the waits in milliseconds and the
/// message at the end.
fn run(kind: ErrorKind, random: f64) -> (Vec<u128>, String) {
    let mut retry = Retry::new(RetryLimits::default());
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    while let Some(wait) = retry.next(&error(kind), now, random) {
        waits.push(wait.as_millis());
        now += wait;
        assert!(waits.len() < 1000, "it must end");
    }
    (waits, retry.conclude(error(kind)).message)
}

fn check(kind: ErrorKind, waits: &[u128], message: &str) {
    assert_eq!(run(kind, 0.5), (waits.to_vec(), message.to_owned()), "{kind:?}");
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn table() {
    use ErrorKind as K;
    let own = [200, 400, 800, 1600, 3200];
    check(K::Interrupted, &own, "lab failed; gave up after 5 retries");
    check(K::Server { after: None }, &own, "lab failed; gave up after 5 retries");
    check(K::Server { after: Some(s(2)) }, &[2100, 2100, 2100, 2100, 3200], "lab failed; gave up after 5 retries");
    check(K::Nonsense, &[200, 400], "lab failed; gave up after 2 retries");
    check(K::RateLimited { after: Some(s(10)) }, &[10_500; 10], "lab failed; gave up after 10 retries");
    check(
        K::RateLimited { after: None },
        &[200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000, 10_000],
        "lab failed; gave up after 10 retries",
    );
    check(
        K::RateLimited { after: Some(s(200)) },
        &[210_000, 210_000],
        "lab failed; gave up: it would take longer than 10 min",
    );
    let never = "lab failed; it asks to wait 601 s, longer than the 10 min we are ready to; run it again later";
    check(K::RateLimited { after: Some(s(601)) }, &[], never);
    check(K::Server { after: Some(s(601)) }, &[], never);
    for kind in [K::Refused, K::WindowExceeded, K::Quota, K::Rejected, K::Unscripted] {
        check(kind, &[], "lab failed");
    }
}

#[test]
fn nobody_answers_for_a_stated_time() {
    for random in [0.0, 0.5, 1.0] {
        let (waits, message) = run(ErrorKind::Unreachable, random);
        assert_eq!(waits.iter().sum::<u128>(), 30_000, "the last attempt falls on the end of the time: {waits:?}");
        assert_eq!(message, "lab failed; gave up after 30 s without an answer");
    }
}

#[test]
fn the_time_of_silence_begins_with_the_first_refusal() {
    let mut retry = Retry::new(RetryLimits::default());
    let late = Duration::from_hours(1);
    assert!(retry.next(&error(ErrorKind::Unreachable), late, 0.5).is_some());
    assert!(retry.next(&error(ErrorKind::Unreachable), late + Duration::from_secs(29), 0.5).is_some());
    // Somebody answers, if only with an error: the time begins anew.
    assert!(retry.next(&error(ErrorKind::Interrupted), late + Duration::from_secs(29), 0.5).is_some());
    assert!(retry.next(&error(ErrorKind::Unreachable), late + Duration::from_secs(31), 0.5).is_some());
    assert!(retry.next(&error(ErrorKind::Unreachable), late + Duration::from_secs(61), 0.5).is_none());
}

#[test]
fn progress_begins_anew_but_not_for_ever() {
    let mut retry = Retry::new(RetryLimits { total: 20, ..RetryLimits::default() });
    let mut waits = Vec::new();
    while let Some(wait) = retry.next(&error(ErrorKind::Interrupted), Duration::ZERO, 0.5) {
        waits.push(wait.as_millis());
        retry.progress();
    }
    assert_eq!(waits, [200; 20]);
    assert_eq!(retry.conclude(error(ErrorKind::Interrupted)).message, "lab failed; gave up after 20 retries in all");
}

#[test]
fn chance_spreads_within_bounds() {
    let first = |kind, random| run(kind, random).0[0];
    assert_eq!(first(ErrorKind::Interrupted, 0.0), 160);
    assert_eq!(first(ErrorKind::Interrupted, 1.0), 240);
    // What the server asked for is never undercut.
    assert_eq!(first(ErrorKind::RateLimited { after: Some(s(10)) }, 0.0), 10_000);
    assert_eq!(first(ErrorKind::RateLimited { after: Some(s(10)) }, 1.0), 11_000);
    assert!(run(ErrorKind::RateLimited { after: None }, 1.0).0.iter().all(|wait| *wait <= 10_000));
}
