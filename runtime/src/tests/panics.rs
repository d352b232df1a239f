//! A panic in a turn ends that turn's task and nothing else.

use protocol::{MailKind, Outcome};
use testkit::Gate;

use super::bench::Bench;
use super::double::{Fake, Step, answer, call, say};

#[tokio::test]
async fn the_agent_survives_and_its_giver_hears_once() {
    let first = vec![say("so far"), call("1", "look"), Step::Panic];
    let bench = Bench::new(vec![first, answer("well again")], vec![Fake::quick("look")]).await;
    let one = bench.task("one").await;
    bench.rest().await;
    let report = bench.reports().pop().unwrap();
    assert_eq!((report.end.outcome, report.broken), (Outcome::Errored, true));
    assert!(report.end.reason.unwrap().contains("the agent's turn broke down"));
    assert_eq!(report.tasks.iter().map(|task| task.task).collect::<Vec<_>>(), [one]);
    assert_eq!(bench.texts(), ["one", "so far", "[1]", crate::MAY_HAVE_RUN]);
    assert_eq!(bench.run("two").await.end.text.as_deref(), Some("well again"));
    assert_eq!(bench.done().iter().filter(|(task, _)| *task == one).count(), 1);
    let told = bench.reports().iter().flat_map(|r| r.tasks.clone()).filter(|done| done.task == one).count();
    assert_eq!(told, 1);
    bench.finish().await;
}

#[tokio::test]
async fn mail_that_came_meanwhile_waits_for_a_wake() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let first = vec![Step::Wait(sampled.clone(), go.clone()), Step::Panic];
    let bench = Bench::new(vec![first], vec![]).await;
    bench.task("one").await;
    sampled.opened().await;
    let two = bench.post(MailKind::Followup, true, "two");
    go.open();
    bench.rest().await;
    assert_eq!((bench.pending(), bench.requests()), (1, 1));
    assert!(bench.agent.wake().await);
    bench.rest().await;
    assert_eq!(bench.done()[1], (two, Outcome::Completed));
    bench.finish().await;
}

#[tokio::test]
async fn an_interrupt_of_a_turn_that_panics_is_answered() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let first = vec![Step::Wait(sampled.clone(), go.clone()), Step::Panic];
    let bench = Bench::new(vec![first], vec![]).await;
    bench.task("one").await;
    sampled.opened().await;
    go.open();
    // Whichever comes first: it is answered, and there is one end.
    bench.interrupt().await;
    bench.rest().await;
    assert_eq!(bench.done().len(), 1);
    bench.finish().await;
}
