use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use super::*;
use crate::fixture::{Home, closed, id, split, summaries, turn, words};

fn tree(n: u64) -> TreeId {
    TreeId::from(id::<ThreadId>(n))
}

/// Files of agents that never existed, by name.
fn unborn(home: &Home) -> Vec<Unborn> {
    let mut unborn = home.store.scan().unwrap().unborn;
    unborn.sort_by(|a, b| a.file.cmp(&b.file));
    unborn
}

#[tokio::test]
async fn only_what_lags_is_read() {
    let home = Home::new();
    let writers = home.tree(1, 5).await;
    let mirror = home.mirror();
    assert_eq!(split(&home.catalogue(&mirror)), (0, 5));
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (5, 0));
    // Written and never noted, as when the process was killed in between.
    writers[1].append_synced(&[turn(7)]).await.unwrap();
    writers[2].append(&[words("not even synced")]).unwrap();
    let catalogue = home.catalogue(&mirror);
    assert_eq!(split(&catalogue), (3, 2));
    let trusted: Vec<bool> = catalogue.agents.iter().map(|known| known.trusted).collect();
    assert_eq!(trusted, [true, false, false, true, true]);
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (5, 0));
    // The store knows the way now, whoever asks.
    let store = Store::new(home.path().clone(), std::sync::Arc::new(rollout::RealDisk));
    mirror.catalogue(&store, Some(tree(1))).unwrap();
    fs::rename(home.path().join("sessions/2026"), home.path().join("sessions/2027")).unwrap();
    assert!(store.file(id(3)).unwrap().ends_with(writers[2].file().file_name().unwrap()));
    // A home, or a part of it, that was moved: the same ends, so the same rows.
    assert_eq!(split(&home.catalogue(&mirror)), (5, 0));
}

#[tokio::test]
async fn a_row_that_lies_is_not_believed() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    writers[0].append_synced(&[words("the last words")]).await.unwrap();
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    // As long as before and as new, with other words at its end.
    let text = fs::read_to_string(writers[0].file()).unwrap();
    fs::write(writers[0].file(), text.replace("the last words", "the lost words")).unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (2, 1));
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (3, 0));
    for lie in [
        "summary = replace(summary, 'pending', 'running')",
        "summary = replace(summary, '\"at_rest\":true', '\"at_rest\":false')",
        "summary = ''",
        "seal = seal + 1",
        "summary = (SELECT summary FROM threads WHERE thread LIKE '%3'), seal = (SELECT seal FROM threads WHERE thread LIKE '%3')",
    ] {
        let changed = home.sql().execute(&format!("UPDATE threads SET {lie} WHERE thread LIKE '%2'"), []).unwrap();
        assert_eq!(changed, 1, "{lie}");
        assert_eq!(split(&home.catalogue(&mirror)), (2, 1), "{lie}");
        mirror.flush().await.unwrap();
        assert_eq!(split(&home.catalogue(&mirror)), (3, 0), "{lie}");
    }
}

/// A row that claims to be further than its file would keep every honest note out.
#[tokio::test]
async fn a_row_that_is_ahead_is_replaced() {
    let home = Home::new();
    let writers = home.tree(1, 2).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    home.sql().execute("UPDATE threads SET bytes = bytes + 1000000, seal = 0", []).unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (0, 2));
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (2, 0));
    // A file that was put back from a copy is shorter than its row; that is told once.
    let copy = fs::read(writers[1].file()).unwrap();
    writers[1].append_synced(&[turn(7), closed()]).await.unwrap();
    mirror.note(writers[1].summary());
    mirror.flush().await.unwrap();
    fs::write(writers[1].file(), copy).unwrap();
    let catalogue = mirror.catalogue(&home.store, None).unwrap();
    assert_eq!(split(&catalogue), (1, 1));
    assert!(told(&home, &catalogue).ends_with("had 2 more lines at its end; put it back from a copy"));
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (2, 0));
    assert_eq!(home.count("SELECT count(*) FROM thread_spawn_edges WHERE status = 'open'"), 2);
}

