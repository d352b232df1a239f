//! The project and the script of `examples/`: what examples/README.md promises.

use std::path::{Path, PathBuf};
use std::{fs, io};

use testkit::{Agent, Home, Run};

/// The folder `examples/` of this checkout.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// What the project's tests say in `folder`.
fn tests(home: &Home, folder: &Path) -> Run {
    Agent::new("sh", home).arg("test.sh").cwd(folder).run()
}

/// The command with the script as its model, called in `examples/` and working in `folder`.
fn agent(home: &Home, folder: &Path, arguments: &[&str]) -> Run {
    Agent::new(env!("CARGO_BIN_EXE_agent"), home).args(arguments).arg("-C").arg(folder).cwd(examples()).run()
}

/// A copy of the broken project, in the folder to work in.
fn calculator(home: &Home) -> io::Result<PathBuf> {
    let folder = home.work().join("calculator");
    copy(&examples().join("broken-calculator"), &folder)?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let from = entry?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

#[test]
fn the_script_repairs_the_calculator() {
    let home = Home::new();
    let folder = calculator(&home).unwrap();
    let before = tests(&home, &folder);
    before.assert_code(1);
    assert_eq!(before.stdout, "FAIL mean 2 4 6: wanted 4, got 3\ntests: 7 passed, 1 failed\n");

    let task = "The tests fail. Find the cause and repair it.";
    let run = agent(&home, &folder, &["run", "--model", "script:repair.toml", "--roles", "explorer,worker", task]);
    run.assert_code(0);
    assert_eq!(
        run.stdout,
        "Explorer report: `mean 2 4 6` gives 3, and 4 is right.\n\
         Worker report: lib/lists.sh:13 now says count=0. I ran sh test.sh: 8 passed, 0 failed.\n"
    );
    let after = tests(&home, &folder);
    after.assert_code(0);
    assert_eq!(after.stdout, "tests: 8 passed, 0 failed\n");

    // Another process, and the script is found again although nobody names it.
    let follow = agent(&home, &folder, &["send", "/root/worker", "Is it still well?"]);
    follow.assert_code(0);
    assert!(follow.stdout.contains("cannot think about this: Is it still well?"), "{}", follow.stdout);
    assert!(
        follow.stdout.contains("I changed lib/lists.sh:13. I ran sh test.sh again: 8 passed, 0 failed."),
        "{}",
        follow.stdout
    );
    assert!(!follow.stderr.contains("has answered"), "nobody else is waited for\n{}", follow.stderr);
    assert_eq!(home.rollout("/root/worker").count("turn_end"), 2);
}

#[test]
fn a_repair_that_was_killed_goes_on() {
    let home = Home::new();
    let folder = calculator(&home).unwrap();
    // The same script, but the worker falls silent between the patch and the tests.
    let script = fs::read_to_string(examples().join("repair.toml")).unwrap();
    let slow = script
        .replace("agent = \"/root/worker\"\nafter = 1\n", "agent = \"/root/worker\"\nafter = 1\ndelay_ms = 600000\n");
    assert_ne!(slow, script);
    home.write_work("slow.toml", &slow);

    let running = Agent::new(env!("CARGO_BIN_EXE_agent"), &home)
        .args(["run", "--model", "script:slow.toml", "-C", "calculator", "Repair it."])
        .spawn();
    running.until_stderr("Success. Updated the following files: M lib/lists.sh");
    running.kill();
    assert_eq!(running.wait().stdout, "");

    let run = agent(&home, &folder, &["resume", "--continue", "--model", "script:repair.toml"]);
    run.assert_code(0);
    assert!(run.stderr.contains("/root/worker  worker · cut off in the middle of a turn"), "{}", run.stderr);
    assert!(run.stdout.contains("Worker report: lib/lists.sh:13 now says count=0."), "{}", run.stdout);
    assert_eq!(home.rollouts().len(), 3, "nobody was spawned twice");
}

#[test]
fn what_the_script_says_comes_from_the_project() {
    let home = Home::new();
    let folder = calculator(&home).unwrap();
    // The same fault in another file, three lines further down.
    let text = fs::read_to_string(folder.join("lib/lists.sh")).unwrap();
    fs::remove_file(folder.join("lib/lists.sh")).unwrap();
    fs::write(folder.join("lib/many.sh"), format!("#\n#\n#\n{text}")).unwrap();
    let main = fs::read_to_string(folder.join("calc.sh")).unwrap();
    fs::write(folder.join("calc.sh"), main.replace("lists.sh", "many.sh")).unwrap();

    let run = agent(&home, &folder, &["run", "--model", "script:repair.toml", "Repair it."]);
    run.assert_code(0);
    assert!(run.stdout.contains("lib/many.sh:16 now says count=0."), "{}", run.stdout);
    tests(&home, &folder).assert_code(0);
}

#[test]
fn the_script_ends_where_there_is_nothing_to_repair() {
    let home = Home::new();
    // An empty folder: every command fails, and nothing is found.
    let run = agent(&home, home.work(), &["run", "--model", "script:repair.toml", "Repair it."]);
    run.assert_code(0);
    assert!(run.stdout.starts_with("The explorer found no cause, so I sent nobody"), "{}", run.stdout);

    // A worker is found necessary but may not be spawned.
    let home = Home::new();
    let folder = calculator(&home).unwrap();
    let run =
        agent(&home, &folder, &["run", "--model", "script:repair.toml", "--roles", "default,explorer", "Repair it."]);
    run.assert_code(0);
    assert!(run.stdout.starts_with("I gave up."), "{}", run.stdout);
    tests(&home, &folder).assert_code(1);
}

#[test]
fn the_shell_script_works_on_a_copy() {
    let home = Home::new();
    let run = Agent::new("sh", &home)
        .arg(examples().join("run.sh"))
        .env("AGENT", env!("CARGO_BIN_EXE_agent"))
        .cwd(home.work())
        .run();
    run.assert_code(0);
    assert!(run.stdout.contains("8 passed, 0 failed"), "{}", run.stdout);
    assert!(run.stderr.contains("tests: 7 passed, 1 failed"), "the tests before\n{}", run.stderr);
    let copy = home.rollout("/root").meta()["cwd"].as_str().unwrap().to_owned();
    assert!(Path::new(&copy).starts_with(home.temporary().canonicalize().unwrap()), "{copy}");
    tests(&home, &examples().join("broken-calculator")).assert_code(1);
}
