use bytes::Bytes;
use stdx::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::Auth;

fn post(url: &str) -> Post {
    Post {
        url: url.to_owned(),
        auth: Some(Auth::Bearer(Secret::new("sk-1"))),
        extra: vec![("x-more", "yes".to_owned())],
        body: Bytes::from_static(b"{}"),
    }
}

/// Answers every request of one connection after the other with `ok`, and returns all the text it got.
async fn serve(listener: TcpListener, requests: usize) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut got = Vec::new();
    for n in 1..=requests {
        while got.windows(6).filter(|w| *w == b"\r\n\r\n{}").count() < n {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0, "the client keeps the connection");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nx-Id: 7\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    }
    String::from_utf8(got).unwrap()
}

async fn read(response: &mut Response) -> String {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.unwrap() {
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).unwrap()
}

#[tokio::test]
async fn one_connection_and_our_headers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/x", listener.local_addr().unwrap());
    let served = tokio::spawn(serve(listener, 3));
    let http = Http::new(Proxies::default());
    for _ in 0..3 {
        let mut response = http.clone().post(post(&url)).await.unwrap();
        assert_eq!((response.status(), response.header("X-ID")), (200, Some("7")));
        assert_eq!(read(&mut response).await, "ok");
    }
    let got = served.await.unwrap();
    assert_eq!(got.matches("POST /v1/x HTTP/1.1\r\n").count(), 3);
    for header in ["authorization: Bearer sk-1", "content-type: application/json", "x-more: yes"] {
        assert_eq!(got.matches(header).count(), 3, "{header} in {got}");
    }
    assert!(got.contains(&format!("user-agent: {USER_AGENT}")), "{got}");
}

#[tokio::test]
async fn a_get_carries_no_key_and_a_key_may_have_a_header_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/models", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        for end in ["\r\n\r\n", "{}"] {
            while !got.ends_with(end.as_bytes()) {
                assert!(stream.read_buf(&mut got).await.unwrap() > 0);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
        }
        String::from_utf8(got).unwrap()
    });
    let http = Http::new(Proxies::default());
    assert_eq!(read(&mut http.get(&url).await.unwrap()).await, "ok");
    let mut keyed = post(&url);
    keyed.auth = Some(Auth::Header("x-api-key", Secret::new("sk-2")));
    assert_eq!(read(&mut http.post(keyed).await.unwrap()).await, "ok");
    let got = served.await.unwrap();
    assert!(got.starts_with("GET /v1/models HTTP/1.1\r\n"), "{got}");
    let (get, post) = got.split_once("POST ").unwrap();
    assert!(get.contains(&format!("user-agent: {USER_AGENT}")), "{get}");
    assert!(!got.contains("authorization") && post.contains("x-api-key: sk-2"), "{got}");
}

#[tokio::test]
async fn loopback_is_never_proxied_and_others_are() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = format!("http://{}", listener.local_addr().unwrap());
    // Nobody listens on port 1: a request that went there would fail.
    let dead = Proxies { http: Some("http://127.0.0.1:1".to_owned()), ..Proxies::default() };
    let served = tokio::spawn(serve(listener, 1));
    assert_eq!(Http::new(dead.clone()).post(post(&here)).await.unwrap().status(), 200);
    served.await.unwrap();
    let error = Http::new(dead).post(post("http://host.invalid/x")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(serve(listener, 1));
    let http = Http::new(Proxies { all: Some(proxy), ..Proxies::default() });
    assert_eq!(http.post(post("http://host.invalid/x")).await.unwrap().status(), 200);
    let got = served.await.unwrap();
    assert!(got.starts_with("POST http://host.invalid/x HTTP/1.1\r\n"), "{got}");
}

#[tokio::test]
async fn clients_are_built_when_needed() {
    let http = Http::new(Proxies { http: Some("not a proxy at all:::".to_owned()), ..Proxies::default() });
    assert!(http.shared.plain.get().is_none() && http.shared.secure.get().is_none());
    let error = http.post(post("http://127.0.0.1:1/")).await.unwrap_err();
    assert!(matches!(error, Error::Proxy { .. }), "{error}");
    assert!(http.shared.plain.get().is_some() && http.shared.secure.get().is_none());
}

#[tokio::test]
async fn a_server_without_tls_is_unreachable_by_https() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    match Http::new(Proxies::default()).post(post(&url)).await.unwrap_err() {
        Error::Unreachable { address, .. } => assert_eq!(format!("{address}/"), url),
        // A system without roots cannot build a client; then that is what is said.
        Error::Setup(cause) => {
            assert!(cause.contains("CA certificates"), "{cause}");
            return;
        }
        other => panic!("{other}"),
    }
    served.await.unwrap();
}

#[tokio::test]
async fn unusable_requests() {
    let http = Http::new(Proxies::default());
    for url in ["", "x", "ftp://host/", "http://"] {
        let error = http.post(post(url)).await.unwrap_err();
        assert!(matches!(error, Error::Address { .. }), "{url}: {error}");
    }
    let mut bad = post("http://127.0.0.1:1/");
    for (auth, name) in [
        (Auth::Bearer(Secret::new("sk\n1")), "authorization"),
        (Auth::Header("x-api-key", Secret::new("sk\n1")), "x-api-key"),
    ] {
        bad.auth = Some(auth);
        let error = http.post(bad.clone()).await.unwrap_err();
        assert_eq!(error, Error::Header(name.to_owned()));
        assert!(!format!("{error} {bad:?}").contains("sk"), "{error}");
    }
}

#[test]
fn passwords_are_not_shown() {
    assert_eq!(without_password("http://me:secret@host:8080"), "…@host:8080");
    assert_eq!(without_password("http://host:8080"), "http://host:8080");
    let proxies = Proxies { all: Some("http://me:secret@host:99999999".to_owned()), ..Proxies::default() };
    let error = build(&proxies, CONNECT_TIMEOUT, false).unwrap_err();
    assert!(matches!(&error, Error::Proxy { url, .. } if url == "…@host:99999999"), "{error}");
    let proxies = Proxies { all: Some("http://me:secret@host:8080".to_owned()), ..Proxies::default() };
    let http = Http::new(proxies);
    http.client(&parse("http://host").unwrap()).unwrap();
    for text in [error.to_string(), format!("{error:?}"), format!("{http:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
}
