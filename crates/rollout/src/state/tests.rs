use proptest::prelude::*;
use protocol::{ProcessRecord, Role, Token};

use super::*;
use crate::fixture::{
    Home, accepted, address, birth, closed, delivers, id, item, mail, meta, opened, task_done, time, turn, turn_end,
    words,
};
use crate::{MailReturned, decode, encode};

fn fold(records: &[Record]) -> State {
    let mut state = State::new(meta(1));
    for (record, ordinal) in records.iter().zip(2..) {
        state.apply_record(time(3), ordinal, record);
    }
    state
}

fn agent(n: u64) -> Party {
    Party::Agent(address(n))
}

fn call(call_id: &str, effect: Option<u64>) -> Record {
    with_effect(Item::function_call(call_id, "t", "{}"), effect)
}

fn output(call_id: &str, effect: Option<u64>) -> Record {
    with_effect(Item::output(&Item::function_call(call_id, "t", "{}").call().unwrap(), "ok"), effect)
}

fn with_effect(what: Item, effect: Option<u64>) -> Record {
    match item(what) {
        Record::Item(record) => Record::Item(ItemRecord { effect: effect.map(id), ..record }),
        other => other,
    }
}

fn copied(record: Record) -> Record {
    match record {
        Record::Item(record) => Record::Item(ItemRecord { copied_from: Some(id(9)), ..record }),
        other => other,
    }
}

#[test]
fn the_life_of_a_task() {
    let mut state = fold(&[opened(), accepted(mail(5, 2, MailKind::Spawn))]);
    assert_eq!((state.status(), state.unread(), state.is_at_rest()), (Status::Pending, 1, true));

    state.apply_record(time(4), 4, &turn(7));
    state.apply_record(time(5), 5, &delivers(&[5]));
    assert_eq!((state.status(), state.unread(), state.is_at_rest()), (Status::Lost, 0, false));
    assert_eq!(state.tasks_taken, [Task { id: id(5), giver: agent(2), continues: None, kind: MailKind::Spawn }]);

    state.apply_record(time(6), 6, &turn_end(7, Outcome::Completed));
    state.apply_record(time(6), 7, &task_done(5, agent(2), Outcome::Completed));
    assert_eq!((state.status(), state.tasks_taken.len(), state.is_at_rest()), (Status::Completed, 0, false));
    let owed: Vec<MailId> = state.obligations.iter().map(Obligation::id).collect();
    assert_eq!(owed, [id(5)]);

    // A second end of the same task owes nothing more.
    state.apply_record(time(6), 8, &task_done(5, agent(2), Outcome::Lost));
    assert_eq!(state.obligations.len(), 1);
    assert_eq!(state.done[&id(5)].outcome, Outcome::Completed);

    state.apply_record(time(7), 9, &Record::Sent { obligation: id(5), mail: id(6) });
    assert!(state.is_at_rest());
    assert_eq!((state.last_ordinal, state.last_activity, state.turns), (9, time(7), 1));

    // A further task that nobody took in.
    state.apply_record(time(8), 10, &accepted(mail(8, 2, MailKind::Followup)));
    assert_eq!(state.status(), Status::Pending);
}

#[test]
fn a_lost_task_is_cut_off_until_another_goes_on_with_it() {
    let mut records = vec![
        accepted(mail(5, 2, MailKind::Spawn)),
        accepted(mail(6, 2, MailKind::Followup)),
        turn(7),
        delivers(&[5, 6]),
        turn_end(7, Outcome::Lost),
        task_done(5, agent(2), Outcome::Lost),
        task_done(6, agent(2), Outcome::Completed),
    ];
    let state = fold(&records);
    assert_eq!(state.cut_off, [mail(5, 2, MailKind::Spawn)]);
    assert_eq!(state.first_task.as_deref(), Some("mail 5\nwith two lines"));
    let again = Mail { id: id(8), continues: Some(id(5)), ..mail(8, 2, MailKind::Followup) };
    records.push(accepted(again));
    let state = fold(&records);
    assert!(state.cut_off.is_empty());
    assert_eq!(state.status(), Status::Pending);
}

#[test]
fn a_client_is_owed_nothing_but_can_ask() {
    let client = Party::Client { client: id(5) };
    let state = fold(&[
        accepted(mail(5, 0, MailKind::Input)),
        turn(7),
        delivers(&[5]),
        turn_end(7, Outcome::Errored),
        task_done(5, client, Outcome::Errored),
    ]);
    assert!(state.obligations.is_empty());
    assert_eq!(state.done[&id(5)].outcome, Outcome::Errored);
    assert_eq!(state.status(), Status::Errored);
}

