use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use protocol::{ItemKind, MailKind, Role, TurnId};

use super::*;
use crate::fixture::{FaultDisk, Home, accepted, address, birth, id, item, mail, meta, opened, turn, words};
use crate::fork::BELONGS_TO_PARENT;
use crate::{Loaded, Record, Writer};

/// What is done to a file, one write after another.
#[derive(Clone, Debug)]
enum Write {
    Records(Vec<Record>),
    Compact(usize),
}

fn write(writer: &Writer, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Records(records) => drop(writer.append(records).unwrap()),
            Write::Compact(items) => {
                let kept = (0..*items).map(|n| Item::message(Role::User, &format!("kept {n}"))).collect();
                writer.compact("summary".to_owned(), kept).unwrap();
            }
        }
    }
}

/// Where a thread's lines begin.
fn lines(file: &Path) -> Vec<Vec<u8>> {
    std::fs::read(file).unwrap().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Makes these lines, counted from the end of the first write, unreadable.
fn damage(file: &Path, first: usize, which: &[usize]) {
    let mut all = lines(file);
    let count = all.len() - first;
    if count > 0 {
        for n in which {
            all[first + n % count][0] = 0xff;
        }
    }
    std::fs::write(file, all.concat()).unwrap();
}

/// How many lines the first write has.
fn first_write(file: &Path) -> usize {
    let first = crate::decode(&lines(file)[0]).unwrap();
    first.part.map_or(1, |[_, count]| count as usize)
}

fn file(store: &Store, n: u64) -> AbsPath {
    store.file(id(n)).unwrap()
}

fn raw(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.raw().to_owned()).collect()
}

fn load(store: &Store, n: u64) -> Loaded {
    store.load(id(n)).unwrap()
}

/// A child's own instructions.
fn preamble() -> Vec<Record> {
    vec![item(Item::message(Role::Developer, "its own instructions")), item(Item::message(Role::User, "its folder"))]
}

async fn child(store: &Store, n: u64, taken: Vec<Record>) -> Writer {
    let mut rest = vec![opened()];
    rest.extend(preamble());
    rest.extend(taken);
    rest.push(accepted(mail(100 + n, 1, MailKind::Spawn)));
    store.create(meta(n), rest).await.unwrap()
}

/// How children were forked before there were references: by copying. Kept as it was, to compare with.
mod copying {
    use super::*;

    #[derive(Default)]
    struct Window {
        items: Vec<ItemRecord>,
        kept: usize,
    }

    fn record(item: Item, copied_from: Option<ThreadId>) -> ItemRecord {
        ItemRecord { item, effect: None, mail: Vec::new(), turn: None, copied_from }
    }

