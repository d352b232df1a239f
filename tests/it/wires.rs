//! The same tree over each wire: it ends the same way, stands on disk the same way, and goes on over another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use protocol::{Item, ItemKind};
use serde_json::{Value, json};
use testkit::{Gate, Home, Reply, Request, Run, Server, Wire};

use crate::play::{Play, command, end, exec, home, parent, requests, spawn, spawns, standings, tree, wait};

/// A home in which the server is the provider `mock` over this wire.
fn over(wire: Wire, server: &Server) -> Home {
    home(server).set("providers.mock.wire", wire.as_str())
}

/// Runs `task` over a wire and closes the scenario.
#[track_caller]
fn run(wire: Wire, server: &Server, task: &str) -> (Home, Run) {
    let home = over(wire, server);
    let run = command(&home, &["run", task]).run_ok();
    assert!(server.requests().iter().all(|request| request.wire() == wire), "{wire:?}");
    end(&home, server, &run);
    (home, run)
}

/// One tree in which everything happens that wires could tell differently. Gates keep the order of what happens at
/// once, so that two runs write the same lines.
fn everything() -> Server {
    let root: Arc<[Gate; 8]> = Arc::default();
    let [a_root, b_root] = [root.clone(), root.clone()];
    let [a_asks, told, a_done, b_wrote] = [(); 4].map(|()| Gate::new());
    let [asks, hears, writes, wrote] = [&a_asks, &told, &a_done, &b_wrote].map(Gate::clone);
    let [stumbles, breaks] = [true, true].map(AtomicBool::new);
    Play::new()
        .thinks("Lead", move |request| {
            let at = request.replies();
            let due = ["", "", "", "a first", "b to root", "b done", "", "a second"][at];
            assert!(request.heard(due), "`{due}` is missing: {request:?}");
            let reply = match at {
                0 => Reply::new().text("I split it.").call("spawn_agent", spawn("a", "work on")),
                1 => mail("send_message", "a", "mind the gap").wait_for(&a_asks),
                3 => exec("echo by myself").wait_for(&b_wrote),
                5 => mail("followup_task", "a", "go deeper"),
                7 => Reply::new().text("All is here."),
                _ => wait(),
            };
            match at {
                2 => told.open(),
                3 => a_done.open(),
                _ => {}
            }
            let reply = if at == 0 { reply.call("spawn_agent", spawn("b", "listen")) } else { reply };
            reply.then(&root[at])
        })
        .thinks("work on", move |request| {
            asks.open();
            match request.replies() {
                0 => exec("echo one").call("exec_command", json!({"cmd": "echo two; exit 3"})).wait_for(&hears),
                1 if stumbles.swap(false, Ordering::SeqCst) => Reply::new().status(500),
                1 => exec("echo three").crlf().split_bytes(5),
                2 => Reply::new().text("a first").wait_for(&a_root[2]),
                // The call is whole, the reply is not. The Chat wire cannot tell, and asks for all of it again.
                3 if breaks.swap(false, Ordering::SeqCst) => exec("echo four").no_completed().cut_after(usize::MAX),
                3 => exec("echo four").comments(),
                _ => Reply::new().text("a second").wait_for(&a_root[6]),
            }
        })
        .thinks("listen", move |request| match request.replies() {
            0 => mail("send_message", "/root", "b to root").wait_for(&writes),
            1 => {
                wrote.open();
                Reply::new().text("odd next").call("teleport", json!({"to": "käse \"€\""}))
            }
            2 => Reply::new().raw_call("exec_command", r#"{"cmd": 7, "#).wait_for(&b_root[4]),
            _ => Reply::new().text("b done: Grüße, 世界"),
        })
        .serve()
}

fn mail(tool: &str, target: &str, message: &str) -> Reply {
    Reply::new().call(tool, json!({"target": target, "message": message}))
}

#[test]
fn the_same_tree_ends_the_same_way_over_each_wire() {
    let [responses, chat, messages] = Wire::ALL.map(|wire| {
        let server = everything();
        let (home, run) = run(wire, &server, "Lead");
        assert_eq!(run.stdout, "All is here.\n", "{wire:?}");
        let a = requests(&server, "work on").len();
        assert_eq!(a, if wire == Wire::Chat { 7 } else { 6 }, "{wire:?}: five replies, a 500, and what broke off");
        let mut dump = standings(&home);
        dump.extend(["/root", "/root/a", "/root/b"].iter().flat_map(|path| lines(&home, path)));
        dump
    });
    assert!(responses.len() > 60, "{responses:#?}");
    similar(&responses, &chat, "chat");
    similar(&responses, &messages, "messages");
}

/// Fails the test where two dumps part.
#[track_caller]
fn similar(one: &[String], other: &[String], wire: &str) {
    let apart = one.iter().zip(other).position(|(a, b)| a != b);
    let apart = apart.or((one.len() != other.len()).then_some(one.len().min(other.len())));
    if let Some(at) = apart {
        let around = at.saturating_sub(3);
        panic!("line {at} differs over {wire}:\n{:#?}\n{:#?}", &one[around..][..5], &other[around..][..5]);
    }
}

/// What stands in an agent's rollout, a line each: without ids, times, and what is counted. What other tasks write
/// beside the conversation (processes, receipts) stands at the end, in an order of its own.
fn lines(home: &Home, path: &str) -> Vec<String> {
    let rollout = home.rollout(path);
    let rollouts = home.rollouts();
    // Drawn by lot.
    let nicknames: Vec<&str> = rollouts.iter().filter_map(|agent| agent.meta()["agent_nickname"].as_str()).collect();
    let (mut lines, mut beside) = (vec![format!("== {path}")], Vec::new());
    for line in rollout.lines() {
        let kind = line["type"].as_str().unwrap();
        let payload = &line["payload"];
        let says = match kind {
            "response_item" => item(&Item::parse(&payload.to_string()).unwrap()),
            "process" => payload["command"].to_string(),
            "usage" => continue,
            "sent" => String::new(),
            _ => bare(payload).to_string(),
        };
        let mails = line["metadata"]["mail"].as_array().map_or(0, Vec::len);
        let says = says.replace(home.work().to_str().unwrap(), "$WORK");
        let says = nicknames.iter().fold(says, |says, name| says.replace(&format!("\"{name}\""), "NICKNAME"));
        let shown = masked(&format!("{kind} {:?} mails={mails} {says}", line["part"].as_array()));
        if matches!(kind, "process" | "sent") { beside.push(shown) } else { lines.push(shown) }
    }
    beside.sort();
    lines.extend(beside);
    lines
}

/// An item by its meaning: wires have other fields around it.
fn item(item: &Item) -> String {
    match (item.kind(), item.call()) {
        (_, Some(call)) => format!("call {} {}", call.name, call.arguments),
        (ItemKind::Output, _) => format!("output {}", item.text()),
        (kind, _) => format!("{kind:?} {}", item.text()),
    }
}

/// A payload without the fields that differ from run to run.
fn bare(payload: &Value) -> Value {
    let mut payload = payload.clone();
    if let Some(fields) = payload.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "timestamp" | "time" | "tools_digest"));
    }
    payload
}

