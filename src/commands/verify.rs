//! `agent rollout check`.

use rollout::{Lines, check};
use serde_json::{Value, json};

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
        told.file(setting, &store.read_path(&file).map_err(internal)?);
    } else {
        let files = store.files().map_err(internal)?;
        for problem in &files.problems {
            told.fault(json!({ "file": problem.file, "text": problem.why }), problem.to_string());
        }
        for facts in &files.files {
            match store.read_path(&facts.file) {
                Ok(lines) => told.file(setting, &lines),
                Err(error) => told.fault(json!({ "file": facts.file, "text": error.to_string() }), error.to_string()),
            }
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

    fn file(&mut self, setting: &Setting, lines: &Lines) {
        self.files += 1;
        self.lines += lines.lines.len();
        let shown = setting.env.tilde(&lines.file);
        let mut faults: Vec<(Value, String)> = Vec::new();
        for bad in &lines.bad {
            faults.push((json!({ "offset": bad.offset }), format!("byte {}: cannot be read: {}", bad.offset, bad.why)));
        }
        if lines.torn > 0 {
            let text =
                format!("the last {} bytes are an unfinished write; taking the tree over cuts them off", lines.torn);
            faults.push((json!({ "torn": lines.torn }), text));
        }
        // A line that cannot be read leaves a gap, which is told already.
        let gaps = lines.skipped > 0;
        for finding in check(&lines.lines) {
            if gaps && finding.rule == rollout::Rule::Ordinals {
                continue;
            }
            let at = json!({ "ordinal": finding.ordinal, "rule": finding.rule.as_str() });
            faults.push((at, finding.to_string()));
        }
        self.faults += faults.len().max(lines.skipped);
        let more = faults.len().saturating_sub(SHOWN);
        for (at, text) in faults.into_iter().take(SHOWN) {
            let mut row = json!({ "file": lines.file, "text": text });
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
