//! `agent archive`, `agent unarchive`, `agent delete`: whole trees put away, read as before, brought back, removed.

use std::path::PathBuf;

use serde_json::Value;
use testkit::{Gate, Home, Reply, Request, Run, Server};

use crate::count::{assert_whole, at};
use crate::play::{Play, command, end, exec, home, parent, shell, spawns, until};
use crate::signals::{lives, pid};

/// Characters of the child's result: more than a mail holds, so that the whole of it goes into a file.
const LONG: usize = 34_000;

/// A server that plays a root with one child, whatever the root's task is, and answers every other word.
fn server() -> Server {
    Server::start(|request: &Request| match (request.task().as_str(), request.replies()) {
        (task, 0) if task.starts_with("Lead") => spawns(&[("a", "work")]),
        (task, _) if task.starts_with("Lead") => parent(Reply::new(), &["from=\"/root/a\""], "told")(request),
        ("work", 0) => Reply::new().text("y".repeat(LONG)),
        _ => Reply::new().text(format!("done: {}", request.told())),
    })
}

/// Makes a tree and gives its id.
fn lead(home: &Home, task: &str) -> String {
    let run = command(home, &["run", task]).run_ok();
    run.stderr.split_whitespace().nth(1).unwrap().to_owned()
}

fn files(home: &Home, folder: &str) -> Vec<PathBuf> {
    fn below(folder: PathBuf, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                below(entry.path(), into);
            } else {
                into.push(entry.path());
            }
        }
    }
    let mut files = Vec::new();
    below(home.path().join(folder), &mut files);
    files.sort();
    files
}

#[track_caller]
fn refused(run: &Run, words: &[&str]) {
    run.assert_code(2);
    assert_eq!(run.stdout, "");
    for words in words {
        assert!(run.stderr.contains(words), "`{words}` is not in {}", run.stderr);
    }
}

