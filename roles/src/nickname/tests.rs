use std::collections::HashSet;

use expect_test::{Expect, expect};

use super::*;

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn check(used: &[&str], seed: u64, candidates: &[&str], expect: Expect) {
    expect.assert_eq(&nickname(&strings(used), seed, &strings(candidates)));
}

#[test]
fn unused_ones_first_then_ordinals() {
    check(&[], 0, &["Ash", "Oak"], expect!["Ash"]);
    check(&[], 3, &["Ash", "Oak"], expect!["Oak"]);
    check(&["Ash"], 0, &["Ash", "Oak"], expect!["Oak"]);
    check(&["Ash", "Oak"], 0, &["Ash", "Oak"], expect!["Ash the 2nd"]);
    check(&["Ash", "Oak", "Ash the 2nd"], 7, &["Ash", "Oak"], expect!["Oak the 2nd"]);
    check(&[], 0, &[], expect!["Agate"]);
    check(&[], u64::MAX, &["Ash"], expect!["Ash"]);
}

#[test]
fn endings_are_english() {
    let mut used = Vec::new();
    for _ in 0..123 {
        used.push(nickname(&used, 5, &strings(&["Elm"])));
    }
    let seen: Vec<&str> = [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111, 112, 113, 121, 122, 123]
        .iter()
        .map(|n| used[n - 1].as_str())
        .collect();
    expect![[r"
        Elm
        Elm the 2nd
        Elm the 3rd
        Elm the 4th
        Elm the 11th
        Elm the 12th
        Elm the 13th
        Elm the 21st
        Elm the 22nd
        Elm the 23rd
        Elm the 101st
        Elm the 111th
        Elm the 112th
        Elm the 113th
        Elm the 121st
        Elm the 122nd
        Elm the 123rd"]]
    .assert_eq(&seen.join("\n"));
}

#[test]
fn the_pool_has_no_name_twice() {
    assert_eq!(HashSet::from(NICKNAMES).len(), NICKNAMES.len());
    for name in NICKNAMES {
        assert!(name.len() <= 8 && name.bytes().all(|b| b.is_ascii_alphabetic()), "{name}");
    }
}

proptest::proptest! {
    #[test]
    fn never_one_that_is_used(seeds in proptest::collection::vec(proptest::num::u64::ANY, 1..130)) {
        let mut used = Vec::new();
        for seed in seeds {
            let name = nickname(&used, seed, &[]);
            proptest::prop_assert!(!used.contains(&name));
            used.push(name);
        }
    }
}