/// The text without ids (36 characters in five groups, or the six digits that name a piece of output) and without
/// measured times.
fn masked(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let mut out = String::new();
    for word in text.split_inclusive(|c| !part(c)) {
        let core = word.trim_end_matches(|c| !part(c));
        let id = (core.len() == 36 && core.matches('-').count() == 4) || out.ends_with("Chunk ID: ");
        let time = core.contains('.') && core.parse::<f64>().is_ok();
        out += match (id, time) {
            (true, _) => "ID",
            (_, true) => "TIME",
            _ => core,
        };
        out += &word[core.len()..];
    }
    out
}

/// A home in which the server is a provider three times, by the names of the wires that it speaks as each. The first
/// is the model.
fn everywhere(server: &Server, first: Wire) -> Home {
    let with = |home: Home, wire: Wire| {
        home.provider(wire.as_str(), server).set(&format!("providers.{}.wire", wire.as_str()), wire.as_str())
    };
    Wire::ALL.into_iter().filter(|wire| *wire != first).fold(with(Home::new(), first), with)
}

/// Thinks, runs a command, and says what it was told; `thought` is for its own server only.
fn thinks_and_works(request: &Request) -> Reply {
    let tasks = request.items().iter().filter(|item| item.kind() == ItemKind::Message(protocol::Role::User));
    let tasks = tasks.filter(|item| item.text().starts_with("task")).count();
    if request.outputs().len() < tasks {
        let words = format!("echo work {tasks}");
        return Reply::new().reasoning(thought(request.wire(), tasks)).call("exec_command", json!({ "cmd": words }));
    }
    Reply::new().text(format!("done: {}", request.told()))
}

