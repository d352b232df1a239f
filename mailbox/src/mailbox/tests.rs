use std::collections::{BTreeMap, HashSet};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use protocol::{Address, AgentPath, RequestId, TreeId};

use super::*;

mod plain;

fn thread(n: u32) -> ThreadId {
    format!("00000000-0000-7000-8000-{n:012}").parse().unwrap()
}

fn id(n: usize) -> MailId {
    format!("11111111-0000-7000-8000-{n:012}").parse().unwrap()
}

fn agent(n: u32) -> Party {
    Party::Agent(Address { path: AgentPath::root(), thread: thread(n) })
}

fn client(n: usize) -> Party {
    let client: RequestId = format!("22222222-0000-7000-8000-{n:012}").parse().unwrap();
    Party::Client { client }
}

/// The mail number `n`, which is also its body. Its sequence is not given yet.
fn mail(n: usize, kind: MailKind, from: Party) -> Mail {
    Mail {
        id: id(n),
        tree: TreeId::from(thread(0)),
        from,
        to: Address { path: "/root/a".parse().unwrap(), thread: thread(1) },
        kind,
        trigger_turn: kind.is_task(),
        sequence: 0,
        body: n.to_string(),
        whole: None,
        answers: None,
        outcome: None,
        continues: None,
        deadline: None,
    }
}

/// Offers, numbers and accepts, as a keeper does under its lock.
fn send(mailbox: &mut Mailbox, mut mail: Mail) -> Offer {
    let offer = mailbox.offer(&mail);
    if offer == Offer::New {
        mail.sequence = mailbox.next_sequence(&mail.from);
        mailbox.accept(mail);
    }
    offer
}

fn bodies(mails: &[Mail]) -> String {
    mails.iter().map(|mail| mail.body.as_str()).collect::<Vec<_>>().join(",")
}

/// Runs a script of one word a step and shows what each step that answers gives: `begin` and `drain` the mail,
/// everything else is seen in the last line. Mail is numbered from 1: `msg`, `result`, `followup`, `steer` (input that
/// wakes), `queue` (input that does not).
fn check(script: &str, expect: Expect) {
    let mut mailbox = Mailbox::default();
    let mut seen = Vec::new();
    let mut n = 0;
    let mut last = Vec::new();
    for word in script.split_whitespace() {
        let mut arrive = |mailbox: &mut Mailbox, kind, from, wakes| {
            n += 1;
            let offer = send(mailbox, Mail { trigger_turn: wakes, ..mail(n, kind, from) });
            assert_eq!(offer, Offer::New);
        };
        match word {
            "msg" => arrive(&mut mailbox, MailKind::Message, agent(2), false),
            "result" => arrive(&mut mailbox, MailKind::Result, agent(3), false),
            "followup" => arrive(&mut mailbox, MailKind::Followup, agent(2), true),
            "steer" => arrive(&mut mailbox, MailKind::Input, client(1), true),
            "queue" => arrive(&mut mailbox, MailKind::Input, client(2), false),
            "begin" | "drain" => {
                last = if word == "begin" { mailbox.begin_turn() } else { mailbox.drain() };
                seen.push(format!("{word}={}", bodies(&last)));
            }
            "putback" => mailbox.restore_undelivered(std::mem::take(&mut last)),
            "final" => mailbox.final_text(),
            "tool" => mailbox.tool_called(),
            "more" => mailbox.follow_up(),
            "hook" => mailbox.stop_hook(),
            "interrupt" => mailbox.interrupt(),
            "end" => mailbox.end_turn(),
            other => panic!("no step {other}"),
        }
    }
    let left: Vec<Mail> = mailbox.pending().cloned().collect();
    seen.push(format!("left={} pending={} wakes={}", bodies(&left), mailbox.has_pending(), mailbox.wakes()));
    expect.assert_eq(&seen.join(" "));
}

