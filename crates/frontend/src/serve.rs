//! Answering on a socket for whoever owns a tree.

use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::Connection;
use crate::guests::Guests;
use crate::limits::{ACCEPT_PAUSE, FAREWELL, MAX_CONNECTIONS, SPARE, STALL};
use crate::place::own_uid;
use crate::wire::{self, Notice};
use crate::{Code, Desk, Fault, Listener};

/// Answers on a socket until `cancel` fires. Then nobody new is let in, waits end with a fault, events that are there
/// are still delivered for a second at most, and operations that have begun run to their end; when this returns, no
/// task of it is left and the socket's file is gone.
pub async fn serve(listener: Listener, desk: Arc<dyn Desk>, cancel: CancellationToken) {
    let house = House { stall: STALL, spare: SPARE, admits: |peer| may_speak(peer, own_uid()) };
    serve_with(listener, desk, cancel, house).await;
}

/// What a test may want otherwise.
#[derive(Clone, Copy)]
pub(crate) struct House {
    /// How long a client may take to read a line.
    pub(crate) stall: std::time::Duration,
    /// How long a client must have asked for nothing before it has to make room for another.
    pub(crate) spare: std::time::Duration,
    /// Whether processes of a user may speak.
    pub(crate) admits: fn(u32) -> bool,
}

/// Only the same user, and root, who may do everything anyway.
pub(crate) fn may_speak(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

pub(crate) async fn serve_with(listener: Listener, desk: Arc<dyn Desk>, cancel: CancellationToken, house: House) {
    let connections = TaskTracker::new();
    let guests = Guests::new(MAX_CONNECTIONS, house.spare);
    loop {
        let accepted = tokio::select! {
            () = cancel.cancelled() => break,
            accepted = listener.socket.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Some(fault) = refusal(&stream, house) {
            turn_away(stream, fault).await;
            continue;
        }
        let Some(seat) = guests.admit(tokio::time::Instant::now()) else {
            let fault =
                Fault::new(Code::Busy, format!("{MAX_CONNECTIONS} connections to this tree are at work already"));
            turn_away(stream, fault.hint("end one of the programs that are connected")).await;
            continue;
        };
        let connection =
            Connection { desk: Arc::clone(&desk), hello: listener.hello.clone(), cancel: cancel.clone(), house };
        connections.spawn(async move {
            connection.run(stream, seat).await;
        });
    }
    // First of all: who comes now shall not wait in a queue that nobody empties.
    drop(listener);
    connections.close();
    connections.wait().await;
}

fn refusal(stream: &UnixStream, house: House) -> Option<Fault> {
    match stream.peer_cred() {
        Ok(peer) if (house.admits)(peer.uid()) => None,
        Ok(peer) => {
            let message = format!("user {} may not speak to this tree, which user {} drives", peer.uid(), own_uid());
            Some(Fault::new(Code::Forbidden, message).hint("run it as the user who drives the tree"))
        }
        Err(error) => {
            Some(Fault::new(Code::Forbidden, format!("the system does not say whose connection this is: {error}")))
        }
    }
}

/// Tells why, and closes. A socket that nobody has written to takes a line at once.
async fn turn_away(mut stream: UnixStream, fault: Fault) {
    if let Ok(line) = wire::line(&Notice::Fault(fault)) {
        // Whoever does not take it has gone.
        let _ = tokio::time::timeout(FAREWELL, stream.write_all(&line)).await;
    }
}
