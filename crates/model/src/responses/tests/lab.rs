//! A server of a few lines: it reads requests, writes down what it got, and answers with scripted bytes.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// What is done to answer one request.
#[derive(Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// The same bytes, so many times.
    Repeat(Vec<u8>, usize),
    Close,
    /// Says nothing more, and tells when the client hangs up.
    Stall(Arc<Notify>),
}

#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) connection: usize,
    pub(crate) head: String,
    pub(crate) body: String,
}

pub(crate) struct Lab {
    pub(crate) base_url: String,
    got: Arc<Mutex<Vec<Got>>>,
    answers: mpsc::UnboundedSender<Vec<Act>>,
    task: tokio::task::JoinHandle<()>,
}

impl Lab {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let (answers, script) = mpsc::unbounded_channel();
        let script = Arc::new(tokio::sync::Mutex::new(script));
        let seen = Arc::clone(&got);
        let task = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, connection, Arc::clone(&seen), Arc::clone(&script)));
            }
        });
        Self { base_url, got, answers, task }
    }

    pub(crate) fn answer(&self, acts: impl IntoIterator<Item = Act>) {
        self.answers.send(acts.into_iter().collect()).unwrap();
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    got: Arc<Mutex<Vec<Got>>>,
    script: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Vec<Act>>>>,
) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut bytes).await {
        got.lock().unwrap().push(Got { connection, head, body });
        let Some(acts) = script.lock().await.recv().await else { return };
        for act in acts {
            match act {
                // A client that has had enough closes; then there is nobody to write to.
                Act::Send(bytes) => drop(stream.write_all(&bytes).await),
                Act::Repeat(bytes, times) => {
                    for _ in 0..times {
                        if stream.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                }
                Act::Close => return,
                Act::Stall(hung_up) => {
                    let mut rest = [0; 16];
                    while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {}
                    hung_up.notify_one();
                    return;
                }
            }
        }
    }
}

async fn request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = header(head, "content-length").unwrap().parse().unwrap();
            if body.len() >= length {
                bytes.drain(..head.len() + 4 + length);
                return Some((head.to_owned(), body[..length].to_owned()));
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}

pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// A whole answer.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Send(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes())
}

/// The head of a stream whose body comes in chunks.
pub(crate) fn head() -> Act {
    Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec())
}

pub(crate) fn chunk(data: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", data.len()).into_bytes();
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
    out
}

pub(crate) fn end() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}

/// Events as they stand on the wire, each of the JSON given.
pub(crate) fn sse(events: &[&str]) -> String {
    events.iter().flat_map(|event| ["data: ", event, "\n\n"]).collect()
}

/// A whole stream of these events.
pub(crate) fn stream(events: &[&str]) -> Vec<Act> {
    vec![head(), Act::Send(chunk(sse(events).as_bytes())), end()]
}
