//! The calls of one reply: started as they come in, ended in the order in which they were made.

use std::sync::Arc;

use futures::FutureExt as _;
use protocol::{Call, EffectId, Status, TurnId, WaitingOn, Waits};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tool_api::{Activity, Invocation, Pulse, Tool, ToolError, ToolOutput};

use crate::core::{Core, EngineError, RolloutLedger};
use crate::limits::{INTERRUPT_GRACE, MAX_LABELS, MAX_OUTPUT_BYTES};

/// The calls of one reply.
pub(crate) struct Calls {
    turn: TurnId,
    cancel: CancellationToken,
    /// Fair, so that a tool that must run alone is not starved by a stream of parallel ones.
    gate: Arc<RwLock<()>>,
    activity: Arc<watch::Sender<Activity>>,
    started: Vec<Started>,
}

struct Started {
    call: Call,
    effect: EffectId,
    since: Instant,
    /// What it does, in a few words.
    label: String,
    task: JoinHandle<Result<ToolOutput, ToolError>>,
}

impl Calls {
    pub(crate) fn new(turn: TurnId, cancel: CancellationToken) -> Self {
        Self {
            turn,
            cancel,
            gate: Arc::default(),
            activity: Arc::new(watch::Sender::new(Activity { sampling: true, running: 0 })),
            started: Vec::new(),
        }
    }

    /// How many calls the reply has made.
    pub(crate) fn count(&self) -> usize {
        self.started.len()
    }

    /// Whether the reply called anything.
    pub(crate) fn any(&self) -> bool {
        !self.started.is_empty()
    }

    /// Starts a call whose line is in the rollout. Never waits for it.
    pub(crate) fn start(&mut self, core: &Core, call: Call, effect: EffectId, ordinal: u64) {
        let setup = &core.setup;
        let activity = Arc::clone(&self.activity);
        let host = Arc::clone(&setup.host);
        let pulse = Pulse::new(move || host.progress());
        let beat = pulse.clone();
        let invocation = Invocation {
            call: call.clone(),
            effect,
            ordinal,
            turn: self.turn,
            agent: setup.agent.clone(),
            cwd: setup.cwd.clone(),
            cancel: self.cancel.child_token(),
            ledger: Arc::new(RolloutLedger(setup.writer.clone())),
            activity: self.activity.subscribe(),
            pulse,
        };
        let tool = find(&setup.tools, &call.name);
        let label = tool.as_ref().map_or_else(|| call.name.clone(), |tool| tool.label(&call));
        let names = &setup.head.names;
        let missing = || format!("there is no tool called `{}`; the tools are: {}", call.name, names.join(", "));
        let task = match tool {
            None => {
                let text = missing();
                tokio::spawn(async move { Err(ToolError::RespondToModel(text)) })
            }
            Some(tool) => {
                // Asked for here and not in the task, so that calls pass the gate in their order, whatever task runs
                // first. A call that waits at the gate is not running yet.
                let mut turn = if tool.parallel() {
                    Arc::clone(&self.gate).read_owned().map(Pass::Shared).boxed()
                } else {
                    Arc::clone(&self.gate).write_owned().map(Pass::Alone).boxed()
                };
                let passed = (&mut turn).now_or_never();
                let running = passed.as_ref().map(|_| Running::new(Arc::clone(&activity)));
                tokio::spawn(async move {
                    let _pass = match passed {
                        Some(pass) => pass,
                        None => turn.await,
                    };
                    let _running = running.unwrap_or_else(|| Running::new(activity));
                    let result = tool.call(invocation).await;
                    // Its output is recorded in its turn; that it has ended is news now.
                    beat.beat();
                    result
                })
            }
        };
        self.started.push(Started { call, effect, since: Instant::now(), label, task });
    }

