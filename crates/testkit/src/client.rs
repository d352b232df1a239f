//! A bare client for the kit's own tests: it sees bytes and how they end, and forgives nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::{Server, Wire};

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) end: End,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As HTTP says that it should.
    Whole,
    /// The connection was closed before that.
    Closed,
    /// The connection was reset.
    Reset,
    /// The connection is open and nothing comes.
    Stalled,
}

impl Client {
    pub(crate) fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, body: &str) {
        self.send_over(Wire::Responses, body);
    }

    pub(crate) fn send_over(&mut self, wire: Wire, body: &str) {
        let path = wire.path();
        let head = format!("POST /v1{path} HTTP/1.1\r\nHost: x\r\nThread-Id: t1\r\nSession-Id: s1\r\n");
        self.write(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn ask(&mut self, body: &str) -> Answer {
        self.send(body);
        self.answer()
    }

    /// Reads an answer to its end. `Stalled` when nothing came for a while: only for scripts that stall.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = Answer { status: 0, head: String::new(), chunks: Vec::new(), end: End::Whole };
        let Some(head) = self.until(b"\r\n\r\n", &mut answer) else { return answer };
        answer.head = head.to_ascii_lowercase();
        answer.status = answer.head.split(' ').nth(1).unwrap().parse().unwrap();
        if let Some((_, rest)) = answer.head.split_once("content-length: ") {
            let length = rest.lines().next().unwrap().parse().unwrap();
            while self.buffer.len() < length && self.more(&mut answer) {}
            let length = length.min(self.buffer.len());
            answer.chunks.push(self.buffer.drain(..length).collect());
            return answer;
        }
        assert!(answer.head.contains("transfer-encoding: chunked"), "{}", answer.head);
        loop {
            let Some(size) = self.until(b"\r\n", &mut answer) else { return answer };
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            while self.buffer.len() < size + 2 {
                if !self.more(&mut answer) {
                    return answer;
                }
            }
            let mut chunk: Vec<u8> = self.buffer.drain(..size + 2).collect();
            assert!(chunk.ends_with(b"\r\n"));
            chunk.truncate(size);
            if size == 0 {
                assert!(self.buffer.is_empty(), "bytes after the end");
                return answer;
            }
            answer.chunks.push(chunk);
        }
    }

    fn until(&mut self, what: &[u8], answer: &mut Answer) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(what.len()).position(|window| window == what) {
                let text: Vec<u8> = self.buffer.drain(..at + what.len()).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if !self.more(answer) {
                return None;
            }
        }
    }

    /// Reads on; false, with the end noted, when nothing more comes.
    fn more(&mut self, answer: &mut Answer) -> bool {
        let mut piece = [0; 8192];
        answer.end = match self.stream.read(&mut piece) {
            Ok(0) => End::Closed,
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                return true;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Reset,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => End::Stalled,
            Err(error) => panic!("{error}"),
        };
        false
    }

    /// From now on reading gives what is there and does not wait.
    pub(crate) fn impatient(&mut self) {
        self.stream.set_nonblocking(true).unwrap();
    }

    /// Whether the server has closed the connection; waits for it.
    pub(crate) fn closed(mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        matches!(self.stream.read(&mut [0; 16]), Ok(0) | Err(_))
    }
}

impl Answer {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    /// The JSON of each event.
    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        let text = self.text().replace("\r\n", "\n");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// Types of the events.
    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The finished items, as the events give them.
    pub(crate) fn items(&self) -> Vec<serde_json::Value> {
        let done = |event: &serde_json::Value| event["type"] == "response.output_item.done";
        self.events().into_iter().filter(done).map(|mut event| event["item"].take()).collect()
    }
}
