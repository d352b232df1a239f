//! Mail on its way through a tree in which agents are closed one after another: it arrives, under one id.

use proptest::prelude::*;
use protocol::Outcome;

use super::*;

/// A line of agents, each the child of the one before, and who of them is closed.
struct Line {
    closed: Vec<bool>,
}

impl Line {
    fn agent(n: usize) -> Address {
        let names: Vec<String> = (1..=n).map(|n| format!("/a{n}")).collect();
        address(&format!("/root{}", names.concat()))
    }

    fn is_reachable(&self, n: usize) -> bool {
        !self.closed[..=n].contains(&true)
    }

    /// The nearest reachable agent at or above `n`.
    fn nearest(&self, n: usize) -> Option<usize> {
        (0..=n).rev().find(|n| self.is_reachable(*n))
    }

    fn place(to: &Address) -> usize {
        to.path.depth()
    }
}

fn result_for(giver: usize) -> Mail {
    let from = Party::Agent(Line::agent(giver + 1));
    Mail { to: Line::agent(giver), outcome: Some(Outcome::Completed), ..mail(MailKind::Result, from) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// However many agents are closed before, between and after its moves, a result ends at the nearest agent above
    /// its giver that can be reached, or nowhere when nobody can; and whoever drives the debt again later finds it known
    /// there, or the result has moved on once and for all under the same id.
    #[test]
    fn a_result_climbs_to_whoever_is_left(
        depth in 2..8usize,
        giver in any::<proptest::sample::Index>(),
        closings in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let giver = giver.index(depth - 1);
        let mut line = Line { closed: vec![false; depth] };
        let mut closings = closings.into_iter();
        if let Some(first) = closings.next() {
            line.closed[first.index(depth)] = true;
        }
        let party = Party::Agent(Line::agent(giver));
        let near = |line: &Line| line.nearest(giver).map(Line::agent);
        let (mut at, id) = match route_result(task(), &party, near(&line).as_ref()) {
            Route::Deliver { to, id } => {
                prop_assert!(line.is_reachable(giver));
                prop_assert_eq!(id, task().result());
                (to, id)
            }
            Route::Forward { to, id } => {
                prop_assert!(!line.is_reachable(giver));
                prop_assert_eq!(id, task().result().forwarded());
                (to, id)
            }
            Route::Drop(Lost::TreeClosed) => {
                prop_assert_eq!(line.nearest(giver), None);
                return Ok(());
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let mut lies = Mail { id, to: at.clone(), ..result_for(giver) };
        for closing in closings {
            line.closed[closing.index(depth)] = true;
            let here = Line::place(&at);
            if line.is_reachable(here) {
                continue;
            }
            let above = line.nearest(here).map(Line::agent);
            match route_undelivered(&lies, above.as_ref(), None) {
                Route::Forward { to, id } => {
                    prop_assert!(Line::place(&to) < here && line.is_reachable(Line::place(&to)));
                    prop_assert_eq!(id, task().result().forwarded());
                    lies = crate::forwarded(&lies, to.clone());
                    prop_assert_eq!(lies.id, id);
                    prop_assert_eq!(lies.answers, Some(task()));
                    at = to;
                }
                Route::Drop(Lost::TreeClosed) => {
                    prop_assert_eq!(above, None);
                    return Ok(());
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        }
        // Driven once more: the same place, and the same id unless the giver still has it in its own name.
        match route_result(task(), &party, near(&line).as_ref()) {
            Route::Deliver { to, id } | Route::Forward { to, id } => {
                prop_assert_eq!((&to, id), (&at, lies.id));
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    /// What a closed agent never took in goes one way each: tasks end, results climb, words return once.
    #[test]
    fn nothing_goes_back_and_forth(kind in 0..6usize, by_client in any::<bool>(), above in any::<bool>(), near in any::<bool>()) {
        let kinds = [
            MailKind::Spawn, MailKind::Message, MailKind::Followup, MailKind::Result, MailKind::Returned, MailKind::Input,
        ];
        let kind = kinds[kind];
        let from = if by_client { client() } else { Party::Agent(address("/root/c")) };
        let first = mail(kind, from);
        let (above, near) = (above.then(|| address("/root/a")), near.then(|| address("/root/c")));
        let route = route_undelivered(&first, above.as_ref(), near.as_ref());
        prop_assert_eq!(matches!(route, Route::EndTask), kind.is_task());
        if let Route::Return { to, id } = &route {
            prop_assert!(kind == MailKind::Message && !by_client);
            prop_assert_eq!(Some(to), near.as_ref());
            let back = crate::returned(&first, to.clone(), "closed");
            prop_assert_eq!((back.id, back.kind, back.trigger_turn), (*id, MailKind::Returned, false));
            // Its recipient may be closed before it reads that.
            prop_assert_eq!(route_undelivered(&back, above.as_ref(), near.as_ref()), Route::Drop(Lost::Returned));
        }
        if let Route::Forward { to, id } = &route {
            prop_assert_eq!(kind, MailKind::Result);
            prop_assert_eq!(crate::forwarded(&first, to.clone()).id, *id);
        }
        // Doing it again is the same.
        prop_assert_eq!(route_undelivered(&first, above.as_ref(), near.as_ref()), route);
    }
}
