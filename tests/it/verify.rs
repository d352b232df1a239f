//! `agent rollout check`.

use serde_json::Value;
use testkit::Reply;

use crate::play::{Play, command, end, home, parent, spawns};

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

/// What a file lost without a trace in itself, another file of its tree still tells.
#[test]
fn a_rollout_that_was_lost_or_shortened_is_missed_by_the_others() {
    let server = Play::new()
        .thinks("Lead", parent(spawns(&[("a", "work")]), &["from=\"/root/a\""], "all is here"))
        .says("work", [Reply::new().text("done")])
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    end(&home, &server, &run);
    let file = home.rollout("/root/a").file().to_owned();
    let whole = std::fs::read_to_string(&file).unwrap();
    // Up to the end of a line: nothing in the file itself shows it.
    let short: Vec<&str> = whole.lines().take_while(|line| !line.contains("\"turn_end\"")).collect();
    let damages: [(&str, Option<String>); 3] = [
        ("whose rollout is missing", None),
        ("whose rollout is missing", Some(String::new())),
        ("does not say that it ended", Some(short.join("\n") + "\n")),
    ];
    for (words, left) in damages {
        match &left {
            Some(left) => std::fs::write(&file, left).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let told = command(&home, &["rollout", "check"]).run();
        told.assert_code(1);
        assert!(told.stdout.contains(": kept: ") && told.stdout.contains(words), "{}", told.stdout);
        // The mirror has seen it whole, and says so.
        let resumed = command(&home, &["resume"]).run();
        let said = ["was the rollout of /root/a", "was there and is gone", "had 3 more lines at its end"];
        assert!(said.iter().any(|said| resumed.stderr.contains(said)), "{resumed:?}");
        std::fs::write(&file, &whole).unwrap();
    }
    command(&home, &["rollout", "check"]).run_ok();
}

#[test]
fn a_long_mail_is_missed_when_its_text_is_gone_and_found_when_its_home_has_moved() {
    let server = Play::new()
        .thinks("Lead", |request| Reply::new().text(if request.heard("long words") { "read" } else { "here" }))
        .serve();
    let home = home(&server);
    let run = command(&home, &["run", "Lead"]).run_ok();
    let words = format!("long words {}", "x".repeat(60_000));
    command(&home, &["send", "--queue", "/root", &words]).run_ok();
    end(&home, &server, &run);
    command(&home, &["rollout", "check"]).run_ok();
    let mail = home.rollout("/root").payloads("mail").pop().unwrap();
    let whole = std::path::PathBuf::from(mail["whole"].as_str().unwrap());
    let text = std::fs::read_to_string(&whole).unwrap();
    for left in [None, Some(&text[..100])] {
        std::fs::remove_file(&whole).unwrap();
        if let Some(left) = left {
            std::fs::write(&whole, left).unwrap();
        }
        let told = command(&home, &["rollout", "check"]).run();
        told.assert_code(1);
        assert!(told.stdout.contains("the whole text of mail"), "{}", told.stdout);
        std::fs::write(&whole, &text).unwrap();
    }
    let copy = home.copy().provider("mock", &server);
    command(&copy, &["send", "/root", "and?"]).run_ok();
    let request = server.requests().pop().unwrap();
    let here = copy.path().join("trees");
    assert!(request.heard(here.to_str().unwrap()), "it is pointed to the home that it is in: {request:?}");
}
