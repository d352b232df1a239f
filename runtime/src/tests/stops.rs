//! Interrupts: before the slot, while the model speaks, while tools run.

use protocol::{MailKind, Outcome};
use testkit::Gate;
use tool_api::ToolOutput;

use super::bench::Bench;
use super::double::{Fake, Step, answer, call, lock, say};

#[tokio::test]
async fn in_the_queue_it_gives_up_the_place_and_the_mail_stays() {
    let bench = Bench::new(vec![], vec![]).await;
    let slots = Gate::new();
    *lock(&bench.host.slots) = Some(slots.clone());
    bench.task("wait for it").await;
    assert!(!bench.interrupt().await, "no turn has begun");
    assert!(!*lock(&bench.host.working), "at rest when the interrupt is answered");
    assert_eq!((bench.started(), bench.requests(), bench.pending()), (0, 0, 1));
    slots.open();
    assert!(bench.agent.wake().await);
    bench.rest().await;
    assert_eq!(bench.texts(), ["wait for it", "done"]);
    bench.finish().await;
}

#[tokio::test]
async fn while_the_model_speaks_it_closes_the_turn_and_holds_the_agent() {
    let [sampled, never] = [Gate::new(), Gate::new()];
    let first = vec![say("so far"), Step::Wait(sampled.clone(), never)];
    let bench = Bench::new(vec![first, answer("on we go")], vec![]).await;
    let one = bench.task("one").await;
    sampled.opened().await;
    bench.post(MailKind::Followup, true, "two");
    assert!(bench.interrupt().await);
    assert!(!*lock(&bench.host.working));
    assert_eq!(bench.texts(), ["one", "so far", "<aborted>"]);
    let report = bench.reports().pop().unwrap();
    assert_eq!((report.end.outcome, report.end.text.as_deref()), (Outcome::Interrupted, Some("so far")));
    assert_eq!(report.end.reason.as_deref(), Some("enough"));
    assert_eq!(bench.done(), [(one, Outcome::Interrupted)]);
    // Pending mail that wakes starts nothing by itself, and does not keep the agent in memory.
    assert_eq!((bench.pending(), bench.requests()), (1, 1));
    assert!(bench.agent.wake().await);
    bench.rest().await;
    assert_eq!((bench.pending(), bench.started()), (0, 2));
    assert_eq!(bench.texts().last().unwrap(), "on we go");
    bench.finish().await;
}

#[tokio::test]
async fn an_interrupted_agent_can_be_unloaded_whatever_waits_for_it() {
    let [sampled, never] = [Gate::new(), Gate::new()];
    let bench = Bench::new(vec![vec![Step::Wait(sampled.clone(), never)]], vec![]).await;
    bench.task("one").await;
    sampled.opened().await;
    bench.post(MailKind::Followup, true, "two");
    assert!(bench.interrupt().await);
    assert!(bench.agent.unload().await.is_ok());
    assert_eq!(bench.pending(), 1);
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn tools_get_a_grace_and_those_that_had_ended_keep_their_output() {
    let [started, never] = [Gate::new(), Gate::new()];
    let deaf = {
        let (started, never) = (started.clone(), never.clone());
        Fake::beside("deaf", move |_| {
            let (started, never) = (started.clone(), never.clone());
            async move {
                started.open();
                never.opened().await;
                Ok(ToolOutput::ok("never said"))
            }
        })
    };
    let polite = Fake::beside("polite", |invocation| async move {
        invocation.cancel.cancelled().await;
        Ok(ToolOutput::ok("what I have"))
    });
    let first = vec![call("1", "quick"), call("2", "deaf"), call("3", "polite"), Step::Done];
    let bench = Bench::new(vec![first], vec![Fake::quick("quick"), deaf, polite]).await;
    bench.task("go").await;
    started.opened().await;
    let before = tokio::time::Instant::now();
    assert!(bench.interrupt().await);
    assert!(before.elapsed() >= crate::INTERRUPT_GRACE);
    let texts = bench.texts();
    assert_eq!(texts[4], "quick");
    assert!(texts[5].starts_with("aborted by user after 0.") && texts[5].ends_with(" s"), "{texts:?}");
    assert_eq!(texts[6..], ["what I have", "<aborted>"]);
    bench.finish().await;
}

#[tokio::test]
async fn a_dropped_tool_is_gone_before_the_turn_ends() {
    struct Ends(Gate);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.open();
        }
    }
    let [started, gone] = [Gate::new(), Gate::new()];
    let deaf = {
        let (started, gone) = (started.clone(), gone.clone());
        Fake::alone("deaf", move |_| {
            let (started, ends) = (started.clone(), Ends(gone.clone()));
            async move {
                let _ends = ends;
                started.open();
                std::future::pending().await
            }
        })
    };
    let bench = Bench::new(vec![vec![call("1", "deaf"), Step::Done]], vec![deaf]).await;
    bench.task("go").await;
    started.opened().await;
    assert!(bench.interrupt().await);
    assert!(gone.is_open());
    bench.finish().await;
}

#[tokio::test]
async fn the_end_of_the_tree_interrupts_and_ends_the_loop() {
    let [sampled, never] = [Gate::new(), Gate::new()];
    let bench = Bench::new(vec![vec![Step::Wait(sampled.clone(), never)]], vec![]).await;
    let one = bench.task("one").await;
    sampled.opened().await;
    bench.end().await;
    assert_eq!(bench.done(), [(one, Outcome::Interrupted)]);
    assert!(!bench.agent.wake().await);
    assert!(!bench.interrupt().await);
    bench.finish().await;
}

/// The tree's token reaches the turn by itself, before or after the agent's loop has seen it: a resume goes on with the
/// task either way.
#[tokio::test]
async fn what_the_end_of_the_tree_cuts_off_goes_on() {
    for _ in 0..20 {
        let [sampled, never] = [Gate::new(), Gate::new()];
        let bench = Bench::new(vec![vec![Step::Wait(sampled.clone(), never)]], vec![]).await;
        let task = bench.task("one").await;
        sampled.opened().await;
        bench.end().await;
        let ends: Vec<(protocol::TaskId, bool, Option<String>)> = bench
            .records()
            .into_iter()
            .filter_map(|record| match record {
                rollout::Record::TaskDone(done) => Some((done.task, done.goes_on, done.end.reason)),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [(task, true, Some("the tree was interrupted".to_owned()))]);
        bench.finish().await;
    }
}
