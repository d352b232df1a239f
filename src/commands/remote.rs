//! Speaking to a tree that another process drives.

use frontend::{Answer, Client, Code, Delivery, Fault, Given, Op, Refusal, Reply, RequestError, Submission};
use protocol::{AgentPath, EventKind, Outcome, RequestId, TaskId, TreeEvent, TreeId, UnreadResult, Usage};
use tokio::task::JoinHandle;

use super::drive::tell;
use super::signals::Interrupts;
use crate::exit::{self, Failure};
use crate::output;
use crate::progress::Progress;
use crate::wire::Setting;

/// A tree of another process, and the display of what happens there.
pub(super) struct Remote {
    client: Client,
    tree: TreeId,
    json: bool,
    shown: JoinHandle<u64>,
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
    /// Begins to show the tree's events.
    pub(super) fn new(setting: &Setting, client: Client, tree: TreeId) -> Self {
        let json = setting.common.json;
        let colour = output::colour(&setting.env);
        let pid = client.hello().pid;
        output::note(&format!("tree {tree} · driven by process {pid}, which is spoken to"));
        let shown = tokio::spawn(show(client.clone(), json, colour));
        Self { client, tree, json, shown, interrupts: Interrupts::listen() }
    }

    /// Hands words over. The same request again is the same words.
    pub(super) async fn send(
        &self,
        path: &AgentPath,
        body: &str,
        wake: bool,
        request: RequestId,
    ) -> Result<Spoken<TaskId>, Failure> {
        let op =
            Op::Send { path: path.clone(), body: body.to_owned(), wake, request, mode: frontend::Mode::StartOrSteer };
        let submission = match ask(&self.client, op).await? {
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
            Submission::Started { task, .. } | Submission::Queued { task, .. } => Ok(Spoken::Done(task)),
        }
    }

    /// Waits for the end of a task and prints it. Ctrl-C leaves the tree to its owner.
    pub(super) async fn finish(mut self, task: TaskId) -> Result<Spoken<u8>, Failure> {
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
                self.shown.abort();
                return Ok(Spoken::OwnerGone);
            }
        };
        // The owner's events up to this answer are on their way; those after it are not ours to wait for.
        self.shown.abort();
        let seq = self.shown.await.unwrap_or(0);
        if self.json {
            output::event(&finished(self.tree, &answer, seq + 1), true, &mut Progress::new(false));
        }
        let code = code(&answer);
        let hints = answer.fault.map(|fault| fault.hints).unwrap_or_default();
        tell(self.tree, &answer.end, hints, code, self.json);
        Ok(Spoken::Done(code))
    }

    /// Starts what was cut off or is pending there.
    pub(super) async fn go_on(&self) -> Result<Spoken<Vec<Given>>, Failure> {
        match ask(&self.client, Op::Continue).await? {
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

/// An answer that does not belong to the question.
pub(super) fn unexpected(reply: &Reply) -> Failure {
    Failure::internal(format!("the process that drives the tree answered something else: {reply:?}"))
        .hint("use the same version of `agent` for both")
}

async fn show(client: Client, json: bool, colour: bool) -> u64 {
    let mut progress = Progress::new(colour);
    let mut last = 0;
    let mut events = match client.subscribe(None).await {
        Ok(events) => events,
        Err(error) => {
            output::note(&format!("warning: what happens cannot be shown: {error}"));
            return last;
        }
    };
    while let Some(delivery) = events.next().await {
        match delivery {
            Delivery::Event(event) => {
                last = event.seq;
                output::event(&event, json, &mut progress);
            }
            Delivery::Gap(gap) => output::note(&format!("warning: {gap}")),
            Delivery::Lagged(lagged) => match client.subscribe(Some(lagged.resume_after)).await {
                Ok(again) => events = again,
                Err(_) => return last,
            },
            Delivery::Broken(_) => return last,
        }
    }
    last
}

fn code(answer: &Answer) -> u8 {
    match answer.end.outcome {
        Outcome::Completed => exit::DONE,
        Outcome::OverBudget => exit::BUDGET,
        Outcome::Interrupted | Outcome::Closed => exit::INTERRUPTED,
        Outcome::Errored | Outcome::Lost => match answer.fault.as_ref().map(|fault| fault.code) {
            Some(Code::Provider) => exit::PROVIDER,
            _ => exit::ERRORED,
        },
    }
}

/// The last line of `--json`, for a command that is over while the tree goes on.
fn finished(tree: TreeId, answer: &Answer, seq: u64) -> TreeEvent {
    TreeEvent {
        seq,
        time: stdx::now(),
        tree,
        path: answer.agent.clone(),
        thread: tree.root(),
        kind: EventKind::TreeFinished {
            outcome: answer.end.outcome,
            answer: answer.end.text.clone(),
            usage: Usage::default(),
            unread_results: Vec::<UnreadResult>::new(),
        },
    }
}
