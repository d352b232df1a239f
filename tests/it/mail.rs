//! Mail between agents: when it arrives, how it looks, how often, and what is refused.

use serde_json::{Value, json};
use testkit::{Gate, Reply, Request, Server};

use crate::play::{Play, command, end, exec, home, notes, parent, requests, spawns, wait};

fn send(target: &str, message: &str) -> Reply {
    Reply::new().call("send_message", json!({"target": target, "message": message}))
}

fn follow_up(target: &str, message: &str) -> Reply {
    Reply::new().call("followup_task", json!({"target": target, "message": message}))
}

/// How often the agent with this task was shown `words`, in its last request, and in which request it first was.
fn seen(server: &Server, task: &str, words: &str) -> (usize, Option<usize>) {
    let all = requests(server, task);
    let count = |request: &Request| request.items().iter().filter(|item| item.text().contains(words)).count();
    (all.last().map_or(0, count), all.iter().position(|request| count(request) > 0))
}

/// The id in the output of a call that sent mail.
fn sent_id(output: &str) -> String {
    let output: Value = serde_json::from_str(output).unwrap_or_else(|_| panic!("not accepted: {output}"));
    assert_eq!(output["accepted"], true);
    output["mail"].as_str().unwrap().to_owned()
}

#[test]
fn a_working_child_reads_a_message_before_its_next_step() {
    let [begun, sent] = [Gate::new(), Gate::new()];
    let [is_asked, opens, held] = [begun.clone(), sent.clone(), sent];
    let server = Play::new()
        .thinks("Lead", move |request| match request.replies() {
            0 => spawns(&[("a", "work on")]),
            1 => send("a", "mind the gap").wait_for(&begun),
            2 => {
                opens.open();
                wait()
            }
            _ if request.heard("I minded it") => Reply::new().text("Good."),
            _ => wait(),
        })
        .thinks("work on", move |request| {
            is_asked.open();
            match request.replies() {
                0 => exec("echo one").wait_for(&held),
                1 => exec("echo two"),
                _ => Reply::new().text("I minded it"),
            }
        })
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    let id = sent_id(&requests(&server, "Lead")[2].outputs()[1]);
    let note = format!("<agent_mail kind=\"message\" from=\"/root\" id=\"{id}\">\nmind the gap\n</agent_mail>");
    let child = requests(&server, "work on");
    // The message was there before the first reply was; the next request has it, behind the output.
    assert_eq!(notes(&child[0]), [""; 0]);
    assert_eq!(notes(&child[1]), [note.as_str()]);
    assert_eq!(child[1].last().unwrap().text(), note);
    assert_eq!(notes(&child[2]), [note.as_str()], "and only once");
    let lines = home.rollout("/root/a").lines();
    let items = lines.iter().filter(|line| line["type"] == "response_item");
    let times = items.filter(|line| line["metadata"]["mail"].to_string().contains(&id)).count();
    assert_eq!(times, 1, "one line delivers it");
    end(&home, &server, &run);
}

