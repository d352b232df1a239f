//! Forked children: they know what their parent knew when it spawned them, to the byte, and hold none of it themselves.

use std::path::Path;

use protocol::Item;
use serde_json::json;
use testkit::{Home, Reply, Request, Run, Server, assert_invariants};

use crate::play::{command, end, exec, home};

/// What the parent's command prints; it is nowhere else.
const HISTORY: &str = "a long history";

/// Whose request it is, by the instructions that it begins with.
fn is_of(request: &Request, path: &str) -> bool {
    request.items()[0].text().contains(path)
}

fn brain(request: &Request) -> Reply {
    let told = request.told();
    if is_of(request, "/root/all") || is_of(request, "/root/one") {
        return Reply::new().text(format!("child: {}", request.told()));
    }
    let spawns = request.calls().iter().filter(|(call, _)| call.name == "spawn_agent").count();
    match told.as_str() {
        "First" if request.outputs().is_empty() => exec(&format!("echo {HISTORY}")),
        "First" => Reply::new().text("first answer"),
        "Third" => Reply::new().text("third answer"),
        _ if request.heard("child: part one") && request.heard("child: part all") => Reply::new().text("told"),
        // One after the other, so that it is certain which calls stand before which fork.
        _ if spawns == 0 => fork("all", "all"),
        _ if spawns == 1 => fork("one", "1"),
        _ => Reply::new().call("wait_agent", json!({})),
    }
}

fn fork(name: &str, turns: &str) -> Reply {
    let words = format!("part {name}");
    Reply::new().call("spawn_agent", json!({ "task_name": name, "message": words, "fork_turns": turns }))
}

fn raw(items: &[Item]) -> Vec<&str> {
    items.iter().map(Item::raw).collect()
}

/// Requests of one agent.
fn of(server: &Server, home: &Home, path: &str) -> Vec<Request> {
    let thread = home.rollout(path).thread().to_owned();
    server.requests().into_iter().filter(|request| request.thread() == thread).collect()
}

/// A root with a turn behind it that has forked two children; both have answered.
fn forked() -> (Server, Home, Run) {
    let server = Server::start(brain);
    let home = home(&server);
    command(&home, &["run", "First"]).run_ok();
    let run = command(&home, &["send", "/root", "Second"]).run_ok();
    assert_eq!(run.stdout, "told\n");
    (server, home, run)
}

/// Makes the line with these words unreadable.
fn spoil(file: &Path, words: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.contains(words) && line.contains("response_item") { line.replacen('{', "!", 1) } else { line.to_owned() } + "\n")
        .collect();
    std::fs::write(file, lines.concat()).unwrap();
}

#[test]
fn children_know_what_the_parent_knew() {
    let (server, home, run) = forked();
    let root = of(&server, &home, "/root");
    for (nth, name, from) in [(0, "all", "First"), (1, "one", "Second")] {
        let path = format!("/root/{name}");
        let spawns = |request: &Request| request.outputs().iter().filter(|output| output.contains("nickname")).count();
        // What the root sent right before it forked, and then its call.
        let before = root.iter().rfind(|request| spawns(request) == nth).unwrap().items();
        let call = &root.last().unwrap().items()[before.len()..=before.len()];
        let begins = before.iter().position(|item| item.text() == from).unwrap();
        let requests = of(&server, &home, &path);
        let items = requests[0].items();
        let taken = &items[2..items.len() - 1];
        let (answer, same) = taken.split_last().unwrap();
        assert_eq!(raw(same), raw(&[&before[begins..], call].concat()), "{path}");
        assert!(answer.text().contains("belongs to the parent"), "{path}");
        assert!(items.last().unwrap().text().contains(&format!("part {name}")));
        // It is nowhere in its own file.
        let file = home.rollout(&path);
        assert!(!file.text().contains("first answer") && !file.text().contains(HISTORY), "{path}");
        assert_eq!((file.count("forked"), file.payloads("forked")[0]["items"].as_u64()), (1, Some(taken.len() as u64)));
        assert_eq!(file.meta()["format"], 2);
    }
    end(&home, &server, &run);
}

