use expect_test::{Expect, expect};

use super::*;

/// Files in memory that log what is done to them; those called `stuck` cannot be touched.
#[derive(Default)]
struct Map {
    files: BTreeMap<String, Vec<u8>>,
    log: Vec<String>,
}

impl Files for Map {
    fn read(&mut self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        Ok(self.files.get(path).cloned())
    }

    fn write(&mut self, path: &str, content: &[u8], like: Option<&str>) -> Result<(), FilesError> {
        if path.starts_with("stuck") {
            return Err(FilesError::new("permission denied"));
        }
        self.log.push(format!("write {path} {:?} like {like:?}", String::from_utf8_lossy(content)));
        self.files.insert(path.to_owned(), content.to_vec());
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<bool, FilesError> {
        if path.starts_with("stuck") {
            return Err(FilesError::from(std::io::Error::from(std::io::ErrorKind::PermissionDenied)));
        }
        self.log.push(format!("remove {path}"));
        Ok(self.files.remove(path).is_some())
    }
}

/// What is done to `files` (each with its name as content), and the answer.
fn check(files: &[&str], body: &str, expect: Expect) {
    let patch = crate::parse(&format!("*** Begin Patch\n{body}\n*** End Patch")).unwrap();
    let mut map = Map::default();
    for file in files {
        map.files.insert((*file).to_owned(), format!("{file}\n").into_bytes());
    }
    let foretold = dry_run(&patch, &mut map);
    assert_eq!(map.log, [""; 0], "a dry run does nothing");
    let outcome = apply(&patch, &mut map);
    if outcome.is_ok() {
        assert_eq!(foretold, outcome);
    }
    let answer = outcome.map_or_else(|error| error.to_string(), |done| done.to_string());
    map.log.push(answer);
    expect.assert_eq(&map.log.join("\n"));
}

#[test]
fn mode_bits_come_from_the_file_that_was_there() {
    check(
        &["a", "b", "c", "d"],
        "*** Update File: a\n-a\n+A\n*** Update File: b\n*** Move to: e\n*** Delete File: c\n*** Add File: c\n+C\n*** Add File: f\n+F\n*** Delete File: d",
        expect![[r#"
            write a "A\n" like Some("a")
            write e "b\n" like Some("b")
            remove b
            write c "C\n" like Some("c")
            write f "F\n" like None
            remove d
            M a
            R b -> e
            M c
            A f
            D d"#]],
    );
}

#[test]
fn what_is_there_already_is_not_written_again() {
    check(&["a"], "*** Add File: a\n+a", expect!["A a"]);
}

#[test]
fn a_file_is_not_written_until_all_its_chunks_fit() {
    check(
        &["a", "b"],
        "*** Delete File: b\n*** Update File: a\n-a\n+A\n@@\n-zzzz",
        expect![[r"
            remove b
            `a` does not have the expected line of line 6 of the patch:
            zzzz
            read the file again and copy the lines as they are
            already done, and still in place (leave it out when you try again):
            D b"]],
    );
}

#[test]
fn a_move_whose_source_stays_says_so() {
    check(
        &["stuck"],
        "*** Update File: stuck\n*** Move to: b",
        expect![[r#"
            write b "stuck\n" like Some("stuck")
            cannot remove `stuck`: permission denied
            already done, and still in place (leave it out when you try again):
            A b"#]],
    );
}

#[test]
fn refusals_of_the_file_system_are_passed_on() {
    check(
        &["stuck"],
        "*** Update File: stuck\n-stuck\n+x",
        expect![[r"
            cannot write `stuck`: permission denied
            no file was changed"]],
    );
}

#[test]
fn a_dry_run_sees_its_own_changes() {
    let patch =
        crate::parse("*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n*** End Patch").unwrap();
    let mut map = Map { files: [("a".to_owned(), vec![]), ("b".to_owned(), vec![])].into(), log: vec![] };
    let mut overlay = Overlay { below: &mut map, written: BTreeMap::new() };
    apply(&patch, &mut overlay).unwrap();
    assert_eq!(overlay.read("a"), Ok(None));
    assert_eq!(overlay.remove("a"), Ok(false));
    assert_eq!(overlay.read("c"), Ok(Some(vec![])));
    assert_eq!(map.files.len(), 2);
}
