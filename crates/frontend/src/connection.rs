//! One client of an owner.
//!
//! One loop reads; each request has a task of its own; one task writes what they all have to say. What only waits (the
//! end of a task, events) ends with the client; what does something runs to its end whether or not somebody listens.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::guests::Seat;
use crate::limits::{FAREWELL, GREETING, MAX_AT_ONCE, MAX_CONNECTIONS, MAX_LINE, MAX_WAITS, OUTGOING};
use crate::line::{LineError, Lines};
use crate::serve::House;
use crate::wire::{self, Greeting, Hello, Notice, PROTOCOL, Request, Response};
use crate::{Code, Delivery, Desk, Fault, Op, Reply, Subscription};

/// What a connection is made of.
pub(crate) struct Connection {
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) hello: Hello,
    /// Fires when the owner stops.
    pub(crate) cancel: CancellationToken,
    pub(crate) house: House,
}

/// What the tasks of one connection share.
#[derive(Clone)]
struct Session {
    desk: Arc<dyn Desk>,
    out: mpsc::Sender<Vec<u8>>,
    /// Fires when the owner stops.
    cancel: CancellationToken,
    /// Fires then too, and when the client has gone.
    gone: CancellationToken,
    tasks: TaskTracker,
    at_once: Arc<Semaphore>,
    waits: Arc<Semaphore>,
    subscribed: Arc<AtomicBool>,
}

impl Connection {
    /// Serves one client until it goes, does what is no protocol, has to make room, or the owner stops.
    pub(crate) async fn run(self, stream: UnixStream, seat: Seat) {
        let (read, write) = stream.into_split();
        let (out, queue) = mpsc::channel(OUTGOING);
        let gone = self.cancel.child_token();
        let writer = tokio::spawn(write_lines(write, queue, self.cancel.clone(), gone.clone(), self.house));
        let session = Session {
            desk: self.desk,
            out,
            cancel: self.cancel,
            gone,
            tasks: seat.tasks.clone(),
            at_once: Arc::new(Semaphore::new(MAX_AT_ONCE)),
            waits: Arc::new(Semaphore::new(MAX_WAITS)),
            subscribed: Arc::default(),
        };
        session.notice(Notice::Hello(self.hello)).await;
        let mut lines = Lines::new(read, MAX_LINE);
        let talked = tokio::select! {
            talked = session.talk(&mut lines, &seat) => talked,
            () = seat.leave.cancelled() => Err(makes_room()),
        };
        if let Err(fault) = talked {
            session.notice(Notice::Fault(fault)).await;
        }
        session.gone.cancel();
        session.tasks.close();
        session.tasks.wait().await;
        // The last sender: the writer ends when the queue is empty.
        drop(session);
        if let Err(error) = writer.await {
            tracing::error!(%error, "the writer of a connection broke down");
        }
    }
}

impl Session {
    /// Reads and begins requests. An error is the end of the connection and is told to the client.
    async fn talk(&self, lines: &mut Lines<OwnedReadHalf>, seat: &Seat) -> Result<(), Fault> {
        let Ok(first) = tokio::time::timeout(GREETING, self.read(lines)).await else {
            return Err(Fault::new(Code::Usage, "no hello came").hint(HELLO_HINT));
        };
        let Some(first) = first? else { return Ok(()) };
        check_hello(&first)?;
        while let Some(line) = self.read(lines).await? {
            seat.asks(Instant::now());
            match wire::request(&line) {
                Ok(request) => self.begin(request).await?,
                Err((Some(id), fault)) => self.respond(id, Err(fault)).await,
                Err((None, fault)) => return Err(fault),
            }
        }
        Ok(())
    }

    /// The next line; none when there is nobody any more to read from.
    async fn read(&self, lines: &mut Lines<OwnedReadHalf>) -> Result<Option<Vec<u8>>, Fault> {
        let line = tokio::select! {
            biased;
            () = self.gone.cancelled() => return Ok(None),
            line = lines.next() => line,
        };
        match line {
            Ok(line) => Ok(line),
            Err(LineError::TooLong(max)) => {
                let fault = Fault::new(Code::TooLong, format!("a line may have {max} bytes, and this one has more"));
                Err(fault.hint("put a long message into a file and send its path"))
            }
            // Nobody is left to be told.
            Err(LineError::Io(_)) => Ok(None),
        }
    }

    async fn begin(&self, Request { id, op }: Request) -> Result<(), Fault> {
        if let Op::Subscribe { after } = op {
            self.subscribe(id, after).await;
        } else if op.only_waits() {
            let Ok(place) = Arc::clone(&self.waits).try_acquire_owned() else {
                let fault = Fault::new(Code::Busy, format!("this connection waits for {MAX_WAITS} tasks already"))
                    .hint("wait for one of them to end, or open another connection");
                self.respond(id, Err(fault)).await;
                return Ok(());
            };
            let session = self.clone();
            self.tasks.spawn(async move {
                let outcome = tokio::select! {
                    biased;
                    outcome = session.call(op) => Some(outcome),
                    () = session.cancel.cancelled() => Some(Err(let_go())),
                    () = session.gone.cancelled() => None,
                };
                if let Some(outcome) = outcome {
                    session.respond(id, outcome).await;
                }
                drop(place);
            });
        } else {
            // These end soon, so nothing is read meanwhile: a client that asks faster than we answer has to wait.
            let place = Arc::clone(&self.at_once).acquire_owned().await;
            let place = place.map_err(|_| let_go())?;
            let session = self.clone();
            self.tasks.spawn(async move {
                let outcome = session.call(op).await;
                session.respond(id, outcome).await;
                drop(place);
            });
        }
        Ok(())
    }

