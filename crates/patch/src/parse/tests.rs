use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;

/// What a text says, one line a section or chunk, or why it is no patch.
fn check(text: &str, expect: Expect) {
    let shown = match parse(text) {
        Err(error) => error.to_string(),
        Ok(patch) => patch.sections().iter().map(section).collect::<Vec<_>>().join("\n"),
    };
    expect.assert_eq(&shown);
}

/// As [`check`], for what stands between the first and the last line.
fn body(text: &str, expect: Expect) {
    check(&format!("*** Begin Patch\n{text}\n*** End Patch\n"), expect);
}

fn section(section: &Section) -> String {
    let Section { path, action, line } = section;
    match action {
        Action::Add(lines) => format!("{line} add {path} {lines:?}"),
        Action::Replace(lines) => format!("{line} replace {path} {lines:?}"),
        Action::Delete => format!("{line} delete {path}"),
        Action::Update { move_to, chunks } => {
            let mut out = format!("{line} update {path}");
            if let Some(to) = move_to {
                write!(out, " -> {to}").unwrap();
            }
            for Chunk { anchors, lines, at_end, loose, line } in chunks {
                let lines: Vec<String> = lines
                    .iter()
                    .map(|line| match line {
                        Line::Context(text) => format!(" {text}"),
                        Line::Remove(text) => format!("-{text}"),
                        Line::Add(text) => format!("+{text}"),
                    })
                    .collect();
                write!(out, "\n  {line} {anchors:?} {lines:?}").unwrap();
                if *loose > 0 {
                    write!(out, " loose {loose}").unwrap();
                }
                if *at_end {
                    out.push_str(" at end");
                }
            }
            out
        }
    }
}

