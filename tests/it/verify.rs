//! `agent rollout check`.

use serde_json::Value;
use testkit::Reply;

use crate::play::{Play, command, end, home};

#[test]
fn whole_files_pass_and_damaged_ones_are_told_by_line() {
    let server = Play::new()
        .says(
            "Say it",
            [Reply::new().call("exec_command", serde_json::json!({"cmd": "true"})), Reply::new().text("said")],
        )
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Say it"]).run_ok();
    let checked = command(&home, &["rollout", "check"]).run_ok();
    assert!(checked.stdout.starts_with("1 file, "), "{}", checked.stdout);
    assert!(checked.stdout.ends_with(": nothing wrong\n"), "{}", checked.stdout);
    end(&home, &server, &run);

    let file = home.rollout("/root").file().to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    // The line of the command's output goes, and the end of the last write is missing.
    let without: String =
        text.lines().filter(|line| !line.contains("function_call_output")).map(|line| format!("{line}\n")).collect();
    let copy = home.path().join("copy.jsonl");
    std::fs::write(&copy, without + "{\"timest").unwrap();
    let copy = copy.to_str().unwrap();
    let told = command(&home, &["rollout", "check", copy]).run();
    told.assert_code(1);
    for words in ["unfinished write", "ordinals", "closed", "3 faults"] {
        assert!(told.stdout.contains(words), "`{words}` is not in {}", told.stdout);
    }
    let json = command(&home, &["rollout", "check", copy, "--json"]).run();
    json.assert_code(1);
    let rows: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(rows.as_array().map(Vec::len), Some(3), "{rows}");

    let missing = command(&home, &["rollout", "check", "nowhere.jsonl"]).run();
    missing.assert_code(2);
    assert!(missing.stderr.contains("there is no file"), "{}", missing.stderr);
}