/// Whatever a listing had to tell, without what differs from run to run.
fn told(home: &Home, catalogue: &Catalogue) -> String {
    let one = |problem: &Problem| format!("{problem}").replace(home.path().as_os_str().to_str().unwrap(), "~");
    catalogue.problems.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Nothing but a person removes a rollout, so its row is not forgotten but told of, until the file is back.
#[tokio::test]
async fn a_rollout_that_is_gone_is_told_each_time() {
    let home = Home::new();
    let writers = home.tree(1, 7).await;
    home.tree(20, 2).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    let file = writers[2].file();
    let bytes = fs::read(file).unwrap();
    fs::remove_file(file).unwrap();
    for _ in 0..2 {
        let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
        assert_eq!(split(&catalogue), (6, 0));
        expect_test::expect!["~/sessions/2026/11/30/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000003.jsonl: the rollout of /root/agent_3 in the tree 01939d5e-0000-7000-8000-000000000001 was there and is gone; put it back, or delete `~/state.sqlite`, which is made anew from the rollouts, to forget it"]
            .assert_eq(&told(&home, &catalogue));
        assert_eq!(mirror.catalogue(&home.store, Some(tree(20))).unwrap().problems, []);
        mirror.flush().await.unwrap();
        assert_eq!(home.count("SELECT count(*) FROM threads"), 9);
    }
    // Emptied is as good as gone, and nobody takes it for an agent that never was.
    fs::write(file, "").unwrap();
    let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
    assert_eq!((split(&catalogue), catalogue.unborn.len()), ((6, 0), 0));
    expect_test::expect!["~/sessions/2026/11/30/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000003.jsonl: it is empty and was the rollout of /root/agent_3 in the tree 01939d5e-0000-7000-8000-000000000001; put it back from a copy"]
        .assert_eq(&told(&home, &catalogue));
    fs::write(file, bytes).unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (9, 0));
    // All at once: a sentence a tree, however many agents it had.
    fs::remove_dir_all(home.path().join("sessions")).unwrap();
    let catalogue = mirror.catalogue(&home.store, None).unwrap();
    assert_eq!((catalogue.agents.len(), catalogue.problems.len()), (0, 2));
    let whys = told(&home, &catalogue);
    let whys: Vec<&str> =
        whys.lines().filter_map(|line| line.split_once(".jsonl: ")?.1.split_once("; ")).map(|(why, _)| why).collect();
    expect_test::expect![[r#"
        the rollouts of /root, /root/agent_2, /root/agent_3 and 4 more in the tree 01939d5e-0000-7000-8000-000000000001 were there and are gone
        the rollouts of /root, /root/agent_21 in the tree 01939d5e-0000-7000-8000-000000000014 were there and are gone"#]]
    .assert_eq(&whys.join("\n"));
    // Without its mirror nobody knows of them.
    drop(mirror);
    fs::remove_file(home.database()).unwrap();
    assert_eq!(home.catalogue(&home.mirror()).agents.len(), 0);
}

#[tokio::test]
async fn many_trees_that_are_gone_are_counted() {
    let home = Home::new();
    for n in 1..=10 {
        home.tree(n, 1).await;
    }
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    fs::remove_dir_all(home.path().join("sessions")).unwrap();
    let catalogue = mirror.catalogue(&home.store, None).unwrap();
    assert_eq!(catalogue.problems.len(), 9);
    let last = catalogue.problems.last().map(|problem| problem.why.clone()).unwrap();
    assert_eq!(last, "rollouts of 2 more trees were there and are gone");
}

/// It lies beside its name as `….unborn`, and a row that cannot be read names nobody.
#[tokio::test]
async fn rows_of_nobody_go() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    home.store.set_aside(writers[1].file()).unwrap();
    fs::remove_file(writers[2].file()).unwrap();
    home.sql().execute("UPDATE threads SET seal = seal + 1 WHERE thread LIKE '%3'", []).unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (1, 0));
    mirror.flush().await.unwrap();
    assert_eq!(home.count("SELECT count(*) FROM threads"), 1);
    assert_eq!(home.count("SELECT count(*) FROM thread_spawn_edges"), 1);
}

