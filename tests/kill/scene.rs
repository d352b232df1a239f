//! The scenario: a root, an explorer and a worker, the model that plays them, and the commands that drive them.

use std::path::PathBuf;

use protocol::{ItemKind, Role};
use serde_json::json;
use testkit::{Agent, Home, Reply, Request, Run, Server};

use crate::point::{Plan, Point, Seen};

/// What the client asks for.
pub(crate) const PROMPT: &str = "ROOT-TASK: have it explored and built, then built again.";
/// The root's answer.
pub(crate) const ANSWER: &str = "everything is explored and built twice";

/// The test that a killed process is: see [`crate::point::carry_out`].
const CHILD: &str = "tests::a_run_that_nobody_kills";

/// In the environment of everything that an agent starts.
const TOKEN: &[u8] = b"AGENT_PROCESS_TOKEN=";

const EXPLORE: &str = "EXPLORER-TASK: look around and report.";
const BUILD: &str = "WORKER-TASK: build it, tell the others, report.";
const AGAIN: &str = "WORKER-AGAIN: build it once more and report.";
/// Calls that were cut off say so; the model makes them again.
const NOT_DONE: &str = "not done: the process ended first";
const MAY_HAVE_RUN: &str = "the process ended";
/// A model that waits more often than this is not getting anywhere.
const MAX_WAITS: usize = 40;

/// The command of the worker: it leaves something running that only the end of its process group ends.
const COMMAND: &str = "sleep 1000 > /dev/null 2>&1 & echo built";

/// Characters of the worker's second answer: more than a mail holds, so that the whole of it goes into a file.
pub(crate) const LONG: usize = 34_000;

/// The model: a function of the conversation alone, so that it answers the same after a kill as before.
pub(crate) fn brain(request: &Request) -> Reply {
    let said = |item: &&protocol::Item| item.kind() == ItemKind::Message(Role::User);
    let texts: Vec<String> = request.items().iter().filter(said).map(protocol::Item::text).collect();
    let told = |mark: &str| texts.iter().any(|text| text.contains(mark));
    if told("ROOT-TASK") {
        root(request)
    } else if told("EXPLORER-TASK") {
        Reply::new().text("explored(1)")
    } else {
        assert!(told("WORKER-TASK"), "nobody's request: {request:?}");
        worker(request, told("WORKER-AGAIN"))
    }
}

fn root(request: &Request) -> Reply {
    let mut reply = Reply::new();
    for (name, role, task) in [("explorer", "explorer", EXPLORE), ("worker", "worker", BUILD)] {
        if !done(request, "spawn_agent", task, "task_name") {
            reply = reply.call("spawn_agent", json!({"task_name": name, "agent_type": role, "message": task}));
        }
    }
    if reply.has_calls() {
        return reply;
    }
    if request.heard("worked(1)") && !done(request, "followup_task", AGAIN, "accepted") {
        return reply.call("followup_task", json!({"target": "worker", "message": AGAIN}));
    }
    if ["explored(1)", "worked(1)", "worked(2)"].iter().all(|mark| request.heard(mark)) {
        return reply.text(ANSWER);
    }
    let waits = request.calls().iter().filter(|(call, _)| call.name == "wait_agent").count();
    assert!(waits < MAX_WAITS, "the root waits for ever: {request:?}");
    reply.call("wait_agent", json!({"timeout_ms": 20_000}))
}

fn worker(request: &Request, again: bool) -> Reply {
    let ran = |(call, output): &(protocol::Call, Option<String>)| {
        call.name == "exec_command" && output.as_ref().is_some_and(|output| !output.contains(MAY_HAVE_RUN))
    };
    if !request.calls().iter().any(ran) {
        return Reply::new().call("exec_command", json!({"cmd": COMMAND, "yield_time_ms": 250}));
    }
    let mut reply = Reply::new();
    for target in ["/root", "/root/explorer"] {
        let words = format!("for {target}: it compiles");
        let answered = |(call, output): &(protocol::Call, Option<String>)| {
            call.arguments.contains(&words) && output.as_ref().is_some_and(|output| !output.contains(NOT_DONE))
        };
        if !request.calls().iter().any(answered) {
            reply = reply.call("send_message", json!({"target": target, "message": words}));
        }
    }
    match (reply.has_calls(), again) {
        (true, _) => reply,
        (false, false) => reply.text("worked(1)"),
        (false, true) => reply.text(format!("worked(2) {}", "x".repeat(LONG))),
    }
}

/// Whether this call has been made, with an output that says so.
fn done(request: &Request, tool: &str, words: &str, sign: &str) -> bool {
    request.calls().iter().any(|(call, output)| {
        call.name == tool
            && call.arguments.contains(words)
            && output.as_ref().is_some_and(|output| output.contains(sign))
    })
}

/// One home with its model.
pub(crate) struct Scene {
    pub home: Home,
    pub server: Server,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let server = Server::start(brain);
        Self { home: Home::new().provider("mock", &server), server }
    }

    /// The same files again, with a model of their own.
    pub(crate) fn copy(&self) -> Self {
        let server = Server::start(brain);
        Self { home: self.home.copy().provider("mock", &server), server }
    }

    /// The command as a user runs it.
    pub(crate) fn agent(&self, args: &[&str]) -> Run {
        self.command(args).run()
    }

    /// The same, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Agent {
        Agent::new(env!("CARGO_BIN_EXE_agent"), &self.home).args(args.iter().copied())
    }

    /// The command on a disk that kills it. What it did to the disk, when it was not killed.
    pub(crate) fn killed(&self, args: &[&str], point: Option<&Point>) -> (Run, Option<Vec<Seen>>) {
        let run = self.planned(args, point).run();
        (run, self.effects())
    }

    /// The same, not started yet.
    pub(crate) fn planned(&self, args: &[&str], point: Option<&Point>) -> Agent {
        let account = self.account();
        let _ = std::fs::remove_file(&account);
        let plan = Plan {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            point: point.cloned(),
            account: account.display().to_string(),
        };
        Agent::this_test(CHILD, &serde_json::to_string(&plan).unwrap(), &self.home)
    }

    /// What the last planned command did to the disk, when it was not killed.
    pub(crate) fn effects(&self) -> Option<Vec<Seen>> {
        let account = std::fs::read_to_string(self.account()).ok();
        account.map(|account| serde_json::from_str(&account).unwrap())
    }

    fn account(&self) -> PathBuf {
        self.home.temporary().join("effects")
    }

    /// Processes that agents of this home started and that run.
    pub(crate) fn processes(&self) -> Vec<String> {
        self.running(|entry| entry.starts_with(TOKEN))
    }

    /// Numbers of the processes of this home that have such an entry in their environment.
    fn running(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<String> {
        let home = format!("HOME={}", self.home.user().display());
        let mine = |environment: &[u8]| {
            let entries = || environment.split(|byte| *byte == 0);
            entries().any(|entry| entry == home.as_bytes()) && entries().any(&wanted)
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mine = all.filter(|entry| std::fs::read(entry.path().join("environ")).is_ok_and(|read| mine(&read)));
        mine.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Ends every process of this home, also one that is only just being started, as a loss of power would.
    pub(crate) fn end_processes(&self) {
        loop {
            let left = self.running(|_| true);
            if left.is_empty() {
                return;
            }
            // This shell belongs to another home, so that it does not end itself.
            let script = format!("kill -9 {}", left.join(" "));
            Agent::new("/bin/sh", &Home::new()).args(["-c", &script]).run();
        }
    }
}

impl Drop for Scene {
    /// A test that fails leaves no process either.
    fn drop(&mut self) {
        self.end_processes();
    }
}