#[track_caller]
fn ids(run: &Run) -> Vec<String> {
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    rows.as_array().unwrap().iter().map(|row| row["tree"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_archived_tree_is_read_as_before_and_takes_nothing() {
    let server = server();
    let home = home(&server);
    let (away, stays) = (lead(&home, "Lead one"), lead(&home, "Lead two"));
    let looks: [&[&str]; 4] = [&["tree"], &["tree", "--json"], &["log", "/root/a"], &["log", "--json"]];
    let look = |words: &[&str]| command(&home, &[words, &["--tree", &away]].concat()).run_ok().stdout;
    let before: Vec<String> = looks.iter().map(|words| look(words)).collect();
    let plain = files(&home, "sessions");

    let run = command(&home, &["archive", &away[..20]]).run_ok();
    assert!(run.stdout.is_empty() && run.stderr.contains(&format!("tree {away} is archived: 2 agents")), "{run:?}");
    assert_eq!((files(&home, "sessions").len(), files(&home, "archived_sessions").len()), (2, 2));
    let after: Vec<String> = looks.iter().map(|words| look(words)).collect();
    assert_eq!(after, before, "the same words, wherever they come from");
    let told = command(&home, &["tree", "--tree", &away]).run_ok();
    assert!(told.stderr.contains(&format!("`agent unarchive {away}`")), "{}", told.stderr);
    let followed = command(&home, &["log", "-f", "--tree", &away]).run_ok();
    assert!(followed.stderr.contains("nothing more comes"), "{}", followed.stderr);

    // Lists leave it out and say so once; by default another tree is meant.
    let listed = command(&home, &["list"]).run_ok();
    assert!(listed.stdout.contains(&stays) && !listed.stdout.contains(&away), "{}", listed.stdout);
    assert_eq!(listed.stderr, "1 more is archived: agent list --archived\n");
    assert_eq!(ids(&command(&home, &["list", "--json"]).run_ok()), [&*stays]);
    assert_eq!(ids(&command(&home, &["list", "--archived", "--json"]).run_ok()), [&*away]);
    assert!(command(&home, &["list", "--archived"]).run_ok().stdout.contains("2 agents"));
    let newest = command(&home, &["tree", "--last", "--json"]).run_ok();
    assert!(newest.stdout.contains(&stays), "{}", newest.stdout);
    assert!(command(&home, &["doctor"]).run().stdout.contains("2 trees, 4 agents"));

    // Every file is verified, and each by its name.
    let checked = command(&home, &["rollout", "check"]).run_ok();
    assert!(checked.stdout.starts_with("4 files, "), "{}", checked.stdout);
    for file in files(&home, "archived_sessions") {
        assert!(file.to_string_lossy().ends_with(".jsonl.zst"));
        let checked = command(&home, &["rollout", "check", file.to_str().unwrap()]).run_ok();
        assert!(checked.stdout.starts_with("1 file, ") && checked.stdout.contains("nothing wrong"), "{checked:?}");
    }

    // Nothing reaches it, and nothing of what was tried is anywhere.
    let asked = server.requests().len();
    let packed: Vec<_> = files(&home, "archived_sessions").iter().map(|file| std::fs::read(file).unwrap()).collect();
    let tries: [&[&str]; 7] = [
        &["resume"],
        &["resume", "a task"],
        &["resume", "--continue"],
        &["send", "/root/a", "words"],
        &["send", "--queue", "/root", "words"],
        &["interrupt", "/root"],
        &["close", "/root/a"],
    ];
    for words in tries {
        let run = command(&home, &[words, &["--tree", &away]].concat()).run();
        refused(&run, &["is archived", &format!("hint: `agent unarchive {away}` brings it back")]);
    }
    assert_eq!(server.requests().len(), asked);
    let now: Vec<_> = files(&home, "archived_sessions").iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(now == packed && files(&home, "sessions").len() == 2);

    let back = command(&home, &["unarchive", "--last", "--json"]).run_ok();
    let row: Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!((&row["tree"], &row["agents"]), (&Value::from(away.clone()), &Value::from(2)));
    let bytes = |key: &str| row[key].as_u64().unwrap();
    assert!(bytes("bytes_before") * 2 < bytes("bytes_after"), "{row}");
    assert_eq!(files(&home, "sessions"), plain);
    assert!(files(&home, "archived_sessions").is_empty());
    let run = command(&home, &["send", "--tree", &away, "/root/a", "again"]).run_ok();
    assert_eq!(run.stdout, "done: again\n");
    assert_whole(&home);
    end(&home, &server, &run);
}

#[test]
fn without_the_mirror_the_same() {
    let server = server();
    let home = home(&server);
    let tree = lead(&home, "Lead");
    command(&home, &["archive"]).run_ok();
    let before = command(&home, &["list", "--archived"]).run_ok();
    let forget = || {
        for file in files(&home, "").into_iter().filter(|file| file.to_string_lossy().contains("state.sqlite")) {
            std::fs::remove_file(file).unwrap();
        }
    };
    forget();
    let after = command(&home, &["list", "--archived"]).run_ok();
    assert_eq!((&after.stdout, &after.stderr), (&before.stdout, &before.stderr));
    forget();
    command(&home, &["unarchive", &tree]).run_ok();
    let run = command(&home, &["send", "/root/a", "again"]).run_ok();
    assert_eq!(run.stdout, "done: again\n");
    end(&home, &server, &run);
}

#[test]
fn several_at_once_and_twice() {
    let server = server();
    let home = home(&server);
    let trees = [lead(&home, "Lead one"), lead(&home, "Lead two"), lead(&home, "Lead three")];
    // One that is not there keeps all from being touched.
    let run = command(&home, &["archive", &trees[0], "ffff"]).run();
    refused(&run, &["no tree begins with `ffff`"]);
    assert_eq!(files(&home, "archived_sessions").len(), 0);
    let run = command(&home, &["archive", "--json", &trees[0], &trees[1], &trees[0]]).run_ok();
    let rows = run.json_lines();
    assert_eq!(rows.iter().map(|row| row["tree"].as_str().unwrap()).collect::<Vec<_>>(), trees[..2]);
    let again = command(&home, &["archive", &trees[0]]).run_ok();
    assert!(again.stderr.contains("was archived already"), "{}", again.stderr);
    let listed = command(&home, &["list"]).run_ok();
    assert!(listed.stderr.contains("2 more are archived"), "{}", listed.stderr);
    // The newest of this folder is the one that is left.
    command(&home, &["archive"]).run_ok();
    refused(&command(&home, &["archive"]).run(), &["no tree was made in"]);
    refused(&command(&home, &["archive", "--last"]).run(), &["every tree is archived", "agent list --archived"]);
    refused(&command(&home, &["unarchive"]).run(), &["which tree to unarchive", &trees[1]]);
    command(&home, &["unarchive", &trees[0], "--tree", &trees[1]]).run_ok();
    let idle = command(&home, &["unarchive", &trees[0]]).run_ok();
    assert!(idle.stderr.contains("was not archived"), "{}", idle.stderr);
    let run = command(&home, &["unarchive", &trees[2]]).run_ok();
    assert_eq!(ids(&command(&home, &["list", "--json"]).run_ok()).len(), 3);
    end(&home, &server, &run);
}

#[test]
fn a_tree_that_is_driven_stays() {
    let held = Gate::new();
    let gate = held.clone();
    let server = Play::new().thinks("Hold", move |_| Reply::new().text("let go").wait_for(&gate)).serve();
    let home = home(&server);
    let owner = command(&home, &["run", "Hold"]).spawn();
    server.wait_until(|seen| seen.len() == 1);
    let tree = home.rollout("/root").tree().to_owned();
    for words in [&["archive", &tree][..], &["unarchive", &tree], &["delete", "--yes", &tree]] {
        let run = command(&home, words).run();
        run.assert_code(5);
        let driven = format!("process {} drives this tree", owner.pid());
        assert!(run.stderr.contains(&driven) && run.stderr.contains("hint: wait for it to end"), "{}", run.stderr);
    }
    held.open();
    let run = owner.wait();
    run.assert_code(0);
    assert_eq!(run.stdout, "let go\n");
    assert_whole(&home);
    end(&home, &server, &run);
}

/// What a crash left is ended and answered before the tree is put away, and goes on when it is back.
#[test]
fn a_tree_that_crashed_is_taken_over_first() {
    let server = Server::start(|request: &Request| match request.replies() {
        0 => exec("echo $$ >run.pid; sleep 1000"),
        _ => Reply::new().text("gone on"),
    });
    let home = home(&server);
    let crash = || {
        let owner = command(&home, &["run", "Work"]).spawn();
        until("the command runs", || pid(&home, "run.pid").is_some());
        owner.kill();
        owner.wait();
        let process = pid(&home, "run.pid").unwrap();
        assert!(lives(process), "it survives the crash");
        std::fs::remove_file(home.work().join("run.pid")).unwrap();
        process
    };
    let process = crash();
    let asked = server.requests().len();
    command(&home, &["archive"]).run_ok();
    assert!(!lives(process) && server.requests().len() == asked);
    command(&home, &["unarchive", "--last"]).run_ok();
    let run = command(&home, &["resume", "--continue"]).run_ok();
    assert_eq!(run.stdout, "gone on\n");
    let agents = assert_whole(&home);
    assert_eq!(at(&agents, "/root").accepted("Work"), 2, "the task and the one that goes on with it");
    end(&home, &server, &run);
    // Deleting needs no taking over, and leaves no process either.
    let process = crash();
    let tree = home.rollouts().pop().unwrap().tree().to_owned();
    command(&home, &["delete", "--yes", &tree]).run_ok();
    assert!(!lives(process));
    assert_eq!(ids(&command(&home, &["list", "--json"]).run_ok()).len(), 1);
}

#[test]
fn deleting_asks_and_removes_everything() {
    let server = server();
    let home = home(&server);
    let (gone, stays) = (lead(&home, "Lead one"), lead(&home, "Lead two"));
    let mails = |tree: &str| files(&home, &format!("trees/{tree}/mail")).len();
    assert_eq!((mails(&gone), mails(&stays)), (1, 1));
    // A test has no terminal.
    let run = command(&home, &["delete", &gone]).run();
    refused(&run, &["asks first", "hint: `--yes` deletes without asking"]);
    refused(&command(&home, &["delete", "--yes"]).run(), &["which tree to delete", &gone, &stays]);
    refused(&command(&home, &["delete", "--yes", &gone[..7]]).run(), &["too little of an id", "at least 8 characters"]);
    assert_eq!(files(&home, "sessions").len(), 4);
    for archived in [false, true] {
        let home = home.copy();
        if archived {
            command(&home, &["archive", &gone]).run_ok();
        }
        let run = command(&home, &["delete", "--yes", "--json", &gone]).run_ok();
        let row: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!((&row["tree"], &row["agents"]), (&Value::from(gone.clone()), &Value::from(2)));
        assert!(row["bytes_before"].as_u64() > Some(0) && row["bytes_after"] == 0, "{row}");
        assert!(!home.path().join("trees").join(&gone).exists());
        let named = |file: &PathBuf| std::fs::read(file).unwrap().windows(36).any(|text| text == gone.as_bytes());
        let traces: Vec<_> = files(&home, "").into_iter().filter(named).collect();
        assert!(traces.iter().all(|file| file.to_string_lossy().contains("state.sqlite")), "{traces:?}");
        assert_eq!((files(&home, "sessions").len(), files(&home, "archived_sessions").len()), (2, 0));
        let listed = command(&home, &["list"]).run_ok();
        assert!(listed.stderr.is_empty() && !listed.stdout.contains(&gone), "{listed:?}");
        refused(&command(&home, &["delete", "--yes", &gone]).run(), &["no tree begins with"]);
        refused(&command(&home, &["tree", "--tree", &gone]).run(), &["no tree begins with"]);
        command(&home, &["resume", "--tree", &stays]).run_ok();
        assert_whole(&home);
    }
}

/// On a terminal it asks, and takes nothing but a yes for one. `script` makes the terminal.
#[test]
fn on_a_terminal_it_asks() {
    if !std::path::Path::new("/usr/bin/script").exists() {
        println!("skipped: there is no /usr/bin/script to make a terminal with");
        return;
    }
    let server = server();
    let home = home(&server);
    let tree = lead(&home, "Lead");
    let answers = |word: &str| {
        let line = format!("echo {word} | /usr/bin/script -qec \"$AGENT delete {tree}\" /dev/null");
        let run = shell(&home, &line);
        assert!(run.stdout.contains(&format!("delete the tree {tree}, 2 agents, Lead? [y/N]")), "{run:?}");
        run
    };
    for no in ["n", "''", "yeah"] {
        let run = answers(no);
        run.assert_code(130);
        assert!(run.stdout.contains("is kept"), "{run:?}");
        assert_eq!(files(&home, "sessions").len(), 2);
    }
    let run = answers("y");
    run.assert_code(0);
    assert!(run.stdout.contains("is deleted: 2 agents"), "{run:?}");
    assert_eq!(files(&home, "sessions").len(), 0);
}

/// A tree whose root is damaged is in no list. It can be deleted all the same.
#[test]
fn what_has_no_root_can_be_deleted() {
    let server = server();
    let home = home(&server);
    let tree = lead(&home, "Lead");
    std::fs::remove_file(home.rollout("/root").file()).unwrap();
    assert!(command(&home, &["list"]).run_ok().stderr.contains("no readable root"));
    command(&home, &["delete", "--yes", &tree]).run_ok();
    let listed = command(&home, &["list"]).run_ok();
    assert_eq!(listed.stderr, "there is no tree yet; `agent run \"…\"` makes one\n");
    assert_eq!(files(&home, "sessions").len() + files(&home, "trees").len(), 0);
}

#[test]
fn a_damaged_archive_is_told_and_nothing_of_it_is_moved() {
    let server = server();
    let home = home(&server);
    let tree = lead(&home, "Lead");
    let child = home.rollout("/root/a").thread().to_owned();
    command(&home, &["archive"]).run_ok();
    let there = files(&home, "archived_sessions");
    let file = there.iter().find(|file| file.to_string_lossy().contains(&child)).unwrap();
    let good = std::fs::read(file).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 0x55;
    // Without the end of its label, so that no row is believed either.
    std::fs::write(file, &bad[..bad.len() - 1]).unwrap();
    let checked = command(&home, &["rollout", "check"]).run();
    checked.assert_code(1);
    assert!(checked.stdout.contains("is damaged") && checked.stdout.contains("1 fault"), "{}", checked.stdout);
    let by_name = command(&home, &["rollout", "check", file.to_str().unwrap()]).run();
    by_name.assert_code(1);
    assert!(by_name.stderr.contains("is damaged"), "{}", by_name.stderr);
    let shown = command(&home, &["tree", "--tree", &tree]).run_ok();
    assert!(shown.stderr.contains("is damaged") && shown.stderr.contains(&child), "{}", shown.stderr);
    // By its label it is known whose it is: the tree does not come back without it.
    std::fs::write(file, &bad).unwrap();
    let run = command(&home, &["unarchive", &tree]).run();
    run.assert_code(1);
    assert!(run.stderr.contains("is damaged") && run.stderr.contains("put it back from a copy"), "{}", run.stderr);
    assert_eq!(files(&home, "archived_sessions"), there);
    assert_eq!(files(&home, "sessions").len(), 0);
    std::fs::write(file, &good).unwrap();
    command(&home, &["unarchive", &tree]).run_ok();
    let run = command(&home, &["send", "/root/a", "again"]).run_ok();
    assert_eq!(run.stdout, "done: again\n");
    end(&home, &server, &run);
}

/// A packed file of which only the mirror knows whose it is: the tree is not brought back without that agent, and a tree
/// that is deleted leaves nothing.
#[test]
fn a_file_that_only_the_mirror_knows_is_not_forgotten() {
    let server = server();
    let home = home(&server);
    let tree = lead(&home, "Lead");
    command(&home, &["archive", &tree]).run_ok();
    let packed = files(&home, "archived_sessions");
    let whole: Vec<Vec<u8>> = packed.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let child = packed.iter().position(|file| !file.to_string_lossy().contains(&tree)).unwrap();
    std::fs::write(&packed[child], &whole[child][..10]).unwrap();
    let back = command(&home, &["unarchive", &tree]).run();
    assert_ne!(back.code, 0, "{back:?}");
    assert!(back.stderr.contains("put it back from a copy"), "{}", back.stderr);
    assert!(files(&home, "sessions").is_empty(), "nothing was moved");
    std::fs::write(&packed[child], &whole[child]).unwrap();
    command(&home, &["unarchive", &tree]).run_ok();
    assert_eq!(files(&home, "sessions").len(), 2);
    // The same of one in use whose first line is gone.
    command(&home, &["tree", "--tree", &tree]).run_ok();
    let plain = files(&home, "sessions");
    let child = plain.iter().position(|file| !file.to_string_lossy().contains(&tree)).unwrap();
    let text = std::fs::read_to_string(&plain[child]).unwrap();
    std::fs::write(&plain[child], format!("zzz\n{}", text.split_once('\n').unwrap().1)).unwrap();
    command(&home, &["delete", "--yes", &tree]).run_ok();
    assert!(files(&home, "sessions").is_empty());
}
