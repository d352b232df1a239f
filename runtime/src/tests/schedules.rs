//! The mailbox as it is shared: senders, the loop that takes mail in, whoever stops or closes, under many schedules.
//! No mail is lost, none enters a context twice, and mail that wakes is followed by a turn.

use std::collections::HashSet;
use std::sync::Arc;

use budget::{Accounts, Limit, Refusal, Reservation, Spent, Standing, Usd};
use futures::future::BoxFuture;
use mailbox::{Mailbox, Offer};
use protocol::{Address, EventKind, MailId, MailKind, Outcome, Status, Usage, WaitingOn};
use rollout::Record;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};
use shuttle::rand::Rng as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::checked::agent::{Agent, Stop};
use crate::checked::disk::{Store, Writer};
use crate::checked::host::{Host, TurnReport};
use crate::checked::inbox::Inbox;
use crate::checked::play::play;
use crate::checked::seam::{Mutex, TaskTracker};
use crate::checked::setup;

/// Schedules of each kind for each test: a few seconds in all. The races that these tests are about show within some
/// dozen when they are put in.
const ROUNDS: usize = 300;

struct Keeper {
    me: Address,
    working: watch::Sender<bool>,
    accounts: Mutex<Accounts>,
}

impl Host for Keeper {
    fn enter(&self) -> BoxFuture<'_, ()> {
        Box::pin(yield_now())
    }

    fn leave(&self) {}

    fn emit(&self, _: EventKind) {}

    fn status(&self, _: Status, _: Option<WaitingOn>) {}

    fn reserve(&self, input: u64) -> BoxFuture<'_, Result<Reservation, Refusal>> {
        let reserved = self.accounts.lock().unwrap().reserve(self.me.thread, input, None);
        Box::pin(async { reserved })
    }

    fn settle(&self, reservation: &Reservation, usage: Usage, _: bool) -> Option<Usd> {
        let spent = Spent { tokens: usage.total(), usd: Usd::default() };
        self.accounts.lock().unwrap().settle(reservation, spent);
        None
    }

    fn standing(&self) -> Option<Standing> {
        self.accounts.lock().unwrap().standing(self.me.thread)
    }

    fn busy(&self) {
        self.working.send_replace(true);
    }

    fn rest(&self) {
        self.working.send_replace(false);
    }

    fn turn_ended(&self, _: TurnReport) -> BoxFuture<'_, ()> {
        Box::pin(yield_now())
    }
}

/// One agent and all that reach it.
#[derive(Clone)]
struct Desk {
    me: Address,
    writer: Writer,
    inbox: Arc<Inbox>,
    host: Arc<Keeper>,
    agent: Agent,
    cancel: CancellationToken,
    tracker: TaskTracker,
}

impl Desk {
    fn new() -> Self {
        let me = setup::root();
        let store = Store::default();
        let writer = store.make(setup::meta(&me), Vec::new());
        let inbox = Arc::new(Inbox::new(Mailbox::default()));
        let mut accounts = Accounts::new(Limit::default());
        accounts.open(me.thread, None, me.path.clone(), Limit::default(), Spent::default());
        let (working, accounts) = (watch::Sender::new(false), Mutex::new(accounts));
        let host = Arc::new(Keeper { me: me.clone(), working, accounts });
        let keeper: Arc<dyn Host> = Arc::<Keeper>::clone(&host);
        let setup = setup::setup(&me, &store, writer.clone(), Arc::clone(&inbox), keeper);
        let (cancel, tracker) = (CancellationToken::new(), TaskTracker::new());
        let agent = Agent::start(Arc::new(setup), writer.state(), cancel.clone(), &tracker);
        Self { me, writer, inbox, host, agent, cancel, tracker }
    }

    /// Accepts mail as a keeper does, and wakes the agent if the mail says so. None when it is refused.
    async fn send(&self, kind: MailKind, wakes: bool) -> Option<MailId> {
        let mut mail = setup::mail(&self.me, kind, wakes);
        let id = mail.id;
        {
            let mut mailbox = self.inbox.lock();
            if mailbox.offer(&mail) != Offer::New {
                return None;
            }
            mail.sequence = mailbox.next_sequence(&mail.from);
            self.writer.append(&[Record::Mail(Box::new(mail.clone()))]).ok()?;
            mailbox.accept(mail);
        }
        self.writer.sync().await.unwrap();
        self.inbox.notify();
        if wakes {
            self.agent.wake().await;
        }
        Some(id)
    }

    /// Sends some mail from a task of its own.
    fn sender(&self, mails: &'static [(MailKind, bool)]) -> JoinHandle<Vec<MailId>> {
        let desk = self.clone();
        spawn(async move {
            let mut accepted = Vec::new();
            for (kind, wakes) in mails {
                pause().await;
                accepted.extend(desk.send(*kind, *wakes).await);
            }
            accepted
        })
    }

    fn stopper(&self) -> JoinHandle<bool> {
        let agent = self.agent.clone();
        spawn(async move {
            pause().await;
            agent.interrupt(stop(Outcome::Interrupted)).await
        })
    }

    async fn quiet(&self) {
        self.host.working.subscribe().wait_for(|working| !working).await.unwrap();
    }

    /// Lets go of the agent, and waits until its loop has ended.
    async fn part(self) {
        let Self { agent, tracker, .. } = self;
        drop(agent);
        tracker.close();
        tracker.wait().await;
    }
}