/// An agent whose first write was damaged later is listed; one whose first line is, is named by its row.
#[tokio::test]
async fn damage_in_the_first_write_hides_nobody() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    for (writer, line) in writers.iter().zip([1, 2, 0]) {
        writer.append_synced(&[words("later")]).await.unwrap();
        let mirror = home.mirror();
        home.catalogue(&mirror);
        mirror.flush().await.unwrap();
        drop(mirror);
        let bytes = fs::read(writer.file()).unwrap();
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
        lines[line] = b"\xff\n";
        fs::write(writer.file(), lines.concat()).unwrap();
    }
    for known in [true, false] {
        let mirror = home.mirror();
        if !known {
            home.sql().execute("DELETE FROM threads", []).unwrap();
        }
        for of in [None, Some(tree(1))] {
            let catalogue = mirror.catalogue(&home.store, of).unwrap();
            let skipped: Vec<usize> = catalogue.agents.iter().map(|known| known.summary.skipped).collect();
            assert_eq!((&skipped[..], &catalogue.unborn[..]), (&[1, 1][..], &[][..]));
            assert_eq!(summaries(&catalogue), home.truth());
            let why = "its first line, which should be `session_meta`, cannot be read";
            assert_eq!(catalogue.problems.len(), 1);
            assert!(catalogue.problems[0].why.starts_with(why), "{}", catalogue.problems[0]);
            let named = "; it was the rollout of /root/agent_3 in the tree 01939d5e-0000-7000-8000-000000000001";
            assert_eq!(catalogue.problems[0].why.ends_with(named), known);
        }
    }
}

#[tokio::test]
async fn one_tree_reads_nothing_of_others() {
    let home = Home::new();
    let mine = home.tree(1, 3).await;
    let others = home.tree(10, 3).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    // Theirs lag, one of them is not known to the mirror, and one cannot even be read.
    for writer in &others {
        writer.append_synced(&[turn(7)]).await.unwrap();
    }
    home.agent(10, 14).await;
    fs::write(others[1].file(), "rubbish\n").unwrap();
    let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
    assert_eq!((split(&catalogue), &catalogue.problems[..]), ((3, 0), &[][..]));
    assert_eq!(summaries(&catalogue), mine.iter().map(rollout::Writer::summary).collect::<Vec<_>>());
    let theirs = mirror.catalogue(&home.store, Some(tree(10))).unwrap();
    assert_eq!((split(&theirs), theirs.problems.len()), ((0, 3), 1));
    // A row that says it belongs elsewhere, without the seal on that.
    home.sql().execute("UPDATE threads SET tree = ?1 WHERE thread LIKE '%2'", [tree(10).to_string()]).unwrap();
    let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
    assert_eq!(split(&catalogue), (2, 1));
    assert_eq!(mirror.catalogue(&home.store, Some(tree(99))).unwrap().agents.len(), 0);
}

