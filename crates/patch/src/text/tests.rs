use super::*;

/// Removes and inserts, and shows what comes out.
fn check(content: &str, removed: &[usize], inserts: &[(usize, &str)], expect: &str) {
    let splice = Splice { removed: removed.iter().copied().collect(), inserts: inserts.to_vec() };
    let out = Text::split(content.as_bytes()).join(&splice);
    assert_eq!(String::from_utf8_lossy(&out), expect);
}

#[test]
fn no_change_gives_the_bytes_back() {
    for content in ["", "\n", "a", "a\n", "a\r\nb\n\rc\r", "\u{feff}", "\u{feff}a\r\n", "\n\n"] {
        check(content, &[], &[], content);
    }
}

#[test]
fn new_lines_end_as_the_line_above() {
    check("a\r\nb\n", &[], &[(1, "x"), (2, "y")], "a\r\nx\r\nb\ny\n");
    check("a\r\nb\n", &[], &[(0, "x")], "x\r\na\r\nb\n");
    check("a\r\nb\n", &[0], &[(1, "x")], "x\r\nb\n");
    check("", &[], &[(0, "x")], "x\n");
}

#[test]
fn the_final_newline_stays_as_it_was() {
    check("a\nb", &[], &[(2, "x")], "a\nb\nx");
    check("a\r\nb", &[], &[(2, "x")], "a\r\nb\r\nx");
    check("a", &[0], &[(1, "x"), (1, "y")], "x\ny");
    check("a\nb", &[1], &[], "a");
    check("a\n", &[0], &[], "");
    check("a", &[0], &[], "");
    check("a", &[], &[(1, "")], "a\n");
}

#[test]
fn inserts_at_one_place_keep_their_order() {
    check("a\nb\n", &[], &[(2, "z"), (1, "x"), (1, "y")], "a\nx\ny\nb\nz\n");
}
