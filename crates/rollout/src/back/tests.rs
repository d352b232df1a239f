use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use proptest::prelude::*;
use protocol::{Item, MailKind, Outcome, Role};
use serde_json::json;
use stdx::AbsPath;

use crate::fixture::{accepted, birth, id, mail, meta, time, turn, turn_end, words};
use crate::read::{Conversation, all, fold, known, read};
use crate::source::tests::source;
use crate::state::tests::any_record;
use crate::{Budgets, Error, Limits, Line, Loaded, Record, State, TurnContext, WorldState, encode};

/// A file as it grows, and what it comes to.
struct Growing {
    bytes: Vec<u8>,
    ordinal: u64,
    state: State,
    /// After each write: how long the file is, and what it comes to.
    then: Vec<(usize, State)>,
    /// Where compactions begin.
    compactions: Vec<usize>,
}

/// One write.
#[derive(Clone, Debug)]
enum Write {
    Records(Vec<Record>),
    Compact(usize),
}

impl Growing {
    fn new() -> Self {
        let state = State::new(meta(1));
        let mut file = Self { bytes: Vec::new(), ordinal: 0, state, then: Vec::new(), compactions: Vec::new() };
        let mut first = vec![Record::SessionMeta(Box::new(meta(1)))];
        first.extend(birth());
        file.write(&first);
        file
    }

    fn of(writes: &[Write]) -> Self {
        let mut file = Self::new();
        for write in writes {
            match write {
                Write::Records(records) => file.write(records),
                Write::Compact(items) => file.compact(*items),
            }
        }
        file
    }

    fn write(&mut self, records: &[Record]) {
        let count = u32::try_from(records.len()).unwrap();
        for (record, index) in records.iter().zip(1..) {
            self.ordinal += 1;
            let part = (count > 1).then_some([index, count]);
            encode(&mut self.bytes, time(0), self.ordinal, part, record).unwrap();
            self.state.apply_record(time(0), self.ordinal, record);
        }
        self.then.push((self.bytes.len(), self.state.clone()));
    }

    fn compact(&mut self, items: usize) {
        self.compactions.push(self.bytes.len());
        let history = (0..items).map(|n| Item::message(Role::User, &format!("kept {n}"))).collect();
        self.write(&self.state.compaction("summary".to_owned(), history));
    }
}

fn load(bytes: &[u8]) -> Result<Loaded, Error> {
    fold(&AbsPath::new("/somewhere/x").unwrap(), &source(bytes), Conversation::Kept, &|_, _| Ok(None))
}

/// Without what a compaction leaves in the lines before it.
fn thinned(state: &State) -> State {
    State { done: HashMap::new(), done_complete: false, returned: HashSet::new(), ..state.clone() }
}

/// The lines of a file, each with its line break.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

fn lines(bytes: &[u8]) -> (Vec<Line>, crate::Tally) {
    let mut lines = Vec::new();
    let tally = read(&source(bytes), 0, all, |line| {
        lines.push(line);
        ControlFlow::Continue(())
    });
    (lines, tally.unwrap())
}

/// The fold of all lines that are left, from the first one on.
fn forwards(bytes: &[u8]) -> State {
    let mut state = State::new(meta(1));
    lines(bytes).0.iter().for_each(|line| state.apply(line));
    state
}

#[test]
fn the_newest_compaction_is_read_from() {
    let mut file = Growing::new();
    file.write(&[words("old")]);
    file.compact(1);
    file.write(&[words("middle")]);
    file.compact(2);
    file.write(&[turn(3)]);
    let loaded = load(&file.bytes).unwrap();
    assert_eq!(usize::try_from(loaded.from).unwrap(), file.compactions[1]);
    assert_eq!((loaded.state.transcript.len(), loaded.state.window), (2, 3));
    assert_eq!(thinned(&loaded.state), thinned(&file.state));
    assert_eq!(loaded.end.ordinal, file.ordinal);
    // What stands before it is not looked at, so nothing is said of it.
    let mut damaged = split(&file.bytes);
    damaged[3] = b"\xff\n".to_vec();
    let loaded = load(&damaged.concat()).unwrap();
    assert_eq!((loaded.skipped, thinned(&loaded.state)), (0, thinned(&file.state)));
    assert_eq!(lines(&damaged.concat()).1.skipped, 1);
}

