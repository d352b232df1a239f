use expect_test::{Expect, expect};
use protocol::{Address, AgentPath, EffectId, Item, Mail, MailKind, Outcome, Party, TaskId, ThreadId};

use super::{Kin, Member};
use crate::fixture::{accepted, closed, end, id, mail, meta, time, words};
use crate::{ItemRecord, Line, Record, SessionMeta, TaskDone};

const ROOT: u64 = 1;

fn effect(n: u64) -> EffectId {
    id(n)
}

/// The worker, which the first call of the root spawned.
fn worker() -> Address {
    Address { path: AgentPath::root().resolve("worker").unwrap(), thread: effect(1).thread() }
}

fn root() -> Address {
    Address { path: AgentPath::root(), thread: id(ROOT) }
}

fn call(n: u64, name: &str) -> Record {
    record(Item::function_call("c", name, "{}"), n)
}

fn output(n: u64, name: &str, text: &str) -> Record {
    record(Item::output(&Item::function_call("c", name, "{}").call().unwrap(), text), n)
}

fn record(item: Item, n: u64) -> Record {
    Record::Item(ItemRecord { item, effect: Some(effect(n)), mail: Vec::new(), turn: None, copied_from: None })
}

fn letter(id: protocol::MailId, kind: MailKind, from: Address, to: Address, answers: Option<TaskId>) -> Record {
    accepted(Mail { id, from: Party::Agent(from), to, answers, ..mail(9, 0, kind) })
}

/// The root spawns a worker, writes to it, and has its result. Each line has a name.
fn tree() -> [(ThreadId, Vec<(&'static str, Record)>); 2] {
    let task = effect(1).mail();
    let below =
        SessionMeta { id: worker().thread, agent_path: worker().path, parent_thread_id: Some(id(ROOT)), ..meta(ROOT) };
    let done =
        TaskDone { task, giver: Party::Agent(root()), end: end(Outcome::Completed), continues: None, goes_on: false };
    let said = format!(r#"{{"accepted":true,"mail":"{}","to":"/root/worker"}}"#, effect(2).mail());
    let of_root = vec![
        ("root", Record::SessionMeta(Box::new(meta(ROOT)))),
        ("spawn", call(1, "spawn_agent")),
        ("spawned", output(1, "spawn_agent", r#"{"task_name":"/root/worker","nickname":null}"#)),
        ("send", call(2, "send_message")),
        ("sent", output(2, "send_message", &said)),
        ("refused", output(3, "spawn_agent", "not done: the process ended first")),
        ("result", letter(task.result(), MailKind::Result, worker(), root(), Some(task))),
        ("told", letter(task.not_begun(), MailKind::Message, worker(), root(), None)),
        ("words", words("done")),
    ];
    let of_worker = vec![
        ("worker", Record::SessionMeta(Box::new(below))),
        ("task", letter(task, MailKind::Spawn, root(), worker(), None)),
        ("message", letter(effect(2).mail(), MailKind::Message, root(), worker(), None)),
        ("done", Record::TaskDone(done)),
        ("paid", Record::Sent { obligation: task, mail: task.result() }),
    ];
    [(id(ROOT), of_root), (worker().thread, of_worker)]
}

/// Verifies the tree without these lines, and without files whose first line is among them.
#[track_caller]
fn check(without: &[&str], more: &[Record], expect: Expect) {
    check_beside(&[], without, more, expect);
}

/// As [`check`], with files that cannot be read.
#[track_caller]
fn check_beside(unread: &[ThreadId], without: &[&str], more: &[Record], expect: Expect) {
    let mut kin = Kin::default();
    for thread in unread {
        kin.unread(*thread);
    }
    for (_, lines) in tree() {
        let mut member = Member::default();
        let more = more.iter().filter(|_| lines[0].0 == "root").map(|record| ("more", record.clone()));
        if without.contains(&lines[0].0) {
            continue;
        }
        for ((name, record), ordinal) in lines.iter().cloned().chain(more).zip(1..) {
            if !without.contains(&name) {
                member.line(&Line { timestamp: time(0), ordinal, part: None, record });
            }
        }
        kin.add(member);
    }
    let tree = kin.trees().next().unwrap();
    let name = |thread: ThreadId| if thread == root().thread { "root" } else { "worker" };
    let found = kin.findings(tree).into_iter().map(|(file, finding)| format!("{}: {finding}", name(file)));
    expect.assert_eq(&found.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_whole_tree_and_whatever_a_crash_leaves_of_it() {
    check(&[], &[], expect![""]);
    // What is written last in each pair may be missing.
    check(&["paid"], &[], expect![""]);
    check(&["result", "paid", "told"], &[], expect![""]);
    check(&["result", "paid", "told", "done"], &[], expect![""]);
    check(&["spawned", "sent", "result", "told", "worker"], &[], expect![""]);
}

#[test]
fn a_file_that_is_missing_is_told_of_once() {
    check(
        &["worker"],
        &[],
        expect![[r#"
            root: line 3: kept: it names /root/worker, whose rollout is missing: put back the file whose name ends in 0a979f9f-485c-50b4-9a7b-e1143d7b97c9.jsonl
            root: line 5: kept: mail 3810464d-f7cb-5ace-b479-c2a521b06add was accepted, and no rollout of the tree holds it"#]],
    );
    check(
        &["root"],
        &[],
        expect![[r#"
        worker: line 2: kept: it names /root, whose rollout is missing: put back the file whose name ends in 01939d5e-0000-7000-8000-000000000001.jsonl
        worker: line 5: kept: mail 42e076bb-b66c-5809-9001-8b97fae4dab0 was accepted, and no rollout of the tree holds it"#]],
    );
}

#[test]
fn what_one_file_lost_another_one_tells() {
    check(
        &["message"],
        &[],
        expect![
            "root: line 5: kept: mail 3810464d-f7cb-5ace-b479-c2a521b06add was accepted, and no rollout of the tree holds it"
        ],
    );
    check(
        &["done"],
        &[],
        expect![
            "root: line 7: kept: /root/worker answered the task c9d0ff7b-230b-5a34-a4e1-2773b87e27b9, and its rollout does not say that it ended"
        ],
    );
    check(
        &["result"],
        &[],
        expect![
            "worker: line 5: kept: mail 42e076bb-b66c-5809-9001-8b97fae4dab0 was accepted, and no rollout of the tree holds it"
        ],
    );
    check(
        &["spawn", "send"],
        &[],
        expect![[r#"
        worker: line 2: kept: mail c9d0ff7b-230b-5a34-a4e1-2773b87e27b9 came from /root, whose rollout has no call that sent it
        worker: line 3: kept: mail 3810464d-f7cb-5ace-b479-c2a521b06add came from /root, whose rollout has no call that sent it"#]],
    );
    check(
        &["task"],
        &[],
        expect![
            "root: line 8: kept: mail 0486181f-535e-5134-b473-7fc441a4890c came from /root/worker, whose rollout has no call that sent it"
        ],
    );
    // Once the root is closed nobody is left to read what is owed.
    check(&["result"], &[closed()], expect![""]);
}

/// What stands in a file of the tree that cannot be read is not known; any other file is nothing to it.
#[test]
fn a_file_that_cannot_be_read_hides_what_may_stand_in_it() {
    check_beside(&[worker().thread], &["worker"], &[], expect![""]);
    check_beside(
        &[id(77)],
        &["done"],
        &[],
        expect![
            "root: line 7: kept: /root/worker answered the task c9d0ff7b-230b-5a34-a4e1-2773b87e27b9, and its rollout does not say that it ended"
        ],
    );
}