    pub(super) fn fork(store: &Store, parent: u64, turns: ForkTurns) -> Vec<Record> {
        let mut window = Window::default();
        let source = store.source(&store.file(id(parent)).unwrap()).unwrap();
        let from = back::newest(&source).unwrap().unwrap_or(0);
        read::read(&source, from, read::all, |line| {
            match line.record {
                Record::Item(item) => window.items.push(item),
                Record::Compacted(compacted) => {
                    if let Some(history) = compacted.replacement_history {
                        window.kept = history.len();
                        window.items = history.into_iter().map(|item| record(item, None)).collect();
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        let copies = select(&window, turns).into_iter();
        copies.map(|item| Record::Item(record(item, Some(id(parent))))).collect()
    }

    fn select(window: &Window, turns: ForkTurns) -> Vec<Item> {
        let Window { items, kept } = window;
        let from = match turns {
            ForkTurns::All => 0,
            ForkTurns::Last(count) => beginning(window, count),
        };
        let mut copies = Vec::new();
        let mut open = Vec::new();
        let mut at_start = true;
        for (index, record) in items.iter().enumerate().skip(from) {
            let item = &record.item;
            let context = at_start && index >= *kept && record.mail.is_empty() && record.copied_from.is_none();
            if context && matches!(item.kind(), ItemKind::Message(Role::Developer | Role::User)) {
                continue;
            }
            at_start = index < *kept;
            if let Some(call) = item.call() {
                open.push((record.effect, call));
            } else if item.kind() == ItemKind::Output {
                let answered = item.answered_call_id().unwrap_or_default();
                if let Some(at) = open.iter().position(|(effect, call)| match record.effect {
                    Some(_) => *effect == record.effect,
                    None => call.call_id == answered,
                }) {
                    open.remove(at);
                }
            }
            copies.push(item.clone());
        }
        copies.extend(open.iter().map(|(_, call)| Item::output(call, BELONGS_TO_PARENT)));
        copies
    }

    fn beginning(Window { items, kept }: &Window, count: usize) -> usize {
        let mut seen: Vec<TurnId> = Vec::new();
        for (index, record) in items.iter().enumerate().rev() {
            if index < *kept {
                return 0;
            }
            let Some(turn) = record.turn else { return index + 1 };
            if seen.last() != Some(&turn) {
                if seen.len() == count {
                    return index + 1;
                }
                seen.push(turn);
            }
        }
        0
    }
}

fn in_turn(record: Record, effect: Option<u64>, turn: Option<u64>, mail: bool) -> Record {
    match record {
        Record::Item(record) => Record::Item(ItemRecord {
            effect: effect.map(id),
            turn: turn.map(id),
            mail: if mail { vec![id(77)] } else { Vec::new() },
            ..record
        }),
        other => other,
    }
}

fn any_item() -> impl Strategy<Value = Record> {
    let turn = || proptest::option::weighted(0.95, 1..4_u64);
    let effect = || proptest::option::weighted(0.8, 10..14_u64);
    let role = prop_oneof![Just(Role::Developer), Just(Role::User), Just(Role::Assistant)];
    let call = |n: u64| Item::function_call(&format!("call_{n}"), "t", "{}");
    prop_oneof![
        4 => (role, 0..1000_u32, turn(), any::<bool>())
            .prop_map(|(role, n, turn, mail)| in_turn(item(Item::message(role, &format!("says {n}"))), None, turn, mail)),
        2 => (0..2_u64, effect(), turn()).prop_map(move |(n, effect, turn)| in_turn(item(call(n)), effect, turn, false)),
        2 => (0..2_u64, effect(), turn()).prop_map(move |(n, effect, turn)| {
            in_turn(item(Item::output(&call(n).call().unwrap(), "done")), effect, turn, false)
        }),
        1 => (1..9_u64).prop_map(self::turn),
        1 => (200..220_u64).prop_map(|n| accepted(mail(n, 2, MailKind::Message))),
    ]
}

fn any_writes() -> impl Strategy<Value = Vec<Write>> {
    let write = prop_oneof![
        9 => prop::collection::vec(any_item(), 1..4).prop_map(Write::Records),
        1 => (0..3_usize).prop_map(Write::Compact),
    ];
    prop::collection::vec(write, 0..25)
}

fn any_turns() -> impl Strategy<Value = ForkTurns> {
    prop_oneof![Just(ForkTurns::All), (0..5_usize).prop_map(ForkTurns::Last)]
}

/// A generation: what it does, what of that becomes unreadable, how the next is forked, what it does after that.
type Generation = (Vec<Write>, Vec<usize>, ForkTurns, Vec<Write>);

fn any_generation() -> impl Strategy<Value = Generation> {
    let damage = prop_oneof![19 => Just(Vec::new()), 1 => prop::collection::vec(0..1000_usize, 1..4)];
    (any_writes(), damage, any_turns(), any_writes())
}

/// A family by reference and the same by copying, side by side.
async fn compare(generations: &[Generation]) {
    let (refers, copies) = (Home::new(), Home::new());
    for home in [&refers, &copies] {
        drop(home.store.create(meta(1), birth()).await.unwrap());
    }
    for (n, (writes, damaged, turns, after)) in (1..).zip(generations) {
        for home in [&refers, &copies] {
            write(&home.store.writer(id(n)).unwrap(), writes);
            let file = file(&home.store, n);
            damage(&file, first_write(&file), damaged);
        }
        let fork = refers.store.fork(&address(n), *turns).unwrap();
        let copied = copying::fork(&copies.store, n, *turns);
        assert_eq!(fork.as_ref().map_or(0, |fork| fork.items), copied.len() as u64);
        let refers_to = fork.map(|fork| Record::Forked(Box::new(fork))).into_iter().collect();
        drop(child(&refers.store, n + 1, refers_to).await);
        drop(child(&copies.store, n + 1, copied).await);
        same(&refers.store, &copies.store, n + 1);
        // What the parent does from now on is its own.
        for home in [&refers, &copies] {
            write(&home.store.writer(id(n)).unwrap(), after);
        }
        for child in 1..=n + 1 {
            same(&refers.again(), &copies.again(), child);
        }
    }
}

#[track_caller]
fn same(refers: &Store, copies: &Store, n: u64) {
    let (one, other) = (load(refers, n), load(copies, n));
    assert_eq!(raw(&one.state.transcript), raw(&other.state.transcript), "agent {n}");
    assert_eq!((one.lack, one.unknown), (None, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Three forks in a row, with compactions, open calls and unreadable lines.
    #[test]
    fn a_reference_gives_what_copying_gave(generations in prop::collection::vec(any_generation(), 1..4)) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(compare(&generations));
    }
}

/// A root with a turn of three items, and two children in a row, forked from it.
async fn family() -> Home {
    let home = Home::new();
    let root = home.store.create(meta(1), birth()).await.unwrap();
    root.append(&[in_turn(words("one"), None, Some(3), false)]).unwrap();
    root.append(&[in_turn(words("two"), None, Some(3), false)]).unwrap();
    root.append(&[in_turn(item(Item::function_call("c", "t", "{}")), Some(4), Some(3), false)]).unwrap();
    for n in [2, 3] {
        let fork = home.store.fork(&address(n - 1), ForkTurns::All).unwrap().unwrap();
        child(&home.store, n, vec![Record::Forked(Box::new(fork))]).await.append(&[words("mine")]).unwrap();
    }
    home
}

fn texts(loaded: &Loaded) -> Vec<String> {
    let texts = loaded.state.transcript.iter().map(|i| i.call().map_or_else(|| i.text(), |call| call.name));
    texts.map(|text| if text == BELONGS_TO_PARENT { "the parent's".to_owned() } else { text }).collect()
}

#[tokio::test]
async fn a_child_holds_one_line() {
    let home = family().await;
    let own = ["its own instructions", "its folder"].map(str::to_owned);
    let taken = ["one", "two", "t", "the parent's"].map(str::to_owned);
    assert_eq!(texts(&load(&home.store, 2)), [&own[..], &taken, &["mine".to_owned()]].concat());
    let mine = || "mine".to_owned();
    assert_eq!(texts(&load(&home.store, 3)), [&own[..], &taken, &[mine(), mine()]].concat());
    let all = home.store.read(id(3)).unwrap();
    let kinds: Vec<&str> = all.lines.iter().map(|line| line.record.kind()).collect();
    assert_eq!(kinds, ["session_meta", "edge", "response_item", "response_item", "forked", "mail", "response_item"]);
    assert!(matches!(&all.lines[0].record, Record::SessionMeta(meta) if meta.format == 2));
    assert_eq!(crate::check(&all.lines), []);
    // Whoever only lists it, or only writes to it, does not look at the parent.
    let disk = FaultDisk::default();
    let store = Store::new(home.store.home().clone(), Arc::new(disk.clone()));
    let facts = store.files().unwrap().files;
    let before = disk.reads();
    store.summarise(facts.iter().find(|facts| facts.thread == id(3)).unwrap()).unwrap();
    store.writer(id(3)).unwrap().append(&[turn(5)]).unwrap();
    assert_eq!(disk.reads() - before, 2);
    drop(store.open(id(3)).unwrap());
    assert_eq!(disk.reads() - before, 5, "itself and two above it");
}

/// Damages the file of agent `n`; what agent 3 still has, and what it is told.
async fn check(n: u64, damage: impl FnOnce(&Path), expect: Expect) {
    let home = family().await;
    damage(&file(&home.store, n));
    let loaded = load(&home.again(), 3);
    let lack = loaded.lack.as_ref().map(ToString::to_string).unwrap_or_default();
    let lack = lack.replace(&format!("{}", file(&home.store, 3).parent().unwrap()), "…");
    expect.assert_eq(&format!("{}\n{lack}", texts(&loaded).join(", ")));
}

#[tokio::test]
async fn what_is_damaged_is_told_and_the_rest_is_there() {
    check(
        1,
        |_| {},
        expect![[r#"
            its own instructions, its folder, one, two, t, the parent's, mine, mine
        "#]],
    )
    .await;
    check(1, |file| damage(file, 3, &[1]), expect![[r#"
        its own instructions, its folder, one, t, the parent's, mine, mine
        1 of the 5 items that it takes over from /root are lost: 1 line of `…/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000001.jsonl` cannot be read"#]]).await;
    check(1, |file| damage(file, 3, &[2]), expect![[r#"
        its own instructions, its folder, one, two, mine, mine
        2 of the 5 items that it takes over from /root are lost: 1 line of `…/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000001.jsonl` cannot be read"#]]).await;
    // The line that it begins with is found by its ordinal when lines before it were cut out.
    check(
        1,
        |file| std::fs::write(file, [&lines(file)[..1], &lines(file)[2..]].concat().concat()).unwrap(),
        expect![[r#"
            its own instructions, its folder, one, two, t, the parent's, mine, mine
        "#]],
    )
    .await;
    check(1, |file| std::fs::write(file, lines(file)[..4].concat()).unwrap(), expect![[r#"
        its own instructions, its folder, one, mine, mine
        3 of the 5 items that it takes over from /root are lost: `…/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000001.jsonl` ends at line 4 and should have line 6"#]]).await;
    check(1, |file| std::fs::write(file, "").unwrap(), expect![[r#"
        its own instructions, its folder, mine, mine
        4 of the 5 items that it takes over from /root are lost: `…/rollout-2026-11-30T15-13-02-01939d5e-0000-7000-8000-000000000001.jsonl` ends at line 0 and should have line 6"#]]).await;
    check(1, |file| std::fs::remove_file(file).unwrap(), expect![[r#"
        its own instructions, its folder, mine, mine
        4 of the 5 items that it takes over from /root are lost: the rollout of 01939d5e-0000-7000-8000-000000000001 is not there; put it back from a copy"#]]).await;
    check(2, |file| std::fs::remove_file(file).unwrap(), expect![[r#"
        its own instructions, its folder, mine
        5 of the 5 items that it takes over from /root are lost: the rollout of 01939d5e-0000-7000-8000-000000000002 is not there; put it back from a copy"#]]).await;
    let other = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, text.replace(r#""two""#, r#""owt""#)).unwrap();
    };
    check(1, other, expect![[r#"
        its own instructions, its folder, one, owt, t, the parent's, mine, mine
        of the 5 items that it takes over from /root some are not as they were: its rollout, or one that it refers to, was changed"#]]).await;
}

/// Each in turn, the root last, as when a kill comes while a tree is put away.
#[tokio::test]
async fn a_parent_may_be_packed_and_its_child_not() {
    for order in [[1, 2, 3], [3, 2, 1]] {
        let home = family().await;
        let before = texts(&load(&home.store, 3));
        for n in order {
            let store = home.again();
            let pieces = store.pieces(meta(1).session_id).unwrap();
            store.archive(pieces.pieces.iter().find(|piece| piece.meta.id == id(n)).unwrap()).unwrap();
            let loaded = load(&home.again(), 3);
            assert_eq!((texts(&loaded), loaded.lack), (before.clone(), None), "{n} of {order:?}");
        }
        let packed = home.again().file(id(1)).unwrap();
        let mut bytes = std::fs::read(&packed).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&packed, bytes).unwrap();
        let lack = load(&home.again(), 3).lack.unwrap().to_string();
        assert!(lack.contains("is damaged (") && lack.contains("put it back from a copy"), "{lack}");
    }
}

fn refers(n: u64) -> Record {
    let parent = address(n);
    Record::Forked(Box::new(Forked { parent, first: 1, at: 0, through: 99, items: 5, checksum: "0".repeat(16) }))
}

/// Only a damaged file says so, and nobody hangs on it.
#[tokio::test]
async fn a_circle_has_an_end() {
    let home = Home::new();
    for (n, parent) in [(1, 2), (2, 1), (3, 3)] {
        drop(child(&home.store, n, vec![refers(parent), refers(parent)]).await);
    }
    for n in 1..=3 {
        let lack = load(&home.store, n).lack.unwrap().to_string();
        assert!(lack.contains("refer to each other in a circle"), "{n}: {lack}");
    }
}

/// Every agent reads all those above it, and no further up than a tree is deep.
#[tokio::test]
async fn a_chain_is_as_long_as_a_tree_is_deep() {
    let home = Home::new();
    drop(home.store.create(meta(1), birth()).await.unwrap());
    for n in 2..=MAX_CHAIN as u64 + 2 {
        home.store.writer(id(n - 1)).unwrap().append(&[words("one more")]).unwrap();
        let fork = home.store.fork(&address(n - 1), ForkTurns::All).unwrap().unwrap();
        drop(child(&home.store, n, vec![Record::Forked(Box::new(fork))]).await);
    }
    let last = load(&home.store, MAX_CHAIN as u64 + 1);
    assert_eq!((last.state.transcript.len(), last.lack), (2 + MAX_CHAIN + 1, None), "all of them, and its own");
    // Of the next one nothing was promised that is not there; all it knows is what the chain could still give.
    let beyond = load(&home.store, MAX_CHAIN as u64 + 2);
    assert_eq!((beyond.state.transcript.len(), beyond.lack), (2 + MAX_CHAIN, None));
}

/// Without a descriptor nothing can be said about a parent: it is not taken for lost.
#[tokio::test]
async fn a_shortage_is_not_taken_for_a_loss() {
    let home = family().await;
    let disk = FaultDisk::default();
    let store = Store::new(home.store.home().clone(), Arc::new(disk.clone()));
    let fork = store.fork(&address(2), ForkTurns::All).unwrap().unwrap();
    disk.starve(true);
    let error = store.taken_over(&fork, drop).unwrap_err();
    assert!(error.is_shortage(), "{error}");
    disk.starve(false);
    assert_eq!(store.taken_over(&fork, drop).unwrap(), None);
}