#[test]
fn accepting_twice_is_accepting_once() {
    let twice = [accepted(mail(5, 2, MailKind::Message)), accepted(mail(5, 2, MailKind::Message))];
    assert_eq!(fold(&twice).unread(), 1);
    let late = [twice[0].clone(), delivers(&[5]), twice[1].clone()];
    assert_eq!(fold(&late).unread(), 0);
    assert!(fold(&late).known.contains(&id(5)));
}

#[test]
fn sequences_are_kept_by_sender() {
    let state = fold(&[
        accepted(mail(5, 2, MailKind::Message)),
        accepted(mail(4, 2, MailKind::Message)),
        accepted(mail(9, 0, MailKind::Input)),
    ]);
    assert_eq!(state.next_sequence(&agent(2)), 6);
    assert_eq!(state.next_sequence(&agent(3)), 1);
    assert_eq!(state.next_sequence(&Party::Client { client: id(77) }), 10);
}

#[test]
fn outputs_find_their_calls() {
    // The same provider id twice: the effect decides.
    let open = |records: &[Record]| fold(records).open_calls.iter().map(|open| open.ordinal).collect::<Vec<_>>();
    let two = [call("c", Some(1)), call("c", Some(2))];
    assert_eq!(open(&two), [2, 3]);
    assert_eq!(open(&[&two[..], &[output("c", Some(2))]].concat()), [2]);
    assert_eq!(open(&[&two[..], &[output("other", Some(1))]].concat()), [3]);
    // Without one the oldest is answered, and a stranger answers nothing.
    assert_eq!(open(&[call("c", None), call("c", None), output("c", None), output("d", None)]), [3]);
}

#[test]
fn copied_items_are_only_text() {
    let state = fold(&[accepted(mail(5, 2, MailKind::Spawn)), copied(call("c", Some(1))), copied(delivers(&[5]))]);
    assert_eq!((state.transcript.len(), state.open_calls.len(), state.unread()), (2, 0, 1));
    assert!(state.tasks_taken.is_empty());
}

#[test]
fn closing_is_final_and_returns_what_was_not_delivered() {
    let back =
        Record::MailReturned(MailReturned { ids: vec![id(5), id(6), id(7), id(8)], reason: "closed".to_owned() });
    let state = fold(&[
        accepted(mail(5, 2, MailKind::Message)),
        accepted(mail(6, 3, MailKind::Returned)),
        accepted(mail(7, 0, MailKind::Input)),
        accepted(mail(8, 3, MailKind::Message)),
        accepted(mail(9, 2, MailKind::Followup)),
        delivers(&[8]),
        closed(),
        opened(),
        back,
        task_done(9, agent(2), Outcome::Closed),
    ]);
    let edge = Edge::Closed { reason: "enough".to_owned(), by: "/root".to_owned(), at: time(3) };
    assert_eq!(state.edge, edge);
    // A return is never returned, a client waits for nothing, and what was delivered stays.
    let owed: Vec<MailId> = state.obligations.iter().map(Obligation::id).collect();
    assert_eq!(owed, [id(5), id(9)]);
    assert_eq!((state.unread(), state.status()), (0, Status::Interrupted));
}

#[test]
fn processes_are_kept_until_they_end() {
    let process = |n: u64, event| Record::Process(ProcessRecord { token: id::<Token>(n), event });
    let starting = |n| process(n, ProcessEvent::Starting { command: "make".to_owned(), boot_id: "b".to_owned() });
    let state = fold(&[
        starting(1),
        process(1, ProcessEvent::Started { pid: 10, start_time: 1 }),
        starting(2),
        process(1, ProcessEvent::Ended { exit_code: None }),
    ]);
    assert_eq!(state.processes.len(), 1);
    assert_eq!(state.processes[0].token, id::<Token>(2));
}

#[test]
fn a_request_that_was_never_settled_counts_as_its_estimate() {
    let tokens = |output| Usage { output, ..Usage::default() };
    let spend = |stage, output, total| {
        Record::Usage(UsageRecord {
            stage,
            turn_id: id(7),
            usage: tokens(output),
            cost_usd: Some(0.5),
            total: tokens(total),
            estimated: false,
        })
    };
    let mut records = vec![spend(UsageStage::Reserved, 100, 0)];
    let state = fold(&records);
    assert_eq!((state.usage, state.reserved(), state.spent()), (tokens(0), tokens(100), tokens(100)));
    // The second attempt is settled; the first stays as it was estimated.
    records.extend([spend(UsageStage::Reserved, 100, 0), spend(UsageStage::Settled, 30, 30)]);
    let state = fold(&records);
    assert_eq!((state.usage, state.reserved(), state.spent()), (tokens(30), tokens(100), tokens(130)));
    assert!((state.spent_usd() - 1.0).abs() < 1e-9);
    // A settled line that could not be read is in the totals of the next.
    records.push(spend(UsageStage::Settled, 30, 200));
    assert_eq!(fold(&records).usage, tokens(200));
    // Nobody counted the next: it costs what was reserved, and is kept apart from what servers count.
    let Record::Usage(guess) = spend(UsageStage::Settled, 50, 200) else { unreachable!() };
    let window = fold(&records).window_used;
    records.push(Record::Usage(UsageRecord { estimated: true, ..guess }));
    let state = fold(&records);
    assert_eq!((state.usage, state.estimated, state.window_used), (tokens(200), tokens(50), window));
    assert_eq!((state.reserved(), state.spent()), (tokens(0), tokens(250)));
}

