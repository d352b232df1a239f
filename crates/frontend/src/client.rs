//! The other side of the socket: speaking to a tree that another process drives.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use stdx::AbsPath;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::connect::{self, ConnectError, Contact};
use crate::limits::{MAX_LINE, OUTGOING};
use crate::line::Lines;
use crate::wire::{self, Hello, Incoming, Notice, Request, Response};
use crate::{Code, Delivery, Desk, Fault, Op, Reply, Subscription};

/// A connection to the owner of a tree. Cheap to clone; it closes with its last clone, and every wait with it.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    path: AbsPath,
    hello: Hello,
    next: AtomicU64,
    out: mpsc::Sender<Vec<u8>>,
    open: Arc<Open>,
    /// The reader and the writer; they end with this.
    _tasks: JoinSet<()>,
}

/// Requests without a response.
#[derive(Default)]
struct Open(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Result<Reply, Fault>>>,
    over: bool,
    /// Why the owner closed the connection, if it said so.
    said: Option<Fault>,
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The owner says no.
    #[error(transparent)]
    Refused(Fault),
    /// The connection ended before the answer.
    #[error(
        "the process that drives the tree went away in the middle{}; every message it had accepted is safe on disk: \
         look with `agent tree`, then repeat the request or run `agent resume`",
        because(.0.as_ref())
    )]
    Gone(Option<Fault>),
    /// The request does not fit on a line. Nothing was sent.
    #[error(
        "this message takes {bytes} bytes to send and {MAX_LINE} is the most; put it into a file and send the file's path"
    )]
    TooLong {
        /// Bytes of the line.
        bytes: usize,
    },
    /// The connection for events could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

fn because(fault: Option<&Fault>) -> String {
    fault.map(|fault| format!(" ({fault})")).unwrap_or_default()
}

impl Client {
    /// Connects to the owner that listens at `path`. An owner writes down where it listens before it does, so this
    /// tries for [`CONNECT_PATIENCE`](crate::CONNECT_PATIENCE), as long as `alive` says that the owner lives.
    ///
    /// # Errors
    /// Each says what to do; see [`ConnectError`].
    pub async fn connect(path: &AbsPath, alive: impl Fn() -> bool) -> Result<Self, ConnectError> {
        let Contact { hello, lines, write } = connect::contact(path, alive).await?;
        let (out, queue) = mpsc::channel(OUTGOING);
        let open = Arc::new(Open::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(write_lines(write, queue));
        tasks.spawn(read_lines(lines, Arc::clone(&open)));
        let next = AtomicU64::new(1);
        Ok(Self(Arc::new(Inner { path: path.clone(), hello, next, out, open, _tasks: tasks })))
    }

    /// What the owner said about itself.
    pub fn hello(&self) -> &Hello {
        &self.0.hello
    }

    /// Asks for one thing and waits for the answer. Requests of one client are answered side by side.
    ///
    /// # Errors
    /// When the owner refuses, or goes away before it has answered. A request that was sent may have been done then;
    /// a message may be sent again under the same request id.
    pub async fn request(&self, op: Op) -> Result<Reply, RequestError> {
        if let Op::Subscribe { .. } = op {
            return Err(RequestError::Refused(not_here()));
        }
        let inner = &*self.0;
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        let line = wire_line(&Request { id, op })?;
        let (sender, answer) = oneshot::channel();
        inner.open.enter(id, sender)?;
        let _leave = Leave { open: &inner.open, id };
        if inner.out.send(line).await.is_err() {
            return Err(inner.open.gone());
        }
        match answer.await {
            Ok(answer) => answer.map_err(RequestError::Refused),
            Err(_) => Err(inner.open.gone()),
        }
    }

    /// The tree's events after a sequence, or from now on, over a connection of their own: the owner holds them back
    /// as long as nobody takes them.
    ///
    /// # Errors
    /// When the owner has gone, or refuses.
    pub async fn subscribe(&self, after: Option<u64>) -> Result<Subscription, RequestError> {
        subscribe(self.0.path.clone(), after).await
    }
}

impl Desk for Client {
    fn call(&self, op: Op) -> BoxFuture<'_, Result<Reply, Fault>> {
        Box::pin(async move { self.request(op).await.map_err(Fault::from) })
    }

    fn events(&self, after: Option<u64>) -> Subscription {
        let skipped = Arc::new(AtomicU64::new(0));
        let path = self.0.path.clone();
        let counter = Arc::clone(&skipped);
        let opened = stream::once(async move {
            match events(path, after, counter).await {
                Ok(events) => events.left_stream(),
                Err(error) => stream::once(async move { Delivery::Broken(error.into()) }).right_stream(),
            }
        });
        Subscription::counting(opened.flatten(), skipped)
    }
}

