//! `agent rollout check`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use protocol::TreeId;
use rollout::{Checker, Finding, Identity, Kin, Member, Record, Rule};
use serde_json::{Value, json};
use stdx::AbsPath;

use crate::cli::{Rollout, RolloutWhat};
use crate::exit::{self, Failure};
use crate::output;
use crate::wire::Setting;

/// Faults shown of one file; all are counted.
const SHOWN: usize = 20;

pub(super) fn rollout(setting: &Setting, args: &Rollout) -> Result<u8, Failure> {
    let RolloutWhat::Check { file } = &args.what;
    let store = &setting.store;
    let internal = |error: rollout::Error| Failure::internal(error.to_string());
    let mut told = Told::default();
    if let Some(file) = file {
        let file = setting.cwd.join(file);
        if !file.is_file() {
            return Err(
                Failure::usage(format!("there is no file {file}")).hint("without a file all of them are checked")
            );
        }
        told.file(setting, &file).map_err(internal)?;
    } else {
        let mut kin = Kin::default();
        let mut seen = HashSet::new();
        let files = store.files().map_err(internal)?;
        let named = setting.common.tree.is_some() || setting.common.last;
        let only = if named { Some(setting.tree()?) } else { None };
        for problem in &files.problems {
            told.fault(json!({ "file": problem.file, "text": problem.why }), problem.to_string());
        }
        for facts in &files.files {
            let of = |tree| matches!(store.identify(facts), Ok(Identity::Agent(meta)) if meta.session_id == tree);
            if only.is_some_and(|only| !of(only)) {
                continue;
            }
            if !seen.insert(facts.thread) {
                let text = format!("another file carries the same id {}; move one of both away", facts.thread);
                told.fault(json!({ "file": facts.file, "text": text }), format!("{}: {text}", facts.file));
            }
            match told.file(setting, &facts.file) {
                Ok(member) => kin.add(member),
                Err(error) => {
                    kin.unread(facts.thread);
                    told.fault(json!({ "file": facts.file, "text": error.to_string() }), error.to_string());
                }
            }
        }
        let whole = |tree: &TreeId| !store.is_deleting(*tree);
        for tree in kin.trees().filter(whole).filter(|tree| !kin.findings(*tree).is_empty()) {
            told.tree(setting, tree).map_err(internal)?;
        }
    }
    if setting.common.json {
        output::answer(&Value::from(told.rows).to_string());
    } else {
        let files = if told.files == 1 { "1 file".to_owned() } else { format!("{} files", told.files) };
        let faults = match told.faults {
            0 => "nothing wrong".to_owned(),
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        };
        output::answer(&format!("{}{files}, {} lines: {faults}\n", told.text, told.lines));
    }
    Ok(if told.faults == 0 { exit::DONE } else { exit::ERRORED })
}

/// What was found in all files together.
#[derive(Default)]
struct Told {
    files: usize,
    lines: usize,
    faults: usize,
    rows: Vec<Value>,
    text: String,
}

impl Told {
    fn fault(&mut self, row: Value, text: String) {
        self.faults += 1;
        self.rows.push(row);
        self.text += &format!("{text}\n");
    }

    /// Tells what the files of a tree say of each other that is not so. They are read again: while they were read first
    /// somebody may have gone on writing.
    fn tree(&mut self, setting: &Setting, tree: TreeId) -> Result<(), rollout::Error> {
        let found = setting.store.disagreements(tree)?;
        if setting.store.is_owned(tree) {
            output::note(&format!("tree {tree} is at work, so its files are not compared with each other"));
            return Ok(());
        }
        let mut files: Vec<(AbsPath, Vec<Finding>)> = Vec::new();
        for (file, finding) in found {
            match files.iter_mut().find(|(known, _)| *known == file) {
                Some((_, findings)) => findings.push(finding),
                None => files.push((file, vec![finding])),
            }
        }
        for (file, findings) in files {
            self.faults += findings.len();
            let faults = findings.iter().map(located).collect();
            self.say(&setting.env.tilde(&file), &file, findings.len(), faults);
        }
        Ok(())
    }

