//! `wait_agent`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use protocol::{Mail, Status, ThreadId, WaitingOn};
use runtime::Host as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stdx::one_line;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tool_api::{Activity, Invocation, Tool, ToolError, ToolOutput, ToolSpec};

use super::Me;
use super::args::function;
use super::list::details;
use crate::life::Keeper;
use crate::node::Node;
use crate::tree::Tree;
use crate::wait::{Awaited, Verdict, Woke, verdict};

pub(super) const NAME: &str = "wait_agent";

/// Waiting costs nothing, so it is long; but a model should hear of a silent child before a person loses patience.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
/// Below this a model would poll.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest wait of the reference.
const MAX_TIMEOUT: Duration = Duration::from_hours(1);

/// How long further results of one burst are waited for after each one, and at the most: a request that they save
/// costs more than this.
const LINGER: Duration = Duration::from_millis(30);
const LINGER_AT_MOST: Duration = Duration::from_millis(300);

/// Characters of a mail in the answer; the whole of it follows as mail.
const LINE: usize = 200;
/// Mails and agents listed in one answer.
const MAX_LISTED: usize = 100;

pub(super) struct WaitAgent(pub(super) Me);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Agents to wait for: names below you, or paths. Left out: anybody.
    #[serde(default)]
    targets: Option<Vec<String>>,
    /// How long at the most, in milliseconds: 1000 to 3600000. Left out: 300000.
    #[serde(default, deserialize_with = "tool_api::whole")]
    timeout_ms: Option<u64>,
}

impl Tool for WaitAgent {
    fn name(&self) -> &str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description:
                "Waits until agents end their tasks, mail or a person's words come in, one of them stalls, or \
                          the time is up. Says why it woke, from whom, a line of each, and how everybody it waited \
                          for stands; the mail itself follows. Waiting costs no running slot."
                    .to_owned(),
            input: function::<Args>(),
        }
    }

    fn parallel(&self) -> bool {
        true
    }

    fn call(&self, invocation: Invocation) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let args: Args = tool_api::parse(&invocation.call)?;
            let me = &self.0;
            let mut targets = Vec::new();
            for target in args.targets.iter().flatten() {
                let node = me.target(target)?;
                if node.meta.id == me.node.meta.id {
                    return Err(ToolError::respond("an agent cannot wait for itself: name others, or nobody"));
                }
                targets.push(node);
            }
            let (timeout, note) = timeout(args.timeout_ms);
            let woke = self.wait(&targets, timeout, &invocation).await;
            Ok(ToolOutput::ok(me.answer(woke, &targets, note).to_string()))
        })
    }
}

/// How long to wait, and a note when that is not what was asked for.
fn timeout(asked: Option<u64>) -> (Duration, Option<String>) {
    let Some(asked) = asked else { return (DEFAULT_TIMEOUT, None) };
    let wanted = Duration::from_millis(asked);
    let given = wanted.clamp(MIN_TIMEOUT, MAX_TIMEOUT);
    let note = (given != wanted).then(|| format!("timeout_ms was set to {}", given.as_millis()));
    (given, note)
}

impl WaitAgent {
    async fn wait(&self, targets: &[Arc<Node>], timeout: Duration, invocation: &Invocation) -> &'static str {
        let me = &self.0;
        let keeper = Keeper { tree: me.tree.clone(), node: Arc::clone(&me.node) };
        let awaits = targets.iter().map(|node| node.meta.id).collect();
        let mut waiting = Waiting::new(keeper, awaits);
        let mut arrivals = me.node.inbox.arrivals();
        let mut changes = me.tree.0.changes.subscribe();
        let mut activity = invocation.activity.clone();
        let deadline = Instant::now() + timeout;
        let mut lingers: Option<(Instant, Instant)> = None;
        let woke = loop {
            let seen = arrivals.borrow_and_update().to_owned();
            changes.borrow_and_update();
            let pending = me.node.pending();
            match verdict(&pending, &me.awaited(targets), targets.is_empty()) {
                Verdict::Wake(woke) => break woke.as_str(),
                Verdict::Linger => {
                    let now = Instant::now();
                    let (_, until) = lingers.unwrap_or((now, now + LINGER_AT_MOST));
                    lingers = Some((now + LINGER, until));
                }
                Verdict::Wait => lingers = None,
            }
            waiting.let_others_run(&activity);
            let lingered = lingers.map(|(pause, until)| pause.min(until));
            // Status changes of others come by the hundred; only mail restarts the pause.
            let over = loop {
                tokio::select! {
                    () = invocation.cancel.cancelled() => break Some("interrupted"),
                    () = sleep_until(deadline) => break Some("timeout"),
                    () = sleep_until(lingered.unwrap_or(deadline)), if lingered.is_some() => break Some("results"),
                    _ = arrivals.changed() => break None,
                    _ = changes.changed() => {
                        changes.borrow_and_update();
                        waiting.let_others_run(&activity);
                        let awaited = me.awaited(targets);
                        let settled = !awaited.iter().any(|agent| agent.busy);
                        let stalled = awaited.iter().any(|agent| agent.stalled);
                        if settled || stalled || *arrivals.borrow() != seen {
                            break None;
                        }
                    }
                    Ok(()) = activity.changed() => waiting.let_others_run(&activity),
                }
            };
            if let Some(over) = over {
                break over;
            }
        };
        // A turn that is being stopped needs no slot for what it still does.
        if woke != "interrupted" {
            waiting.over().await;
        }
        woke
    }
}

