//! What commands leave behind outside their groups: daemons, and whatever else got itself a session of its own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use protocol::Token;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tool_api::Running;

/// Between two looks whether a stray still runs. A look reads a file or two of each younger process.
const LOOK: Duration = Duration::from_secs(1);

/// How long the end of an agent waits until the ends of its strays are noticed and written down.
const NOTICE: Duration = Duration::from_secs(1);

/// The strays of one agent.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    all: Mutex<Vec<Running>>,
    /// Changes when somebody wants them looked at now.
    looks: watch::Sender<()>,
    /// Changes when one is off the list.
    gone: watch::Sender<()>,
}

impl Strays {
    fn with<T>(&self, with: impl FnOnce(&mut Vec<Running>) -> T) -> T {
        with(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The oldest process of each command that left some.
    pub(crate) fn running(&self) -> Vec<Running> {
        self.with(|all| all.clone())
    }

    /// Lists a process that a command left behind.
    pub(crate) fn list(&self, stray: Running) {
        self.with(|all| all.push(stray));
    }

    /// Returns when every process with this mark is gone. `command` is the process id that the command had.
    pub(crate) async fn watch(&self, token: Token, command: i32) {
        let mut looks = self.looks.subscribe();
        loop {
            tokio::select! {
                () = sleep(LOOK) => {}
                _ = looks.changed() => {}
            }
            match exec::left_behind(token, command).await {
                Some(pid) => self.with(|all| {
                    for stray in all.iter_mut().filter(|stray| stray.token == token) {
                        stray.pid = pid;
                    }
                }),
                None => return,
            }
        }
    }

    /// Takes a stray off the list, when its end is written down.
    pub(crate) fn buried(&self, token: Token) {
        self.with(|all| all.retain(|stray| stray.token != token));
        self.gone.send_replace(());
    }

    /// Waits until those that have been ended are off the list.
    pub(crate) async fn settle(&self, survivors: &HashSet<Token>) {
        let mut gone = self.gone.subscribe();
        self.looks.send_replace(());
        let settled = async {
            while self.with(|all| all.iter().any(|stray| !survivors.contains(&stray.token))) {
                if gone.changed().await.is_err() {
                    return;
                }
            }
        };
        if timeout(NOTICE, settled).await.is_err() {
            tracing::warn!("the ledger does not take the ends of processes that left their group");
        }
    }
}
