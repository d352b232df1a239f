//! The mailbox beside a plain list that is searched whole for every question: all operations, closing and less than
//! whole restores included, give the same answers.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Send {
        kind: MailKind,
        from: u32,
        wakes: bool,
        large: bool,
    },
    /// Mail that was sent before, under its old sequence or without one.
    Again {
        which: usize,
        numbered: bool,
    },
    Begin,
    Drain,
    PutBack,
    Final,
    GoOn(u8),
    Interrupt,
    End,
    Shut,
    Clear,
    /// Restored with what waits and a part of the ids, which it learns the rest of later.
    Restore,
    Learn,
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        Just(MailKind::Spawn),
        Just(MailKind::Message),
        Just(MailKind::Followup),
        Just(MailKind::Result),
        Just(MailKind::Returned),
        Just(MailKind::Input),
        Just(MailKind::Input),
    ];
    prop_oneof![
        8 => (kind, 2..5u32, any::<bool>(), proptest::bool::weighted(0.2))
            .prop_map(|(kind, from, wakes, large)| Op::Send { kind, from, wakes, large }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(which, numbered)| Op::Again { which, numbered }),
        3 => Just(Op::Begin),
        5 => Just(Op::Drain),
        2 => Just(Op::PutBack),
        3 => Just(Op::Final),
        2 => (0..3u8).prop_map(Op::GoOn),
        1 => Just(Op::Interrupt),
        2 => Just(Op::End),
        1 => proptest::bool::weighted(0.2).prop_map(|shut| if shut { Op::Shut } else { Op::End }),
        1 => proptest::bool::weighted(0.3).prop_map(|clear| if clear { Op::Clear } else { Op::Drain }),
        1 => Just(Op::Restore),
        1 => Just(Op::Learn),
    ]
}

/// Where a mail is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Waits,
    InContext,
    /// Sent away by a close.
    Gone,
}

/// The rules as they are told. Nothing is counted or indexed.
#[derive(Default)]
struct Plain {
    mails: Vec<(Mail, At)>,
    /// Mail that the mailbox cannot know of: it was restored from less and has not learnt it.
    unlearnt: Vec<MailId>,
    running: bool,
    over: bool,
    holds: bool,
    stopped: bool,
    shut: bool,
}

impl Plain {
    fn waiting(&self) -> Vec<Mail> {
        self.mails.iter().filter(|(_, at)| *at == At::Waits).map(|(mail, _)| mail.clone()).collect()
    }

    /// People first, then in the order of arrival, up to the bound; one that is over it comes alone.
    fn batch(&self) -> Vec<Mail> {
        let (people, others): (Vec<Mail>, Vec<Mail>) =
            self.waiting().into_iter().partition(|mail| mail.kind == MailKind::Input);
        let mut batch: Vec<Mail> = Vec::new();
        for mail in people.into_iter().chain(others) {
            let size: usize = batch.iter().map(|mail| mail.body.len()).sum();
            if !batch.is_empty() && size + mail.body.len() > MAX_BATCH_BYTES {
                break;
            }
            batch.push(mail);
        }
        batch
    }

    fn put(&mut self, mails: &[Mail], to: At) {
        for (mail, at) in &mut self.mails {
            if mails.contains(mail) {
                *at = to;
            }
        }
    }

    fn highest(&self, from: &Party) -> u64 {
        let same = |mail: &&(Mail, At)| Sender::from(&mail.0.from) == Sender::from(from);
        self.mails.iter().filter(same).map(|(mail, _)| mail.sequence).max().unwrap_or(0)
    }