#[test]
fn whole_language() {
    body(
        "*** Add File: a\n+1\n++2\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@ x\n@@\n@@  y\n c\n-r\n+a\n*** End of File\n@@\n-z",
        expect![[r#"
            2 add a ["1", "+2"]
            5 delete b
            6 update c -> d
              8 ["x", " y"] [" c", "-r", "+a"] at end
              15 [] ["-z"]"#]],
    );
}

#[test]
fn paths_are_taken_as_given() {
    body(
        "*** Delete File:  /etc/a b \n*** Delete File: ../x\n*** Delete File: C:\\y\n*** Delete File: ./é",
        expect![[r"
            2 delete /etc/a b
            3 delete ../x
            4 delete C:\y
            5 delete ./é"]],
    );
}

#[test]
fn paths_of_a_patch_are_its_keys() {
    let text =
        "*** Begin Patch\n*** Delete File: b\n*** Add File: b\n*** Update File: a\n*** Move to: c\n*** End Patch";
    assert_eq!(parse(text).unwrap().paths(), ["b", "a", "c"]);
}

#[test]
fn empty_lines_are_context_in_a_chunk_and_spacing_outside() {
    body(
        "\n*** Update File: a\n\n@@ x\n\n@@ y\n\n-r\n\n+a\n\n\n@@\n-s\n\n*** Delete File: b\n\n",
        expect![[r#"
            3 update a
              5 ["x", "y"] [" ", "-r", " ", "+a", " ", " "] loose 2
              14 [] ["-s", " "] loose 1
            17 delete b"#]],
    );
}

#[test]
fn wrappers() {
    let inner = "*** Begin Patch\n*** Update File: a\n-x\n*** End Patch";
    for (open, close) in [
        ("<<EOF", "EOF"),
        ("<<'EOF'", "EOF\n"),
        ("apply_patch <<\"E_1\"", "E_1"),
        ("apply_patch<<- 'EOF'", "\tEOF"),
        ("\u{feff}", ""),
        ("<<EOF", ""),
    ] {
        let patch = parse(&format!("{open}\n{inner}\n{close}")).unwrap();
        assert_eq!(patch.paths(), ["a"], "{open}");
    }
    check(
        &format!("<<EOF\n{inner}\nEOT"),
        expect!["the patch ends after line 6, expected `*** End Patch`; send the whole patch again"],
    );
    check(
        &format!("cat <<EOF\n{inner}\nEOF"),
        expect!["line 1 of the patch: found `cat <<EOF`, expected `*** Begin Patch`"],
    );
}

#[test]
fn not_a_patch() {
    check("", expect!["the patch ends after line 0, expected `*** Begin Patch`; send the whole patch again"]);
    check("\n \n", expect!["the patch ends after line 0, expected `*** Begin Patch`; send the whole patch again"]);
    check(
        "*** Begin Patch",
        expect!["the patch ends after line 1, expected `*** End Patch`; send the whole patch again"],
    );
    check("--- a\n+++ b\n", expect!["line 1 of the patch: found `--- a`, expected `*** Begin Patch`"]);
    check(
        "*** Begin Patch\n*** End Patch",
        expect![
            "line 2 of the patch: found `*** End Patch`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
}

#[test]
fn lines_out_of_place() {
    body(
        "hello",
        expect![
            "line 2 of the patch: found `hello`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
    body(
        "*** Rename File: a",
        expect![
            "line 2 of the patch: found `*** Rename File: a`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
    body(
        "*** Delete File: a\n*** End Patch\n*** Delete File: b",
        expect![
            "line 3 of the patch: found `*** End Patch`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
    body(
        "*** Delete File: a\n-x",
        expect![
            "line 3 of the patch: found `-x`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
    body(
        "*** Add File: a\nx",
        expect![
            "line 3 of the patch: found `x`, expected a line of the new file with `+` before it, or the next `*** ` marker"
        ],
    );
    body(
        "*** Update File: a\n-x\ny",
        expect![
            "line 4 of the patch: found `y`, expected `@@`, a line with ` `, `-` or `+` before it, or the next `*** ` marker"
        ],
    );
    body(
        "*** Update File: a\n-x\n*** Move to: b",
        expect![
            "line 4 of the patch: found `*** Move to: b`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
    body(
        "*** Update File: a\n-x\n*** End of File\n*** End of File",
        expect![
            "line 5 of the patch: found `*** End of File`, expected `*** Add File: `, `*** Delete File: `, `*** Update File: ` or, as the last line, `*** End Patch`"
        ],
    );
}

#[test]
fn updates_without_a_change() {
    body(
        "*** Update File: a",
        expect![
            "line 3 of the patch: found `*** End Patch`, expected the lines of a change, each with ` `, `-` or `+` before it"
        ],
    );
    body(
        "*** Update File: a\n@@ x\n\n",
        expect![
            "line 6 of the patch: found `*** End Patch`, expected the lines of a change, each with ` `, `-` or `+` before it"
        ],
    );
    body(
        "*** Update File: a\n*** Move to: b\n@@",
        expect![
            "line 5 of the patch: found `*** End Patch`, expected the lines of a change, each with ` `, `-` or `+` before it"
        ],
    );
    body(
        "*** Update File: a\n-x\n@@\n*** End of File",
        expect![
            "line 5 of the patch: found `*** End of File`, expected the lines of a change, each with ` `, `-` or `+` before it"
        ],
    );
}

#[test]
fn unusable_paths() {
    body(
        "*** Add File:",
        expect![
            "line 2 of the patch: `*** Add File:` needs a path without NUL, for example `*** Update File: src/main.rs`"
        ],
    );
    body(
        "*** Delete File:  \t",
        expect![
            "line 2 of the patch: `*** Delete File:  	` needs a path without NUL, for example `*** Update File: src/main.rs`"
        ],
    );
    body(
        "*** Update File: a\0b\n-x",
        expect![
            "line 2 of the patch: `*** Update File: a\\u{0}b` needs a path without NUL, for example `*** Update File: src/main.rs`"
        ],
    );
    body(
        "*** Update File: a\n*** Move to:\n-x",
        expect![
            "line 3 of the patch: `*** Move to:` needs a path without NUL, for example `*** Update File: src/main.rs`"
        ],
    );
}

#[test]
fn a_path_is_named_once() {
    body(
        "*** Delete File: a\n*** Delete File: a",
        expect!["line 3 of the patch: `a` is already named in line 2; put all changes of a file into one section"],
    );
    body(
        "*** Add File: a\n*** Delete File: a",
        expect!["line 3 of the patch: `a` is already named in line 2; put all changes of a file into one section"],
    );
    body(
        "*** Update File: a\n*** Move to: b\n*** Add File: b",
        expect!["line 4 of the patch: `b` is already named in line 3; put all changes of a file into one section"],
    );
    body(
        "*** Update File: a\n*** Move to: a\n-x",
        expect!["line 3 of the patch: `a` is already named in line 2; put all changes of a file into one section"],
    );
    body(
        "*** Delete File: a\n*** Add File: a\n*** Add File: a",
        expect!["line 4 of the patch: `a` is already named in line 3; put all changes of a file into one section"],
    );
    body(
        "*** Delete File: a\n*** Delete File: b\n*** Add File: a\n+x",
        expect![[r#"
        3 delete b
        4 replace a ["x"]"#]],
    );
}

#[test]
fn line_numbers_are_refused() {
    body(
        "*** Update File: a\n@@ -1 +1 @@ fn x\n-x",
        expect![
            "line 3 of the patch: `@@ -1 +1 @@ fn x` has line numbers; write `@@` alone, or `@@ ` and a whole line of the file that stands above the change"
        ],
    );
    body(
        "*** Update File: a\n@@ -1, b + 2\n-x",
        expect![[r#"
        2 update a
          3 ["-1, b + 2"] ["-x"]"#]],
    );
}

#[test]
fn long_lines_are_cut_in_errors() {
    let error = parse(&"é".repeat(5000)).unwrap_err().to_string();
    assert!(error.len() < 300, "{error}");
    assert!(error.contains("é…`"), "{error}");
}
