//! One connection: requests in, one after the other, and replies out, byte for byte as scripted.
//!
//! HTTP/1.1 is spoken by hand, because a server library would rightly refuse to misbehave.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::script::{BEAT, Step, steps};
use crate::server::{Shared, refusal};
use crate::{Ended, Gate, Reply, Request, Wire};

/// Longest head of a request, in bytes: far over what any client sends, so that a stranger is cut off.
const MAX_HEAD: usize = 64 * 1024;

/// A request as it stands on the wire.
struct Raw {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Serves a connection to its end.
pub(crate) async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Ok(Some(raw)) = read(&mut stream, &mut buffer).await {
        let wire = Wire::at(&raw.path).filter(|_| raw.method == "POST");
        let Some(wire) = wire else {
            let (request, _) = Request::new(Wire::Responses, 0, number, raw.headers, raw.body);
            if send(&mut stream, steps(&request, &Reply::new().status(404)), &[]).await != Ended::Sent {
                return;
            }
            continue;
        };
        let (request, read) = shared.arrived(wire, number, raw.headers, raw.body);
        let reply = match read {
            Ok(()) => shared.think(&request),
            Err(error) => refusal(&format!("the body is not a request: {error}")),
        };
        let ended = send(&mut stream, steps(&request, &reply), &reply.timing.sent).await;
        // A connection that was cut is gone before anybody hears of it.
        let open = (ended == Ended::Sent).then_some(stream);
        shared.ended(&request, ended);
        if ended != Ended::ClientLeft {
            reply.timing.sent.iter().for_each(Gate::open);
        }
        match open {
            Some(open) => stream = open,
            None => return,
        }
    }
}

/// Does what the script says, for as long as the client listens.
async fn send(stream: &mut TcpStream, steps: Vec<Step>, stalled: &[Gate]) -> Ended {
    let (mut reader, mut writer) = stream.split();
    let played = tokio::select! {
        // What is sent counts before the client's leaving: a client may go as soon as it has all it wants.
        biased;
        played = play(&mut writer, steps, stalled) => played,
        () = left(&mut reader) => Ok(Ended::ClientLeft),
    };
    played.unwrap_or(Ended::ClientLeft)
}

async fn play(writer: &mut WriteHalf<'_>, steps: Vec<Step>, stalled: &[Gate]) -> io::Result<Ended> {
    for step in steps {
        match step {
            Step::Write(bytes) => writer.write_all(&bytes).await?,
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Wait(gate) => gate.opened().await,
            Step::Stall => {
                stalled.iter().for_each(Gate::open);
                std::future::pending::<()>().await;
            }
            Step::Beat(bytes) => loop {
                writer.write_all(&bytes).await?;
                tokio::time::sleep(BEAT).await;
            },
            Step::Close => return Ok(Ended::Cut),
            Step::Reset => {
                let stream: &TcpStream = writer.as_ref();
                stream.set_zero_linger()?;
                return Ok(Ended::Cut);
            }
        }
    }
    Ok(Ended::Sent)
}

/// Ends when the client has closed the connection. What it sends meanwhile is left for the next request.
async fn left(reader: &mut ReadHalf<'_>) {
    if matches!(reader.peek(&mut [0]).await, Ok(1..)) {
        std::future::pending::<()>().await;
    }
}

/// The next request; none when the client has closed the connection.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Raw>> {
    let head = loop {
        if let Some(at) = find(buffer, b"\r\n\r\n") {
            break take(buffer, at, 4);
        }
        if buffer.len() > MAX_HEAD || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    let mut lines = head.lines();
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let body = if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        chunked(stream, buffer).await?
    } else {
        let length = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        exactly(stream, buffer, length).await?
    };
    Ok(Some(Raw { method, path, headers, body }))
}

async fn chunked(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = loop {
            if let Some(at) = find(buffer, b"\r\n") {
                break take(buffer, at, 2);
            }
            more(stream, buffer).await?;
        };
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16);
        let size = size.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let chunk = exactly(stream, buffer, size + 2).await?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

async fn exactly(stream: &mut TcpStream, buffer: &mut Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    Ok(buffer.drain(..length).collect())
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    if stream.read_buf(buffer).await? == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Takes the text before `at` out of the buffer, and the `gap` bytes that follow it.
fn take(buffer: &mut Vec<u8>, at: usize, gap: usize) -> String {
    let text = String::from_utf8_lossy(&buffer[..at]).into_owned();
    buffer.drain(..at + gap);
    text
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
