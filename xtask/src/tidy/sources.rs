//! Rules about files of text: names, re-exports, lengths, words.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Fault;
use super::rules::{HIDDEN, LONG, MACHINE_FOLDERS, MAX_LINES, MAX_LINES_WITH_TESTS, SKIPPED, TEXT};

pub(super) fn check(root: &Path, faults: &mut Vec<Fault>) -> Result<()> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    for file in &files {
        // A file of another encoding is no source; whoever reads it will say so.
        let Ok(text) = fs::read_to_string(root.join(file)) else { continue };
        words(file, &text, faults);
        if Path::new(file).extension().is_some_and(|ending| ending == "rs") {
            name(file, faults);
            exports(file, &text, faults);
            length(file, &text, faults);
        }
    }
    for (file, _) in LONG {
        if !files.iter().any(|known| known == file) {
            faults.push(Fault::new(*file, "it is on the list of long files but not there", "take it off the list"));
        }
    }
    Ok(())
}

/// All files of text below `folder`, as paths from `root` with `/`. Links are not followed.
fn walk(root: &Path, folder: &str, files: &mut Vec<String>) -> Result<()> {
    let read = fs::read_dir(root.join(folder)).with_context(|| format!("cannot read the folder {folder}"))?;
    for entry in read {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if !hidden && !SKIPPED.contains(&name.as_str()) {
                walk(root, &path, files)?;
            }
        } else if kind.is_file() && (folder == ".ci" || name.rsplit_once('.').is_some_and(|(_, e)| TEXT.contains(&e))) {
            files.push(path);
        }
    }
    files.sort();
    Ok(())
}

fn name(file: &str, faults: &mut Vec<Fault>) {
    if file == "mod.rs" || file.ends_with("/mod.rs") {
        faults.push(Fault::new(
            file,
            "a file named mod.rs says nothing in a list of open files",
            "name it after its folder and put it beside it",
        ));
    }
}

fn exports(file: &str, text: &str, faults: &mut Vec<Fault>) {
    let mut open: Option<usize> = None;
    for (line, code) in numbered(text) {
        let code = code.trim();
        if open.is_none() && code.starts_with("pub use ") {
            open = Some(line);
        }
        let Some(start) = open else { continue };
        if code.contains("::*") || code.contains("{*") || code.starts_with('*') {
            faults.push(Fault::new(format!("{file}:{start}"), "a glob is re-exported", "name what is exported"));
            open = None;
        } else if code.contains(';') {
            open = None;
        }
    }
}

fn length(file: &str, text: &str, faults: &mut Vec<Fault>) {
    if LONG.iter().any(|(long, _)| *long == file) {
        return;
    }
    let all = text.lines().count();
    if all > MAX_LINES_WITH_TESTS {
        faults.push(Fault::new(
            file,
            format!("{all} lines are more than {MAX_LINES_WITH_TESTS}"),
            "cut it in two, or put it on the list of long files with a reason",
        ));
        return;
    }
    if is_test(file) {
        return;
    }
    let lines: Vec<_> = text.lines().collect();
    // A `mod tests;` that points to a file of its own is followed by other code at most.
    let inline = lines.windows(2).position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'));
    let code = inline.unwrap_or(all);
    if code > MAX_LINES {
        faults.push(Fault::new(
            file,
            format!("{code} lines without tests are more than {MAX_LINES}"),
            "cut it in two, or put it on the list of long files with a reason",
        ));
    }
}

fn is_test(file: &str) -> bool {
    file == "tests.rs" || file.ends_with("/tests.rs") || file.split('/').any(|part| part == "tests")
}

fn words(file: &str, text: &str, faults: &mut Vec<Fault>) {
    for (line, content) in numbered(text) {
        let found = MACHINE_FOLDERS.iter().map(|folder| format!("/{folder}/")).find(|path| begins(content, path));
        if let Some(path) = found {
            faults.push(Fault::new(
                format!("{file}:{line}"),
                format!("an absolute path below `{path}` works on one machine only"),
                "make it relative, or use `/somewhere/` in an example",
            ));
        }
    }
}

/// Whether an absolute path in `line` begins with `path`: what stands before it is not part of a path itself.
fn begins(line: &str, path: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '}' | '$' | '*');
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(part))
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