/// A wait; gives the running slot back while it is the reply's only running call.
struct Waiting {
    keeper: Keeper,
    /// Tells the waits of one reply apart.
    number: u64,
    awaits: Vec<ThreadId>,
    gave_back: bool,
}

impl Waiting {
    fn new(keeper: Keeper, awaits: Vec<ThreadId>) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        keeper.node.facts().waits += 1;
        // Another wait of this reply may now see that nothing but waits is left.
        keeper.tree.changed();
        Self { keeper, number: NUMBERS.fetch_add(1, Ordering::Relaxed), awaits, gave_back: false }
    }

    fn let_others_run(&mut self, activity: &watch::Receiver<Activity>) {
        let now = *activity.borrow();
        {
            let mut facts = self.keeper.node.facts();
            if now.sampling || now.running > facts.waits {
                return;
            }
            if !facts.awaits.iter().any(|(number, _)| *number == self.number) {
                facts.awaits.push((self.number, self.awaits.clone()));
            }
        }
        self.keeper.status(Status::Waiting, Some(WaitingOn::Agent));
        self.gave_back |= self.keeper.give_back();
    }

    /// The turn goes on.
    async fn over(mut self) {
        self.forget();
        if std::mem::take(&mut self.gave_back) {
            self.keeper.take_back().await;
        }
    }

    fn forget(&self) {
        self.keeper.node.facts().awaits.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Waiting {
    /// Also when the call is dropped: whoever waits for this agent must not take it for one that waits.
    fn drop(&mut self) {
        self.forget();
        self.keeper.node.facts().waits -= 1;
        self.keeper.tree.changed();
    }
}

impl Me {
    /// Those that are waited for, and whether anything can still come of them.
    fn awaited(&self, targets: &[Arc<Node>]) -> Vec<Awaited> {
        let awaited = |node: &Arc<Node>| {
            let stalled = self.tree.hears_of_stall(&self.node, node, !targets.is_empty());
            let busy = self.tree.moves(node, self.node.meta.id);
            let status = node.facts().status;
            Awaited { thread: node.meta.id, busy, status, stalled }
        };
        if targets.is_empty() {
            self.tree.others(&self.node).iter().map(awaited).collect()
        } else {
            targets.iter().map(awaited).collect()
        }
    }

    fn awaited_nodes(&self, targets: &[Arc<Node>]) -> Vec<Arc<Node>> {
        if targets.is_empty() { self.tree.others(&self.node) } else { targets.to_vec() }
    }

    fn answer(&self, woke: &str, targets: &[Arc<Node>], note: Option<String>) -> Value {
        let pending = self.node.pending();
        let awaited = self.awaited_nodes(targets);
        let agents: Vec<Value> = awaited.iter().map(|node| standing(&self.tree, node)).collect();
        Tree::heard_of_stalls(&self.node, &awaited);
        let mut answer = json!({
            "woke": woke,
            "timed_out": woke == "timeout",
            "mail": pending.iter().take(MAX_LISTED).map(line).collect::<Vec<_>>(),
            "agents": agents.iter().take(MAX_LISTED).collect::<Vec<_>>(),
        });
        if let Some(answer) = answer.as_object_mut() {
            let stuck = woke == "settled" && self.awaited_nodes(targets).iter().any(|node| node.is_busy());
            let stuck = stuck.then(|| "everybody you wait for waits, too: nobody works".to_owned());
            let stalled = woke == Woke::Stalled.as_str();
            let stalled = stalled.then(|| {
                "nothing has come of the work of those with stalled_ms for so long: interrupt_agent stops one, and \
                 waiting again waits on"
                    .to_owned()
            });
            if let Some(note) = stuck.or(stalled).or(note) {
                answer.insert("note".to_owned(), note.into());
            }
            for (what, all) in [("more_mail", pending.len()), ("more_agents", agents.len())] {
                if all > MAX_LISTED {
                    answer.insert(what.to_owned(), (all - MAX_LISTED).into());
                }
            }
        }
        answer
    }
}

fn line(mail: &Mail) -> Value {
    let mut line = json!({ "from": mail.from.name(), "kind": mail.kind, "line": one_line(&mail.body, LINE) });
    if let (Some(outcome), Some(line)) = (mail.outcome, line.as_object_mut()) {
        line.insert("outcome".to_owned(), json!(outcome));
    }
    line
}

fn standing(tree: &Tree, node: &Node) -> Value {
    let facts = node.facts().clone();
    let mut standing = json!({ "agent_name": node.address.path, "agent_status": facts.status });
    if let Some(object) = standing.as_object_mut() {
        if let Some(on) = facts.waiting_on {
            object.insert("waiting_on".to_owned(), json!(on));
        }
        details(tree, node, object);
        if let Some(trouble) = facts.trouble.filter(|_| !node.is_busy()) {
            let note = format!("its task is not begun: {trouble}. close_agent gives the task up");
            object.insert("note".to_owned(), note.into());
        } else if facts.status == Status::Pending && !node.is_busy() {
            let note = "has a task that nobody is starting; give it a followup_task";
            object.insert("note".to_owned(), note.into());
        }
    }
    standing
}