#[tokio::test]
async fn a_tree_comes_in_the_order_of_its_spawns() {
    let home = Home::new();
    // Made in another order than they were spawned.
    for n in [4, 2, 1, 5, 3] {
        home.agent(1, n).await;
    }
    let mirror = home.mirror();
    for _ in 0..2 {
        let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
        let order: Vec<ThreadId> = catalogue.agents.iter().map(|known| known.summary.meta.id).collect();
        assert_eq!(order, [1, 2, 3, 4, 5].map(id::<ThreadId>));
        let scanned: Vec<ThreadId> = home.store.tree(tree(1)).unwrap().iter().map(|head| head.meta.id).collect();
        assert_eq!(order, scanned);
        mirror.flush().await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_agent_is_told() {
    let home = Home::new();
    let writers = home.tree(1, 2).await;
    let folder = writers[0].file().parent().unwrap();
    let name = |n: u64| folder.join(format!("rollout-2026-11-30T15-13-02-{}.jsonl", id::<ThreadId>(n)));
    let whole = fs::read(writers[1].file()).unwrap();
    let first = whole.split_inclusive(|b| *b == b'\n').next().unwrap();
    fs::write(name(5), first).unwrap();
    fs::write(name(6), &first[..9]).unwrap();
    fs::write(name(7), "{}\n").unwrap();
    fs::write(name(8), &whole).unwrap();
    fs::write(folder.join(format!("rollout-copy-{}.jsonl", id::<ThreadId>(2))), &whole).unwrap();
    let scan = home.store.scan().unwrap();
    let mirror = home.mirror();
    for round in 0..2 {
        let catalogue = mirror.catalogue(&home.store, None).unwrap();
        assert_eq!(catalogue.agents.len(), 2, "round {round}");
        assert_eq!(catalogue.unborn, unborn(&home));
        assert_eq!((catalogue.unborn.len(), catalogue.unborn[0].tree), (2, Some(tree(1))));
        let told = |problems: &[Problem]| {
            let mut told: Vec<String> =
                problems.iter().map(|problem| format!("{}: {}", problem.file, problem.why)).collect();
            told.sort();
            told
        };
        assert_eq!(told(&catalogue.problems), told(&scan.problems));
        let catalogue = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
        assert_eq!(
            (catalogue.unborn.len(), catalogue.problems.len()),
            (2, scan.problems.len()),
            "one says so, one cannot"
        );
        mirror.flush().await.unwrap();
    }
}

#[tokio::test]
async fn an_unfinished_write_is_read_until_it_is_cut_off() {
    let home = Home::new();
    let file = home.agent(1, 1).await.file().clone();
    fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"timestamp\":").unwrap();
    let mirror = home.mirror();
    for _ in 0..2 {
        assert_eq!(split(&home.catalogue(&mirror)), (0, 1));
        mirror.flush().await.unwrap();
    }
    home.store.writer(id(1)).unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (1, 0));
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_an_error() {
    let home = Home::new();
    fs::write(home.path().join("sessions"), "").unwrap();
    assert!(home.mirror().catalogue(&home.store, None).is_err());
}

mod whatever_happens {
    use proptest::prelude::*;

    use super::*;

    /// What may happen to a home between two listings.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Spawn,
        Append(usize),
        AppendAndNote(usize),
        NoteOld(usize),
        CutFile(usize, usize),
        RemoveFile(usize),
        DropRows,
        DeleteMirror,
        SpoilMirror(usize),
        Restart,
        List,
    }

    fn step() -> impl Strategy<Value = Step> {
        let n = 0_usize..8;
        prop_oneof![
            3 => Just(Step::Spawn),
            4 => n.clone().prop_map(Step::Append),
            6 => n.clone().prop_map(Step::AppendAndNote),
            2 => n.clone().prop_map(Step::NoteOld),
            1 => (n.clone(), 0_usize..500).prop_map(|(n, cut)| Step::CutFile(n, cut)),
            1 => n.prop_map(Step::RemoveFile),
            1 => Just(Step::DropRows),
            1 => Just(Step::DeleteMirror),
            1 => (0_usize..60_000).prop_map(Step::SpoilMirror),
            2 => Just(Step::Restart),
            3 => Just(Step::List),
        ]
    }

    /// Agents by what their files say, however they are read.
    fn same(catalogue: &Catalogue, home: &Home) {
        assert_eq!(summaries(catalogue), home.truth());
        // One that was an agent's, by its row, is a problem instead.
        let passed: BTreeSet<&stdx::AbsPath> = catalogue.unborn.iter().map(|unborn| &unborn.file).collect();
        let told: BTreeSet<&stdx::AbsPath> = catalogue.problems.iter().map(|problem| &problem.file).collect();
        let files = unborn(home);
        assert!(passed.is_subset(&files.iter().map(|unborn| &unborn.file).collect()), "{passed:?}");
        assert!(files.iter().all(|unborn| passed.contains(&unborn.file) != told.contains(&unborn.file)), "{files:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_catalogue_is_what_the_files_say(steps in prop::collection::vec(step(), 1..40)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let home = Home::new();
            let mut writers = Vec::new();
            let mut old = Vec::new();
            let mut mirror = home.mirror();
            let mut next = 1;
            for step in steps {
                match step {
                    Step::Spawn => {
                        writers.push(runtime.block_on(home.agent(1, next)));
                        next += 1;
                    }
                    Step::Append(n) if n < writers.len() => {
                        let _ = writers[n].append(&[words("x"), turn(n as u64)]);
                    }
                    Step::AppendAndNote(n) if n < writers.len() => {
                        old.push(writers[n].summary());
                        let _ = runtime.block_on(writers[n].append_synced(&[turn(n as u64)]));
                        mirror.note(writers[n].summary());
                    }
                    Step::NoteOld(n) if n < old.len() => mirror.note(old[n].clone()),
                    // Nobody writes to a file that is cut or removed: its writer goes.
                    Step::CutFile(n, cut) if n < writers.len() => {
                        let writer = writers.remove(n);
                        let bytes = fs::read(writer.file()).unwrap();
                        fs::write(writer.file(), &bytes[..bytes.len().saturating_sub(cut)]).unwrap();
                    }
                    Step::RemoveFile(n) if n < writers.len() => fs::remove_file(writers.remove(n).file()).unwrap(),
                    Step::DropRows => drop(home.sql().execute("DELETE FROM threads", [])),
                    Step::DeleteMirror => drop(fs::remove_file(home.database())),
                    Step::SpoilMirror(at) => {
                        drop(mirror);
                        let mut bytes = fs::read(home.database()).unwrap_or_default();
                        // Not in its version: what comes from the future is left alone for good.
                        if let Some(byte) = bytes.get_mut(at).filter(|_| !(60..64).contains(&at)) {
                            *byte ^= 0x55;
                        }
                        fs::write(home.database(), bytes).unwrap();
                        mirror = home.open().0;
                    }
                    Step::Restart => {
                        drop(mirror);
                        mirror = home.open().0;
                    }
                    Step::List => same(&mirror.catalogue(&home.store, None).unwrap(), &home),
                    _ => {}
                }
            }
            for _ in 0..2 {
                same(&mirror.catalogue(&home.store, None).unwrap(), &home);
                let mut tree = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
                tree.agents.sort_by(|a, b| a.summary.file.cmp(&b.summary.file));
                let told = |file| tree.problems.iter().any(|problem| problem.file == file);
                tree.unborn = unborn(&home).into_iter().filter(|unborn| !told(unborn.file.clone())).collect();
                same(&tree, &home);
                runtime.block_on(mirror.flush()).unwrap();
            }
        }
    }
}