#[test]
fn a_child_still_knows_it_in_a_later_process() {
    let (server, home, _) = forked();
    let first = of(&server, &home, "/root/all").remove(0);
    // The parent goes on in between, which is nothing to the child.
    for (to, words) in [("/root/all", "more"), ("/root", "Third"), ("/root/all", "and more")] {
        command(&home, &["send", to, words]).run_ok();
    }
    let last = of(&server, &home, "/root/all").pop().unwrap();
    assert_eq!(last.told(), "and more");
    assert_eq!(raw(&last.items()[..first.items().len()]), raw(first.items()));
    assert!(!last.contains("Third"));
    assert_invariants(&home, &server.requests());
}

#[test]
fn logs_say_what_is_referred_to_also_of_an_archived_tree() {
    let (_server, home, _) = forked();
    let tree = home.rollout("/root").tree().to_owned();
    let looks: [&[&str]; 3] = [&["log", "/root/all"], &["log", "/root/one", "--json"], &["rollout", "check"]];
    let look = || -> Vec<String> {
        let tree = ["--tree", tree.as_str()];
        looks.iter().map(|words| command(&home, &[words, &tree[..]].concat()).run_ok().stdout).collect()
    };
    let before = look();
    for words in ["forked: the next 7 items are /root's", HISTORY, "assistant: first answer", "part all"] {
        assert!(before[0].contains(words), "`{words}` is not in {}", before[0]);
    }
    let root = home.rollout("/root").thread().to_owned();
    assert!(before[1].contains(r#""type":"forked""#), "{}", before[1]);
    assert!(before[1].contains(&format!(r#""copied_from":"{root}""#)), "{}", before[1]);
    assert!(!before[1].contains("first answer") && before[1].contains("Second"), "{}", before[1]);
    assert!(before[2].ends_with("nothing wrong\n"), "{}", before[2]);
    command(&home, &["archive", &tree]).run_ok();
    assert_eq!(look(), before);
    command(&home, &["unarchive", &tree]).run_ok();
    assert_eq!(command(&home, &["send", "/root/one", "again"]).run_ok().stdout, "child: again\n");
}

#[test]
fn a_damaged_parent_is_told_and_the_child_goes_on() {
    let (server, home, _) = forked();
    let (root, all) = (home.rollout("/root").file().to_owned(), home.rollout("/root/all").file().to_owned());
    spoil(&root, "first answer");
    let lost = "1 of the 7 items that it takes over from /root are lost: 1 line of ";
    let told = command(&home, &["rollout", "check", all.to_str().unwrap()]).run();
    told.assert_code(1);
    assert!(told.stdout.contains(lost) && told.stdout.contains("1 fault"), "{}", told.stdout);
    let log = command(&home, &["log", "--last", "/root/all"]).run_ok();
    assert!(log.stderr.contains(lost) && log.stdout.contains(HISTORY), "{log:?}");
    // Whoever loads it is told, and it knows the rest.
    let run = command(&home, &["send", "/root/all", "more"]).run_ok();
    assert!(run.stderr.contains(&format!("/root/all: {lost}")), "{}", run.stderr);
    let last = of(&server, &home, "/root/all").pop().unwrap();
    assert!(last.contains(HISTORY) && !last.contains("first answer"));
    // And whoever takes it over in the middle of a turn: its last writes never reached the disk.
    let text = std::fs::read_to_string(&all).unwrap();
    let (before, _) = text.rsplit_once(r#""type":"turn_end""#).unwrap();
    std::fs::write(&all, &before[..=before.rfind('\n').unwrap()]).unwrap();
    let run = command(&home, &["resume", "--last"]).run_ok();
    assert!(run.stderr.contains(&format!("/root/all: {lost}")), "{}", run.stderr);
    assert!(!run.stderr.contains("/root/one:"), "{}", run.stderr);
}

/// The parent of a rollout is found beside it, whatever home the command itself looks at.
#[test]
fn a_file_of_another_home_is_checked_with_its_own_parent() {
    let (server, home, _) = forked();
    let elsewhere = crate::play::home(&server);
    let file = home.rollout("/root/all").file().to_owned();
    let check = |file: &Path| command(&elsewhere, &["rollout", "check", file.to_str().unwrap()]).run();
    check(&file).assert_code(0);
    let alone = elsewhere.path().join("alone.jsonl");
    std::fs::copy(&file, &alone).unwrap();
    let told = check(&alone);
    told.assert_code(1);
    assert!(told.stdout.contains("7 of the 7 items") && told.stdout.contains("is not there"), "{}", told.stdout);
}
