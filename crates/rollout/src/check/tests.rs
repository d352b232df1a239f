use expect_test::{Expect, expect};
use protocol::{Item, MailKind, Outcome, Party};

use super::check as verify;
use crate::fixture::{accepted, address, delivers, id, item, mail, meta, task_done, time, turn_end, words};
use crate::{ItemRecord, Line, MailReturned, Record, State};

fn check(records: Vec<Record>, expect: Expect) {
    let lines: Vec<Line> = std::iter::once(Record::SessionMeta(Box::new(meta(1))))
        .chain(records)
        .zip(1..)
        .map(|(record, ordinal)| Line { timestamp: time(0), ordinal, part: None, record })
        .collect();
    let found: Vec<String> = verify(&lines).iter().map(ToString::to_string).collect();
    expect.assert_eq(&found.join("\n"));
}

fn call(call_id: &str) -> Record {
    item(Item::function_call(call_id, "t", "{}"))
}

fn output(call_id: &str) -> Record {
    item(Item::output(&Item::function_call(call_id, "t", "{}").call().unwrap(), "ok"))
}

#[test]
fn closed_transcript() {
    check(vec![call("a"), call("b"), output("a"), output("b"), words("x")], expect![""]);
    // Servers repeat ids; a reply may end in a call that nothing follows.
    check(vec![call("a"), call("a"), output("a"), output("a"), words("x"), call("a")], expect![""]);
    check(
        vec![call("a"), call("b"), output("a"), words("x")],
        expect!["line 5: closed_transcript: a sample began while calls had no output: b"],
    );
    check(
        vec![call("a"), delivers(&[]), words("x")],
        expect!["line 4: closed_transcript: a sample began while calls had no output: a"],
    );
    check(
        vec![call("a"), call("b"), output("b"), output("a")],
        expect!["line 4: closed_transcript: the output of `b` is out of order"],
    );
    check(
        vec![call("a"), output("a"), output("a")],
        expect!["line 4: closed_transcript: the output of `a` answers no open call"],
    );
}

#[test]
fn copied_lines_are_ignored() {
    let copied = |record| match record {
        Record::Item(item) => Record::Item(ItemRecord { copied_from: Some(id(9)), ..item }),
        other => other,
    };
    check(vec![copied(call("a")), copied(words("x")), copied(output("b"))], expect![""]);
}

#[test]
fn mail_enters_once() {
    let sent = || accepted(mail(5, 2, MailKind::Message));
    let back = || Record::MailReturned(MailReturned { ids: vec![id(5)], reason: "closed".to_owned() });
    check(vec![sent(), delivers(&[5])], expect![""]);
    check(vec![sent(), back()], expect![""]);
    check(
        vec![sent(), delivers(&[5]), delivers(&[5])],
        expect!["line 4: exactly_once: mail 01939d5e-0000-7000-8000-000000000005 was delivered already at 3"],
    );
    check(
        vec![sent(), back(), delivers(&[5])],
        expect!["line 4: exactly_once: mail 01939d5e-0000-7000-8000-000000000005 was delivered although it went back"],
    );
    check(
        vec![sent(), delivers(&[5]), back()],
        expect!["line 4: exactly_once: mail 01939d5e-0000-7000-8000-000000000005 went back although it was delivered"],
    );
    check(
        vec![delivers(&[5])],
        expect!["line 2: exactly_once: mail 01939d5e-0000-7000-8000-000000000005 was delivered but never accepted"],
    );
}

#[test]
fn one_end_a_task() {
    let done = || task_done(5, Party::Agent(address(2)), Outcome::Completed);
    check(vec![turn_end(2, Outcome::Completed), done()], expect![""]);
    check(
        vec![done(), done()],
        expect!["line 3: one_end: task 01939d5e-0000-7000-8000-000000000005 ended already at 2"],
    );
}

#[test]
fn ordinals_have_no_gaps() {
    let lines: Vec<Line> =
        [1, 2, 4, 5, 5].map(|ordinal| Line { timestamp: time(0), ordinal, part: None, record: words("x") }).into();
    let found: Vec<String> = verify(&lines).iter().map(ToString::to_string).collect();
    expect![[r#"
        line 4: ordinals: expected ordinal 3
        line 5: ordinals: expected ordinal 6"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn a_checkpoint_is_what_the_lines_before_it_come_to() {
    let before = [accepted(mail(5, 2, MailKind::Message)), delivers(&[5]), accepted(mail(6, 2, MailKind::Spawn))];
    let mut state = State::new(meta(1));
    for (record, ordinal) in before.iter().zip(2..) {
        state.apply_record(time(0), ordinal, record);
    }
    let compaction = state.compaction(String::new(), Vec::new());
    let twice = [&before[..], &compaction, &[accepted(mail(7, 2, MailKind::Message))], &compaction].concat();
    check([&before[..], &compaction].concat(), expect![""]);
    check(twice, expect!["line 9: checkpoint: it does not say what the lines before it come to"]);
    check(
        [&before[1..], &compaction].concat(),
        expect![[r#"
        line 2: exactly_once: mail 01939d5e-0000-7000-8000-000000000005 was delivered but never accepted
        line 5: checkpoint: it does not say what the lines before it come to"#]],
    );
}