#[test]
fn a_compaction_that_is_not_whole_is_passed_over() {
    let mut file = Growing::new();
    file.write(&[Record::WorldState(Box::new(WorldState { full: true, state: json!(1) })), words("old")]);
    file.compact(1);
    file.write(&[words("middle"), accepted(mail(7, 2, MailKind::Message))]);
    let second = split(&file.bytes).len();
    file.compact(2);
    file.write(&[words("new")]);
    let whole = split(&file.bytes);
    for lost in 0..3 {
        let mut damaged = whole.clone();
        damaged[second + lost] = b"{\"timestamp\":\"\n".to_vec();
        let damaged = damaged.concat();
        let loaded = load(&damaged).unwrap();
        assert_eq!((usize::try_from(loaded.from).unwrap(), loaded.skipped), (file.compactions[0], 1), "{lost}");
        assert_eq!(thinned(&loaded.state), thinned(&forwards(&damaged)), "{lost}");
        assert_eq!(loaded.state.unread(), 2);
    }
    // Neither is one that the end of the file cuts off: it never happened.
    for end in second + 1..second + 3 {
        let loaded = load(&whole[..end].concat()).unwrap();
        assert_eq!(usize::try_from(loaded.from).unwrap(), file.compactions[0]);
        let (before, state) = &file.then[3];
        assert_eq!((loaded.end.bytes, thinned(&loaded.state)), (*before as u64, thinned(state)));
    }
    // Without any that is whole the file is read from its beginning.
    let mut damaged = whole.clone();
    damaged[second] = b"\xff\n".to_vec();
    damaged[6] = b"\xff\n".to_vec();
    let loaded = load(&damaged.concat()).unwrap();
    assert_eq!((loaded.from, loaded.skipped, loaded.state.done_complete), (0, 2, true));
}

#[test]
fn what_only_looks_like_a_compaction_is_none() {
    let line = r#"{"timestamp":"t","ordinal":9,"type":"compacted","part":[1,2],"payload":{}}"#;
    let mut file = Growing::new();
    file.write(&[words(&format!("\n{line}\n{line}"))]);
    file.write(&[words("more")]);
    // Another program's, that replaces nothing and stands alone.
    let alone = r#"{"timestamp":"2026-11-30T15:13:00.000Z","ordinal":9,"type":"compacted","payload":{"message":"m"}}"#;
    let bytes = [&file.bytes[..], alone.as_bytes(), b"\n"].concat();
    let loaded = load(&bytes).unwrap();
    assert_eq!((loaded.from, loaded.skipped, loaded.unknown), (0, 0, 0));
    assert_eq!((loaded.state.transcript.len(), loaded.state.window), (2, 1));
}

