use expect_test::{Expect, expect};

use super::*;
use crate::Action;

/// The file after the chunks in `body`, or why not.
fn check(content: &str, body: &str, expect: Expect) {
    let patch = crate::parse(&format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")).unwrap();
    let Action::Update { chunks, .. } = &patch.sections()[0].action else { panic!("not an update") };
    let out = match edit("f", content.as_bytes(), chunks) {
        Ok(out) => String::from_utf8(out).unwrap(),
        Err(mismatch) => mismatch.to_string(),
    };
    expect.assert_eq(&out);
}

#[test]
fn an_anchor_line_may_be_repeated_or_not() {
    let file = "fn a\n x\nfn b\n x\n";
    check(
        file,
        "@@ fn b\n- x\n+ y",
        expect![[r"
        fn a
         x
        fn b
         y
    "]],
    );
    check(
        file,
        "@@ fn b\n fn b\n- x\n+ y",
        expect![[r"
        fn a
         x
        fn b
         y
    "]],
    );
}

#[test]
fn equal_anchors_in_a_row_mean_one_line_after_the_other() {
    check(
        "a\nx\na\nx\n",
        "@@ a\n@@ a\n-x\n+y",
        expect![[r"
        a
        x
        a
        y
    "]],
    );
}

#[test]
fn an_anchor_below_beats_the_one_above() {
    check(
        "a\nx\na\nx\n",
        "@@ a\n-x\n+y\n@@ a\n-x\n+z",
        expect![[r"
        a
        y
        a
        z
    "]],
    );
}

#[test]
fn outer_anchor_above_inner_anchor_below() {
    check(
        "class\nf\n1\ng\n1\n",
        "@@ class\n@@ f\n-1\n+2\n@@ class\n@@ g\n-1\n+3",
        expect![[r"
        class
        f
        2
        g
        3
    "]],
    );
}

#[test]
fn additions_alone() {
    check(
        "a\nb\n",
        "@@ a\n+x",
        expect![[r"
        a
        x
        b
    "]],
    );
    check(
        "a\nb\n",
        "@@ a\n+x\n*** End of File",
        expect![[r"
        a
        b
        x
    "]],
    );
    check(
        "a\nb\n",
        "@@\n+x\n@@\n-a",
        expect![[r"
        b
        x
    "]],
    );
    // The empty line is spacing here: an addition has no context that could be elsewhere.
    check(
        "a\nb\n\nc\n",
        "@@ a\n+x\n\n@@\n-c",
        expect![[r"
        a
        x
        b

    "]],
    );
}

#[test]
fn empty_lines_at_the_end_of_a_chunk_are_context_if_they_can_be() {
    check(
        "x\ny\nx\n\n",
        "@@\n-x\n+z\n\n",
        expect![[r"
        x
        y
        z

    "]],
    );
    check(
        "x\ny\n",
        "@@\n-x\n+z\n\n",
        expect![[r"
        z
        y
    "]],
    );
    check(
        "x\ny\n",
        "@@\n-y\n+z\n\n*** End of File",
        expect![[r"
        x
        z
    "]],
    );
}

#[test]
fn hints() {
    check(
        "a\nb\nc\nd\n",
        "@@\n a\n-x\n-c\n d",
        expect![[r"
        `f` does not have the expected lines of line 3 of the patch:
        a
        x
        c
        d
        the nearest place begins at line 1 of the file; the first difference is at line 2:
          patch: `x`
          file:  `b`"]],
    );
    check(
        "b\nc\n",
        "@@\n b\n c\n-d",
        expect![[r"
        `f` does not have the expected lines of line 3 of the patch:
        b
        c
        d
        the nearest place begins at line 1 of the file; the first difference is at line 3:
          patch: `d`
          file:  (ends here)"]],
    );
    check(
        "let total = 1;\nlet mut total = 1;\n",
        "@@\n-let mut totals = 1;",
        expect![[r"
        `f` does not have the expected line of line 3 of the patch:
        let mut totals = 1;
        the nearest place begins at line 2 of the file; the first difference is at line 2:
          patch: `let mut totals = 1;`
          file:  `let mut total = 1;`"]],
    );
    check(
        "a\nb\n",
        "@@ b\n-a",
        expect![[r"
        `f` does not have the expected line of line 3 of the patch:
        a
        they are at line 1 of the file, but the search began at line 2, below the previous chunk or the anchor; put the chunks in the order of the file"]],
    );
    check(
        "",
        "@@ a\n-b",
        expect![[r"
        `f` does not have the anchor of line 3 of the patch:
        a
        read the file again and copy the lines as they are"]],
    );
    check(
        "",
        "-b",
        expect![[r"
        `f` does not have the expected line of line 3 of the patch:
        b
        read the file again and copy the lines as they are"]],
    );
}

#[test]
fn an_error_is_bounded() {
    let old = format!("-{}\n", "x".repeat(10_000)).repeat(500);
    let patch = crate::parse(&format!("*** Begin Patch\n*** Update File: f\n{old}*** End Patch")).unwrap();
    let Action::Update { chunks, .. } = &patch.sections()[0].action else { panic!("not an update") };
    let text = edit("f", b"y", chunks).unwrap_err().to_string();
    assert!(text.len() < 10_000, "{} bytes", text.len());
    assert!(text.contains("… 460 more"), "{text}");
}