/// Packs all of a tree, or brings it back.
fn shelve(home: &Home, n: u64, away: bool) {
    let store = Store::new(home.path().clone(), std::sync::Arc::new(rollout::RealDisk));
    let pieces = store.pieces(tree(n)).unwrap();
    for piece in &pieces.pieces {
        if away {
            store.archive(piece).unwrap()
        } else {
            store.unarchive(piece).unwrap()
        };
    }
    store.settle(&pieces).unwrap();
}

#[tokio::test]
async fn an_archived_tree_is_known_by_its_rows_and_without_them() {
    let home = Home::new();
    home.tree(1, 4).await;
    home.tree(20, 2).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    let before = home.catalogue(&mirror);
    shelve(&home, 1, true);
    // Rows that were made of the plain files are borne out by the labels of the packed ones.
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.archived), ((6, 0), 4));
    for was in &before.agents {
        let is = catalogue.agents.iter().find(|is| is.summary.meta.id == was.summary.meta.id).unwrap();
        let unmoved = Summary { file: was.summary.file.clone(), ..is.summary.clone() };
        assert_eq!(unmoved, was.summary, "nothing but the place has changed");
    }
    let of_tree = mirror.catalogue(&home.store, Some(tree(1))).unwrap();
    assert_eq!((split(&of_tree), of_tree.archived), ((4, 0), 4));
    assert!(of_tree.agents.iter().all(Known::is_archived));
    let other = mirror.catalogue(&home.store, Some(tree(20))).unwrap();
    assert_eq!((split(&other), other.archived), ((2, 0), 0));
    // What was listed is noted with its new place, and told once more it changes nothing.
    for known in catalogue.agents {
        mirror.note(known.summary);
    }
    mirror.flush().await.unwrap();
    assert_eq!(home.count("SELECT count(*) FROM threads WHERE file LIKE 'archived_sessions/%.jsonl.zst'"), 4);
    assert_eq!(split(&home.catalogue(&mirror)), (6, 0));
    // Without the mirror everything is read, and the rows come back.
    drop(mirror);
    fs::remove_file(home.database()).unwrap();
    let mirror = home.mirror();
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.archived), ((0, 6), 4));
    mirror.flush().await.unwrap();
    assert_eq!(split(&home.catalogue(&mirror)), (6, 0));
    shelve(&home, 1, false);
    let catalogue = home.catalogue(&mirror);
    assert_eq!((split(&catalogue), catalogue.archived), ((6, 0), 0));
}

