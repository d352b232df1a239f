//! Reaching a tree: becoming its owner, or speaking to the process that is.

use std::sync::Arc;
use std::time::Duration;

use frontend::{Client, Listener, serve, socket_path};
use orchestrator::{Options, Tree, TreeError};
use protocol::TreeId;
use rollout::{LockError, OwnerHint};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;
use crate::output;
use crate::render::oddities;
use crate::wire::{Setting, alive};

/// How often reaching is tried while owners come and go: each try already waits for an owner that is just starting.
const TRIES: usize = 20;

/// Between two tries; an owner that lets go needs a moment to flush.
const PAUSE: Duration = Duration::from_millis(100);

/// Pauses that an owner gets which lets go of its tree: half a minute to end its turns and processes in.
const MAX_PAUSES: usize = 300;

/// A tree that can be spoken to.
pub(crate) enum Reached {
    /// This process drives it now.
    Owner(Owned),
    /// Another process does.
    Other(Client),
}

/// A tree that this process drives, and that others can reach meanwhile.
pub(crate) struct Owned {
    pub(crate) tree: Tree,
    pub(crate) door: Served,
    /// What taking it over found; nothing for a new one.
    pub(crate) found: frontend::Report,
}

/// The control socket of a tree that this process drives.
pub(crate) struct Served {
    cancel: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Served {
    /// Opens the socket. Without one the tree works all the same; others are told nobody answers.
    pub(crate) async fn open(setting: &Setting, tree: &Tree) -> Self {
        let cancel = CancellationToken::new();
        let path = place(setting, tree.id());
        let listener = match Listener::bind(&path, tree.id()).await {
            Ok(listener) => listener,
            Err(error) => {
                output::note(&format!("warning: other commands cannot reach this tree while it runs: {error}"));
                return Self { cancel, task: None };
            }
        };
        if let Err(error) = tree.listens_on(listener.path()) {
            output::note(&format!("warning: other commands may not find this tree while it runs: {error}"));
        }
        let task = tokio::spawn(serve(listener, Arc::new(tree.clone()), cancel.clone()));
        Self { cancel, task: Some(task) }
    }

    /// Closes it: waits are told that the owner lets go, what is under way is finished.
    pub(crate) async fn close(&mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            output::note(&format!("warning: the control socket broke down: {error}"));
        }
    }
}

/// Becomes the owner of a tree, or reaches the one it has. Two processes never drive one tree.
pub(crate) async fn reach(setting: &Setting, options: &Options, id: TreeId) -> Result<Reached, Failure> {
    let mut last = None;
    for _ in 0..TRIES {
        let hint = match Tree::open(options.clone(), id).await {
            Ok((tree, found)) => {
                for line in oddities(&found) {
                    output::note(&line);
                }
                let door = Served::open(setting, &tree).await;
                return Ok(Reached::Owner(Owned { tree, door, found }));
            }
            Err(TreeError::Lock(LockError::Owned(hint))) => hint,
            Err(error) => return Err(error.into()),
        };
        match connect(setting, id, &hint).await {
            Ok(client) => {
                passed_over(setting, &hint);
                return Ok(Reached::Other(client));
            }
            Err(error) => last = Some((hint, error)),
        }
        tokio::time::sleep(PAUSE).await;
        // An owner that lives and says nothing has had its time.
        if last.as_ref().is_some_and(|(hint, _)| hint.pid != 0 && alive(hint)) {
            break;
        }
    }
    let failure = Failure::from(TreeError::Lock(LockError::Owned(
        last.as_ref().map(|(hint, _)| hint.clone()).unwrap_or_default(),
    )));
    Err(match last {
        Some((_, error)) => failure.hint(error.to_string()),
        None => failure,
    })
}

/// Says, once, which flags change nothing because another process drives the tree.
fn passed_over(setting: &Setting, owner: &OwnerHint) {
    static SAID: std::sync::Once = std::sync::Once::new();
    let common = &setting.common;
    let given = [
        ("--model", common.model.is_some()),
        ("--max-running", common.max_running.is_some()),
        ("--max-resident", common.max_resident.is_some()),
        ("--budget-tokens", common.budget_tokens.is_some()),
        ("--budget-usd", common.budget_usd.is_some()),
    ];
    let given: Vec<&str> = given.into_iter().filter_map(|(flag, set)| set.then_some(flag)).collect();
    if !given.is_empty() {
        SAID.call_once(|| {
            let flags = given.join(", ");
            output::note(&format!(
                "warning: process {} drives this tree as it began: {flags} changes nothing",
                owner.pid
            ));
        });
    }
}

/// The time that an owner which lets go of its tree is given.
#[derive(Default)]
pub(crate) struct Patience {
    pauses: usize,
}

impl Patience {
    /// Waits a moment before the tree is reached for again.
    ///
    /// # Errors
    /// When process `pid` has had its time.
    pub(crate) async fn wait(&mut self, pid: u32) -> Result<(), Failure> {
        self.pauses += 1;
        if self.pauses > MAX_PAUSES {
            let owner = OwnerHint { pid, ..OwnerHint::default() };
            let failure = Failure::from(TreeError::Lock(LockError::Owned(owner)));
            return Err(failure.hint("it is letting go of the tree and does not come to an end"));
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

/// The owner of a tree, if there is one that answers. Never becomes it.
pub(crate) async fn owner(setting: &Setting, id: TreeId) -> Option<Client> {
    let hint = setting.store.owner(id).filter(|hint| hint.pid != 0 && alive(hint))?;
    connect(setting, id, &hint).await.ok()
}

async fn connect(setting: &Setting, id: TreeId, hint: &OwnerHint) -> Result<Client, frontend::ConnectError> {
    let path = hint.socket.clone().unwrap_or_else(|| place(setting, id));
    // A hint that names nobody is being written: its owner may listen in a moment.
    let client = Client::connect(&path, || hint.pid == 0 || alive(hint)).await?;
    Ok(client)
}

fn place(setting: &Setting, id: TreeId) -> stdx::AbsPath {
    socket_path(&setting.store.tree_folder(id), setting.env.runtime_dir().as_ref(), id)
}
