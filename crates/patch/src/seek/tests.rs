use super::*;

/// Where `pattern` is in the lines of `file`.
fn check(file: &str, pattern: &[&str], place: Place, expect: Option<usize>) {
    let lines: Vec<&[u8]> = file.split('|').map(str::as_bytes).collect();
    assert_eq!(seek(&lines, pattern, place), expect, "{pattern:?} in {file:?}");
}

const TOP: Place = Place::From(0);

#[test]
fn tiers_are_tried_strictest_first() {
    check("a|b|a", &["a"], TOP, Some(0));
    check("a |a", &["a"], TOP, Some(1));
    check(" a|a ", &["a"], TOP, Some(1));
    check("\u{2013}a| -a", &["-a"], TOP, Some(1));
    check("\u{2013}a|b", &["-a"], TOP, Some(0));
    check("a|b", &["A"], TOP, None);
}

#[test]
fn inner_blanks_count() {
    check("a  b", &["a b"], TOP, None);
    check("a\tb", &["a b"], TOP, None);
    check("a\u{a0}b", &["a b"], TOP, Some(0));
}

#[test]
fn all_lines_match_at_one_tier() {
    check("a|b ", &["a", "b"], TOP, Some(0));
    check("a|b|a|c", &["a", "c"], TOP, Some(2));
    check("a|x|b", &["a", "b"], TOP, None);
}

#[test]
fn the_search_begins_where_it_is_told() {
    check("a|a|a", &["a"], Place::From(1), Some(1));
    check("a|b", &["a"], Place::From(1), None);
    check("a", &["a"], Place::From(7), None);
    check("a", &["a", "b"], TOP, None);
    check("a", &[], TOP, None);
}

#[test]
fn the_end_is_the_end() {
    check("a|a|a", &["a"], Place::EndNotAbove(0), Some(2));
    check("a|a|b", &["a"], Place::EndNotAbove(0), None);
    check("a|a", &["a", "a"], Place::EndNotAbove(1), None);
}

#[test]
fn typography_has_an_ascii_form() {
    for (fancy, ascii) in [
        ("\u{2010}\u{2014}\u{2212}", "---"),
        ("\u{2018}\u{2019}", "''"),
        ("\u{201c}\u{201d}", "\"\""),
        ("x\u{2003}y\u{3000}z", "x y z"),
    ] {
        assert!(alike(Tier::Typography, fancy.as_bytes(), ascii), "{fancy}");
        assert!(alike(Tier::Typography, ascii.as_bytes(), fancy), "{fancy}");
        assert!(!alike(Tier::BothEnds, fancy.as_bytes(), ascii), "{fancy}");
    }
}

#[test]
fn other_encodings_match_as_they_are_shown() {
    assert!(alike(Tier::TrailingBlanks, b"caf\xe9", "caf\u{fffd}"));
    assert!(!alike(Tier::Exact, b"caf\xe9", "caf\u{fffd}"));
    assert!(!alike(Tier::Typography, b"caf\xe9", "cafe"));
}
