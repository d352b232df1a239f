//! Owners that are not there, not yet, or not for long.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UnixListener;

use super::*;
use crate::{CONNECT_PATIENCE, ConnectError, Delivery, RequestError};

async fn error(path: &AbsPath, alive: bool) -> ConnectError {
    match within(Client::connect(path, || alive)).await {
        Ok(_) => panic!("connected"),
        Err(error) => error,
    }
}

/// Plays an owner: to each client it says `first`, waits for a hello and a request, says `then`, and closes.
async fn play(listener: UnixListener, first: &'static str, then: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let then = then.clone();
        tokio::spawn(async move {
            let mut raw = Raw::new(stream);
            raw.say(first).await;
            if raw.hear().await.is_some() && raw.hear().await.is_some() {
                raw.say(&then).await;
            }
        });
    }
}

const HELLO: &str = r#"{"hello":{"protocol":1,"colour":"red"}}"#;

#[tokio::test]
async fn an_owner_may_begin_to_listen_later() {
    let (_folder, path) = place();
    let asked = Arc::new(Count::new());
    let client = tokio::spawn({
        let (path, asked) = (path.clone(), Arc::clone(&asked));
        async move {
            let alive = || {
                asked.add();
                true
            };
            Client::connect(&path, alive).await.map(|client| client.hello().tree)
        }
    });
    // It has missed the owner once for sure.
    asked.reaches(2).await;
    let listener = Listener::bind(&path, tree()).await.unwrap();
    let cancel = CancellationToken::new();
    let server = tokio::spawn(crate::serve(listener, Fake::new(), cancel.clone()));
    assert_eq!(within(client).await.unwrap().unwrap(), Some(tree()));
    cancel.cancel();
    within(server).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_living_owner_is_waited_for_and_a_dead_one_is_not() {
    let (_folder, path) = place();
    let begun = tokio::time::Instant::now();
    assert!(matches!(error(&path, false).await, ConnectError::Nobody { .. }));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(matches!(error(&path, true).await, ConnectError::Silent { .. }));
    assert!(begun.elapsed() >= CONNECT_PATIENCE && begun.elapsed() < 2 * CONNECT_PATIENCE);
    // The same with the socket of an owner that was killed.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(matches!(error(&path, false).await, ConnectError::Nobody { .. }));
    assert!(matches!(error(&path, true).await, ConnectError::Silent { .. }));
}

#[tokio::test]
async fn an_owner_that_dies_meanwhile_is_given_up() {
    let (_folder, path) = place();
    let asked = AtomicUsize::new(0);
    let alive = || asked.fetch_add(1, Ordering::Relaxed) < 3;
    let error = within(Client::connect(&path, alive)).await.err().unwrap();
    assert!(matches!(error, ConnectError::Nobody { .. }), "{error}");
    assert_eq!(asked.into_inner(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_says_nothing_is_silent() {
    let (_folder, path) = place();
    let _listener = UnixListener::bind(&path).unwrap();
    assert!(matches!(error(&path, true).await, ConnectError::Silent { .. }));
}

#[tokio::test]
async fn what_is_no_socket_is_told() {
    let (folder, path) = place();
    std::fs::write(&path, "").unwrap();
    assert!(matches!(error(&path, true).await, ConnectError::NotASocket { .. }));
    let below = AbsPath::new(folder.path()).unwrap();
    assert!(matches!(error(&below, true).await, ConnectError::NotASocket { .. }));
}

#[tokio::test]
async fn another_protocol_is_told() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let owner = tokio::spawn(play(listener, r#"{"hello":{"protocol":2}}"#, String::new()));
    let told = error(&path, true).await;
    assert!(matches!(told, ConnectError::Version { theirs: 2 }), "{told}");
    owner.abort();
}

#[tokio::test]
async fn something_else_that_listens_is_told() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let owner = tokio::spawn(play(listener, "220 ready", String::new()));
    let told = error(&path, true).await;
    assert!(matches!(&told, ConnectError::Refused(fault) if fault.code == Code::Version), "{told}");
    owner.abort();
}

#[tokio::test]
async fn an_owner_that_is_killed_in_the_middle_is_told() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let owner = tokio::spawn(play(listener, HELLO, r#"{"id":1,"ok":{"reply":"po"#.to_owned()));
    let client = within(Client::connect(&path, || true)).await.unwrap();
    let both = async { tokio::join!(client.request(Op::Ping), client.request(Op::Answer { task: task() })) };
    let (first, second) = within(both).await;
    for error in [first.unwrap_err(), second.unwrap_err()] {
        // Half an answer is no JSON, and the second got none at all.
        assert!(matches!(error, RequestError::Gone(_)), "{error}");
        assert!(error.to_string().contains("safe on disk"), "{error}");
    }
    owner.abort();
}

#[tokio::test]
async fn a_newer_owner_may_say_more() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let stamp = format!(r#""time":"1970-01-01T00:00:00.000Z","tree":"{0}","path":"/root","thread":"{0}""#, tree());
    let more = [
        r#"{"weather":"fine"}"#.to_owned(),
        r#"{"id":1,"ok":{"reply":"subscribed","how":"well"},"took":3}"#.to_owned(),
        format!(r#"{{"event":{{"seq":1,{stamp},"type":"agent.dreamt","since":9}}}}"#),
        format!(r#"{{"event":{{"seq":2,{stamp},"type":"turn.completed","outcome":"postponed"}}}}"#),
        format!(r#"{{"event":{{"seq":3,{stamp},"type":"warning","message":"careful","level":2}}}}"#),
        r#"{"ended":{"why":"quiet"}}"#.to_owned(),
    ];
    let owner = tokio::spawn(play(listener, HELLO, more.join("\n")));
    let client = within(Client::connect(&path, || true)).await.unwrap();
    let mut events = within(client.subscribe(None)).await.unwrap();
    assert_eq!(within(events.next()).await, Some(Delivery::Event(warning(3, "careful"))));
    assert_eq!(events.skipped(), 2);
    assert_eq!(within(events.next()).await, None);
    owner.abort();
}

#[tokio::test]
async fn an_answer_of_an_unknown_form_is_told() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let owner = tokio::spawn(play(listener, HELLO, r#"{"id":1,"ok":{"reply":"dance"}}"#.to_owned()));
    let client = within(Client::connect(&path, || true)).await.unwrap();
    let Err(RequestError::Refused(fault)) = within(client.request(Op::Ping)).await else { panic!("understood") };
    assert_eq!(fault.code, Code::Version);
    owner.abort();
}

#[tokio::test]
async fn events_that_break_off_say_so() {
    let (_folder, path) = place();
    let listener = UnixListener::bind(&path).unwrap();
    let owner = tokio::spawn(play(listener, HELLO, r#"{"id":1,"ok":{"reply":"subscribed"}}"#.to_owned()));
    let client = within(Client::connect(&path, || true)).await.unwrap();
    let mut events = client.events(Some(4));
    let Some(Delivery::Broken(fault)) = within(events.next()).await else { panic!("not broken") };
    assert_eq!(fault.code, Code::Gone);
    assert!(fault.message.contains("in the middle"), "{fault}");
    assert_eq!(within(events.next()).await, None);
    owner.abort();
    let _ = owner.await;
    // And when nobody is there at all.
    let Some(Delivery::Broken(fault)) = within(client.events(None).next()).await else { panic!("not broken") };
    assert_eq!(fault.code, Code::Gone);
    assert!(fault.message.contains("nobody listens"), "{fault}");
}

#[test]
fn what_the_system_forbids_is_told() {
    let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let (_folder, path) = place();
    assert!(matches!(
        crate::connect::missed(&path, error),
        crate::connect::Miss::Never(ConnectError::Permission { .. })
    ));
}
