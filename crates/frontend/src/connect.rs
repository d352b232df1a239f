//! Reaching an owner: trying for a while, and the first lines of both sides.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;

use stdx::AbsPath;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use crate::limits::{CONNECT_PATIENCE, CONNECT_PAUSE, GREETING, MAX_ANSWER_LINE};
use crate::line::Lines;
use crate::place::own_uid;
use crate::serve::may_speak;
use crate::wire::{self, Greeting, Hello, Incoming, Notice, PROTOCOL};
use crate::{Code, Fault};

/// Why an owner cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there, and no owner lives that would begin to.
    #[error("nobody listens on `{path}`; the tree has no owner any more, so it can be resumed")]
    Nobody {
        /// The socket.
        path: AbsPath,
    },
    /// The owner lives and does not listen, or does not say hello.
    #[error("the process that drives the tree does not answer on `{path}`; wait for it or end it, then try again")]
    Silent {
        /// The socket.
        path: AbsPath,
    },
    /// The system does not let us.
    #[error("`{path}` may not be opened by you; run this as the user who drives the tree")]
    Permission {
        /// The socket.
        path: AbsPath,
    },
    /// Something else has its name.
    #[error("`{path}` is not a socket; move it away and restart the process that drives the tree")]
    NotASocket {
        /// What is there.
        path: AbsPath,
    },
    /// Somebody else answers.
    #[error("user {uid} answers on `{path}`, who is neither you nor root; nothing was sent. Remove that socket")]
    Stranger {
        /// The socket.
        path: AbsPath,
        /// Who it is.
        uid: u32,
    },
    /// The owner speaks another protocol.
    #[error(
        "the process that drives the tree speaks protocol {theirs} and this one {PROTOCOL}; use the same version of \
         `agent` for both, or end that process and resume the tree"
    )]
    Version {
        /// What the owner speaks.
        theirs: u32,
    },
    /// The owner refuses to speak.
    #[error(transparent)]
    Refused(Fault),
    /// The system refused for another reason.
    #[error("cannot speak to the owner of the tree on `{path}`: {source}; try again, or end that process")]
    Io {
        /// The socket.
        path: AbsPath,
        /// What the system said.
        source: io::Error,
    },
}

impl ConnectError {
    /// What it is for programs.
    pub fn code(&self) -> Code {
        match self {
            Self::Nobody { .. } | Self::Silent { .. } | Self::Io { .. } | Self::NotASocket { .. } => Code::Gone,
            Self::Permission { .. } | Self::Stranger { .. } => Code::Forbidden,
            Self::Version { .. } => Code::Version,
            Self::Refused(fault) => fault.code,
        }
    }
}

/// A connection on which both sides have said hello.
pub(crate) struct Contact {
    pub(crate) hello: Hello,
    pub(crate) lines: Lines<OwnedReadHalf>,
    pub(crate) write: OwnedWriteHalf,
}

/// How one attempt failed.
pub(crate) enum Miss {
    /// It may work in a moment.
    Yet,
    Never(ConnectError),
}

/// Tries to reach the owner, again and again for a while as long as it lives.
pub(crate) async fn contact(path: &AbsPath, alive: impl Fn() -> bool) -> Result<Contact, ConnectError> {
    let deadline = Instant::now() + CONNECT_PATIENCE;
    loop {
        // Asked before the attempt: an owner that dies after it has not been missed.
        let alive = alive();
        match attempt(path).await {
            Ok(contact) => return Ok(contact),
            Err(Miss::Never(error)) => return Err(error),
            Err(Miss::Yet) if !alive => return Err(ConnectError::Nobody { path: path.clone() }),
            Err(Miss::Yet) if Instant::now() >= deadline => return Err(ConnectError::Silent { path: path.clone() }),
            Err(Miss::Yet) => tokio::time::sleep(CONNECT_PAUSE).await,
        }
    }
}

async fn attempt(path: &AbsPath) -> Result<Contact, Miss> {
    let stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error) => return Err(missed(path, error)),
    };
    let peer = stream.peer_cred().map_err(|source| Miss::Never(ConnectError::Io { path: path.clone(), source }))?;
    // Root may look after everybody's trees.
    if !may_speak(peer.uid(), own_uid()) && own_uid() != 0 {
        return Err(Miss::Never(ConnectError::Stranger { path: path.clone(), uid: peer.uid() }));
    }
    let greeted = tokio::time::timeout(GREETING, greet(stream)).await;
    greeted.unwrap_or_else(|_| Err(Miss::Never(ConnectError::Silent { path: path.clone() })))
}

pub(crate) fn missed(path: &AbsPath, error: io::Error) -> Miss {
    let never = |error| Miss::Never(error);
    match error.kind() {
        ErrorKind::NotFound => Miss::Yet,
        ErrorKind::PermissionDenied => never(ConnectError::Permission { path: path.clone() }),
        _ if fs::metadata(path).is_ok_and(|found| !found.file_type().is_socket()) => {
            never(ConnectError::NotASocket { path: path.clone() })
        }
        // Left by a dead owner and not replaced yet, or more of us than its queue takes.
        ErrorKind::ConnectionRefused | ErrorKind::WouldBlock => Miss::Yet,
        _ => never(ConnectError::Io { path: path.clone(), source: error }),
    }
}

async fn greet(stream: UnixStream) -> Result<Contact, Miss> {
    let (read, mut write) = stream.into_split();
    let mut lines = Lines::new(read, MAX_ANSWER_LINE);
    let hello = wire::line(&Greeting { hello: Hello::ours(None, None) });
    // An owner that turns us away has closed its end already; it still has said why.
    let _ = write.write_all(&hello.unwrap_or_default()).await;
    // An owner that stops at this moment says nothing.
    let Ok(Some(line)) = lines.next().await else { return Err(Miss::Yet) };
    match wire::incoming(&line) {
        Ok(Incoming::Notice(Notice::Hello(hello))) if hello.protocol == PROTOCOL => Ok(Contact { hello, lines, write }),
        Ok(Incoming::Notice(Notice::Hello(hello))) => {
            Err(Miss::Never(ConnectError::Version { theirs: hello.protocol }))
        }
        Ok(Incoming::Notice(Notice::Fault(fault))) => Err(Miss::Never(ConnectError::Refused(fault))),
        _ => Err(Miss::Never(ConnectError::Refused(
            Fault::new(Code::Version, "who answers there does not speak the protocol of a tree's owner")
                .hint("use the same version of `agent` as the owner of the tree"),
        ))),
    }
}
