//! Faults that leave the process alive: a disk that is full, short or broken, a model in a storm, files that were
//! damaged. Nothing hangs, everybody is told, and when the fault is gone the tree comes to rest with the counts right.

use std::collections::HashMap;
use std::path::PathBuf;

use protocol::MailId;
use rollout::{Line, State};
use testkit::Op;

use crate::draw::Dice;
use crate::habits::Habits;
use crate::life::{Life, side_by_side};
use crate::point::{Blow, Point, any, op};
use crate::sweep::{JOBS, RUN, clients, family};
use crate::tally::{ALL, Ask};
use crate::verify::{load, mails};

/// The family on a disk that fails at `point`; then on a good one. What it did to the bad disk.
fn fails_at(point: &Point) -> Life {
    let mut life = Life::new(&family(), |home| home);
    assert!(!life.lives(&RUN, Some(point), &clients(false)));
    life.has_an_answer();
    if life.began() {
        life.is_taken_over();
        life.goes_on();
        life.send_again(&clients(false));
        life.ends(Ask { done: false, sound: false, ..ALL });
    }
    life
}

fn fail_at_all(points: &[Point]) {
    side_by_side(JOBS, points, |point| format!("{point:?}"), |point| drop(fails_at(point)));
}

/// Numbers from `first` on, so far apart.
fn every(step: usize, first: usize, last: usize) -> impl Iterator<Item = usize> {
    (first..=last).step_by(step)
}

#[test]
fn a_write_finds_the_disk_full_or_is_short() {
    let point = |n| op(Op::Write, n).when(n % 2).with(Blow::Full);
    fail_at_all(&every(9, 1, 140).map(point).collect::<Vec<_>>());
}

#[test]
fn the_disk_is_full_from_a_write_on() {
    let point = |n| op(Op::Write, n).with(Blow::Full).for_good();
    fail_at_all(&every(14, 2, 140).map(point).collect::<Vec<_>>());
    let anything = |n| any(n).with(Blow::Full).for_good();
    fail_at_all(&every(40, 3, 250).map(anything).collect::<Vec<_>>());
}

#[test]
fn the_device_fails_once() {
    let point = |n| any(n).with(Blow::Broken);
    fail_at_all(&every(16, 4, 250).map(point).collect::<Vec<_>>());
}

/// A sync that failed is not asked for again as if nothing had been: the file is opened anew first.
#[test]
fn a_failed_sync_is_never_repeated() {
    let numbers: Vec<usize> = every(6, 3, 60).collect();
    let name = |n: &usize| format!("sync {n}");
    side_by_side(JOBS, &numbers, name, |n| {
        let life = fails_at(&op(Op::Sync, *n).with(Blow::Broken));
        let effects = life.effects();
        let failed = effects.iter().enumerate().filter(|(_, effect)| effect.is(Op::Sync)).nth(*n - 1);
        let Some((at, failed)) = failed else { return };
        let next = effects[at + 1..].iter().find(|next| next.path == failed.path);
        assert!(next.is_none_or(|next| !next.is(Op::Sync)), "{} was synced again", failed.path.display());
    });
}

#[test]
fn the_model_server_is_in_a_storm() {
    let seeds: Vec<u64> = (1..=6).collect();
    side_by_side(
        JOBS,
        &seeds,
        |seed| format!("seed {seed}"),
        |seed| {
            let habits =
                Habits { seed: *seed, storms: 35, same_ids: seed % 2 == 0, shape: *seed as usize % Habits::SHAPES };
            let mut life =
                Life::with_habits(&family(), habits, |home| home.set("providers.mock.idle_timeout_ms", 1_000));
            let point = any(60 + 20 * *seed as usize);
            let killed = life.lives(&RUN, (seed % 2 == 0).then_some(&point), &clients(false));
            if !killed {
                life.has_an_answer();
            }
            life.calm();
            life.is_taken_over();
            life.goes_on();
            life.send_again(&clients(false));
            life.ends(Ask { done: false, ..ALL });
        },
    );
}

