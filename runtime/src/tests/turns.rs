//! Tasks, turns and samples: what a turn takes in, and when.

use protocol::{MailKind, Outcome};
use rollout::Record;
use testkit::Gate;

use super::bench::Bench;
use super::double::{Fake, Step, answer, call, lock, say};

#[tokio::test]
async fn a_call_is_followed_up_in_the_same_turn() {
    let reply = vec![say("let me look"), call("a", "look"), Step::Done];
    let bench = Bench::new(vec![reply, answer("found")], vec![Fake::quick("look")]).await;
    let report = bench.run("find it").await;
    assert_eq!((report.end.outcome, report.end.text.as_deref()), (Outcome::Completed, Some("found")));
    assert_eq!(report.usage.total(), 22, "two requests of eleven tokens");
    assert_eq!(bench.texts(), ["find it", "let me look", "[a]", "look", "found"]);
    assert_eq!(bench.started(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn mail_enters_at_request_boundaries_and_never_before_the_first_sample_of_a_task() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let first = vec![Step::Wait(sampled.clone(), go.clone()), call("a", "look"), Step::Done];
    let bench = Bench::new(vec![first, answer("both read")], vec![Fake::quick("look")]).await;
    bench.task("the task").await;
    sampled.opened().await;
    bench.post(MailKind::Message, false, "by the way");
    assert_eq!(bench.pending(), 1);
    go.open();
    bench.rest().await;
    let texts = bench.texts();
    assert_eq!([&texts[0], &texts[1], &texts[2], &texts[4]], ["the task", "[a]", "look", "both read"]);
    assert!(texts[3].contains("by the way"), "{texts:?}");
    assert_eq!(lock(&bench.model.requests)[0].len(), 2, "instructions and task, nothing else");
    bench.finish().await;
}

#[tokio::test]
async fn mail_after_the_final_words_waits_for_the_next_turn() {
    let [said, go] = [Gate::new(), Gate::new()];
    let first = vec![say("the end"), Step::Wait(said.clone(), go.clone()), Step::Done];
    let bench = Bench::new(vec![first, answer("read now")], vec![]).await;
    bench.task("one").await;
    said.opened().await;
    bench.post(MailKind::Message, false, "too late");
    go.open();
    bench.rest().await;
    assert_eq!((bench.requests(), bench.pending(), bench.texts().len()), (1, 1, 2));
    bench.run("two").await;
    let texts = bench.texts();
    // Words of people stand before other mail of the same batch.
    assert_eq!(texts[2], "two");
    assert!(texts[3].contains("too late"), "{texts:?}");
    bench.finish().await;
}

#[tokio::test]
async fn a_steer_after_the_final_words_gives_the_same_turn_another_pass() {
    let [said, go] = [Gate::new(), Gate::new()];
    let first = vec![say("the end"), Step::Wait(said.clone(), go.clone()), Step::Done];
    let bench = Bench::new(vec![first, answer("and that")], vec![]).await;
    let one = bench.task("one").await;
    said.opened().await;
    let two = bench.task("and also").await;
    go.open();
    bench.rest().await;
    assert_eq!((bench.started(), bench.reports().len()), (1, 1));
    assert_eq!(bench.done(), [(one, Outcome::Completed), (two, Outcome::Completed)]);
    assert_eq!(bench.texts(), ["one", "the end", "and also", "and that"]);
    // Both tasks end in the one write of the turn's end.
    let end = bench.kinds().iter().position(|kind| kind == "turn_end").unwrap();
    assert_eq!(bench.kinds()[end..], ["turn_end", "task_done", "task_done"]);
    let lines = bench.store.read(bench.me.thread).unwrap().lines;
    assert_eq!(
        lines[end..].iter().map(|line| line.part).collect::<Vec<_>>(),
        [Some([1, 3]), Some([2, 3]), Some([3, 3])]
    );
    bench.finish().await;
}

#[tokio::test]
async fn a_followup_after_the_final_words_gets_a_turn_of_its_own() {
    let [said, go] = [Gate::new(), Gate::new()];
    let first = vec![say("the end"), Step::Wait(said.clone(), go.clone()), Step::Done];
    let bench = Bench::new(vec![first, answer("second")], vec![]).await;
    let one = bench.task("one").await;
    said.opened().await;
    let two = bench.post(MailKind::Followup, true, "two");
    assert!(bench.agent.wake().await);
    go.open();
    bench.rest().await;
    assert_eq!(bench.started(), 2);
    let reports = bench.reports();
    let ended: Vec<_> = reports.iter().map(|r| r.tasks.iter().map(|task| task.task).collect::<Vec<_>>()).collect();
    assert_eq!(ended, [vec![one], vec![two]]);
    assert_eq!(reports[1].end.text.as_deref(), Some("second"));
    bench.finish().await;
}

#[tokio::test]
async fn a_followup_before_the_final_words_is_still_answered_in_this_turn() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let first = vec![Step::Wait(sampled.clone(), go.clone()), say("the end"), Step::Done];
    let bench = Bench::new(vec![first, answer("second")], vec![]).await;
    let one = bench.task("one").await;
    sampled.opened().await;
    let two = bench.post(MailKind::Followup, true, "two");
    assert!(bench.agent.wake().await);
    go.open();
    bench.rest().await;
    assert_eq!((bench.started(), bench.reports().len()), (1, 1));
    assert_eq!(bench.done(), [(one, Outcome::Completed), (two, Outcome::Completed)]);
    bench.finish().await;
}

#[tokio::test]
async fn an_end_without_words_says_so() {
    let bench = Bench::new(vec![vec![say("  "), Step::Done]], vec![]).await;
    let report = bench.run("say nothing").await;
    assert_eq!((report.end.outcome, report.end.text), (Outcome::Completed, None));
    assert_eq!(report.end.reason.as_deref(), Some("the agent ended its turn without text"));
    bench.finish().await;
}

#[tokio::test]
async fn nothing_starts_without_mail_that_wakes() {
    let bench = Bench::new(vec![], vec![]).await;
    bench.post(MailKind::Message, false, "when you have time");
    assert!(!bench.agent.wake().await);
    assert_eq!((bench.requests(), bench.pending()), (0, 1));
    // Idle and flushed: it can be unloaded, unread mail or not; a second time it is gone already.
    assert!(bench.agent.unload().await.is_ok());
    assert!(bench.agent.unload().await.is_ok());
    assert!(!bench.agent.wake().await);
    bench.finish().await;
}

#[tokio::test]
async fn settings_are_written_once_and_a_working_agent_is_not_unloaded() {
    let [sampled, go] = [Gate::new(), Gate::new()];
    let first = vec![Step::Wait(sampled.clone(), go.clone()), say("one"), Step::Done];
    let bench = Bench::new(vec![first], vec![]).await;
    bench.task("one").await;
    sampled.opened().await;
    assert!(bench.agent.unload().await.is_err());
    go.open();
    bench.rest().await;
    bench.run("two").await;
    let contexts = bench.records().iter().filter(|record| matches!(record, Record::TurnContext(_))).count();
    assert_eq!(contexts, 1);
    bench.finish().await;
}
