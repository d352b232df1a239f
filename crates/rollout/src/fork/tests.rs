use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{id, time, turn, words};
use crate::{Compacted, Record};

/// A letter an item: `d`eveloper, `u`ser, `m`ail of a user, `a`ssistant, `c`all, `o`utput, `f` copied user; then its turn,
/// `-` for none. `K` is a compaction that keeps two items, `F` a fork, `t` a line of no item.
fn lines(text: &str) -> Vec<Line> {
    let line = |(at, word): (usize, &str)| {
        let mut letters = word.chars();
        let what = letters.next().unwrap();
        let in_turn = letters.next().and_then(|turn| turn.to_digit(10)).map(|n| id(n.into()));
        let call = Item::function_call("c", "spawn_agent", "{}");
        let item = match what {
            'd' => Item::message(Role::Developer, word),
            'u' | 'm' | 'f' => Item::message(Role::User, word),
            'a' => Item::message(Role::Assistant, word),
            'c' => call,
            _ => Item::output(&call.call().unwrap(), word),
        };
        let mail = if what == 'm' { vec![id(9)] } else { Vec::new() };
        let copied_from = (what == 'f').then(|| id(8));
        let record = match what {
            'K' => Record::Compacted(Box::new(Compacted {
                replacement_history: Some(["k1", "k2"].map(|text| Item::message(Role::User, text)).into()),
                ..Compacted::default()
            })),
            'F' => Record::Forked(Box::new(fork())),
            't' => turn(1),
            _ => Record::Item(ItemRecord { item, effect: None, mail, turn: in_turn, copied_from }),
        };
        Line { timestamp: time(0), ordinal: at as u64 + 1, part: None, record }
    };
    text.split_whitespace().enumerate().map(line).collect()
}

fn fork() -> Forked {
    let parent = crate::fixture::address(1);
    Forked { parent, first: 2, at: 40, through: 9, items: 4, checksum: "00000000000000ff".to_owned() }
}

/// Where it begins, and what is taken over from there.
fn check(text: &str, turns: ForkTurns, expect: Expect) {
    let lines = lines(text);
    let mut beginning = Beginning::new(turns);
    for line in &lines {
        beginning.line(line);
    }
    let mut told = String::new();
    if let Some(first) = beginning.first() {
        write!(told, "{first}:").unwrap();
        let mut selector = Selector::new();
        let mut give = |record: &ItemRecord, kept| {
            if selector.takes(record, kept) {
                let item = &record.item;
                write!(told, " {}", item.call().map_or_else(|| item.text(), |call| call.name)).unwrap();
            }
        };
        for line in lines.iter().filter(|line| line.ordinal >= first) {
            match &line.record {
                Record::Item(record) => give(record, false),
                Record::Compacted(compacted) if line.ordinal == first => {
                    for item in compacted.replacement_history.clone().unwrap() {
                        let record = ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from: None };
                        give(&record, true);
                    }
                }
                _ => {}
            }
        }
        for answer in selector.answers() {
            write!(told, " <{}>", if answer.text() == BELONGS_TO_PARENT { "the parent's" } else { "?" }).unwrap();
        }
    }
    expect.assert_eq(&told);
}

#[test]
fn instructions_stay_and_open_calls_are_answered() {
    let text = "t d1 u1 m1 a1 m2 c2";
    check(text, ForkTurns::All, expect!["2: m1 a1 m2 spawn_agent <the parent's>"]);
    check(text, ForkTurns::Last(1), expect!["6: m2 spawn_agent <the parent's>"]);
    check(text, ForkTurns::Last(2), expect!["2: m1 a1 m2 spawn_agent <the parent's>"]);
    check(text, ForkTurns::Last(9), expect!["2: m1 a1 m2 spawn_agent <the parent's>"]);
    check("d1 m1 c1 o1 c1 a2", ForkTurns::All, expect!["1: m1 spawn_agent o1 spawn_agent a2 <the parent's>"]);
    check("t t", ForkTurns::All, expect![""]);
    check("t t", ForkTurns::Last(1), expect![""]);
}

#[test]
fn what_a_compaction_kept_stands_for_the_turns_before_it() {
    check("m1 K d2 m2", ForkTurns::All, expect!["2: k1 k2 m2"]);
    check("m1 K d2 m2", ForkTurns::Last(1), expect!["2: k1 k2 m2"]);
    check("m1 K d2 m2 m3", ForkTurns::Last(1), expect!["5: m3"]);
    check("m1 K d2 m2 K m3", ForkTurns::Last(2), expect!["5: k1 k2 m3"]);
}

#[test]
fn items_of_no_turn_end_a_search_for_turns() {
    check("d- f- f- a1 a2", ForkTurns::All, expect!["1: f- f- a1 a2"]);
    check("d- f- f- a1 a2", ForkTurns::Last(9), expect!["4: a1 a2"]);
    check("d- F a1 a2", ForkTurns::Last(2), expect!["3: a1 a2"]);
    check("a1 a-", ForkTurns::Last(1), expect![""]);
    check("a1 a2 a1", ForkTurns::Last(2), expect!["2: a2 a1"]);
}

#[test]
fn what_is_lost_is_told() {
    let told = |items, found| {
        let parent = crate::fixture::address(1);
        Lack { parent, items, found, why: "1 line of `x` cannot be read".to_owned() }.to_string()
    };
    expect!["3 of the 12 items that it takes over from /root are lost: 1 line of `x` cannot be read"]
        .assert_eq(&told(12, 9));
    expect!["of the 12 items that it takes over from /root some are not as they were: 1 line of `x` cannot be read"]
        .assert_eq(&told(12, 12));
    expect!["it takes over 12 items from /root and there are 13 now: 1 line of `x` cannot be read"]
        .assert_eq(&told(12, 13));
}

/// These bytes are in files: they may never change.
#[test]
fn wire_names_are_frozen() {
    let mut line = Vec::new();
    crate::encode(&mut line, time(0), 7, Some([3, 4]), &Record::Forked(Box::new(fork()))).unwrap();
    expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"forked","part":[3,4],"payload":{"parent":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000001"},"first":2,"at":40,"through":9,"items":4,"checksum":"00000000000000ff"}}
    "#]]
    .assert_eq(std::str::from_utf8(&line).unwrap());
    let back = crate::decode(&line).unwrap();
    assert!(matches!(back.record, Record::Forked(read) if *read == fork()));
}

/// A fork stands for items of another file, so nothing follows from it in this one.
#[test]
fn nothing_but_a_conversation_is_taken_over() {
    let mut state = crate::State::new(crate::fixture::meta(2));
    let before = state.clone();
    state.apply_record(before.last_activity, 0, &Record::Forked(Box::new(fork())));
    assert_eq!(state, before);
    let line = |ordinal, record| Line { timestamp: time(0), ordinal, part: None, record };
    let meta = Record::SessionMeta(Box::new(crate::fixture::meta(2)));
    let lines = [line(1, meta), line(2, Record::Forked(Box::new(fork()))), line(3, words("mine"))];
    assert_eq!(crate::check(&lines), []);
}