    /// Waits for every call and records its output, in the order of the calls, whatever way the stream ended.
    ///
    /// After an interrupt tools have [`INTERRUPT_GRACE`] together; one that had ended keeps its output, one that had
    /// not is dropped and its output says so.
    ///
    /// # Errors
    /// When the rollout did not take an output, or a tool said that the engine is broken; all calls are answered
    /// first where that is possible.
    pub(crate) async fn drain(mut self, core: &mut Core) -> Result<(), EngineError> {
        self.activity.send_modify(|activity| activity.sampling = false);
        if self.any() && !self.cancel.is_cancelled() {
            core.setup.host.status(Status::Waiting, Some(WaitingOn::Tool));
        }
        let mut broken = None;
        let mut unwritten = false;
        let mut deadline = None;
        let mut left = std::mem::take(&mut self.started).into_iter();
        while let Some(mut started) = left.next() {
            if !self.cancel.is_cancelled() {
                core.setup.host.waits(Waits::Tool { calls: running(&started, left.as_slice()) });
            }
            let joined = tokio::select! {
                biased;
                joined = &mut started.task => Some(joined),
                () = interrupted(&self.cancel, &mut deadline) => None,
            };
            let text = match joined {
                Some(Ok(Ok(output))) => output.text,
                Some(Ok(Err(ToolError::RespondToModel(text)))) => text,
                Some(Ok(Err(ToolError::Fatal(text)))) => {
                    broken = broken.or(Some(EngineError::Tool(text.clone())));
                    text
                }
                Some(Err(error)) => {
                    let text = format!("the tool `{}` broke down: {error}", started.call.name);
                    broken = broken.or(Some(EngineError::Tool(text.clone())));
                    text
                }
                None => {
                    started.task.abort();
                    // Gone before the turn ends, so that nothing of it happens after that; one that blocks its thread
                    // cannot be waited for.
                    let _ = tokio::time::timeout(INTERRUPT_GRACE, &mut started.task).await;
                    format!("aborted by user after {:.1} s", started.since.elapsed().as_secs_f64())
                }
            };
            // Behind an output that is not on disk no other may stand: whoever reads the file back answers them all.
            if unwritten {
                continue;
            }
            let item = protocol::Item::output(&started.call, bounded(&text).as_ref());
            if let Err(error) = core.record_item(self.turn, item, Some(started.effect)) {
                unwritten = true;
                broken = broken.or(Some(error));
            }
        }
        broken.map_or(Ok(()), Err)
    }
}

impl Drop for Calls {
    /// A reply that is dropped without being drained (a panic above) must not leave tools running.
    fn drop(&mut self) {
        for started in &self.started {
            started.task.abort();
        }
    }
}

/// What the calls do that run still, `next` first.
fn running(next: &Started, rest: &[Started]) -> Vec<String> {
    let running = std::iter::once(next).chain(rest).filter(|started| !started.task.is_finished());
    running.map(|started| started.label.clone()).take(MAX_LABELS).collect()
}

/// Completes when the grace after an interrupt is over.
async fn interrupted(cancel: &CancellationToken, deadline: &mut Option<Instant>) {
    cancel.cancelled().await;
    let at = *deadline.get_or_insert_with(|| Instant::now() + INTERRUPT_GRACE);
    tokio::time::sleep_until(at).await;
}

/// The tool of this name; a model may put a namespace before it.
fn find(tools: &[Arc<dyn Tool>], name: &str) -> Option<Arc<dyn Tool>> {
    let by = |name: &str| tools.iter().find(|tool| tool.name() == name).cloned();
    by(name).or_else(|| by(name.rsplit(['.', '/']).next()?))
}

/// `text` within [`MAX_OUTPUT_BYTES`], cut in the middle.
fn bounded(text: &str) -> std::borrow::Cow<'_, str> {
    match stdx::cut_middle(text, MAX_OUTPUT_BYTES) {
        None => text.into(),
        Some(cut) => format!("{}\n[… {} bytes left out …]\n{}", cut.head, cut.omitted, cut.tail).into(),
    }
}

/// The way through the gate, held for as long as the call runs.
enum Pass {
    Shared(#[expect(dead_code, reason = "held, never read")] OwnedRwLockReadGuard<()>),
    Alone(#[expect(dead_code, reason = "held, never read")] OwnedRwLockWriteGuard<()>),
}

/// Counts a call as running for as long as it lives.
struct Running(Arc<watch::Sender<Activity>>);

impl Running {
    fn new(activity: Arc<watch::Sender<Activity>>) -> Self {
        activity.send_modify(|activity| activity.running += 1);
        Self(activity)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|activity| activity.running -= 1);
    }
}