#[test]
fn warnings_are_bounded() {
    let warn = |n: usize| Record::Event(EventRecord::Warning { message: n.to_string() });
    let state = fold(&(0..MAX_WARNINGS + 2).map(warn).collect::<Vec<_>>());
    assert_eq!((state.warnings.len(), state.warnings[0].as_str()), (MAX_WARNINGS, "2"));
}

pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let kind = prop_oneof![
        Just(MailKind::Spawn),
        Just(MailKind::Message),
        Just(MailKind::Followup),
        Just(MailKind::Result),
        Just(MailKind::Returned),
        Just(MailKind::Input),
    ];
    let effect = || prop::option::of(0_u64..4);
    prop_oneof![
        (0_u64..12, 0_u64..4, kind).prop_map(|(n, from, kind)| accepted(mail(n, from, kind))),
        prop::collection::vec(0_u64..12, 0..3).prop_map(|ids| delivers(&ids)),
        (0_u64..12, 1_u64..4).prop_map(|(task, giver)| task_done(task, agent(giver), Outcome::Completed)),
        (0_u64..12).prop_map(|n| Record::Sent { obligation: id(n), mail: id(n + 100) }),
        prop::collection::vec(0_u64..12, 1..3).prop_map(|ids| Record::MailReturned(MailReturned {
            ids: ids.into_iter().map(id).collect(),
            reason: "r".to_owned()
        })),
        (0_u64..3).prop_map(turn),
        (0_u64..3).prop_map(|n| turn_end(n, Outcome::Interrupted)),
        prop_oneof![Just(opened()), Just(closed())],
        (".{0,20}", effect()).prop_map(|(id, effect)| call(&id, effect)),
        (".{0,20}", effect()).prop_map(|(id, effect)| output(&id, effect)),
        ".{0,40}".prop_map(|text| words(&text)),
        "\\PC{0,40}".prop_map(|text| copied(item(Item::message(Role::User, &text)))),
        (0_u64..4, 0_u64..1000, prop::option::of(0.0..10.0)).prop_map(|(n, output, cost_usd)| Record::Usage(
            UsageRecord {
                stage: if n == 0 || n == 3 { UsageStage::Settled } else { UsageStage::Reserved },
                turn_id: id(n),
                usage: Usage { output, ..Usage::default() },
                cost_usd,
                total: Usage::default(),
                estimated: n == 3,
            }
        )),
        (0_u64..3, any::<bool>()).prop_map(|(n, ended)| Record::Process(ProcessRecord {
            token: id::<Token>(n),
            event: if ended {
                ProcessEvent::Ended { exit_code: Some(0) }
            } else {
                ProcessEvent::Started { pid: 3, start_time: n }
            },
        })),
        ".{0,40}".prop_map(|message| Record::Event(EventRecord::Warning { message })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is written, in whatever groups, is the same live, read back, and after opening again.
    #[test]
    fn what_is_written_is_read_back(writes in prop::collection::vec(prop::collection::vec(any_record(), 0..5), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let home = Home::new();
        let writer = runtime.block_on(home.store.create(meta(1), birth())).unwrap();
        let mut live = home.store.load(id(1)).unwrap().state;
        for write in &writes {
            let appended = writer.append(write).unwrap();
            for (record, ordinal) in write.iter().zip(appended.first..) {
                live.apply_record(appended.at, ordinal, record);
            }
        }
        let loaded = home.store.load(id(1)).unwrap();
        prop_assert_eq!(&loaded.state, &live);
        prop_assert_eq!((loaded.skipped, loaded.unknown, loaded.torn), (0, 0, 0));
        drop(writer);
        let opened = home.again().open(id(1)).unwrap();
        prop_assert_eq!(&opened.loaded.state, &live);
        prop_assert_eq!(opened.writer.append(&[turn(1)]).unwrap().first, live.last_ordinal + 1);
    }

    #[test]
    fn every_record_survives_its_line(record in any_record()) {
        let mut once = Vec::new();
        encode(&mut once, time(0), 1, None, &record).unwrap();
        prop_assert_eq!(once.iter().position(|b| *b == b'\n'), Some(once.len() - 1));
        let mut twice = Vec::new();
        encode(&mut twice, time(0), 1, None, &decode(&once).unwrap().record).unwrap();
        prop_assert_eq!(once, twice);
    }
}