#[test]
fn phases() {
    // A turn that began with a task sends that first.
    check("followup begin msg drain", expect!["begin=1 drain= left=2 pending=true wakes=false"]);
    check("followup begin msg drain drain", expect!["begin=1 drain= drain=2 left= pending=false wakes=false"]);
    // A caller that does not ask before the first request loses nothing by it.
    check("followup begin msg tool drain", expect!["begin=1 drain=2 left= pending=false wakes=false"]);
    check("begin msg drain", expect!["begin= drain=1 left= pending=false wakes=false"]);
    // After the final answer mail waits for the next turn, whether it wakes or not.
    check("begin final msg drain", expect!["begin= drain= left=1 pending=false wakes=false"]);
    check("begin final followup drain", expect!["begin= drain= left=1 pending=false wakes=false"]);
    check("begin final followup end", expect!["begin= left=1 pending=false wakes=true"]);
    check("begin final msg end", expect!["begin= left=1 pending=false wakes=false"]);
    // A steer, a call, a further request and a stop hook open the turn again.
    check("begin final msg steer", expect!["begin= left=1,2 pending=true wakes=false"]);
    check("begin final msg steer drain", expect!["begin= drain=2,1 left= pending=false wakes=false"]);
    check("begin final msg tool", expect!["begin= left=1 pending=true wakes=false"]);
    check("begin final msg more", expect!["begin= left=1 pending=true wakes=false"]);
    check("begin final msg hook", expect!["begin= left=1 pending=true wakes=false"]);
    check("begin final msg queue", expect!["begin= left=1,2 pending=false wakes=false"]);
    // What wakes and came before the final answer is still answered in this turn.
    check("begin followup final", expect!["begin= left=1 pending=true wakes=false"]);
    check("begin steer final drain", expect!["begin= drain=1 left= pending=false wakes=false"]);
    check("begin msg result queue final", expect!["begin= left=1,2,3 pending=false wakes=false"]);
    // Drained mail is no longer pending.
    check("begin followup drain final msg", expect!["begin= drain=1 left=2 pending=false wakes=false"]);
}

#[test]
fn order() {
    check("msg result steer msg queue begin", expect!["begin=3,5,1,2,4 left= pending=false wakes=false"]);
    check("begin tool msg steer result drain", expect!["begin= drain=2,1,3 left= pending=false wakes=false"]);
}

#[test]
fn idle() {
    check("msg", expect!["left=1 pending=false wakes=false"]);
    check("msg followup", expect!["left=1,2 pending=false wakes=true"]);
    check("msg drain", expect!["drain= left=1 pending=false wakes=false"]);
    check("followup begin final end", expect!["begin=1 left= pending=false wakes=false"]);
    check("final tool interrupt end followup", expect!["left=1 pending=false wakes=true"]);
}

#[test]
fn interrupted() {
    check("begin msg followup interrupt drain", expect!["begin= drain= left=1,2 pending=false wakes=false"]);
    check("begin msg followup interrupt end", expect!["begin= left=1,2 pending=false wakes=true"]);
    check("begin interrupt steer tool drain end", expect!["begin= drain= left=1 pending=false wakes=true"]);
    check("msg interrupt begin", expect!["begin=1 left= pending=false wakes=false"]);
}

#[test]
fn put_back() {
    check("msg steer msg begin msg putback", expect!["begin=2,1,3 left=1,2,3,4 pending=true wakes=false"]);
    check("followup begin putback end", expect!["begin=1 left=1 pending=false wakes=true"]);
    check("followup begin putback putback end begin", expect!["begin=1 begin=1 left= pending=false wakes=false"]);
}

#[test]
fn known_by_id_and_by_sequence() {
    let mut mailbox = Mailbox::default();
    let from = agent(2);
    assert_eq!(mailbox.next_sequence(&from), 1);
    assert_eq!(send(&mut mailbox, mail(1, MailKind::Message, from.clone())), Offer::New);
    assert_eq!(send(&mut mailbox, mail(1, MailKind::Message, from.clone())), Offer::Known);
    assert_eq!(mailbox.next_sequence(&from), 2);
    let numbered = |n, sequence| Mail { sequence, ..mail(n, MailKind::Message, from.clone()) };
    assert_eq!(mailbox.offer(&numbered(2, 1)), Offer::Known);
    assert_eq!(mailbox.offer(&numbered(2, 2)), Offer::New);
    // Clients share a count, agents do not.
    assert_eq!(send(&mut mailbox, mail(3, MailKind::Input, client(1))), Offer::New);
    assert_eq!(mailbox.next_sequence(&client(2)), 2);
    assert_eq!(mailbox.next_sequence(&agent(4)), 1);
    // It stays known after it was taken in.
    mailbox.begin_turn();
    mailbox.end_turn();
    assert_eq!(mailbox.offer(&mail(1, MailKind::Message, from)), Offer::Known);
    assert_eq!(mailbox.sequences(), [(Sender::Agent(thread(2)), 1), (Sender::Client, 1)]);
}

#[test]
fn restored_from_a_rollout() {
    let pending = vec![
        Mail { sequence: 7, ..mail(5, MailKind::Message, agent(2)) },
        Mail { sequence: 1, ..mail(6, MailKind::Followup, agent(3)) },
    ];
    let mut mailbox =
        Mailbox::restore(pending, [id(4), id(5)], [(Some(thread(2)), 6), (Some(thread(9)), 3), (None, 2)]);
    assert!(mailbox.wakes());
    assert_eq!(mailbox.unread(), Unread { message: 1, followup: 1, ..Unread::default() });
    assert_eq!(mailbox.offer(&mail(4, MailKind::Message, agent(8))), Offer::Known);
    assert_eq!(mailbox.next_sequence(&agent(2)), 8);
    assert_eq!(mailbox.next_sequence(&agent(9)), 4);
    assert_eq!(mailbox.next_sequence(&client(1)), 3);
    // What an earlier owner delivered is not delivered again.
    mailbox.restore_undelivered(vec![mail(4, MailKind::Message, agent(2))]);
    assert_eq!(bodies(&mailbox.begin_turn()), "5,6");
}

