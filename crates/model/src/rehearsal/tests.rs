use std::path::Path;

use futures::StreamExt as _;
use protocol::{Address, Call, Item, Role, ThreadId};

use super::*;
use crate::{Model as _, ModelEvent, ModelRequest};

/// Most replies of one task: eight waits, what comes before and after them, and one to spare.
const MOST: usize = 11;

/// An agent of the rehearsal and its conversation.
struct Agent {
    script: Script,
    path: &'static str,
    items: Vec<Item>,
}

impl Agent {
    fn new(path: &'static str) -> Self {
        let items = vec![
            Item::message(Role::Developer, "Children live at /root/explorer and /root/worker."),
            Item::message(Role::User, "<environment_context>\ncwd: /root/explorer\n</environment_context>"),
        ];
        Self { script: open().unwrap(), path, items }
    }

    async fn reply(&self) -> Vec<Item> {
        let thread = ThreadId::new();
        let request = ModelRequest {
            tree: thread.into(),
            agent: Address { path: self.path.parse().unwrap(), thread },
            role: "default".to_owned(),
            head: self.script.head(&[]),
            input: self.items.iter().cloned().collect(),
            max_output: None,
            effort: None,
        };
        let events: Vec<_> = self.script.stream(request).collect().await;
        let item = |event| match event {
            Ok(ModelEvent::Item(item)) => Some(item),
            Ok(_) => None,
            Err(error) => panic!("{error}"),
        };
        events.into_iter().filter_map(item).collect()
    }

    /// Gives a task and answers calls until the agent has ended its turn. `tool` gives the output of a call and what
    /// enters the context after it. Returns the agent's last words and how many calls it made.
    async fn task(&mut self, task: &str, mut tool: impl FnMut(&Call) -> (String, Vec<Item>)) -> (String, usize) {
        self.items.push(Item::message(Role::User, task));
        let mut made = 0;
        for _ in 0..MOST {
            let reply = self.reply().await;
            let calls: Vec<Call> = reply.iter().filter_map(Item::call).collect();
            let text = reply.iter().filter_map(Item::final_text).next_back();
            self.items.extend(reply);
            if calls.is_empty() {
                return (text.unwrap(), made);
            }
            made += calls.len();
            let mut after = Vec::new();
            for call in &calls {
                let (output, more) = tool(call);
                self.items.push(Item::output(call, &output));
                after.extend(more);
            }
            self.items.extend(after);
        }
        panic!("{} does not end: {:?}", self.path, self.items);
    }
}

fn result(path: &str, text: &str) -> Item {
    let text =
        format!("<agent_mail kind=\"result\" from=\"{path}\" id=\"1\" outcome=\"completed\">\n{text}\n</agent_mail>");
    Item::message(Role::User, &text)
}

/// Runs a command of the rehearsal for real.
#[expect(clippy::disallowed_methods, reason = "the test stands in for the tool that runs commands")]
fn run(dir: &Path, call: &Call) -> String {
    assert_eq!(call.name, "exec_command");
    let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
    let cmd = arguments["cmd"].as_str().unwrap();
    let output = std::process::Command::new("sh").arg("-c").arg(cmd).current_dir(dir).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{cmd}");
    format!("Process exited with code 0\nOutput:\n{}", String::from_utf8_lossy(&output.stdout))
}

fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in ["src/a.rs", "src/b.rs", "src/c.d.rs", "notes.md", "target/x.rs", "node_modules/y/z.js", ".hidden"] {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    }
    std::fs::write(dir.path().join("ReadMe.md"), "\n\n# A small: project\nmore\n").unwrap();
    dir
}

fn list(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = vec![dir.to_path_buf()];
    let mut at = 0;
    while at < all.len() {
        if all[at].is_dir() {
            all.extend(std::fs::read_dir(all[at].clone()).unwrap().map(|entry| entry.unwrap().path()));
        }
        at += 1;
    }
    all.sort();
    all
}