/// Damages a twentieth of the lines: bytes of them are overwritten, they are cut, or run into the next one. Now and
/// then a file is cut off somewhere. Who an agent is stands in its first line, which stays. What is left whole of each
/// file, and how many lines were damaged and are there for certain.
fn damage(life: &Life, dice: &mut Dice) -> (HashMap<PathBuf, Vec<String>>, usize) {
    let (mut whole, mut damaged) = (HashMap::new(), 0);
    for rollout in life.scene.home.rollouts() {
        let text = rollout.text();
        let (mut left, mut intact) = (String::new(), Vec::new());
        let mut merged = false;
        let mut here = 0;
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let half = line.floor_char_boundary(line.len() / 2);
            if at == 0 || !dice.percent(5) {
                left += line;
                // The rest of a line that has lost its end has taken this one with it.
                if !std::mem::take(&mut merged) && line.ends_with('\n') {
                    intact.push(line.to_owned());
                }
                continue;
            }
            here += 1;
            merged = false;
            match dice.below(3) {
                0 => left += &format!("{}####{}", &line[..half], &line[half..]),
                1 => left += &format!("{}\n", &line[..half]),
                _ => {
                    left += &line[..half];
                    merged = true;
                }
            }
        }
        if dice.percent(10) {
            let first = left.find('\n').unwrap_or(0) + 1;
            let cut = first + dice.below(left.len() - first + 1);
            left.truncate(left.floor_char_boundary(cut));
            let there: Vec<&str> = left.split_inclusive('\n').collect();
            intact.retain(|line| there.contains(&line.as_str()));
            // They may lie behind the cut.
            here = 0;
        }
        damaged += here;
        std::fs::write(rollout.file(), &left).unwrap();
        whole.insert(rollout.file().to_owned(), intact);
    }
    (whole, damaged)
}

/// Whether of the first write of a rollout not all lines are there, nor anything behind it.
fn breaks_off_at_its_birth(text: &str) -> bool {
    let part = text.split_once(r#""part":[1,"#).and_then(|(_, rest)| rest.split_once(']'));
    let lines: usize = part.map_or(1, |(lines, _)| lines.parse().unwrap());
    text.matches('\n').count() < lines
}

/// No mail is accepted twice, and no task ends twice, as far as it can be read.
fn nothing_is_there_twice(agents: &[(State, Vec<Line>)]) {
    let mut seen: HashMap<(&str, MailId), usize> = HashMap::new();
    for (_, lines) in agents {
        for mail in mails(lines) {
            *seen.entry(("mail", mail.id)).or_default() += 1;
        }
        for line in lines {
            if let rollout::Record::TaskDone(done) = &line.record {
                *seen.entry(("end", done.task)).or_default() += 1;
            }
        }
    }
    seen.retain(|_, times| *times > 1);
    assert!(seen.is_empty(), "twice: {seen:?}");
}

#[test]
fn files_are_damaged_between_the_kill_and_the_takeover() {
    let seeds: Vec<u64> = (1..=12).collect();
    side_by_side(
        JOBS,
        &seeds,
        |seed| format!("seed {seed}"),
        |seed| {
            let mut dice = Dice::new(*seed);
            let mut life = Life::new(&family(), |home| home);
            if !life.lives(&RUN, Some(&any(60 + 15 * *seed as usize)), &clients(true)) {
                return;
            }
            let root = life.scene.home.rollout("/root").file().to_owned();
            let (whole, damaged) = damage(&life, &mut dice);
            let first = life.scene.agent(&["resume"]);
            if breaks_off_at_its_birth(&std::fs::read_to_string(&root).unwrap()) {
                // Nobody can drive a tree without its root. What is left stays as it is, and its file is named.
                let named = first.stderr.contains(root.to_str().unwrap()) && first.stderr.contains("no readable root");
                assert!(first.code == 2 && named, "{first:?}");
                return;
            }
            assert!(first.code == 0 && !first.stderr.contains("panicked"), "{first:?}");
            let unread = first.stdout.contains("could not be read") || first.stderr.contains("could not be read");
            // The last line, or one of the last write: that write never was.
            let cut = first.stderr.contains("an unfinished write");
            assert!(unread || cut || damaged == 0, "{damaged} lines were damaged, and nobody says so: {first:?}");
            let on = life.scene.agent(&["resume", "--continue"]);
            assert!([0, 1, 130].contains(&on.code) && !on.stderr.contains("panicked"), "{on:?}");
            let tree = life.scene.agent(&["tree"]);
            assert!(tree.stderr.contains("could not be read") || !unread, "{tree:?}");
            for (file, mut lines) in whole {
                // What is left of a write at the end of which something is missing never was, and is cut off.
                lines.truncate(lines.iter().rposition(|line| !line.contains(r#""part":["#)).map_or(0, |last| last + 1));
                // A child whose first write was damaged never was; what there is of it is set aside.
                let aside = PathBuf::from(format!("{}.unborn", file.display()));
                let now = std::fs::read_to_string(if file.exists() { &file } else { &aside }).unwrap();
                let now: std::collections::HashSet<&str> = now.split_inclusive('\n').collect();
                let lost: Vec<&String> = lines.iter().filter(|line| !now.contains(line.as_str())).collect();
                assert!(lost.is_empty(), "{} has lost what was whole: {lost:?}", file.display());
            }
            nothing_is_there_twice(&load(life.scene.home.path()));
            for args in [&["tree"][..], &["log"], &["list"], &["rollout", "check"]] {
                let run = life.scene.agent(args);
                assert!([0, 1].contains(&run.code) && !run.stderr.contains("panicked"), "{run:?}");
            }
            // Whatever could not be read may have been the only word about a process.
            life.scene.end_processes();
        },
    );
}