#[test]
fn a_follow_up_wakes_an_idle_child_that_knows_what_it_did() {
    let server = Play::new()
        .thinks("Twice", |request| {
            let again = request.calls().iter().any(|(call, _)| call.name == "followup_task");
            match (request.replies(), again, request.heard("first answer"), request.heard("second answer")) {
                (0, ..) => spawns(&[("a", "begin")]),
                (_, false, true, _) => follow_up("a", "go deeper"),
                (.., true) => Reply::new().text("Both are here."),
                _ => wait(),
            }
        })
        .says("begin", [exec("echo work"), Reply::new().text("first answer"), Reply::new().text("second answer")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Twice"]).run_ok();
    assert_eq!(run.stdout, "Both are here.\n");
    let child = requests(&server, "begin");
    assert_eq!(child.len(), 3);
    let root = requests(&server, "Twice");
    let calls = root.last().unwrap().calls();
    let (_, output) = calls.iter().find(|(call, _)| call.name == "followup_task").unwrap();
    let task = sent_id(output.as_deref().unwrap());
    let note = format!("<agent_mail kind=\"followup\" from=\"/root\" id=\"{task}\">\ngo deeper\n</agent_mail>");
    assert_eq!(child[2].last().unwrap().text(), note);
    let results = notes(root.last().unwrap());
    assert_eq!(results.len(), 2, "{results:#?}");
    assert!(results[0].contains("kind=\"result\" from=\"/root/a\"") && results[0].contains("outcome=\"completed\""));
    assert!(
        results[1].contains(&format!("answers=\"{task}\"")) && results[1].ends_with(">\nsecond answer\n</agent_mail>")
    );
    end(&home, &server, &run);
}

#[test]
fn children_write_to_the_root_and_to_each_other() {
    let [b_is_here, wrote] = [Gate::new(), Gate::new()];
    let talk = Reply::new()
        .call("send_message", json!({"target": "/root/b", "message": "a to b"}))
        .call("send_message", json!({"target": "/root", "message": "a to root"}))
        .wait_for(&b_is_here);
    let written = wrote.clone();
    let server = Play::new()
        .thinks("Team", parent(spawns(&[("a", "talk"), ("b", "listen")]), &["a to root", "b heard", "a is done"], "ok"))
        .says("talk", [talk, Reply::new().text("a is done").then(&wrote)])
        .thinks("listen", move |request| match request.replies() {
            0 => {
                b_is_here.open();
                exec("true").wait_for(&written)
            }
            _ if request.heard("a to b") => Reply::new().text("b heard"),
            _ => panic!("the message is late: {request:?}"),
        })
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Team"]).run_ok();
    assert_eq!(run.stdout, "ok\n");
    let to_b = notes(&requests(&server, "listen")[1]);
    assert!(to_b.len() == 1 && to_b[0].starts_with("<agent_mail kind=\"message\" from=\"/root/a\" id=\""), "{to_b:?}");
    let to_root = notes(requests(&server, "Team").last().unwrap());
    let messages = to_root.iter().filter(|note| note.ends_with(">\na to root\n</agent_mail>")).count();
    assert_eq!((messages, to_root.len()), (1, 3), "{to_root:#?}");
    assert_eq!(seen(&server, "listen", "a to b"), (1, Some(1)));
    end(&home, &server, &run);
}

#[test]
fn every_end_of_a_child_is_told() {
    let children = [("done", "end well"), ("mute", "end mute"), ("odd", "end odd")];
    let server = Play::new()
        .thinks(
            "Ends",
            parent(spawns(&children), &["from=\"/root/done\"", "from=\"/root/mute\"", "from=\"/root/odd\""], "ok"),
        )
        .says("end well", [Reply::new().text("all is well")])
        .says("end mute", [Reply::new().reasoning("b3BhcXVl")])
        .says("end odd", [Reply::new().status(400).body(r#"{"error":{"message":"your model is odd"}}"#)])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Ends"]).run_ok();
    let results = notes(requests(&server, "Ends").last().unwrap());
    let body = |who: &str, outcome: &str| {
        let from = format!("from=\"/root/{who}\"");
        let result = results.iter().find(|note| note.contains(&from)).unwrap();
        assert!(result.contains(&format!("outcome=\"{outcome}\"")), "{result}");
        result.lines().skip(1).take_while(|line| *line != "</agent_mail>").collect::<Vec<_>>().join("\n")
    };
    assert_eq!(results.len(), 3, "{results:#?}");
    assert_eq!(body("done", "completed"), "all is well");
    assert_eq!(body("mute", "completed"), "(completed: the agent ended its turn without text)");
    assert_eq!(body("odd", "errored"), "(errored: mock answered 400: your model is odd)");
    end(&home, &server, &run);
}

#[test]
fn what_cannot_be_sent_is_refused_with_words_that_help() {
    let refused = Reply::new()
        .call("send_message", json!({"target": "b", "message": " \n"}))
        .call("send_message", json!({"target": "nobody", "message": "hello"}))
        .call("send_message", json!({"target": "../b", "message": "hello"}))
        .call("send_message", json!({"target": "a", "message": "hello me"}))
        .call("spawn_agent", json!({"task_name": "No Name", "message": "x"}))
        .call("spawn_agent", json!({"task_name": "a", "message": "x"}))
        .call("spawn_agent", json!({"task_name": "c", "message": "  "}));
    let b_is_there = Gate::new();
    let from_child = Reply::new()
        .call("followup_task", json!({"target": "/root", "message": "do my work"}))
        .call("send_message", json!({"target": "b", "message": "a sibling has a path"}))
        .call("send_message", json!({"target": "/root/a", "message": "hello me"}));
    let server = Play::new()
        .thinks("Refuse", move |request| match request.replies() {
            0 => spawns(&[("a", "refuse too"), ("b", "stand by")]),
            1 => refused.clone(),
            _ if request.heard("a is done") && request.heard("b is done") => Reply::new().text("ok"),
            _ => wait(),
        })
        .says("refuse too", [from_child.wait_for(&b_is_there), Reply::new().text("a is done")])
        .says("stand by", [Reply::new().text("b is done").then(&b_is_there)])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Refuse"]).run_ok();
    assert_eq!(run.stdout, "ok\n");
    let outputs = requests(&server, "Refuse")[2].outputs();
    let says = |output: &str, words: &[&str]| {
        for word in words {
            assert!(output.contains(word), "`{word}` is not in `{output}`");
        }
    };
    says(&outputs[2], &["must not be empty"]);
    says(&outputs[3], &["no open agent at /root/nobody", "/root/a", "/root/b"]);
    says(&outputs[4], &["`..`", "worker_a"]);
    says(&outputs[6], &["`No Name` is not an agent name", "worker_a"]);
    says(&outputs[7], &["/root/a is taken"]);
    says(&outputs[8], &["must not be empty"]);
    let outputs = requests(&server, "refuse too")[1].outputs();
    says(&outputs[0], &["a follow-up task cannot target /root", "send_message"]);
    says(&outputs[1], &["no open agent at /root/a/b", "/root/b"]);
    says(&outputs[2], &["cannot send mail to itself"]);
    let sibling = requests(&server, "stand by");
    assert!(sibling.iter().all(|request| notes(request).is_empty()), "nothing of it arrived");
    assert_eq!(home.rollouts().len(), 3, "no refused spawn left a file");
    end(&home, &server, &run);
}
