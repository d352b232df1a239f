//! Plays: what the agents of a scenario are to do, as data, and the model that plays them.
//!
//! The model is a function of the play and of the conversation alone. It reads off the conversation which tasks an
//! agent was given and how far it got, so it answers the same after a kill as before.

use std::time::Duration;

use protocol::{Item, ItemKind, Role};
use serde_json::{Value, json};
use testkit::{Reply, Request};

/// What a call that was cut off is answered with; such a call is made again.
const CUT_OFF: [&str; 2] = ["the process ended", "aborted by user"];

/// Waits in a row, within one turn, that come back because nobody works: then what is waited for does not come.
const MAX_SETTLED: usize = 3;
/// Waits in one turn, however they end.
const MAX_WAITS: usize = 60;
/// How long one wait may take, in milliseconds.
const WAIT_MS: u64 = 20_000;

/// Characters of a long answer: more than a mail holds.
const LONG: usize = 34_000;

/// A scenario. A task is called by its place in `tasks`; the first one is the client's, to the root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Play {
    pub(crate) tasks: Vec<Task>,
}

/// What an agent does for one task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    /// Whose it is.
    pub(crate) agent: String,
    /// One reply after another. The calls of one are made side by side.
    pub(crate) replies: Vec<Vec<Step>>,
    /// How long the model thinks before the answer, in milliseconds.
    pub(crate) thinks: u64,
    /// Whether the answer is too long for a mail.
    pub(crate) long: bool,
}

/// One call. Numbers tell steps of a kind apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Spawns the agent of this task.
    Spawn(usize),
    /// Gives this task to its agent.
    Follow(usize),
    /// Leaves a message.
    Tell { to: String, word: usize },
    /// Interrupts an agent for the `nth` time.
    Interrupt { agent: String, nth: usize },
    /// Closes an agent.
    Close { agent: String, word: usize },
    /// Runs a command; one in the background leaves a process behind.
    Run { word: usize, background: bool },
    /// Waits until these tasks are done.
    Await(Vec<usize>),
}

/// How a task begins.
pub(crate) fn task(number: usize) -> String {
    format!("TASK-{number}:")
}

/// What stands in the answer of an agent that has done a task.
pub(crate) fn done(number: usize) -> String {
    format!("DONE-{number}.")
}

/// What stands in the answer of an agent that waited for somebody in vain.
pub(crate) fn gave_up(number: usize) -> String {
    format!("GAVEUP-{number}.")
}

/// The words of a message.
pub(crate) fn word(number: usize) -> String {
    format!("WORD-{number}.")
}

/// The reason that a close gives.
pub(crate) fn reason(number: usize) -> String {
    format!("CLOSE-{number}.")
}

impl Play {
    /// All steps, each with the task that it is part of.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (usize, &Step)> {
        let numbered = self.tasks.iter().enumerate();
        numbered.flat_map(|(number, task)| task.replies.iter().flatten().map(move |step| (number, step)))
    }

    /// What the model says.
    pub(crate) fn answer(&self, request: &Request) -> Reply {
        let told = told(request);
        let mut words = String::new();
        for number in &told {
            let Some(task) = self.tasks.get(*number) else { continue };
            let mut mark = done(*number);
            for steps in &task.replies {
                let open: Vec<&Step> = steps.iter().filter(|step| !self.is_done(step, request)).collect();
                if open.is_empty() {
                    continue;
                }
                if open.iter().all(|step| matches!(step, Step::Await(_))) && in_vain(request) {
                    mark = gave_up(*number);
                    continue;
                }
                return open.into_iter().fold(Reply::new(), |reply, step| {
                    let (tool, arguments) = self.call(step);
                    reply.call(tool, arguments)
                });
            }
            words += &mark;
        }
        // Whoever has lost its task, to a damaged file, says so.
        let Some(last) = told.last().and_then(|number| self.tasks.get(*number)) else {
            return Reply::new().text("no task");
        };
        if last.long {
            words += &"x".repeat(LONG);
        }
        Reply::new().text(words).delay_first(Duration::from_millis(last.thinks))
    }

    /// Whether the conversation shows that a step needs no call any more. A refusal will not change, so it counts.
    fn is_done(&self, step: &Step, request: &Request) -> bool {
        if let Step::Await(tasks) = step {
            return tasks.iter().all(|number| request.heard(&done(*number)));
        }
        let (tool, arguments) = self.call(step);
        let answered = request.calls().into_iter().filter(|(made, output)| {
            let same = serde_json::from_str::<Value>(&made.arguments).is_ok_and(|made| made == arguments);
            let whole = output.as_ref().is_some_and(|output| !CUT_OFF.iter().any(|sign| output.contains(sign)));
            made.name == tool && same && whole
        });
        let times = if let Step::Interrupt { nth, .. } = step { *nth } else { 1 };
        answered.count() >= times
    }

    /// The tool of a step and its arguments.
    fn call(&self, step: &Step) -> (&'static str, Value) {
        let agent = |number: &usize| self.tasks[*number].agent.as_str();
        match step {
            Step::Spawn(number) => {
                let name = agent(number).rsplit('/').next();
                ("spawn_agent", json!({"task_name": name, "message": task(*number), "agent_type": "worker"}))
            }
            Step::Follow(number) => ("followup_task", json!({"target": agent(number), "message": task(*number)})),
            Step::Tell { to, word: number } => ("send_message", json!({"target": to, "message": word(*number)})),
            Step::Interrupt { agent, .. } => ("interrupt_agent", json!({"target": agent})),
            Step::Close { agent, word } => ("close_agent", json!({"target": agent, "reason": reason(*word)})),
            Step::Run { word: number, background } => {
                let behind = if *background { "sleep 1000 > /dev/null 2>&1 & " } else { "" };
                ("exec_command", json!({"cmd": format!("{behind}echo {}", word(*number)), "yield_time_ms": 250}))
            }
            Step::Await(_) => ("wait_agent", json!({"timeout_ms": WAIT_MS})),
        }
    }
}

/// Numbers of the tasks that this agent was given, in the order in which it first heard of them.
fn told(request: &Request) -> Vec<usize> {
    let mut numbers = Vec::new();
    for text in users(request).map(Item::text) {
        for after in text.split("TASK-").skip(1) {
            let number = after.split_once(':').and_then(|(number, _)| number.parse().ok());
            numbers.extend(number.filter(|number| !numbers.contains(number)));
        }
    }
    numbers
}

fn users(request: &Request) -> impl Iterator<Item = &Item> {
    request.items().iter().filter(|item| item.kind() == ItemKind::Message(Role::User))
}

/// Whether this turn has waited, and nothing came of it.
fn in_vain(request: &Request) -> bool {
    let items = request.items();
    let is_task = |item: &Item| item.kind() == ItemKind::Message(Role::User) && item.text().contains("TASK-");
    let begun = items.iter().rposition(is_task).unwrap_or(0);
    let outputs = items[begun..].iter().filter(|item| item.kind() == ItemKind::Output).map(Item::text);
    let waits: Vec<bool> =
        outputs.filter(|text| text.contains(r#""woke""#)).map(|text| text.contains(r#""settled""#)).collect();
    waits.len() >= MAX_WAITS || waits.iter().rev().take_while(|settled| **settled).count() >= MAX_SETTLED
}