#[test]
fn full() {
    let mut mailbox = Mailbox::default();
    for n in 0..MAX_PENDING {
        assert_eq!(send(&mut mailbox, mail(n, MailKind::Message, agent(2))), Offer::New);
    }
    let Offer::Full(refused) = send(&mut mailbox, mail(MAX_PENDING, MailKind::Message, agent(3))) else { panic!() };
    expect!["the mailbox of /root/a is full: 10000 mails wait to be read; give it a task so that it reads them, or send to another agent"]
        .assert_eq(&refused.to_string());
    // A known one is known, and what is owed is taken.
    assert_eq!(send(&mut mailbox, mail(0, MailKind::Message, agent(2))), Offer::Known);
    assert_eq!(send(&mut mailbox, mail(MAX_PENDING + 1, MailKind::Result, agent(3))), Offer::New);
    mailbox.begin_turn();
    assert_eq!(send(&mut mailbox, mail(MAX_PENDING + 2, MailKind::Message, agent(3))), Offer::New);
}

#[test]
fn full_of_bytes() {
    let mut mailbox = Mailbox::default();
    let large = |n| Mail { body: "x".repeat(crate::MAX_BODY), ..mail(n, MailKind::Message, agent(2)) };
    let fits = MAX_PENDING_BYTES / crate::MAX_BODY;
    for n in 0..fits {
        assert_eq!(send(&mut mailbox, large(n)), Offer::New);
    }
    let Offer::Full(refused) = send(&mut mailbox, large(fits)) else { panic!() };
    expect!["the mailbox of /root/a is full: its unread mail would exceed 16 MiB; give it a task so that it reads them, or send to another agent"]
        .assert_eq(&refused.to_string());
    // It empties a batch at a time, whatever has piled up.
    let per_batch = MAX_BATCH_BYTES / crate::MAX_BODY;
    assert_eq!(mailbox.begin_turn().len(), per_batch);
    mailbox.tool_called();
    for _ in 1..fits / per_batch {
        assert!(mailbox.has_pending());
        assert_eq!(mailbox.drain().len(), per_batch);
    }
    assert!(!mailbox.has_pending());
    assert_eq!(send(&mut mailbox, large(fits)), Offer::New);
}

/// A body over the batch comes alone rather than never. Bodies are cut before, but an older file may hold one.
#[test]
fn one_that_is_too_large_for_a_batch() {
    let mut mailbox = Mailbox::default();
    send(&mut mailbox, Mail { body: "x".repeat(MAX_BATCH_BYTES + 1), ..mail(1, MailKind::Message, agent(2)) });
    send(&mut mailbox, mail(2, MailKind::Message, agent(2)));
    assert_eq!(mailbox.begin_turn().len(), 1);
    assert_eq!(bodies(&mailbox.pending().cloned().collect::<Vec<_>>()), "2");
}

#[derive(Clone, Debug)]
enum Step {
    Mail { kind: MailKind, from: u32, wakes: bool, size: usize },
    Again(usize),
    Begin,
    Drain { recorded: bool },
    Final,
    Tool,
    FollowUp,
    StopHook,
    Interrupt,
    End,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        Just(MailKind::Message),
        Just(MailKind::Followup),
        Just(MailKind::Result),
        Just(MailKind::Returned),
        Just(MailKind::Input)
    ];
    let size = prop_oneof![5 => 1..100usize, 1 => Just(crate::MAX_BODY)];
    prop_oneof![
        6 => (kind, 2..5u32, any::<bool>(), size)
            .prop_map(|(kind, from, wakes, size)| Step::Mail { kind, from, wakes, size }),
        1 => any::<usize>().prop_map(Step::Again),
        2 => Just(Step::Begin),
        4 => proptest::bool::weighted(0.8).prop_map(|recorded| Step::Drain { recorded }),
        1 => Just(Step::Final),
        1 => Just(Step::Tool),
        1 => Just(Step::FollowUp),
        1 => Just(Step::StopHook),
        1 => Just(Step::Interrupt),
        2 => Just(Step::End),
        1 => Just(Step::Restart),
    ]
}

/// What a rollout would hold: everything accepted in order, and what entered the context in order.
#[derive(Default)]
struct Rollout {
    accepted: Vec<Mail>,
    delivered: Vec<MailId>,
}

