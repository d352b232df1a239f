//! Speaking to a tree that another process drives.

use std::time::Duration;

use frontend::Subscription;
use frontend::{Answer, Client, Code, Delivery, Fault, Given, Op, Refusal, Reply, RequestError, Submission};
use protocol::{AgentPath, EventKind, Outcome, RequestId, TaskId, TreeEvent, TreeId, UnreadResult, Usage};
use stdx::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::drive::tell;
use super::signals::Interrupts;
use super::tree::look;
use crate::exit::{self, Failure};
use crate::output;
use crate::progress::Progress;
use crate::wire::Setting;

/// How long an owner may be silent before the events that it still owes are given up.
const CALM: Duration = Duration::from_millis(500);

/// A tree of another process, and the display of what happens there.
pub(super) struct Remote {
    client: Client,
    tree: TreeId,
    json: bool,
    shown: JoinHandle<()>,
    /// The owner's number of the newest event that was shown.
    newest: watch::Receiver<u64>,
    interrupts: Interrupts,
}

/// How speaking to another process ended.
pub(super) enum Spoken<T> {
    /// It answered.
    Done(T),
    /// It is gone or going: what it accepted is on disk, and this process can take the tree over.
    OwnerGone,
}

impl Remote {
    /// Begins to show the tree's events. `told` is the process that a person was last told about.
    pub(super) async fn new(setting: &Setting, client: Client, tree: TreeId, told: &mut u32) -> Self {
        let json = setting.common.json;
        let colour = output::colour(&setting.env);
        let pid = client.hello().pid;
        if std::mem::replace(told, pid) != pid {
            output::note(&format!("tree {tree} · driven by process {pid}, which is spoken to"));
        }
        // Before anything is asked for: what comes of it is seen from its beginning.
        let events = client.subscribe(None).await;
        let (seen, newest) = watch::channel(0);
        let shown = tokio::spawn(show(client.clone(), events, seen, json, colour));
        Self { client, tree, json, shown, newest, interrupts: Interrupts::listen() }
    }

    /// Hands words over. The same request again is the same words.
    pub(super) async fn send(
        &mut self,
        path: &AgentPath,
        body: &str,
        wake: bool,
        (request, deadline): (RequestId, Option<Timestamp>),
    ) -> Result<Spoken<TaskId>, Failure> {
        let op = Op::Send {
            path: path.clone(),
            body: body.to_owned(),
            wake,
            request,
            mode: frontend::Mode::StartOrSteer,
            deadline,
        };
        let submission = match self.ask(op).await? {
            Spoken::Done(Reply::Submitted(submission)) => submission,
            Spoken::Done(other) => return Err(unexpected(&other)),
            Spoken::OwnerGone => return Ok(Spoken::OwnerGone),
        };
        match submission {
            Submission::NotSubmitted { reason: Refusal::ShuttingDown, .. } => Ok(Spoken::OwnerGone),
            Submission::NotSubmitted { message, .. } => Err(Failure::usage(message)),
            Submission::Steered { task, .. } => {
                output::note(&format!("{path} is working and takes this in before its next step"));
                Ok(Spoken::Done(task))
            }
            Submission::Queued { task, position: Some(position) } => {
                output::note(&format!("{path} is queued, number {position} for a running slot"));
                Ok(Spoken::Done(task))
            }
            Submission::Started { task, .. } | Submission::Queued { task, .. } => Ok(Spoken::Done(task)),
        }
    }