#[tokio::test]
async fn from_end_to_end_with_real_commands() {
    let dir = project();
    let before = list(dir.path());
    let mut explorer = Agent::new("/root/explorer");
    let (explored, _) = explorer.task("Look.", |call| (run(dir.path(), call), Vec::new())).await;
    expect_test::expect![
        "Explorer report: at the top level 6 entries, the first are: .hidden ReadMe.md node_modules notes.md src target. \
         Most frequent kinds of files: 3 .rs, 2 .md."
    ]
    .assert_eq(&explored);
    let mut worker = Agent::new("/root/worker");
    let (worked, _) = worker.task("Work.", |call| (run(dir.path(), call), Vec::new())).await;
    expect_test::expect![
        "Worker report: last commit: none, this is not a git repository. \
         README: ReadMe.md begins: # A small: project. I changed nothing."
    ]
    .assert_eq(&worked);
    assert_eq!(list(dir.path()), before, "nothing was changed");

    let mut root = Agent::new("/root");
    let mut waits = 0;
    let (answer, calls) = root
        .task("do my task for /root/worker", |call| match call.name.as_str() {
            "spawn_agent" => {
                let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
                let name = arguments["task_name"].as_str().unwrap();
                assert_eq!(arguments["agent_type"], name);
                (format!("{{\"task_name\":\"/root/{name}\"}}"), Vec::new())
            }
            "wait_agent" => {
                waits += 1;
                let text =
                    if waits == 1 { result("/root/worker", &worked) } else { result("/root/explorer", &explored) };
                ("woke: one result".to_owned(), vec![text])
            }
            other => panic!("{other}"),
        })
        .await;
    assert_eq!(calls, 4, "two spawns and two waits");
    assert!(answer.starts_with("The rehearsal is over. No model was asked and nothing here can think"), "{answer}");
    assert!(answer.contains(&explored) && answer.contains(&worked), "{answer}");

    let refuse = |call: &Call| panic!("{call:?}");
    let (again, _) = root.task("and now?", refuse).await;
    assert!(again.contains("cannot answer: and now?") && again.contains(&explored), "{again}");
    let found = "Last commit: none, this is not a git repository. README: ReadMe.md begins: # A small: project.";
    for (agent, said) in [(&mut worker, found), (&mut explorer, "3 .rs, 2 .md")] {
        let (text, _) = agent.task("what did you find?", refuse).await;
        assert!(text.contains("I remember") && text.contains(said) && text.contains("what did you find?"), "{text}");
        let (third, _) = agent
            .task("<agent_mail kind=\"followup\" from=\"/root\" id=\"2\">\nonce more\n</agent_mail>", refuse)
            .await;
        assert!(third.contains("cannot do this: once more") && third.contains(said), "{third}");
    }
}

#[tokio::test]
async fn it_ends_whatever_the_tools_answer() {
    let spawned = [
        "{\"task_name\":\"/root/NAME\"}",
        "the role `NAME` is not offered here",
        "agent `/root/NAME` already exists",
        "",
    ];
    let results = [Some("Explorer report: a\nWorker report: b"), Some("(errored: no model)"), Some(""), None];
    for explorer in spawned {
        for worker in spawned {
            for result_of in results {
                let mut root = Agent::new("/root");
                let mut waits = 0;
                let tool = |call: &Call| match call.name.as_str() {
                    "spawn_agent" if call.arguments.contains("\"explorer\"") => {
                        (explorer.replace("NAME", "explorer"), Vec::new())
                    }
                    "spawn_agent" => (worker.replace("NAME", "worker"), Vec::new()),
                    _ => {
                        waits += 1;
                        let mail = |name: &str| result_of.map(|text| result(&format!("/root/{name}"), text));
                        let new = match waits {
                            1 if explorer.contains("/root/") => mail("explorer"),
                            2 if worker.contains("/root/") => mail("worker"),
                            _ => None,
                        };
                        (String::new(), new.into_iter().collect())
                    }
                };
                let (answer, _) = root.task("x", tool).await;
                assert!(
                    answer.contains("The rehearsal is over.") && answer.contains("nothing here can think"),
                    "{answer}"
                );
                if result_of == results[0] && explorer == spawned[0] && worker == spawned[1] {
                    assert!(answer.contains("Explorer report: a") && answer.contains("no worker"), "{answer}");
                    assert_eq!(waits, 1, "there is nobody else to wait for");
                }
                if explorer == spawned[1] && worker == spawned[1] {
                    assert_eq!(waits, 0, "there is nobody to wait for");
                    assert!(answer.contains("is not offered here"), "{answer}");
                }
            }
        }
    }
    for path in ["/root/explorer", "/root/worker", "/root/somebody/else"] {
        for output in ["there is no tool called `exec_command`", "", "aborted by user after 3 s"] {
            let mut agent = Agent::new(path);
            let (answer, _) = agent.task("x", |_| (output.to_owned(), Vec::new())).await;
            let first = if path.ends_with("else") { "cannot think" } else { " report: my commands gave nothing" };
            assert!(answer.contains(first), "{answer}");
            let (again, calls) = agent.task("y", |_| (output.to_owned(), Vec::new())).await;
            assert!(again.contains("cannot think") && calls == 0, "{again}");
        }
    }
}