impl Rollout {
    fn pending(&self) -> Vec<Mail> {
        self.accepted.iter().filter(|mail| !self.delivered.contains(&mail.id)).cloned().collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Invariant 5: through any interleaving, restarts included, each accepted mail is delivered once or still
    /// pending, and mail of one sender is delivered in its order.
    #[test]
    fn exactly_once(steps in proptest::collection::vec(step(), 1..120)) {
        let mut mailbox = Mailbox::default();
        let mut rollout = Rollout::default();
        // Phase by the rules as they are told, next to the mailbox's own.
        let mut phase: Option<Phase> = None;
        let mut stopped = false;
        for step in steps {
            match step {
                Step::Mail { kind, from, wakes, size } => {
                    let from = if kind == MailKind::Input { client(from as usize) } else { agent(from) };
                    let n = rollout.accepted.len();
                    let mut mail = Mail { trigger_turn: wakes, body: "x".repeat(size), ..mail(n, kind, from) };
                    prop_assert_eq!(mailbox.offer(&mail), Offer::New);
                    mail.sequence = mailbox.next_sequence(&mail.from);
                    rollout.accepted.push(mail.clone());
                    mailbox.accept(mail);
                    if kind == MailKind::Input && wakes && phase.is_some() {
                        phase = Some(Phase::CurrentTurn);
                    }
                }
                Step::Again(n) => if let Some(mail) = rollout.accepted.get(n % rollout.accepted.len().max(1)) {
                    prop_assert_eq!(mailbox.offer(mail), Offer::Known);
                    mailbox.accept(mail.clone());
                },
                Step::Begin => {
                    let taken = mailbox.begin_turn();
                    prop_assert!(!taken.is_empty() || rollout.pending().is_empty());
                    rollout.delivered.extend(taken.iter().map(|mail| mail.id));
                    (phase, stopped) = (Some(Phase::CurrentTurn), false);
                }
                Step::Drain { recorded } => {
                    let taken = mailbox.drain();
                    prop_assert!(taken.is_empty() || (phase == Some(Phase::CurrentTurn) && !stopped));
                    if recorded {
                        rollout.delivered.extend(taken.iter().map(|mail| mail.id));
                    } else {
                        mailbox.restore_undelivered(taken);
                    }
                }
                Step::Final => {
                    mailbox.final_text();
                    if phase.is_some() && !rollout.pending().iter().any(|mail| mail.trigger_turn) {
                        phase = Some(Phase::NextTurn);
                    }
                }
                Step::Tool | Step::FollowUp | Step::StopHook => {
                    match step {
                        Step::Tool => mailbox.tool_called(),
                        Step::FollowUp => mailbox.follow_up(),
                        _ => mailbox.stop_hook(),
                    }
                    phase = phase.map(|_| Phase::CurrentTurn);
                }
                Step::Interrupt => {
                    mailbox.interrupt();
                    stopped = phase.is_some();
                }
                Step::End => {
                    mailbox.end_turn();
                    (phase, stopped) = (None, false);
                }
                Step::Restart => {
                    let known: Vec<MailId> = rollout.accepted.iter().map(|mail| mail.id).collect();
                    mailbox = Mailbox::restore(rollout.pending(), known, mailbox.sequences());
                    (phase, stopped) = (None, false);
                }
            }
            let pending = rollout.pending();
            prop_assert_eq!(mailbox.phase(), phase);
            prop_assert_eq!(mailbox.pending().cloned().collect::<Vec<_>>(), pending.clone());
            prop_assert_eq!(mailbox.unread().total(), pending.len());
            prop_assert_eq!(mailbox.wakes(), phase.is_none() && pending.iter().any(|mail| mail.trigger_turn));
            prop_assert_eq!(
                mailbox.has_pending(),
                phase == Some(Phase::CurrentTurn) && !stopped && !pending.is_empty()
            );
        }
        // The rest comes out, however large, and then there is nothing.
        mailbox.end_turn();
        let mut taken = mailbox.begin_turn();
        mailbox.tool_called();
        while !taken.is_empty() {
            rollout.delivered.extend(taken.iter().map(|mail| mail.id));
            taken = mailbox.drain();
        }
        let once: HashSet<MailId> = rollout.delivered.iter().copied().collect();
        prop_assert_eq!(once.len(), rollout.delivered.len());
        prop_assert_eq!(once.len(), rollout.accepted.len());
        let mut last: BTreeMap<Sender, u64> = BTreeMap::new();
        for id in &rollout.delivered {
            let mail = rollout.accepted.iter().find(|mail| mail.id == *id).unwrap();
            let before = last.insert((&mail.from).into(), mail.sequence).unwrap_or(0);
            prop_assert!(before < mail.sequence);
        }
    }
}
