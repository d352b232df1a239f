//! The server: a listener on loopback, a thread of its own, and a record of every request.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};

use crate::fail::{fail, must};
use crate::gate::PATIENCE;
use crate::{Ended, Reply, Request, Wire, connection};

type Brain = dyn Fn(&Request) -> Reply + Send + Sync;

/// A model server whose replies a test decides. It ends, with all its connections, when it is dropped.
///
/// It speaks every [`Wire`]; the path of a request says which. A brain need not know: requests and replies are the same
/// on each.
///
/// It runs on its own thread, so tests with and without a runtime use it alike. The brain is called on that thread
/// and must not block: to hold a request open, answer with [`Reply::wait_for`]. A panic in the brain answers that
/// request with status 400 and fails the test when the server is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the server and its connections share.
pub(crate) struct Shared {
    brain: Mutex<Arc<Brain>>,
    record: Mutex<Record>,
    threads: Condvar,
    tasks: Notify,
    pub(crate) connections: AtomicUsize,
}

#[derive(Default)]
struct Record {
    requests: Vec<Request>,
    running: usize,
    most: usize,
    panics: Vec<String>,
}

impl Server {
    /// A server on a free port of 127.0.0.1 that answers with what `brain` makes of each request.
    #[track_caller]
    pub fn start<R: Into<Reply>>(brain: impl Fn(&Request) -> R + Send + Sync + 'static) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), brain)
    }

    /// As [`Server::start`], at an address that an earlier server had.
    #[track_caller]
    pub fn start_at<R: Into<Reply>>(
        address: SocketAddr,
        brain: impl Fn(&Request) -> R + Send + Sync + 'static,
    ) -> Self {
        let listener = must(format_args!("the model server cannot listen at {address}"), StdListener::bind(address));
        let address = must("the model server has no address", listener.local_addr());
        let shared = Arc::new(Shared {
            brain: Mutex::new(boxed(brain)),
            record: Mutex::default(),
            threads: Condvar::new(),
            tasks: Notify::new(),
            connections: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::Builder::new().name("model server".into()).spawn(move || {
            must("the model server cannot run", serve(listener, &serving, stopped));
        });
        let thread = must("the model server has no thread", thread);
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// A base URL at which nobody listens: connections are refused.
    #[track_caller]
    pub fn nowhere() -> String {
        let listener = must("no free port", StdListener::bind(("127.0.0.1", 0)));
        base_url(must("no address", listener.local_addr()))
    }

    /// Answers from now on with what `brain` makes of a request.
    pub fn set_brain<R: Into<Reply>>(&self, brain: impl Fn(&Request) -> R + Send + Sync + 'static) {
        *lock(&self.shared.brain) = boxed(brain);
    }

    /// The base URL, as it stands in a configuration: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        base_url(self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far, in the order in which they had arrived whole.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.record).requests.clone()
    }

    /// The requests of one agent.
    pub fn requests_of(&self, thread: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.thread() == thread).collect()
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The most requests that were open at one time.
    pub fn most_at_once(&self) -> usize {
        lock(&self.shared.record).most
    }

    /// How many requests are open now.
    pub fn running(&self) -> usize {
        lock(&self.shared.record).running
    }

    /// Blocks this thread until `enough` of the requests so far, or fails the test after 50 s and shows them. It is
    /// looked at again whenever a request arrives or ends. Not for async code.
    #[track_caller]
    pub fn wait_until(&self, mut enough: impl FnMut(&[Request]) -> bool) {
        let waiting = |record: &mut Record| !enough(&record.requests);
        let waited = self.shared.threads.wait_timeout_while(lock(&self.shared.record), PATIENCE, waiting);
        let (record, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            let requests = record.requests.clone();
            drop(record);
            fail(format_args!("the requests that this test waits for did not come; these did: {requests:#?}"));
        }
    }

    /// As [`Server::wait_until`], for async code, and without a limit: paused time would let any limit pass at once.
    pub async fn until(&self, mut enough: impl FnMut(&[Request]) -> bool) {
        loop {
            // Registered before the look, so that an arrival in between is not missed.
            let notified = self.shared.tasks.notified();
            if enough(&self.requests()) {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            fail("the model server itself panicked");
        }
        let panics = std::mem::take(&mut lock(&self.shared.record).panics);
        if !panics.is_empty() && !std::thread::panicking() {
            fail(format_args!("the brain of the model server panicked: {}", panics.join("; ")));
        }
    }
}

impl Shared {
    /// Puts a request on record.
    pub(crate) fn arrived(
        &self,
        wire: Wire,
        connection: usize,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> (Request, Result<(), String>) {
        let mut record = lock(&self.record);
        let (request, read) = Request::new(wire, record.requests.len() + 1, connection, headers, body);
        record.requests.push(request.clone());
        record.running += 1;
        record.most = record.most.max(record.running);
        drop(record);
        self.changed();
        (request, read)
    }

    /// What the brain makes of it.
    pub(crate) fn think(&self, request: &Request) -> Reply {
        let brain = lock(&self.brain).clone();
        catch_unwind(AssertUnwindSafe(|| brain(request))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned();
            let reply = refusal(&format!("the brain panicked: {text}"));
            lock(&self.record).panics.push(text);
            reply
        })
    }

    /// Puts the end of a request on record.
    pub(crate) fn ended(&self, request: &Request, how: Ended) {
        request.set_ended(how);
        lock(&self.record).running -= 1;
        self.changed();
    }

    fn changed(&self) {
        self.threads.notify_all();
        self.tasks.notify_waiters();
    }
}

/// Status 400 and why: nothing that a client would try again.
pub(crate) fn refusal(why: &str) -> Reply {
    Reply::new().status(400).body(serde_json::json!({"error": {"message": why}}).to_string())
}

fn serve(listener: StdListener, shared: &Arc<Shared>, stopped: oneshot::Receiver<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let accepting = async {
            loop {
                // An accept fails for reasons of the client's or for want of descriptors; the next one may not.
                match listener.accept().await {
                    Ok((stream, _)) => drop(tokio::spawn(connection::serve(stream, shared.clone()))),
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = stopped => {}
        }
        Ok(())
    })
}

fn boxed<R: Into<Reply>>(brain: impl Fn(&Request) -> R + Send + Sync + 'static) -> Arc<Brain> {
    Arc::new(move |request: &Request| brain(request).into())
}

fn base_url(address: SocketAddr) -> String {
    format!("http://{address}/v1")
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
