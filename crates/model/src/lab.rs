//! A server of a few lines: it reads requests, writes down what it got, and answers with scripted bytes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use protocol::{Address, AgentPath, Item, Role, ThreadId};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

use crate::fault::Origin;
use crate::remote::{Events, Normalise};
use crate::sse::{Decoder, MAX_EVENT};
use crate::{Catalog, Model, ModelError, ModelEvent, ModelRequest, Provider, Wire};

/// What is done to answer one request.
#[derive(Clone)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// The same bytes, so many times.
    Repeat(Vec<u8>, usize),
    /// The same bytes every 10 ms, until the client hangs up.
    Beat(Vec<u8>),
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
    while let Some((head, body)) = read_request(&mut stream, &mut bytes).await {
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
                Act::Beat(bytes) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    return;
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

async fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
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

/// A provider that lives at a lab.
pub(crate) fn provider(wire: Wire, base_url: &str) -> Provider {
    let mut provider = Provider::new("lab", base_url, wire);
    // Only the tests about silence wait for it.
    provider.idle_timeout = Duration::from_secs(20);
    provider
}

/// A model of this wire, opened as users do.
pub(crate) fn model(provider: &Provider) -> Arc<dyn Model> {
    let http = http::Http::new(http::Proxies::default());
    let cwd = stdx::AbsPath::new("/").unwrap();
    let windows = [(format!("{}/m-1", provider.name), 1000)].into();
    Catalog::new([provider.clone()], http, windows, cwd).open(&format!("{}/m-1", provider.name)).unwrap()
}

pub(crate) fn request(model: &dyn Model, items: &[Item]) -> ModelRequest {
    let thread: ThreadId = "01939d5e-0000-7000-8000-000000000001".parse().unwrap();
    ModelRequest {
        tree: thread.into(),
        agent: Address { path: AgentPath::root(), thread },
        role: "default".to_owned(),
        head: model.head(&[]),
        input: items.iter().cloned().collect(),
        max_output: None,
        effort: None,
    }
}

pub(crate) async fn ask(model: &dyn Model) -> Vec<Result<ModelEvent, ModelError>> {
    model.stream(request(model, &[Item::message(Role::User, "hi")])).collect().await
}

/// The events and the error, one a line. Made-up ids are shown as such.
pub(crate) fn show(events: &[Result<ModelEvent, ModelError>]) -> String {
    // A piece that nobody sees shows in the whole that comes of it.
    let shown = events.iter().filter(|event| !matches!(event, Ok(ModelEvent::Piece)));
    let line = |event: &Result<ModelEvent, ModelError>| match event {
        Ok(ModelEvent::Started) => "started".to_owned(),
        Ok(ModelEvent::TextDelta(text)) => format!("text {text:?}"),
        Ok(ModelEvent::ReasoningDelta(text)) => format!("reasoning {text:?}"),
        Ok(ModelEvent::Piece) => "piece".to_owned(),
        Ok(ModelEvent::Item(item)) => format!("item {}", without_made_up(item)),
        Ok(ModelEvent::Done { usage, wants_more }) => {
            format!("done {}/{}/{}/{} {wants_more:?}", usage.input, usage.cached_input, usage.output, usage.reasoning)
        }
        Err(error) => {
            let hints: String = error.hints.iter().flat_map(|hint| ["\n  ", hint]).collect();
            format!("{:?}: {}{hints}", error.kind, error.message)
        }
    };
    shown.map(|event| line(event) + "\n").collect()
}

fn without_made_up(item: &Item) -> String {
    let raw = item.raw().to_owned();
    match item.call() {
        Some(call) if call.call_id.starts_with("call_") && call.call_id.len() == "call_".len() + 32 => {
            raw.replace(&call.call_id, "MADE-UP")
        }
        _ => raw,
    }
}

/// What a model makes of one answer.
pub(crate) async fn answered(wire: Wire, acts: Vec<Act>) -> String {
    let lab = Lab::start().await;
    lab.answer(acts);
    show(&ask(&*model(&provider(wire, &lab.base_url))).await).replace(&lab.base_url, "BASE")
}

/// What a normaliser makes of a stream that comes in these pieces.
pub(crate) fn normalised<N: Normalise>(mut normaliser: N, wire: Wire, pieces: &[&[u8]]) -> String {
    let origin = origin(wire);
    let mut decoder = Decoder::new(MAX_EVENT);
    let mut out = Events::new();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events).unwrap();
    }
    events.extend(decoder.finish());
    let mut done = Ok(None);
    for event in &events {
        done = normaliser.take(&origin, event, &mut out);
        if !matches!(done, Ok(None)) {
            break;
        }
    }
    if matches!(done, Ok(None)) && normaliser.may_end() {
        done = normaliser.end(&origin, &mut out);
    }
    match done {
        Ok(Some(done)) => out.push_back(Ok(done)),
        Ok(None) => return show(out.make_contiguous()) + "no end\n",
        Err(error) => out.push_back(Err(error)),
    }
    show(out.make_contiguous())
}

/// What a normaliser makes of a stream, however its bytes come: in one piece, and cut in two at every place.
pub(crate) fn everywhere<N: Normalise>(new: impl Fn() -> N, wire: Wire, stream: &str) -> String {
    let whole = normalised(new(), wire, &[stream.as_bytes()]);
    for at in 0..stream.len() {
        let (a, b) = stream.as_bytes().split_at(at);
        assert_eq!(normalised(new(), wire, &[a, b]), whole, "cut at {at}");
    }
    whole
}

/// A document taken as a whole reply.
pub(crate) fn document<N: Normalise>(mut normaliser: N, wire: Wire, body: &str) -> String {
    let mut out = Events::new();
    match normaliser.whole(&origin(wire), body.as_bytes(), &mut out) {
        Ok(Some(done)) => out.push_back(Ok(done)),
        Ok(None) => return show(out.make_contiguous()) + "no reply\n",
        Err(error) => out.push_back(Err(error)),
    }
    show(out.make_contiguous())
}

pub(crate) fn origin(wire: Wire) -> Origin {
    Origin {
        provider: "lab".to_owned(),
        model: "m-1".to_owned(),
        wire,
        base_url: "http://x/v1".to_owned(),
        key_env: None,
    }
}