/// Every accepted mail is in the context once or waits, in the file as in memory; and every task that was taken in has
/// one end.
fn check(writer: &Writer, inbox: &Inbox, accepted: &[MailId]) {
    let delivered = writer.delivered();
    let once: HashSet<MailId> = delivered.iter().copied().collect();
    assert_eq!(once.len(), delivered.len(), "none twice");
    let state = writer.state();
    let waits: Vec<MailId> = inbox.lock().pending().map(|mail| mail.id).collect();
    assert_eq!(state.pending.iter().map(|mail| mail.id).collect::<Vec<_>>(), waits, "memory is what the file says");
    let all: HashSet<MailId> = once.iter().chain(&waits).copied().collect();
    assert_eq!(all, accepted.iter().copied().collect(), "none lost, none made up");
    let done = writer.done();
    let ends: HashSet<MailId> = done.iter().copied().collect();
    assert_eq!(ends.len(), done.len(), "one end each");
    assert!(state.open_turn.is_none() && state.tasks_taken.is_empty(), "every turn has ended");
}

/// Lets others go on for a while: a turn is many steps long, and what comes must come anywhere in it or after it.
async fn pause() {
    for _ in 0..shuttle::rand::thread_rng().gen_range(0..LONGEST_PAUSE) {
        yield_now().await;
    }
}

/// Steps of a pause at most: those of about two turns.
const LONGEST_PAUSE: u32 = 60;

fn stop(outcome: Outcome) -> Stop {
    Stop { outcome, reason: "enough".to_owned(), goes_on: false, only: Vec::new() }
}

const TASK: (MailKind, bool) = (MailKind::Followup, true);
const STEER: (MailKind, bool) = (MailKind::Input, true);
const NOTE: (MailKind, bool) = (MailKind::Message, false);
const RESULT: (MailKind, bool) = (MailKind::Result, false);

#[test]
fn mail_that_wakes_is_followed_by_a_turn() {
    play(ROUNDS, || {
        block_on(async {
            let desk = Desk::new();
            let senders = [desk.sender(&[TASK, NOTE]), desk.sender(&[STEER]), desk.sender(&[RESULT, TASK])];
            let mut accepted = Vec::new();
            for sender in senders {
                accepted.extend(sender.await.unwrap());
            }
            desk.quiet().await;
            assert_eq!(accepted.len(), 5);
            check(&desk.writer, &desk.inbox, &accepted);
            assert!(!desk.inbox.lock().wakes(), "nobody interrupted, so all that wakes was taken in");
            assert_eq!(desk.writer.done().len(), 3);
            desk.part().await;
        });
    });
}

#[test]
fn an_interrupt_keeps_what_waits() {
    play(ROUNDS, || {
        block_on(async {
            let desk = Desk::new();
            let senders = [desk.sender(&[TASK, STEER]), desk.sender(&[NOTE, TASK])];
            let stopper = desk.stopper();
            let mut accepted = Vec::new();
            for sender in senders {
                accepted.extend(sender.await.unwrap());
            }
            stopper.await.unwrap();
            desk.quiet().await;
            check(&desk.writer, &desk.inbox, &accepted);
            // Whatever the interrupt has left is read with what wakes the agent next, and that is no longer held up.
            let senders = [desk.sender(&[TASK]), desk.sender(&[TASK])];
            for sender in senders {
                accepted.extend(sender.await.unwrap());
            }
            desk.quiet().await;
            check(&desk.writer, &desk.inbox, &accepted);
            assert!(!desk.inbox.lock().wakes());
            assert_eq!(desk.writer.done().len(), 5);
            desk.part().await;
        });
    });
}

#[test]
fn a_closed_agent_takes_nothing_and_loses_nothing() {
    play(ROUNDS, || {
        block_on(async {
            let desk = Desk::new();
            let sender = desk.sender(&[TASK, NOTE, TASK]);
            let closer = spawn({
                let Desk { inbox, agent, cancel, writer, .. } = desk.clone();
                async move {
                    pause().await;
                    inbox.lock().shut();
                    let at_shut = writer.state().known.len();
                    agent.interrupt(stop(Outcome::Closed)).await;
                    cancel.cancel();
                    at_shut
                }
            });
            let accepted = sender.await.unwrap();
            let at_shut = closer.await.unwrap();
            assert_eq!(accepted.len(), at_shut, "nothing was accepted after it");
            let (writer, inbox) = (desk.writer.clone(), Arc::clone(&desk.inbox));
            desk.part().await;
            // The loop has ended, so there is no turn; what was not taken in waits to be sent back.
            check(&writer, &inbox, &accepted);
        });
    });
}

#[test]
fn a_disk_that_refuses_a_line_loses_no_mail() {
    play(ROUNDS, || {
        block_on(async {
            let desk = Desk::new();
            let breaker = spawn({
                let writer = desk.writer.clone();
                async move {
                    pause().await;
                    writer.refuse();
                }
            });
            let senders = [desk.sender(&[TASK, NOTE]), desk.sender(&[TASK])];
            let mut accepted = Vec::new();
            for sender in senders {
                accepted.extend(sender.await.unwrap());
            }
            breaker.await.unwrap();
            desk.quiet().await;
            // A turn that broke down starts nothing by itself. Whoever wakes the agent next has it read its file back,
            // which closes what is open there.
            accepted.extend(desk.send(TASK.0, TASK.1).await);
            desk.quiet().await;
            check(&desk.writer, &desk.inbox, &accepted);
            assert!(!desk.inbox.lock().wakes());
            desk.part().await;
        });
    });
}