fn any_write() -> impl Strategy<Value = Write> {
    let limits = (1_usize..9).prop_map(|max_running| {
        let budgets = Budgets::default();
        Record::Limits(Box::new(Limits {
            max_running,
            max_resident: 1,
            max_depth: 1,
            max_agents: 1,
            roles: vec![],
            budgets,
        }))
    });
    let context = ("[a-z]{1,9}", 0_u64..3).prop_map(|(tool, n)| {
        Record::TurnContext(Box::new(TurnContext {
            turn_id: id(n),
            cwd: meta(1).cwd,
            model: "test/one".to_owned(),
            effort: None,
            sandbox_policy: protocol::Sandbox::ReadOnly,
            approval_policy: protocol::Approval::Never,
            tools: vec![tool],
            tools_digest: "d".to_owned(),
        }))
    });
    let world = (any::<bool>(), "[ab]", prop::option::of(0..3))
        .prop_map(|(full, key, value)| Record::WorldState(Box::new(WorldState { full, state: json!({ key: value }) })));
    let record = prop_oneof![9 => any_record(), 1 => limits, 1 => context, 1 => world];
    prop_oneof![
        6 => prop::collection::vec(record, 1..5).prop_map(Write::Records),
        1 => (0_usize..4).prop_map(Write::Compact),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Of whatever was written, and wherever it breaks off: the whole writes, no more and no less.
    #[test]
    fn a_prefix_is_its_whole_writes(
        writes in prop::collection::vec(any_write(), 0..24),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = Growing::of(&writes);
        let cut = cut.index(file.bytes.len() + 1);
        let written = file.then.iter().rfind(|(end, _)| *end <= cut);
        let loaded = load(&file.bytes[..cut]);
        let Some((end, state)) = written else {
            let unborn = matches!(loaded, Err(Error::Unborn { .. }));
            prop_assert!(unborn);
            return Ok(());
        };
        let loaded = loaded.unwrap();
        prop_assert_eq!((loaded.end.bytes, loaded.torn), (*end as u64, (cut - end) as u64));
        prop_assert_eq!((loaded.skipped, loaded.unknown, loaded.end.ordinal), (0, 0, state.last_ordinal));
        prop_assert_eq!(thinned(&loaded.state), thinned(state));
        prop_assert_eq!(&known(&source(&file.bytes[..cut])).unwrap(), &state.known);
        let newest = file.compactions.iter().rev().find(|at| *at < end);
        prop_assert_eq!(loaded.from, newest.map_or(0, |at| *at as u64));
        if newest.is_none() {
            prop_assert_eq!(&loaded.state, state);
        }
        let last = split(&file.bytes[..*end]).pop().unwrap();
        prop_assert_eq!((loaded.end.last_line_bytes, loaded.end.checksum), (last.len() as u64, crate::checksum(&last)));
    }

    /// One line in twenty is damaged: the others are all there, and every one that is not is counted.
    #[test]
    fn what_is_not_damaged_is_kept(
        writes in prop::collection::vec(any_write(), 0..40),
        damage in prop::collection::vec((0_u8..20, prop_oneof![
            Just(&b"\xff\xfe\n"[..]),
            Just(&b"{\"timestamp\":\"2026\n"[..]),
            Just(&b"\n"[..]),
        ]), 240),
    ) {
        let mut file = Growing::of(&writes);
        // The last write is whole; what is made of one that is not has tests of its own.
        file.write(&[turn_end(2, Outcome::Completed)]);
        let mut parts = split(&file.bytes);
        let count = parts.len();
        // Without its first line a file is nobody's.
        let mut lost = Vec::new();
        for (at, (_, with)) in damage.iter().take(count).enumerate().filter(|(at, (roll, _))| *at > 0 && at + 1 < count && *roll == 0) {
            parts[at] = with.to_vec();
            lost.push(at as u64 + 1);
        }
        let bytes = parts.concat();
        let (lines, tally) = lines(&bytes);
        prop_assert_eq!((tally.skipped, tally.torn), (lost.len(), 0));
        let kept: Vec<u64> = (1..=count as u64).filter(|ordinal| !lost.contains(ordinal)).collect();
        prop_assert_eq!(lines.iter().map(|line| line.ordinal).collect::<Vec<_>>(), kept);

        let loaded = load(&bytes).unwrap();
        prop_assert_eq!(thinned(&loaded.state), thinned(&forwards(&bytes)));
        prop_assert_eq!(loaded.end.ordinal, file.ordinal);
        // Every lost line from where reading began is counted.
        let before = split(&bytes[..usize::try_from(loaded.from).unwrap()]).len() as u64;
        prop_assert_eq!(loaded.skipped, lost.iter().filter(|ordinal| **ordinal > before).count());
    }
}
