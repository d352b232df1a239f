//! Scripts for whole trees, and the words that scenarios share.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Agent, Home, Reply, Request, Run, Server, assert_invariants};

type Brain = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// What each agent of a tree says. An agent is known by its first task.
#[derive(Default)]
pub(crate) struct Play(Vec<(String, Brain)>);

impl Play {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The agent with this task gives these replies, one after the other. Further requests fail the test.
    pub(crate) fn says(self, task: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let name = task.to_owned();
        self.thinks(task, move |request| match replies.get(request.replies()) {
            Some(reply) => reply.clone(),
            None => panic!("`{name}` has no reply for {request:?}"),
        })
    }

    /// The agent with this task thinks for itself.
    pub(crate) fn thinks(mut self, task: &str, brain: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        self.0.push((task.to_owned(), Box::new(brain)));
        self
    }

    /// The whole as one brain.
    pub(crate) fn brain(self) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
        move |request| match self.0.iter().find(|(task, _)| *task == request.task()) {
            Some((_, brain)) => brain(request),
            None => panic!("nobody has the task `{}`: {request:?}", request.task()),
        }
    }

    /// A server that plays it.
    pub(crate) fn serve(self) -> Server {
        Server::start(self.brain())
    }
}

/// A home with this server as the provider `mock`.
pub(crate) fn home(server: &Server) -> Home {
    Home::new().provider("mock", server)
}

/// The command.
pub(crate) fn agent(home: &Home) -> Agent {
    Agent::new(env!("CARGO_BIN_EXE_agent"), home)
}

/// The command with these words.
pub(crate) fn command(home: &Home, words: &[&str]) -> Agent {
    agent(home).args(words.iter().copied())
}

/// A shell line in which `$AGENT` is the command.
pub(crate) fn shell(home: &Home, line: &str) -> Run {
    Agent::new("/bin/bash", home).args(["-c", line]).env("AGENT", env!("CARGO_BIN_EXE_agent")).run()
}

/// The end of a scenario: what must hold of all requests does, and nothing of the run is left.
pub(crate) fn end(home: &Home, server: &Server, run: &Run) {
    assert!(!run.left_behind, "a process outlived the command");
    assert_invariants(home, &server.requests());
}

/// A call that spawns a worker.
pub(crate) fn spawn(name: &str, task: &str) -> Value {
    json!({ "task_name": name, "message": task, "agent_type": "worker" })
}

/// One reply that spawns these workers side by side, each `(name, task)`.
pub(crate) fn spawns(children: &[(&str, &str)]) -> Reply {
    children.iter().fold(Reply::new(), |reply, (name, task)| reply.call("spawn_agent", spawn(name, task)))
}

/// A reply that waits for anybody.
pub(crate) fn wait() -> Reply {
    Reply::new().call("wait_agent", json!({}))
}

/// A parent that first says `first`, then waits until it has heard all `marks`, then says `last`.
pub(crate) fn parent(first: Reply, marks: &[&str], last: &str) -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let marks: Vec<String> = marks.iter().map(|mark| (*mark).to_owned()).collect();
    let last = last.to_owned();
    move |request| match request.replies() {
        0 => first.clone(),
        _ if marks.iter().all(|mark| request.heard(mark)) => Reply::new().text(&last),
        _ => wait(),
    }
}

/// A reply that runs a command.
pub(crate) fn exec(cmd: &str) -> Reply {
    Reply::new().call("exec_command", json!({ "cmd": cmd }))
}

/// The requests of the agent with this first task.
pub(crate) fn requests(server: &Server, task: &str) -> Vec<Request> {
    server.requests().into_iter().filter(|request| request.task() == task).collect()
}

/// Blocks until `enough`, which no gate tells: the state of files and processes. Fails the test after 50 s.
#[track_caller]
pub(crate) fn until(what: &str, enough: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(50);
    while !enough() {
        assert!(Instant::now() < deadline, "this did not come: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The tree as `agent tree --format json` gives it.
#[track_caller]
pub(crate) fn tree(home: &Home) -> Value {
    let run = command(home, &["tree", "--last", "--format", "json"]).run_ok();
    let lines = run.json_lines();
    assert_eq!(lines.len(), 1, "{}", run.stdout);
    lines[0].clone()
}

/// `path edge status` of each agent of the tree, breadth first.
#[track_caller]
pub(crate) fn standings(home: &Home) -> Vec<String> {
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = tree(home)["agents"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| ["path", "edge", "status"].map(|key| word(row, key)).join(" ")).collect()
}

/// The marked notes of mail in a conversation: each with its heading and its words.
pub(crate) fn notes(request: &Request) -> Vec<String> {
    let texts = request.items().iter().map(protocol::Item::text);
    texts.filter(|text| text.starts_with("<agent_mail ") && text.ends_with("</agent_mail>")).collect()
}
