use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use super::*;

/// Answers one request with these bytes, once every server has one.
async fn server(all: Arc<Barrier>, answer: &'static str) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0);
        }
        assert!(got.starts_with(b"GET /v1/models HTTP/1.1\r\n"));
        all.wait().await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    (base_url, task)
}

fn list(models: &[&str]) -> Vec<String> {
    models.iter().map(|model| (*model).to_owned()).collect()
}

#[tokio::test]
async fn all_are_asked_at_once() {
    const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let ok = |body: &str| -> &'static str { format!("{OK}{body}").leak() };
    let answers = [
        ("ollama", ok(r#"{"object":"list","data":[{"id":"qwen3:8b","size":1},{"id":"b"},{"id":""}]}"#)),
        ("named", ok(r#"{"models":[{"name":"a"},{"other":"?"}]}"#)),
        ("empty", ok(r#"{"data":[]}"#)),
        ("web", ok("<html>")),
        ("json", ok(r#"{"hello":1}"#)),
        ("other", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"),
    ];
    let all = Arc::new(Barrier::new(answers.len()));
    let mut running = Vec::new();
    for (name, answer) in answers {
        running.push((name, server(Arc::clone(&all), answer).await));
    }
    let mut servers: Vec<(&str, &str)> = running.iter().map(|(name, (url, _))| (*name, url.as_str())).collect();
    // Nobody listens there.
    servers.push(("nobody", "http://127.0.0.1:1/v1"));
    let http = Http::new(http::Proxies::default());
    // Longer than it can take: what is tested is that none waits for another.
    let found = super::servers(&http, &servers, Duration::from_mins(1)).await;
    assert_eq!(
        found,
        [
            ("ollama".to_owned(), list(&["qwen3:8b", "b"])),
            ("named".to_owned(), list(&["a"])),
            ("empty".to_owned(), list(&[])),
        ]
    );
    for (_, (_, task)) in running {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_silent_one_is_not_waited_for() {
    // The system takes the connection; nobody ever reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let http = Http::new(http::Proxies::default());
    let found = servers(&http, &[("silent", &url)], Duration::from_millis(50)).await;
    assert_eq!(found, []);
}
