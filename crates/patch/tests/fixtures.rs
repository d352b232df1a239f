//! Cases as folders: `fixtures/<case>/{input/, patch.txt, expected/, summary.txt, error.txt}`.
//!
//! `input/` is the start (absent: nothing), `patch.txt` the patch. With `expected/` alone the patch has to succeed and leave
//! just those files, `summary.txt` is what it then says. With `error.txt` it has to fail with that text; the files are
//! then those of `expected/` or, without it, those of `input/`. `UPDATE_EXPECT=1` rewrites the texts.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use patch::{Files, FilesError};

/// Fewer than this and the folder was not found as a whole.
const LEAST_CASES: usize = 50;

/// What may be in a case.
const KNOWN: [&str; 5] = ["input", "patch.txt", "expected", "summary.txt", "error.txt"];

type Tree = BTreeMap<String, Vec<u8>>;

#[test]
fn every_case_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut cases: Vec<PathBuf> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= LEAST_CASES, "only {} cases in {}", cases.len(), root.display());
    let problems: Vec<String> = cases.iter().filter_map(|case| run(case).err()).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

/// Runs one case over real files, after a dry run that must change nothing and foretell the outcome.
fn run(case: &Path) -> Result<(), String> {
    well_formed(case)?;
    let name = case.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(case.join("patch.txt")).unwrap();
    let input = tree(&case.join("input"));
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &input {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let mut disk = Disk(folder.path().to_owned());
    let outcome = match patch::parse(&text) {
        Err(error) => Err(error.to_string()),
        Ok(patch) => {
            let foretold = patch::dry_run(&patch, &mut disk);
            if tree(folder.path()) != input {
                return Err(format!("{name}: a dry run changes files"));
            }
            let outcome = patch::apply(&patch, &mut disk);
            let agree = match (&foretold, &outcome) {
                (Ok(foretold), Ok(done)) => foretold == done,
                (Err(foretold), Err(error)) => foretold.problem == error.problem && foretold.done.is_empty(),
                _ => false,
            };
            if !agree {
                return Err(format!("{name}: the dry run foretells {foretold:?}, but it is {outcome:?}"));
            }
            outcome.map(|done| done.to_string()).map_err(|error| error.to_string())
        }
    };
    let failing = case.join("error.txt").exists();
    match &outcome {
        Err(error) if failing => expect_file![case.join("error.txt")].assert_eq(&format!("{error}\n")),
        Ok(done) if !failing => {
            if case.join("summary.txt").exists() {
                expect_file![case.join("summary.txt")].assert_eq(&format!("{done}\n"));
            }
        }
        outcome => return Err(format!("{name}: unexpected outcome {outcome:?}")),
    }
    let expected = case.join("expected");
    let expected = if expected.exists() { tree(&expected) } else { input };
    let found = tree(folder.path());
    if found == expected { Ok(()) } else { Err(format!("{name}: files differ\n{}\n{}", show(&expected), show(&found))) }
}

fn well_formed(case: &Path) -> Result<(), String> {
    let name = case.display();
    if !case.is_dir() {
        return Err(format!("{name}: a case is a folder"));
    }
    for entry in fs::read_dir(case).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        if !KNOWN.contains(&file.as_str()) || entry.path().is_dir() == file.contains('.') {
            return Err(format!("{name}: `{file}` has no meaning in a case"));
        }
    }
    if !case.join("patch.txt").exists() {
        return Err(format!("{name}: has no patch.txt"));
    }
    match (case.join("expected").exists(), case.join("error.txt").exists(), case.join("summary.txt").exists()) {
        (false, false, _) => Err(format!("{name}: has neither expected/ nor error.txt")),
        (_, true, true) => Err(format!("{name}: has both error.txt and summary.txt")),
        _ => Ok(()),
    }
}

#[test]
fn malformed_cases_are_refused() {
    let refused = |files: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        well_formed(folder.path()).is_err()
    };
    assert!(!refused(&["patch.txt", "expected/a"]));
    assert!(!refused(&["patch.txt", "error.txt", "input/a"]));
    assert!(refused(&[]));
    assert!(refused(&["expected/a"]));
    assert!(refused(&["patch.txt", "input/a"]));
    assert!(refused(&["patch.txt", "expected/a", "typo.txt"]));
    assert!(refused(&["patch.txt", "expected"]));
    assert!(refused(&["patch.txt", "error.txt", "summary.txt"]));
}

/// All files below `root`, by path relative to it; nothing if it does not exist.
fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.exists() {
            continue;
        }
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn show(tree: &Tree) -> String {
    let lines = tree.iter().map(|(path, content)| format!("  {path}: {:?}", String::from_utf8_lossy(content)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Real files below a folder.
struct Disk(PathBuf);

impl Files for Disk {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.0.join(path);
        if path.is_dir() {
            return Err(FilesError::new("it is a folder"));
        }
        match fs::read(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&mut self, path: &str, content: &[u8], _like: Option<&str>) -> Result<(), FilesError> {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap())?;
        Ok(fs::write(path, content)?)
    }

    fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        match fs::remove_file(self.0.join(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