fn thought(wire: Wire, number: usize) -> String {
    format!("{}-thought-{number}+/==", wire.as_str())
}

#[test]
fn a_tree_goes_on_over_another_wire() {
    for first in Wire::ALL {
        let server = Server::start(|request: &Request| match request.task().as_str() {
            "Lead" => parent(spawns(&[("a", "task 1")]), &["done: task 1"], "all done")(request),
            _ => thinks_and_works(request),
        });
        let home = everywhere(&server, first);
        let run = command(&home, &["run", "Lead"]).run_ok();
        assert_eq!(run.stdout, "all done\n", "{first:?}");
        let others = Wire::ALL.into_iter().filter(|wire| *wire != first);
        for (wire, number) in others.chain([first]).zip(2..) {
            let (model, words) = (format!("{}/model", wire.as_str()), format!("task {number}"));
            let run = command(&home, &["send", "--model", &model, "/root/a", &words]).run_ok();
            assert_eq!(run.stdout, format!("done: {words}\n"), "{first:?}, then {wire:?}");
            let last = server.requests().pop().unwrap();
            assert_eq!(last.wire(), wire);
            remembers(&last, number);
            for other in Wire::ALL.into_iter().filter(|other| *other != wire) {
                assert!(
                    !sees(&last, &format!("{}-thought", other.as_str())),
                    "{wire:?} was shown what {other:?} thought"
                );
            }
            assert!(sees(&last, &thought(wire, number)), "{wire:?} does not see its own thought again");
        }
        // The root, which spoke over the first wire only, goes on too.
        let second = Wire::ALL.into_iter().find(|wire| *wire != first).unwrap();
        let run = command(&home, &["resume", "--model", &format!("{}/model", second.as_str()), "and now?"]).run_ok();
        assert_eq!(run.stdout, "all done\n", "{first:?}, then {second:?}");
        let last = server.requests().pop().unwrap();
        assert_eq!((last.wire(), last.task().as_str(), last.told().as_str()), (second, "Lead", "and now?"));
        assert!(last.heard("done: task 1") && last.contains("all done"), "{last:?}");
        assert_eq!(standings(&home), ["/root open completed", "/root/a open completed"]);
        end(&home, &server, &run);
    }
}

/// The agent knows each of its tasks, what it ran for it, and what it answered.
#[track_caller]
fn remembers(request: &Request, tasks: usize) {
    assert_eq!(request.outputs().len(), tasks, "{request:?}");
    for (number, (call, output)) in (1..).zip(request.calls()) {
        let words = format!("echo work {number}");
        assert_eq!(serde_json::from_str::<Value>(&call.arguments).unwrap(), json!({ "cmd": words }));
        assert!(output.unwrap().ends_with(&format!("Output:\nwork {number}\n")));
        assert!(number == tasks || request.contains(&format!("done: task {number}")), "{request:?}");
    }
}

fn sees(request: &Request, text: &str) -> bool {
    String::from_utf8_lossy(request.raw()).contains(text)
}

