//! A disk that fails: nothing is acknowledged, and the agent goes on from what is written.

use protocol::{MailKind, Outcome};
use testkit::{Act, On, Op, When};

use super::bench::Bench;
use super::double::{Fake, Step, answer, call, lock, say};

/// The lines that a turn with one call writes before its end.
const LINES: [&str; 6] = ["task_started", "turn_context", "user", "function_call", "function_call_output", "usage"];

/// Writes of these lines.
fn on(line: &str) -> On {
    match line {
        "turn_context" | "usage" | "turn_end" => On::line(line),
        "user" => On::op(Op::Write).bytes(r#""role":"user""#),
        "function_call" => On::op(Op::Write).bytes(r#""type":"function_call","#),
        other => On::op(Op::Write).bytes(format!(r#""{other}""#)),
    }
}

#[tokio::test]
async fn each_line_that_fails_breaks_the_turn_and_only_the_turn() {
    for line in LINES {
        for act in [Act::Full, Act::Broken] {
            let replies = vec![vec![say("I look"), call("1", "look"), Step::Done], answer("first")];
            let bench = Bench::new(replies, vec![Fake::quick("look")]).await;
            bench.disk.at(on(line), 1, When::Middle, act.clone());
            let one = bench.task("the task").await;
            bench.rest().await;
            let report = bench.reports().pop().unwrap();
            assert_eq!((report.end.outcome, report.broken), (Outcome::Errored, true), "{line}");
            let reason = report.end.reason.unwrap();
            let said = if matches!(act, Act::Full) { "the disk is full" } else { "cannot write" };
            assert!(reason.contains(said) && reason.contains("rollout-"), "{line}: {reason}");
            // Taken in or not, it is written down as exactly one of the two.
            let taken = bench.texts().contains(&"the task".to_owned());
            assert_eq!(
                (taken, bench.pending()),
                if report.tasks.is_empty() { (false, 1) } else { (true, 0) },
                "{line}"
            );
            assert_eq!(lock(&bench.model.wrong).len(), 0, "{line}: {:?}", lock(&bench.model.wrong));
            // The disk is well again: the agent reads itself back.
            bench.model.then(answer("second"));
            bench.run("once more").await;
            assert_eq!(bench.done().iter().filter(|(task, _)| *task == one).count(), 1, "{line}");
            assert_eq!(bench.pending(), 0, "{line}");
            bench.finish().await;
        }
    }
}

/// An output that could not be written is answered later, and so are those behind it: their order stays.
#[tokio::test]
async fn outputs_stay_in_order_when_one_of_them_is_not_written() {
    for n in [1, 2] {
        let replies = vec![vec![call("1", "look"), call("2", "look"), call("3", "look"), Step::Done], answer("next")];
        let bench = Bench::new(replies, vec![Fake::quick("look")]).await;
        bench.disk.at(on("function_call_output"), n, When::Before, Act::Full);
        assert_eq!(bench.run("the task").await.end.outcome, Outcome::Errored);
        bench.run("once more").await;
        assert_eq!(rollout::check(&bench.lines()), [], "{n}");
        bench.finish().await;
    }
}

#[tokio::test]
async fn an_end_that_is_not_written_is_not_told_as_a_result_until_it_is() {
    for (op, act) in [(Op::Write, Act::Full), (Op::Sync, Act::Broken)] {
        let bench = Bench::new(vec![answer("the answer"), answer("next")], vec![]).await;
        let fails = if op == Op::Write { on("turn_end") } else { On::op(Op::Sync) };
        bench.disk.from(fails, 1, When::Before, act);
        // After a failed sync the file is opened anew; that fails too.
        bench.disk.from(On::op(Op::Overwrite), 1, When::Before, Act::Broken);
        let given = bench.post(MailKind::Followup, true, "the task");
        assert!(bench.agent.wake().await);
        bench.rest().await;
        let report = bench.reports().pop().unwrap();
        assert!(report.tasks.is_empty() && report.broken);
        assert_eq!(report.unwritten.iter().map(|done| done.task).collect::<Vec<_>>(), [given]);
        assert!(bench.said().iter().any(|text| text.contains("could not be written")), "{:?}", bench.said());
        // Woken while the disk is still ill: nothing starts, nothing is lost.
        bench.post(MailKind::Followup, true, "another");
        bench.disk.from(On::op(Op::Write), 1, When::Before, Act::Broken);
        bench.disk.from(On::op(Op::Sync), 1, When::Before, Act::Broken);
        assert!(!bench.agent.wake().await);
        assert_eq!((bench.requests(), bench.reports().len()), (1, 1));
        bench.disk.heal();
        assert!(bench.agent.wake().await, "{op:?}: {:?}", bench.said());
        bench.rest().await;
        let told: Vec<_> = bench.reports().iter().flat_map(|report| report.tasks.clone()).collect();
        assert_eq!(told.iter().filter(|done| done.task == given).count(), 1, "{op:?}");
        assert_eq!((told.len(), bench.done().len()), (2, 2), "{op:?}");
        // What was written before the sync failed is the truth; what was never written has broken off.
        let end = told.iter().find(|done| done.task == given).unwrap().end.outcome;
        assert_eq!(end, if op == Op::Write { Outcome::Errored } else { Outcome::Completed });
        bench.finish().await;
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_flushed_stays() {
    let bench = Bench::new(vec![], vec![]).await;
    bench.post(MailKind::Message, false, "unsynced");
    bench.disk.from(On::op(Op::Sync), 1, When::Before, Act::Broken);
    assert!(bench.agent.unload().await.is_err());
    bench.disk.heal();
    assert!(bench.agent.unload().await.is_ok());
    bench.finish().await;
}
