//! Faults of a provider: what is tried again, and how it ends when it is not.

use std::time::Duration;

use model::{ErrorKind, RetryLimits};
use protocol::Outcome;

use super::bench::Bench;
use super::double::{Step, answer, say};

#[tokio::test(start_paused = true)]
async fn passing_faults_are_tried_again_and_told() {
    let faults =
        [ErrorKind::Interrupted, ErrorKind::Server { after: None }, ErrorKind::Nonsense, ErrorKind::Unreachable];
    let mut replies: Vec<Vec<Step>> = faults.map(|kind| vec![Step::Fail(kind)]).into();
    replies.push(answer("at last"));
    let bench = Bench::new(replies, vec![]).await;
    assert_eq!(bench.run("go").await.end.text.as_deref(), Some("at last"));
    let said = bench.said();
    assert_eq!((bench.requests(), said.len()), (5, 4));
    assert!(said.iter().all(|text| text.contains("trying again in")), "{said:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_server_asks_for_is_kept() {
    let after = Some(Duration::from_secs(70));
    let bench = Bench::new(vec![vec![Step::Fail(ErrorKind::RateLimited { after })]], vec![]).await;
    let before = tokio::time::Instant::now();
    bench.run("go").await;
    assert!(before.elapsed() >= Duration::from_secs(70), "{:?}", before.elapsed());
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_refuses_ends_the_task_at_once() {
    let kinds = [ErrorKind::Refused, ErrorKind::WindowExceeded, ErrorKind::Quota, ErrorKind::Rejected];
    for kind in kinds {
        let bench = Bench::new(vec![vec![say("half"), Step::Fail(kind)]], vec![]).await;
        let report = bench.run("go").await;
        assert_eq!((report.end.outcome, report.broken), (Outcome::Errored, false));
        assert_eq!(report.end.text.as_deref(), Some("half"));
        let fault = report.fault.unwrap();
        assert_eq!((fault.kind, fault.hints), (kind, vec!["a hint".to_owned()]));
        assert_eq!((bench.requests(), bench.done().len()), (1, 1));
        // The agent is well: only its task has ended.
        assert_eq!(bench.run("again").await.end.outcome, Outcome::Completed);
        bench.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_counted_from_the_last_progress() {
    let limits = RetryLimits::default();
    let faults = |n: u32| (0..n).map(|_| vec![Step::Fail(ErrorKind::Interrupted)]);
    let mut replies: Vec<Vec<Step>> = faults(limits.retries).collect();
    replies.push(vec![say("a little"), Step::Fail(ErrorKind::Interrupted)]);
    replies.extend(faults(limits.retries - 1));
    replies.push(answer("all"));
    let bench = Bench::new(replies, vec![]).await;
    assert_eq!(bench.run("go").await.end.text.as_deref(), Some("all"));
    bench.finish().await;

    let bench = Bench::new(faults(limits.retries + 1).collect(), vec![]).await;
    let report = bench.run("go").await;
    assert_eq!(report.end.outcome, Outcome::Errored);
    assert!(report.end.reason.unwrap().contains("gave up after 5 retries"));
    assert_eq!(bench.requests(), 6);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn silence_at_the_address_is_borne_for_its_time_and_no_longer() {
    let limits = RetryLimits::default();
    // Far more than fit into the time: each wait is a fifth of a second at the least.
    let replies = (0..200).map(|_| vec![Step::Fail(ErrorKind::Unreachable)]).collect();
    let bench = Bench::new(replies, vec![]).await;
    let before = tokio::time::Instant::now();
    let report = bench.run("go").await;
    assert_eq!(report.end.outcome, Outcome::Errored);
    assert!(before.elapsed() >= limits.unreachable_for, "{:?}", before.elapsed());
    assert!(report.end.reason.unwrap().contains("without an answer"));
    bench.finish().await;
}