    /// Tells of one file; what it says of others.
    fn file(&mut self, setting: &Setting, file: &AbsPath) -> Result<Member, rollout::Error> {
        let shown = setting.env.tilde(file);
        let mut checker = Checker::default();
        let mut member = Member::default();
        let mut lines = 0;
        let (mut findings, mut broken) = (Vec::new(), 0);
        // A line that cannot be read leaves a gap, which is told as that line.
        let (mut gaps, mut missing) = (Vec::new(), 0);
        let (mut last, mut absent) = (0, 0);
        let around = setting.store.around(file);
        let mut fork = None;
        let tally = setting.store.walk(file, 0, |line| {
            lines += 1;
            member.line(&line);
            if let Record::Mail(mail) = &line.record
                && let Some(why) = around.lacks_whole(mail)
            {
                broken += 1;
                if findings.len() < SHOWN {
                    findings.push(Finding { ordinal: line.ordinal, rule: Rule::Kept, text: why });
                }
            }
            absent += usize::try_from(line.ordinal.saturating_sub(last + 1)).unwrap_or(usize::MAX);
            last = line.ordinal;
            if let Record::Forked(forked) = &line.record {
                fork.get_or_insert_with(|| (line.ordinal, forked.clone()));
            }
            for finding in checker.line(&line) {
                let gap = finding.rule == Rule::Ordinals;
                let (kept, count) = if gap { (&mut gaps, &mut missing) } else { (&mut findings, &mut broken) };
                *count += 1;
                if kept.len() < SHOWN {
                    kept.push(finding);
                }
            }
            ControlFlow::Continue(())
        })?;
        self.files += 1;
        self.lines += lines;
        let mut faults: Vec<(Value, String)> = Vec::new();
        for bad in &tally.bad {
            faults.push((json!({ "offset": bad.offset }), format!("byte {}: cannot be read: {}", bad.offset, bad.why)));
        }
        let mut count = tally.skipped + broken;
        if tally.torn > 0 {
            count += 1;
            let text =
                format!("the last {} bytes are an unfinished write; taking the tree over cuts them off", tally.torn);
            faults.push((json!({ "torn": tally.torn }), text));
        }
        if tally.skipped == 0 {
            count += missing;
            findings.extend(gaps);
            findings.sort_by_key(|finding| finding.ordinal);
        } else if absent > tally.skipped {
            let lost = absent - tally.skipped;
            count += lost;
            let text = format!(
                "beside the lines that cannot be read, {lost} are missing: the numbers of the others have gaps"
            );
            faults.push((json!({ "missing": lost }), text));
        }
        faults.extend(findings.iter().map(located));
        // What it was forked from stands in another file of the same home. Told first: it is more than a line.
        if let Some((ordinal, fork)) = fork {
            let at = json!({ "ordinal": ordinal, "rule": "fork" });
            let wrong = match around.taken_over(&fork, drop) {
                Ok(lack) => lack.map(|lack| lack.to_string()),
                Err(error) => Some(error.to_string()),
            };
            count += usize::from(wrong.is_some());
            faults.splice(..0, wrong.map(|wrong| (at, format!("line {ordinal}: fork: {wrong}"))));
        }
        self.faults += count;
        self.say(&shown, file, count, faults);
        Ok(member)
    }

    /// Shows the first of `count` faults of a file.
    fn say(&mut self, shown: &str, file: &AbsPath, count: usize, faults: Vec<(Value, String)>) {
        let more = count.saturating_sub(SHOWN.min(faults.len()));
        for (at, text) in faults.into_iter().take(SHOWN) {
            let mut row = json!({ "file": file, "text": text });
            if let (Some(row), Some(at)) = (row.as_object_mut(), at.as_object()) {
                row.extend(at.clone());
            }
            self.rows.push(row);
            self.text += &format!("{shown}: {text}\n");
        }
        if more > 0 {
            self.text += &format!("{shown}: and {more} more\n");
        }
    }
}

/// A finding: where it is, for a program, and its words.
fn located(finding: &Finding) -> (Value, String) {
    (json!({ "ordinal": finding.ordinal, "rule": finding.rule.as_str() }), finding.to_string())
}