    /// Waits for the end of a task and prints it. Ctrl-C leaves the tree to its owner.
    pub(super) async fn finish(mut self, setting: &Setting, task: TaskId) -> Result<Spoken<u8>, Failure> {
        let asked = tokio::select! {
            asked = ask(&self.client, Op::Answer { task }) => asked?,
            () = self.interrupts.next() => {
                self.shown.abort();
                output::note("left: the tree goes on in its own process; `agent interrupt PATH` stops an agent");
                return Ok(Spoken::Done(exit::INTERRUPTED));
            }
        };
        let answer = match asked {
            Spoken::Done(Reply::Answered(answer)) => answer,
            Spoken::Done(other) => return Err(unexpected(&other)),
            Spoken::OwnerGone => {
                // They end with the connection.
                let _ = tokio::time::timeout(CALM, &mut self.shown).await;
                self.shown.abort();
                return Ok(Spoken::OwnerGone);
            }
        };
        // The owner's events up to this answer are on their way; those after it are not ours to wait for.
        while answer.seq.is_some_and(|seq| *self.newest.borrow_and_update() < seq) {
            if !matches!(tokio::time::timeout(CALM, self.newest.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        self.shown.abort();
        // Nothing of it is printed after the last line.
        let _ = (&mut self.shown).await;
        if self.json {
            let usage = usage(setting, self.tree).await;
            output::event(&finished(self.tree, &answer, usage), true, &mut Progress::new(false));
        }
        let code = code(&answer);
        let hints = answer.fault.map(|fault| fault.hints).unwrap_or_default();
        tell(self.tree, &answer.end, hints, code, self.json);
        Ok(Spoken::Done(code))
    }

    /// Asks for what is answered at once. Ctrl-C does not wait for an owner that says nothing.
    async fn ask(&mut self, op: Op) -> Result<Spoken<Reply>, Failure> {
        tokio::select! {
            asked = ask(&self.client, op) => asked,
            () = self.interrupts.next() => Err(Failure::interrupted("left before the tree's owner had answered")
                .hint("`agent log` shows whether it took this in")),
        }
    }

    /// Starts what was cut off or is pending there.
    pub(super) async fn go_on(&mut self) -> Result<Spoken<Vec<Given>>, Failure> {
        match self.ask(Op::Continue).await? {
            Spoken::Done(Reply::Continued { tasks }) => Ok(Spoken::Done(tasks)),
            Spoken::Done(other) => Err(unexpected(&other)),
            Spoken::OwnerGone => Ok(Spoken::OwnerGone),
        }
    }
}

/// Asks one thing of an owner.
pub(super) async fn ask(client: &Client, op: Op) -> Result<Spoken<Reply>, Failure> {
    match client.request(op).await {
        Ok(reply) => Ok(Spoken::Done(reply)),
        Err(RequestError::Gone(_)) => Ok(Spoken::OwnerGone),
        Err(RequestError::Refused(Fault { code: Code::ShuttingDown | Code::Gone, .. })) => Ok(Spoken::OwnerGone),
        Err(error) => Err(Fault::from(error).into()),
    }
}

/// Tokens of the whole tree; none when it cannot be read.
async fn usage(setting: &Setting, tree: TreeId) -> Usage {
    let mut usage = Usage::default();
    for agent in look(setting, tree).await.map(|listing| listing.agents).unwrap_or_default() {
        usage.input += agent.tokens.input;
        usage.cached_input += agent.tokens.cached_input;
        usage.output += agent.tokens.output;
    }
    usage
}

/// An answer that does not belong to the question.
pub(super) fn unexpected(reply: &Reply) -> Failure {
    Failure::internal(format!("the process that drives the tree answered something else: {reply:?}"))
        .hint("use the same version of `agent` for both")
}

async fn show(
    client: Client,
    events: Result<Subscription, RequestError>,
    seen: watch::Sender<u64>,
    json: bool,
    colour: bool,
) {
    let mut progress = Progress::new(colour);
    let mut events = match events {
        Ok(events) => events,
        // Whoever asks next is told the same.
        Err(RequestError::Gone(_) | RequestError::Connect(_)) => return,
        Err(error) => {
            output::note(&format!("warning: what happens cannot be shown: {error}"));
            return;
        }
    };
    while let Some(delivery) = events.next().await {
        match delivery {
            Delivery::Event(event) => {
                // That says that the owner's own command is over; this one has an end of its own.
                if !matches!(event.kind, EventKind::TreeFinished { .. }) {
                    output::event(&event, json, &mut progress);
                }
                seen.send_replace(event.seq);
            }
            Delivery::Gap(gap) => output::note(&format!("warning: {gap}")),
            Delivery::Lagged(lagged) => match client.subscribe(Some(lagged.resume_after)).await {
                Ok(again) => events = again,
                Err(_) => return,
            },
            Delivery::Broken(_) => return,
        }
    }
}

fn code(answer: &Answer) -> u8 {
    match answer.end.outcome {
        Outcome::Completed => exit::DONE,
        Outcome::OverBudget => exit::BUDGET,
        // It was not somebody who stopped it.
        Outcome::Interrupted if answer.end.is_expired() => exit::ERRORED,
        Outcome::Interrupted | Outcome::Closed => exit::INTERRUPTED,
        Outcome::Errored | Outcome::Lost => match answer.fault.as_ref().map(|fault| fault.code) {
            Some(Code::Provider) => exit::PROVIDER,
            _ => exit::ERRORED,
        },
    }
}

/// The last line of `--json`, for a command that is over while the tree goes on.
fn finished(tree: TreeId, answer: &Answer, usage: Usage) -> TreeEvent {
    TreeEvent {
        seq: answer.seq.unwrap_or_default(),
        time: stdx::now(),
        tree,
        path: AgentPath::root(),
        thread: tree.root(),
        kind: EventKind::TreeFinished {
            outcome: answer.end.outcome,
            answer: answer.end.text.clone(),
            usage,
            unread_results: Vec::<UnreadResult>::new(),
        },
    }
}