    fn may_enter(&self) -> bool {
        self.running && !self.over && !self.stopped
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn like_a_plain_list(ops in proptest::collection::vec(op(), 1..80)) {
        let mut mailbox = Mailbox::default();
        let mut plain = Plain::default();
        let mut last: Vec<Mail> = Vec::new();
        for op in ops {
            match op {
                Op::Send { kind, from, wakes, large } => {
                    let from = if kind == MailKind::Input { client(from as usize) } else { agent(from) };
                    let body = "x".repeat(if large { crate::MAX_BODY } else { 3 });
                    let mut mail = Mail { trigger_turn: wakes, body, ..mail(plain.mails.len(), kind, from) };
                    let offer = mailbox.offer(&mail);
                    if plain.shut {
                        let closed = matches!(offer, Offer::Full(Refused::Closed { .. }));
                        prop_assert!(closed);
                        continue;
                    }
                    prop_assert_eq!(offer, Offer::New);
                    mail.sequence = mailbox.next_sequence(&mail.from);
                    prop_assert_eq!(mail.sequence, plain.highest(&mail.from) + 1);
                    mailbox.accept(mail.clone());
                    if kind == MailKind::Input && wakes {
                        plain.over = false;
                    }
                    plain.mails.push((mail, At::Waits));
                }
                Op::Again { which, numbered } => {
                    let Some((mail, _)) = plain.mails.get(which % plain.mails.len().max(1)).cloned() else { continue };
                    let mail = Mail { sequence: if numbered { mail.sequence } else { 0 }, ..mail };
                    // By its sequence it is known even to a mailbox that was restored from less.
                    if numbered || !plain.unlearnt.contains(&mail.id) {
                        prop_assert_eq!(mailbox.offer(&mail), Offer::Known);
                    }
                    if !plain.unlearnt.contains(&mail.id) {
                        mailbox.accept(mail);
                    }
                }
                Op::Begin => {
                    last = mailbox.begin_turn();
                    prop_assert_eq!(&last, &plain.batch());
                    plain.put(&last, At::InContext);
                    (plain.running, plain.over, plain.stopped) = (true, false, false);
                    plain.holds = !last.is_empty();
                }
                Op::Drain => {
                    last = mailbox.drain();
                    let expected = if plain.may_enter() && !plain.holds { plain.batch() } else { Vec::new() };
                    plain.holds = false;
                    prop_assert_eq!(&last, &expected);
                    plain.put(&last, At::InContext);
                }
                Op::PutBack => {
                    let mails = std::mem::take(&mut last);
                    mailbox.restore_undelivered(mails.clone());
                    plain.put(&mails, At::Waits);
                }
                Op::Final => {
                    mailbox.final_text();
                    // The first reply has come.
                    plain.holds = false;
                    plain.over |= !plain.waiting().iter().any(|mail| mail.trigger_turn);
                }
                Op::GoOn(how) => {
                    match how {
                        0 => mailbox.tool_called(),
                        1 => mailbox.follow_up(),
                        _ => mailbox.stop_hook(),
                    }
                    (plain.over, plain.holds) = (false, false);
                }
                Op::Interrupt => {
                    mailbox.interrupt();
                    plain.stopped |= plain.running;
                }
                Op::End => {
                    mailbox.end_turn();
                    plain.running = false;
                    last.clear();
                }
                Op::Shut => {
                    mailbox.shut();
                    plain.shut = true;
                }
                Op::Clear => {
                    let gone = mailbox.clear();
                    prop_assert_eq!(&gone, &plain.waiting());
                    plain.put(&gone, At::Gone);
                    last.clear();
                }
                Op::Restore => {
                    let settled = plain.mails.iter().filter(|(_, at)| *at != At::Waits).map(|(mail, _)| mail.id);
                    plain.unlearnt = settled.enumerate().filter(|(n, _)| n % 2 == 0).map(|(_, id)| id).collect();
                    let known = plain.mails.iter().map(|(mail, _)| mail.id).filter(|id| !plain.unlearnt.contains(id));
                    mailbox = Mailbox::restore(plain.waiting(), known, mailbox.sequences());
                    (plain.running, plain.shut) = (false, false);
                    last.clear();
                }
                Op::Learn => {
                    mailbox.learn(plain.mails.iter().map(|(mail, _)| mail.id));
                    plain.unlearnt.clear();
                }
            }
            let waiting = plain.waiting();
            prop_assert_eq!(mailbox.pending().cloned().collect::<Vec<_>>(), waiting.clone());
            let phase = plain.running.then_some(if plain.over { Phase::NextTurn } else { Phase::CurrentTurn });
            prop_assert_eq!(mailbox.phase(), phase);
            prop_assert_eq!(mailbox.has_pending(), plain.may_enter() && !waiting.is_empty());
            prop_assert_eq!(mailbox.wakes(), !plain.running && waiting.iter().any(|mail| mail.trigger_turn));
            for (mail, _) in &plain.mails {
                prop_assert_eq!(mailbox.knows(mail.id), !plain.unlearnt.contains(&mail.id));
            }
        }
    }
}