impl From<RequestError> for Fault {
    fn from(error: RequestError) -> Self {
        let code = match &error {
            RequestError::Refused(fault) | RequestError::Connect(ConnectError::Refused(fault)) => return fault.clone(),
            RequestError::Gone(_) => Code::Gone,
            RequestError::TooLong { .. } => Code::TooLong,
            RequestError::Connect(error) => error.code(),
        };
        Self::new(code, error.to_string())
    }
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: u64, sender: oneshot::Sender<Result<Reply, Fault>>) -> Result<(), RequestError> {
        let mut state = self.lock();
        if state.over {
            return Err(RequestError::Gone(state.said.clone()));
        }
        state.waiting.insert(id, sender);
        Ok(())
    }

    fn gone(&self) -> RequestError {
        RequestError::Gone(self.lock().said.clone())
    }

    fn settle(&self, Response { id, outcome }: Response) {
        let waiting = self.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            // Whoever asked may not want to know any more.
            let _ = waiting.send(outcome.into());
        }
    }

    fn close(&self) {
        let mut state = self.lock();
        state.over = true;
        state.waiting.clear();
    }
}

/// Takes a request off the list, however its wait ends.
struct Leave<'a> {
    open: &'a Open,
    id: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.open.lock().waiting.remove(&self.id);
    }
}

fn not_here() -> Fault {
    Fault::new(Code::Usage, "events do not come as an answer").hint("use `subscribe`")
}

fn wire_line(request: &Request) -> Result<Vec<u8>, RequestError> {
    let line = wire::line(request)
        .map_err(|error| RequestError::Refused(Fault::new(Code::Usage, format!("it has no JSON form: {error}"))))?;
    // The break is no part of the line.
    let bytes = line.len() - 1;
    if bytes > MAX_LINE { Err(RequestError::TooLong { bytes }) } else { Ok(line) }
}

async fn write_lines(mut write: OwnedWriteHalf, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if write.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read_lines(mut lines: Lines<OwnedReadHalf>, open: Arc<Open>) {
    while let Ok(Some(line)) = lines.next().await {
        match wire::incoming(&line) {
            Ok(Incoming::Response(response)) => open.settle(response),
            Ok(Incoming::Notice(Notice::Fault(fault))) => open.lock().said = Some(fault),
            Ok(Incoming::Notice(_) | Incoming::Skipped | Incoming::Unknown) => {}
            Err(error) => {
                open.lock().said = Some(garbage(&error));
                break;
            }
        }
    }
    open.close();
}

fn garbage(error: &serde_json::Error) -> Fault {
    Fault::new(Code::Version, format!("what it said is not of this protocol: {error}"))
}

async fn subscribe(path: AbsPath, after: Option<u64>) -> Result<Subscription, RequestError> {
    let skipped = Arc::new(AtomicU64::new(0));
    let events = events(path, after, Arc::clone(&skipped)).await?;
    Ok(Subscription::counting(events, skipped))
}

/// Opens a connection for events.
async fn events(
    path: AbsPath,
    after: Option<u64>,
    skipped: Arc<AtomicU64>,
) -> Result<impl futures::Stream<Item = Delivery> + Send + 'static, RequestError> {
    // Once is enough: the owner did listen when the client connected.
    let Contact { mut lines, mut write, .. } = connect::contact(&path, || false).await?;
    let line = wire_line(&Request { id: 1, op: Op::Subscribe { after } })?;
    write.write_all(&line).await.map_err(|_| RequestError::Gone(None))?;
    loop {
        let Ok(Some(line)) = lines.next().await else { return Err(RequestError::Gone(None)) };
        match wire::incoming(&line) {
            Ok(Incoming::Response(response)) => {
                Result::from(response.outcome).map_err(RequestError::Refused)?;
                break;
            }
            Ok(Incoming::Notice(Notice::Fault(fault))) => return Err(RequestError::Refused(fault)),
            Ok(Incoming::Notice(_) | Incoming::Skipped | Incoming::Unknown) => {}
            Err(error) => return Err(RequestError::Refused(garbage(&error))),
        }
    }
    let source = Source { lines, _write: write, skipped, over: false };
    Ok(stream::unfold(source, |mut source| async move {
        let delivery = source.next().await?;
        Some((delivery, source))
    }))
}

/// A connection that gets events and nothing else.
struct Source {
    lines: Lines<OwnedReadHalf>,
    /// Open as long as events are wanted: its end would be the client's going.
    _write: OwnedWriteHalf,
    skipped: Arc<AtomicU64>,
    over: bool,
}

impl Source {
    async fn next(&mut self) -> Option<Delivery> {
        while !self.over {
            let Ok(Some(line)) = self.lines.next().await else {
                self.over = true;
                return Some(Delivery::Broken(RequestError::Gone(None).into()));
            };
            let delivery = match wire::incoming(&line) {
                Ok(Incoming::Notice(notice)) => match notice {
                    Notice::Event(event) => return Some(Delivery::Event(event)),
                    Notice::Gap(gap) => return Some(Delivery::Gap(gap)),
                    Notice::Lagged(lagged) => Some(Delivery::Lagged(lagged)),
                    Notice::Fault(fault) => Some(Delivery::Broken(fault)),
                    Notice::Ended {} => None,
                    Notice::Hello(_) => continue,
                },
                Ok(Incoming::Skipped) => {
                    self.skipped.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(Incoming::Response(_) | Incoming::Unknown) => continue,
                Err(error) => Some(Delivery::Broken(garbage(&error))),
            };
            self.over = true;
            return delivery;
        }
        None
    }
}
