//! What the pages in `docs/` show: every example of theirs does what stands beside it.

use std::collections::BTreeSet;
use std::fs;

use protocol::TreeEvent;
use serde_json::Value;
use testkit::Home;

use crate::play::command;

/// The text of a page.
fn page(name: &str) -> String {
    fs::read_to_string(format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The blocks of a page in this language, the first one first.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    page.split(&begin).skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block.to_owned()).collect()
}

/// Ids that a page cuts to `…` and their last four characters, as long as they are.
fn whole(line: &str) -> String {
    let mut pieces = line.split("\"…");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let cut = piece.get(..4).is_some_and(|id| id.bytes().all(|b| b.is_ascii_hexdigit()));
        text + if cut { "\"01a22d6c-ef38-767f-9962-dc6d1c26" } else { "\"…" } + piece
    })
}

#[test]
fn every_event_has_an_example() {
    let page = page("EVENTS.md");
    let mut shown = BTreeSet::new();
    for line in blocks(&page, "json").iter().flat_map(|block| block.lines()) {
        let line = whole(line);
        let event: TreeEvent = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        // Written again it is the same: no field is missing and none is there that we do not know.
        let again: Value = serde_json::to_value(&event).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(&line).unwrap());
        shown.insert(again["type"].as_str().unwrap().to_owned());
    }
    // The names as they stand in the source, which a test there freezes.
    let source = fs::read_to_string(format!("{}/crates/protocol/src/event.rs", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let names = source.split("#[serde(rename = \"").skip(1).filter_map(|rest| rest.split_once("\")]"));
    let names: BTreeSet<String> = names.map(|(name, _)| name.to_owned()).collect();
    assert!(names.contains("tree.finished"));
    assert_eq!(shown, names);
}

#[test]
fn the_script_runs() {
    let page = page("SCRIPTS.md");
    let home = Home::new();
    fs::write(home.work().join("count.toml"), &blocks(&page, "toml")[0]).unwrap();
    fs::write(home.work().join("notes.txt"), "a\nb\n").unwrap();
    let run = command(&home, &["run", "--model", "script:count.toml", "How long are my notes?"]).run_ok();
    assert_eq!(run.stdout, "There are 2 lines in notes.txt.\n", "{}", run.stderr);
    assert!(page.contains(&format!("`{}`", run.stdout.trim_end())));
    assert!(!run.left_behind);
}

#[test]
fn the_configuration_can_be_used_as_it_stands() {
    let home = Home::new();
    home.write("config.toml", &blocks(&page("CONFIG.md"), "toml")[0]);
    let script = home.work().join("fine.toml");
    fs::write(&script, "[[rule]]\nreply = [{ text = \"fine\" }]\n").unwrap();
    let model = format!("script:{}", script.display());
    for profile in [&[][..], &["--profile", "careful"]] {
        let words = [&["run", "--strict-config", "--model", &model], profile, &["x"]].concat();
        let run = command(&home, &words).run_ok();
        assert_eq!(run.stdout, "fine\n", "{}", run.stderr);
        assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    }
}

#[test]
fn a_role_that_asks_for_what_nothing_keeps_is_refused() {
    let home = Home::new();
    fs::create_dir(home.path().join("agents")).unwrap();
    let script = "[[rule]]\nafter = 0\nreply = [{ call = \"spawn_agent\", arguments = { task_name = \"a\", message = \"x\", \
                  agent_type = \"kept\" } }]\n[[rule]]\nreply = [{ text = \"${last}\" }]\n";
    fs::write(home.work().join("spawn.toml"), script).unwrap();
    for (key, what) in
        [("sandbox = \"read-only\"", "the sandbox `read-only`"), ("workspace = \"worktree\"", "a worktree of its own")]
    {
        home.write("agents/kept.toml", &format!("description = \"d\"\ninstructions = \"i\"\n{key}\n"));
        let run = command(&home, &["run", "--model", "script:spawn.toml", "x"]).run_ok();
        let told = format!("the role `kept` asks for {what}, which this version cannot enforce");
        assert!(run.stdout.contains(&told), "{}", run.stdout);
    }
    assert_eq!(home.rollouts().len(), 2, "two roots and nobody else");
}

#[test]
fn the_role_is_as_it_is_shown() {
    let page = page("ROLES.md");
    let home = Home::new();
    fs::create_dir(home.path().join("agents")).unwrap();
    home.write("agents/reviewer.toml", &blocks(&page, "toml")[0]);
    let run = command(&home, &["roles", "show", "reviewer"]).run_ok();
    assert_eq!(run.stderr, "", "no warning");
    let origin = home.path().join("agents/reviewer.toml").display().to_string();
    let shown = run.stdout.replace(&origin, "~/.agent/agents/reviewer.toml");
    let promised = format!("```\n$ agent roles show reviewer\n{shown}```\n");
    assert!(page.contains(&promised), "{promised}");
}

#[test]
fn every_tool_and_argument_is_on_its_page() {
    let page = page("TOOLS.md");
    let server = testkit::Server::start(|_: &testkit::Request| testkit::Reply::new().text("ok"));
    let home = crate::play::home(&server);
    command(&home, &["run", "Show me"]).run_ok();
    let request = server.requests().remove(0);
    let tools: Vec<Value> = serde_json::from_str(request.raw_tools()).unwrap();
    assert!(tools.len() > 9, "{tools:?}");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        let rows: String = page
            .lines()
            .skip_while(|line| !line.starts_with(&format!("| `{name}` |")))
            .enumerate()
            .take_while(|(at, line)| *at == 0 || line.starts_with("| |"))
            .map(|(_, line)| line)
            .collect();
        assert!(!rows.is_empty(), "`{name}` is not on the page");
        let needed = tool["parameters"]["required"].as_array().cloned().unwrap_or_default();
        for (argument, _) in tool["parameters"]["properties"].as_object().into_iter().flatten() {
            let star = if needed.iter().any(|needed| needed == argument) { "*" } else { "" };
            assert!(rows.contains(&format!("`{argument}`{star}")), "`{argument}`{star} of `{name}` is not on the page");
        }
    }
}
