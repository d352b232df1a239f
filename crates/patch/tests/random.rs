//! Properties: what a difference says is what a patch does, and no text breaks the reader.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use patch::{Files, FilesError};
use proptest::prelude::*;

/// Files in memory.
#[derive(Debug, Clone, Default, PartialEq)]
struct Map(BTreeMap<String, Vec<u8>>);

impl Files for Map {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        Ok(self.0.get(path).cloned())
    }

    fn write(&mut self, path: &str, content: &[u8], _like: Option<&str>) -> Result<(), FilesError> {
        self.0.insert(path.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        Ok(self.0.remove(path).is_some())
    }
}

/// What happens to one old line.
#[derive(Debug, Clone)]
enum Fate {
    Keep,
    Remove,
    Replace(String),
    PrecededBy(String),
}

fn fate(line: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Keep),
        1 => Just(Fate::Remove),
        1 => line.clone().prop_map(Fate::Replace),
        1 => line.prop_map(Fate::PrecededBy),
    ]
}

/// The new lines, and the lines of a patch with their marks.
fn carry_out(old: &[(String, Fate)]) -> (Vec<String>, Vec<(char, String)>) {
    let (mut new, mut marked) = (Vec::new(), Vec::new());
    for (line, fate) in old {
        match fate {
            Fate::Keep => {}
            Fate::Remove => {
                marked.push(('-', line.clone()));
                continue;
            }
            Fate::Replace(text) => {
                marked.push(('-', line.clone()));
                marked.push(('+', text.clone()));
                new.push(text.clone());
                continue;
            }
            Fate::PrecededBy(text) => {
                marked.push(('+', text.clone()));
                new.push(text.clone());
            }
        }
        marked.push((' ', line.clone()));
        new.push(line.clone());
    }
    (new, marked)
}

/// Chunks with at most `context` lines of context on each side: runs of context that are longer are cut.
fn chunks(marked: &[(char, String)], context: usize) -> String {
    let changed: Vec<usize> = (0..marked.len()).filter(|at| marked[*at].0 != ' ').collect();
    let mut out = String::new();
    let mut shown_to = 0;
    for at in changed {
        let from = at.saturating_sub(context);
        if out.is_empty() || from > shown_to {
            out.push_str("@@\n");
        }
        for (mark, text) in &marked[from.max(shown_to)..(at + context + 1).max(shown_to).min(marked.len())] {
            writeln!(out, "{mark}{text}").unwrap();
        }
        shown_to = shown_to.max((at + context + 1).min(marked.len()));
    }
    out
}

fn file(lines: &[String], ending: &str, closed: bool) -> Vec<u8> {
    let mut text = lines.join(ending);
    if closed && !lines.is_empty() {
        text.push_str(ending);
    }
    text.into_bytes()
}

/// A file of one line without final newline has no ending that could be kept.
fn ending(before: &[String], crlf: bool, closed: bool) -> &'static str {
    if crlf && (closed || before.len() > 1) { "\r\n" } else { "\n" }
}

fn applied(patch: &str, before: Vec<u8>) -> Vec<u8> {
    let patch = patch::parse(patch).unwrap();
    let mut files = Map(BTreeMap::from([("f".to_owned(), before)]));
    let foretold = patch::dry_run(&patch, &mut files.clone()).unwrap();
    assert_eq!(patch::apply(&patch, &mut files).unwrap(), foretold);
    files.0.remove("f").unwrap()
}

fn shell(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Lines that repeat, one chunk over the whole file.
    #[test]
    fn whole_file(
        old in prop::collection::vec(("[ab é]{0,2}", fate("[ab+@*-]{0,3}")), 1..20),
        crlf: bool,
        closed: bool,
    ) {
        let (new, marked) = carry_out(&old);
        let before: Vec<String> = old.into_iter().map(|(line, _)| line).collect();
        // Without final newline an empty last line cannot be told from none.
        prop_assume!(closed || before.last().is_some_and(|line| !line.is_empty()));
        let ending = ending(&before, crlf, closed);
        let patch = shell(&chunks(&marked, marked.len().max(1)));
        prop_assume!(patch.contains("@@"));
        let found = applied(&patch, file(&before, ending, closed));
        prop_assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(file(&new, ending, closed)).unwrap());
    }

    /// Lines that are all different, many small chunks.
    #[test]
    fn small_chunks(
        fates in prop::collection::vec(fate("[ab+@*-]{0,3}"), 1..60),
        context in 1_usize..4,
        crlf: bool,
        closed: bool,
    ) {
        let old: Vec<(String, Fate)> =
            fates.into_iter().enumerate().map(|(at, fate)| (format!("line {at}"), fate)).collect();
        let (new, marked) = carry_out(&old);
        let before: Vec<String> = old.into_iter().map(|(line, _)| line).collect();
        let body = chunks(&marked, context);
        prop_assume!(!body.is_empty());
        let ending = ending(&before, crlf, closed);
        let found = applied(&shell(&body), file(&before, ending, closed));
        prop_assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(file(&new, ending, closed)).unwrap());
    }

    /// Context alone changes no byte, whatever the file is made of.
    #[test]
    fn context_changes_nothing(before in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..80)) {
        prop_assume!(!before.starts_with(b"\xff\xfe") && !before.starts_with(b"\xfe\xff"));
        let mut with_line = before;
        with_line.extend_from_slice(b"\nhere\n");
        prop_assert_eq!(applied(&shell("@@\n here\n"), with_line.clone()), with_line);
    }

    /// Any text is a patch or an error with a text.
    #[test]
    fn parse_survives_anything(text in "\\PC*|(?s:.*)") {
        if let Err(error) = patch::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// So is any sequence of pieces of the language, and whatever it says can be tried on a file.
    #[test]
    fn pieces_survive(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "*** Update File: f", "*** Add File: f", "*** Add File: g", "*** Delete File: f", "*** Move to: g", "@@",
            "@@ a", "@@ b", " a", "-a", "+a", "-b", "+", "", " ", "*** End of File", "*** End Patch", "<<EOF", "EOF", "é",
        ]), 0..20),
        before in "([ab]\r?\n){0,8}[ab]?",
    ) {
        let text = format!("*** Begin Patch\n{}\n*** End Patch", pieces.join("\n"));
        if let Ok(patch) = patch::parse(&text) {
            prop_assert!(!patch.paths().is_empty());
            let mut files = Map(BTreeMap::from([("f".to_owned(), before.into_bytes())]));
            let untouched = files.clone();
            let foretold = patch::dry_run(&patch, &mut files);
            prop_assert_eq!(&files, &untouched);
            let outcome = patch::apply(&patch, &mut files);
            match (foretold, outcome) {
                (Ok(foretold), Ok(done)) => prop_assert_eq!(foretold, done),
                (Err(foretold), Err(error)) => {
                    prop_assert_eq!(foretold.problem, error.problem);
                    prop_assert!(!error.done.is_empty() || files == untouched);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