#[test]
fn a_chat_server_may_leave_out_ids_and_counts_and_send_arguments_as_objects() {
    let two = |a: &str, b: &str| exec(&format!("echo {a}")).call("exec_command", json!({"cmd": format!("echo {b}")}));
    let server = Play::new()
        .says(
            "Odd",
            [
                two("one", "two").missing_call_id().object_arguments().no_usage(),
                two("three", "four").repeat_call_ids().object_arguments().no_usage(),
                two("five", "six").missing_call_id().whole().no_usage(),
                Reply::new().text("odd, but done").no_usage(),
            ],
        )
        .serve();
    let (home, run) = run(Wire::Chat, &server, "Odd");
    assert_eq!(run.stdout, "odd, but done\n");
    let last = server.requests().pop().unwrap();
    let calls = last.calls();
    for ((call, output), word) in calls.iter().zip(["one", "two", "three", "four", "five", "six"]) {
        assert_eq!(call.arguments, json!({"cmd": format!("echo {word}")}).to_string());
        assert!(output.as_ref().unwrap().ends_with(&format!("Output:\n{word}\n")), "{call:?}: {output:?}");
        assert!(!call.call_id.is_empty(), "{call:?}");
    }
    let ids: std::collections::HashSet<&str> = calls.iter().map(|(call, _)| call.call_id.as_str()).collect();
    assert_eq!((calls.len(), ids.len()), (6, 6), "each call has an id of its own");
    assert_eq!(tree(&home)["agents"][0]["tokens"], json!({"input": 0, "cached_input": 0, "output": 0}));
}

#[test]
fn signed_thinking_comes_back_before_its_call_to_the_byte() {
    let signature = "EqQBCkYIARgCIkD+/Zm9v==";
    // Blanks, escapes and the order of keys are the server's.
    let sealed = r#"{ "type":"redacted_thinking",  "data":"Q\u00e4+/==", "new": [1, 2.50] }"#;
    let whole = r#"{"signature": "c2ln+/==", "thinking": "a \u2028 b", "type": "thinking"}"#;
    let first = Reply::new().reasoning(signature).raw_item(sealed).call("exec_command", json!({"cmd": "echo one"}));
    let second = Reply::new().raw_item(whole).text("Again.").call("exec_command", json!({"cmd": "echo two"}));
    let server = Play::new().says("Think", [first, second, "thought".into(), "and more".into()]).serve();
    let (home, _) = run(Wire::Messages, &server, "Think");
    let run = command(&home, &["resume", "go on"]).run_ok();
    assert_eq!(run.stdout, "and more\n");
    let all = server.requests();
    for request in &all[1..] {
        let reply = &request.json()["messages"][1]["content"];
        let kinds: Vec<&str> = reply.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["thinking", "redacted_thinking", "tool_use"]);
        assert_eq!(reply[0]["signature"], signature);
        assert_eq!(reply[0]["thinking"], "Let me think: \"first\" things first…");
        assert_eq!(reply[0].as_object().unwrap().len(), 3, "nothing is added: {}", reply[0]);
        assert!(sees(request, &format!("{sealed},{{\"type\":\"tool_use\"")), "{}", reply);
    }
    for request in &all[2..] {
        assert!(sees(request, &format!("{whole},{{\"type\":\"text\",\"text\":\"Again.\"}},{{\"type\":\"tool_use\"")));
    }
    assert_eq!(all.len(), 4);
    end(&home, &server, &run);
}

/// A server may work at several items at once, and finish a later one first.
#[test]
fn calls_whose_events_come_in_turns_are_each_made_once() {
    let long = "echo one, whose line is long enough to be streamed in more than one piece; exit 3";
    for wire in Wire::ALL {
        let server = Play::new()
            .thinks("Both", move |request| {
                if request.replies() == 0 {
                    return exec(long).call("exec_command", json!({"cmd": "echo two"})).interleaved();
                }
                let outputs = request.items().iter().filter(|item| item.kind() == ItemKind::Output).count();
                assert_eq!(outputs, 2, "{wire:?}: {request:?}");
                assert!(request.heard("one, whose line") && request.heard("two"), "{wire:?}: {request:?}");
                Reply::new().text("both are back")
            })
            .serve();
        let (_home, run) = run(wire, &server, "Both");
        assert_eq!(run.stdout, "both are back\n", "{wire:?}");
    }
}