    /// Asks the desk. A panic over there is one failed request.
    async fn call(&self, op: Op) -> Result<Reply, Fault> {
        AssertUnwindSafe(self.desk.call(op)).catch_unwind().await.unwrap_or_else(|_| {
            Err(Fault::new(Code::Internal, "the owner of the tree broke down over this request")
                .hint("look with `agent tree` what has become of it"))
        })
    }

    async fn subscribe(&self, id: u64, after: Option<u64>) {
        if self.subscribed.swap(true, Ordering::SeqCst) {
            let fault = Fault::new(Code::Usage, "this connection gets the events already");
            return self.respond(id, Err(fault.hint("open another connection for another subscription"))).await;
        }
        let events = self.desk.events(after);
        self.respond(id, Ok(Reply::Subscribed)).await;
        let session = self.clone();
        self.tasks.spawn(async move { session.pump(events).await });
    }

    /// Sends events as fast as the client reads them. The subscription holds its place meanwhile.
    async fn pump(&self, mut events: Subscription) {
        loop {
            let delivery = tokio::select! {
                biased;
                () = self.gone.cancelled() => break,
                delivery = events.next() => delivery,
            };
            if self.deliver(delivery).await.is_break() {
                return;
            }
        }
        // The owner stops: what has happened until now is told. (To a client that has gone nothing is.)
        while self.cancel.is_cancelled() {
            let delivery = events.next().now_or_never().flatten();
            if self.deliver(delivery).await.is_break() {
                return;
            }
        }
    }

    async fn deliver(&self, delivery: Option<Delivery>) -> std::ops::ControlFlow<()> {
        let (notice, last) = match delivery {
            Some(Delivery::Event(event)) => (Notice::Event(event), false),
            Some(Delivery::Gap(gap)) => (Notice::Gap(gap), false),
            Some(Delivery::Lagged(lagged)) => (Notice::Lagged(lagged), true),
            Some(Delivery::Broken(fault)) => (Notice::Fault(fault), true),
            None => (Notice::Ended {}, true),
        };
        let Some(line) = encode(&notice) else { return std::ops::ControlFlow::Continue(()) };
        let Ok(place) = self.out.reserve().await else { return std::ops::ControlFlow::Break(()) };
        if last {
            // Before the client can know, so that it may subscribe again as soon as it does.
            self.subscribed.store(false, Ordering::SeqCst);
        }
        place.send(line);
        if last { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    }

    async fn respond(&self, id: u64, outcome: Result<Reply, Fault>) {
        let response = Response { id, outcome: outcome.into() };
        let line = encode(&response).or_else(|| {
            let fault = Fault::new(Code::Internal, "the answer has no JSON form").hint("this is a fault of `agent`");
            encode(&Response { id, outcome: Err(fault).into() })
        });
        self.say(line).await;
    }

    async fn notice(&self, notice: Notice) {
        self.say(encode(&notice)).await;
    }

    async fn say(&self, line: Option<Vec<u8>>) {
        if let Some(line) = line {
            // Without a writer there is no client.
            let _ = self.out.send(line).await;
        }
    }
}

const HELLO_HINT: &str = r#"the first line of a client is {"hello":{"protocol":1}}"#;

fn check_hello(line: &[u8]) -> Result<(), Fault> {
    let Ok(Greeting { hello }) = serde_json::from_slice(line) else {
        return Err(Fault::new(Code::Usage, "the first line is not a hello").hint(HELLO_HINT));
    };
    if hello.protocol == PROTOCOL {
        return Ok(());
    }
    let message = format!("the owner of this tree speaks protocol {PROTOCOL}, and you speak {}", hello.protocol);
    Err(Fault::new(Code::Version, message).hint("use the same version of `agent` for both"))
}

fn makes_room() -> Fault {
    let message =
        format!("{MAX_CONNECTIONS} connections to this tree are open, and this one had asked for nothing longest");
    Fault::new(Code::Busy, message).hint("connect again when there is something to ask")
}

fn let_go() -> Fault {
    Fault::new(Code::ShuttingDown, "the owner let go of the tree before this was done")
        .hint("what it had accepted is on disk: `agent tree` shows it, `agent resume --continue` goes on")
}

fn encode(value: &impl serde::Serialize) -> Option<Vec<u8>> {
    wire::line(value).inspect_err(|error| tracing::error!(%error, "something has no JSON form")).ok()
}

/// Writes lines until there is no sender any more. A client that does not take them in time has gone.
async fn write_lines(
    mut write: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    cancel: CancellationToken,
    gone: CancellationToken,
    house: House,
) {
    let mut farewell = pin!(async {
        cancel.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    });
    while let Some(line) = queue.recv().await {
        let taken = tokio::select! {
            result = write.write_all(&line) => result.is_ok(),
            () = tokio::time::sleep(house.stall) => false,
            () = &mut farewell => false,
        };
        if !taken {
            tracing::debug!("a client does not read and is cut off");
            break;
        }
    }
    gone.cancel();
}