#[tokio::test]
async fn an_archived_file_that_cannot_be_read_is_counted_and_told() {
    let home = Home::new();
    home.tree(1, 3).await;
    shelve(&home, 1, true);
    let file = home.store.scan().unwrap().heads[1].file.clone();
    let bytes = fs::read(&file).unwrap();
    // All of it is damaged, but for the label, by which it is told whose it is.
    let mut damaged = bytes.clone();
    damaged[9..bytes.len() - 100].fill(0);
    fs::write(&file, damaged).unwrap();
    let catalogue = Mirror::off().catalogue(&home.store, Some(tree(1))).unwrap();
    assert_eq!((split(&catalogue), catalogue.archived), ((0, 2), 3));
    let pieces = home.store.pieces(tree(1)).unwrap();
    assert_eq!((pieces.pieces.len(), pieces.damaged.len()), (2, 1));
    assert_eq!(Mirror::off().catalogue(&home.store, Some(tree(20))).unwrap().archived, 0);
    assert_eq!((catalogue.agents.len(), catalogue.problems.len()), (2, 1));
    assert!(catalogue.problems[0].why.contains("is damaged"), "{}", catalogue.problems[0]);
}

#[tokio::test]
async fn a_deleted_tree_is_forgotten() {
    let home = Home::new();
    home.tree(1, 3).await;
    home.tree(20, 2).await;
    let mirror = home.mirror();
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    home.store.lock(tree(1), &rollout::OwnerHint::default()).unwrap();
    home.store.begin_deleting(tree(1)).unwrap();
    for piece in &home.store.pieces(tree(1)).unwrap().pieces {
        home.store.remove_piece(piece).unwrap();
    }
    // While the mark is there nobody misses it.
    assert_eq!(mirror.catalogue(&home.store, None).unwrap().problems, []);
    mirror.forget(tree(1)).await.unwrap();
    home.store.end_deleting(tree(1)).unwrap();
    assert_eq!(home.count("SELECT count(*) FROM threads"), 2);
    assert_eq!(home.count("SELECT count(*) FROM thread_spawn_edges"), 2);
    let catalogue = mirror.catalogue(&home.store, None).unwrap();
    assert_eq!((split(&catalogue), catalogue.problems), ((2, 0), Vec::new()));
}

/// Which trees there are is said by their roots: nobody else is looked at.
#[tokio::test]
async fn roots_are_listed_without_those_below() {
    let home = Home::new();
    let writers = home.tree(1, 3).await;
    home.tree(11, 2).await;
    let mirror = home.mirror();
    let roots = || {
        let catalogue = mirror.roots(&home.store).unwrap();
        let all: Vec<ThreadId> = catalogue.agents.iter().map(|known| known.summary.meta.id).collect();
        (all, catalogue.from_index, catalogue.read)
    };
    let both = || vec![id(1), id(11)];
    assert_eq!(roots(), (both(), 0, 2), "without rows, by their first lines");
    home.catalogue(&mirror);
    mirror.flush().await.unwrap();
    writers[1].append_synced(&[turn(7)]).await.unwrap();
    assert_eq!(roots(), (both(), 2, 0), "what another agent has done since is not read");
    home.sql().execute("UPDATE threads SET tree = thread WHERE thread LIKE '%2'", []).unwrap();
    assert_eq!(roots(), (both(), 2, 0), "a row does not make a root");
    home.sql().execute("UPDATE threads SET tree = 'elsewhere' WHERE tree = thread", []).unwrap();
    assert_eq!(roots(), (both(), 0, 2), "nor does it unmake one");
}
