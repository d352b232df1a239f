use expect_test::{Expect, expect};

use super::*;

fn check(pattern: &str, text: &str, expect: Expect) {
    let seen = match Pattern::capturing(pattern) {
        Err(error) => format!("error: {error}"),
        Ok(pattern) => match pattern.find(text) {
            None => "no".to_owned(),
            Some(found) => {
                let found: Vec<String> = found.iter().map(|(name, text)| format!("{name}={text}")).collect();
                format!("yes {}", found.join(", "))
            }
        },
    };
    expect.assert_eq(seen.trim_end());
}

#[test]
fn captures() {
    check("found in {file}:", "x\nfound in src/a.rs: 3 hits", expect!["yes file=src/a.rs"]);
    check("found in {file}:", "found in nothing\nfound in b.rs:", expect!["yes file=b.rs"]);
    check("id {id}", "the id  x-1  \nmore", expect!["yes id=x-1"]);
    check("id {id}", "id \n", expect!["no"]);
    check("{{\"id\": \"{id}\"*end {n}.", "{\"id\": \"7\"}\n the end 3.", expect!["yes id=7, n=3"]);
    check("a {x} b {y}", "a 1 b 2", expect!["yes x=1, y=2"]);
    check("*", "", expect!["yes"]);
    check("", "x", expect!["yes"]);
    check("a*b*c", "xa-b\n-c", expect!["yes"]);
    check("a*c*b", "abc", expect!["no"]);
    check("ä{n}ö", "äää1ö", expect!["yes n=ää1"]);
}

#[test]
fn mistakes() {
    check("{a}", "", expect!["error: `{a}` needs some text before `{a}`, to know where it begins"]);
    check("x{a}{b}", "", expect!["error: `x{a}{b}` needs some text before `{b}`, to know where it begins"]);
    check(
        "x{a",
        "",
        expect![
            "error: `x{a`: a name in braces has letters, digits and `_` only, as in `{file}`; a brace meant as such is written twice"
        ],
    );
    check(
        "x{a b}",
        "",
        expect![
            "error: `x{a b}`: a name in braces has letters, digits and `_` only, as in `{file}`; a brace meant as such is written twice"
        ],
    );
    check("x}", "", expect!["error: `x}` has a `}` without `{`; a brace meant as such is written twice"]);
}

#[test]
fn plain_patterns_have_no_names() {
    assert!(Pattern::plain("a {x} b").matches("so: a {x} b!"));
    assert!(Pattern::plain("error*line").matches("an error\non line 3"));
    assert!(!Pattern::plain("line*error").matches("an error\non line 3"));
}

#[test]
fn globs() {
    let check = |want: &str, path: &str, fits: bool| assert_eq!(glob(want, path), fits, "{want} {path}");
    check("/root", "/root", true);
    check("/root", "/root/a", false);
    check("/root/*", "/root/a", true);
    check("/root/*", "/root/a/b", false);
    check("/root/**", "/root/a/b", true);
    check("/root/**", "/root", true);
    check("/root/**", "/rooty", false);
    check("/root/job_*", "/root/job_12", true);
    check("/root/job_*", "/root/jo", false);
    check("/root/*_*_x", "/root/a_b_x", true);
    check("/root/a*a", "/root/a", false);
    check("*", "explorer", true);
}

proptest::proptest! {
    #[test]
    fn no_text_upsets_it(pattern in "[ab*{}é]{0,12}", text in "[ab\né]{0,20}") {
        if let Ok(pattern) = Pattern::capturing(&pattern) {
            for (_, value) in pattern.find(&text).into_iter().flatten() {
                proptest::prop_assert!(text.contains(value) && !value.contains('\n'));
            }
        }
        proptest::prop_assert!(Pattern::plain("").matches(&text));
    }
}
