//! One agent of the tree, resident or not.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use protocol::{Address, Mail, MailId, Party, Status, TaskEnd, ThreadId, Usage, WaitingOn, Waits};
use rollout::{Record, SessionMeta, State};
use stdx::Timestamp;
use tokio_util::sync::CancellationToken;
use tool_api::Hands;

use super::deadline::Tasks;
use super::seam::{Agent, AsyncMutex, AtomicBool, AtomicUsize, Inbox, Mutex, MutexGuard, Store};
use super::watch::Watch;

/// One agent of the tree. It is here for as long as the tree is driven; its session may come and go.
pub(crate) struct Node {
    pub(crate) meta: SessionMeta,
    pub(crate) address: Address,
    /// Its first task.
    pub(crate) task: String,
    /// A cache of what its rollout says is unread. Kept while it sleeps, so that mail to it needs no reading.
    pub(crate) inbox: Arc<Inbox>,
    /// The agent's own lock. Loading, unloading and waking take it, so they exclude each other; it may be held across
    /// I/O, which is why the tables of the tree never wait for it.
    pub(crate) life: AsyncMutex<Life>,
    /// Held while its rollout is told where its unread mail goes, so that two who close it at once, one of them
    /// further up, do not both say so.
    pub(crate) emptying: AsyncMutex<()>,
    /// Its node of the cancellation tree: below its parent's.
    pub(crate) cancel: CancellationToken,
    /// A std mutex: a few fields are read or set, never across an await.
    facts: Mutex<Facts>,
    /// Whether the mailbox knows all mail that was ever accepted, and not only what is pending.
    whole: AtomicBool,
    /// Wakes under way that no turn answers for yet.
    waking: AtomicUsize,
}

/// Whether an agent has a session.
#[derive(Default)]
pub(crate) enum Life {
    /// On disk only.
    #[default]
    Asleep,
    /// In memory.
    Resident {
        /// Its loop.
        agent: Agent,
        /// Its tools and processes.
        hands: Arc<dyn Hands>,
    },
}

/// What everybody may see of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) status: Status,
    pub(crate) waiting_on: Option<WaitingOn>,
    /// Since when it stands so.
    pub(crate) since: Timestamp,
    /// What its turn said it waits for, in detail.
    pub(crate) detail: Option<Waits>,
    /// Whether anything comes of its work.
    pub(crate) watch: Watch,
    /// Stalls of others that it was told of, while it waited for them.
    pub(crate) heard: HashMap<ThreadId, u64>,
    /// Why it could not be loaded for the work that lies there.
    pub(crate) trouble: Option<String>,
    /// Words of clients that an interrupt has left in its mailbox, and what the clients are told, until somebody wakes it.
    pub(crate) kept: HashMap<MailId, TaskEnd>,
    /// Its tasks that have not ended.
    pub(crate) tasks: Tasks,
    /// Tokens that servers counted.
    pub(crate) usage: Usage,
    /// Tokens of requests that nobody counted, as they were estimated.
    pub(crate) estimated: Usage,
    /// US dollars of both, by the prices that are known.
    pub(crate) cost_usd: f64,
    pub(crate) last_activity: Timestamp,
    pub(crate) last_end: Option<TaskEnd>,
    pub(crate) resident: bool,
    /// When its own edge was closed.
    pub(crate) closed_at: Option<Timestamp>,
    /// Has a turn, or one is about to start.
    pub(crate) busy: bool,
    /// Holds a running slot.
    pub(crate) slot: bool,
    /// Whom each wait of its turn waits for, while the turn does nothing but wait; nobody named means whoever comes
    /// first. By the number of the wait.
    pub(crate) awaits: Vec<(u64, Vec<ThreadId>)>,
    /// Waits that are under way.
    pub(crate) waits: usize,
    /// Lines of its rollout that could not be read when the tree was taken over.
    pub(crate) skipped: usize,
    /// It is being loaded, or queues for the slot that it is loaded with.
    pub(crate) start: Option<Start>,
}

/// An agent that sleeps is being started. Read and changed under the agent's lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// Fires when somebody interrupts the agent before it has a turn.
    pub(crate) called_off: CancellationToken,
    /// Somebody has woken it since.
    pub(crate) again: bool,
}

impl Node {
    /// An agent as its rollout has it.
    pub(crate) fn new(meta: SessionMeta, state: &State, cancel: CancellationToken) -> Self {
        let address = Address { path: meta.agent_path.clone(), thread: meta.id };
        let mailbox = mailbox::Mailbox::restore(
            state.pending.clone(),
            state.known.iter().copied(),
            state.sequences.iter().map(|(sender, sequence)| (*sender, *sequence)),
        );
        let mut tasks = Tasks::default();
        state.pending.iter().for_each(|mail| tasks.given(mail));
        let facts = Facts {
            trouble: None,
            kept: HashMap::new(),
            tasks,
            status: state.status(),
            waiting_on: None,
            since: state.last_activity,
            detail: None,
            watch: Watch::default(),
            heard: HashMap::new(),
            usage: state.usage,
            estimated: state.estimated,
            cost_usd: state.cost_usd + state.estimated_usd,
            last_activity: state.last_activity,
            last_end: state.last_end.clone(),
            resident: false,
            closed_at: match &state.edge {
                rollout::Edge::Open => None,
                rollout::Edge::Closed { at, .. } => Some(*at),
            },
            busy: false,
            slot: false,
            awaits: Vec::new(),
            waits: 0,
            skipped: 0,
            start: None,
        };
        Self {
            address,
            task: state.first_task.clone().unwrap_or_default(),
            inbox: Arc::new(Inbox::new(mailbox)),
            emptying: AsyncMutex::default(),
            life: AsyncMutex::default(),
            cancel,
            facts: Mutex::new(facts),
            whole: AtomicBool::new(state.known_complete),
            waking: AtomicUsize::new(0),
            meta,
        }
    }

    /// An agent that was made just now with its first mail.
    pub(crate) fn fresh(meta: SessionMeta, mail: Mail, cancel: CancellationToken) -> Self {
        let mut state = State::new(meta.clone());
        state.apply_record(meta.timestamp, 1, &Record::Mail(Box::new(mail)));
        Self::new(meta, &state, cancel)
    }

    /// Makes the mailbox know all mail that was ever accepted, if it does not yet: for mail whose id may be an old one.
    pub(crate) fn make_whole(&self, store: &Store) -> Result<(), rollout::Error> {
        if !self.whole.load(Ordering::Acquire) {
            let known = store.known(self.meta.id)?;
            self.inbox.lock().learn(known);
            self.whole.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// As a sender.
    pub(crate) fn party(&self) -> Party {
        Party::Agent(self.address.clone())
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a turn runs or is about to.
    pub(crate) fn is_busy(&self) -> bool {
        let facts = self.facts();
        facts.busy || facts.start.is_some() || self.waking.load(Ordering::SeqCst) > 0
    }

    /// Counts a wake until the guard is dropped, so that nobody takes the tree for quiet in between.
    pub(crate) fn waking(&self) -> Waking<'_> {
        self.waking.fetch_add(1, Ordering::SeqCst);
        Waking(self)
    }

    /// Mail that is not in the context yet.
    pub(crate) fn pending(&self) -> Vec<Mail> {
        self.inbox.lock().pending().cloned().collect()
    }
}

pub(crate) struct Waking<'a>(&'a Node);

impl Drop for Waking<'_> {
    fn drop(&mut self) {
        self.0.waking.fetch_sub(1, Ordering::SeqCst);
    }
}
