//! Calls inside a stream: recorded, started, drained, whatever way the stream ends.

use std::sync::{Arc, Mutex};

use model::ErrorKind;
use protocol::Outcome;
use rollout::Record;
use testkit::Gate;
use tool_api::{ToolError, ToolOutput};

use super::bench::Bench;
use super::double::{Fake, Step, answer, call, lock, say};

/// Says, once the gate is open, whatever `text` is.
fn gated(name: &'static str, started: &Gate, go: &Gate) -> Arc<dyn tool_api::Tool> {
    let (started, go) = (started.clone(), go.clone());
    Fake::beside(name, move |_| {
        let (started, go) = (started.clone(), go.clone());
        async move {
            started.open();
            go.opened().await;
            Ok(ToolOutput::ok(name))
        }
    })
}

#[tokio::test]
async fn a_tool_finds_its_call_on_disk_while_the_stream_goes_on() {
    let [ran, go] = [Gate::new(), Gate::new()];
    let found = Arc::new(Mutex::new(Vec::new()));
    let file = Arc::new(Mutex::new(None::<std::path::PathBuf>));
    let look = {
        let (ran, found, file) = (ran.clone(), Arc::clone(&found), Arc::clone(&file));
        Fake::alone("look", move |invocation| {
            let text = std::fs::read_to_string(lock(&file).as_ref().unwrap()).unwrap();
            let line = text.lines().last().unwrap().to_owned();
            let mine = line.contains(&invocation.effect.to_string())
                && line.contains(&format!("\"ordinal\":{},", invocation.ordinal))
                && line.contains("call_0");
            lock(&found).push(mine);
            ran.open();
            async { Ok(ToolOutput::ok("seen")) }
        })
    };
    // The stream does not end before the tool ran.
    let first = vec![call("call_0", "look"), Step::Wait(Gate::new(), ran.clone()), Step::Done];
    let bench = Bench::new(vec![first, answer("end")], vec![look]).await;
    *lock(&file) = Some(bench.writer.file().to_path_buf());
    bench.run("go").await;
    go.open();
    assert_eq!(*lock(&found), [true]);
    bench.finish().await;
}

#[tokio::test]
async fn outputs_stand_in_the_order_of_the_calls_not_of_the_ends() {
    let [a, b, go] = [Gate::new(), Gate::new(), Gate::new()];
    let open = Gate::new();
    open.open();
    // `slow` ends only after `fast` has: the model opens its gate when it has seen `fast` start.
    let first = vec![
        call("1", "slow"),
        call("2", "fast"),
        Step::Wait(Gate::new(), b.clone()),
        Step::Wait(go.clone(), open.clone()),
        Step::Done,
    ];
    let tools = vec![gated("slow", &a, &go), gated("fast", &b, &open)];
    let bench = Bench::new(vec![first, answer("end")], tools).await;
    bench.run("go").await;
    assert_eq!(bench.texts(), ["go", "[1]", "[2]", "slow", "fast", "end"]);
    bench.finish().await;
}

#[tokio::test]
async fn repeated_call_ids_of_a_server_do_not_mix_outputs() {
    let first = vec![call("call_0", "a"), call("call_0", "b"), Step::Done];
    let second = vec![call("call_0", "b"), Step::Done];
    let tools = vec![Fake::quick("a"), Fake::quick("b")];
    let bench = Bench::new(vec![first, second, answer("end")], tools).await;
    bench.run("go").await;
    assert_eq!(bench.texts(), ["go", "[call_0]", "[call_0]", "a", "b", "[call_0]", "b", "end"]);
    let effects: Vec<_> =
        bench.records().iter().filter_map(|r| if let Record::Item(item) = r { item.effect } else { None }).collect();
    assert_eq!(effects.len(), 6);
    assert_eq!((effects[0], effects[1], effects[4]), (effects[2], effects[3], effects[5]));
    bench.finish().await;
}

#[tokio::test]
async fn parallel_tools_overlap_and_one_that_runs_alone_is_neither_joined_nor_starved() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let gates: [Gate; 3] = Default::default();
    let beside = |name: &'static str, own: usize, other: usize| {
        let (log, gates) = (Arc::clone(&log), gates.clone());
        Fake::beside(name, move |_| {
            let (log, gates) = (Arc::clone(&log), gates.clone());
            async move {
                lock(&log).push(format!("{name} begins"));
                gates[own].open();
                gates[other].opened().await;
                lock(&log).push(format!("{name} ends"));
                Ok(ToolOutput::ok(name))
            }
        })
    };
    let alone = {
        let log = Arc::clone(&log);
        Fake::alone("alone", move |_| {
            let log = Arc::clone(&log);
            async move {
                lock(&log).push("alone begins".to_owned());
                tokio::task::yield_now().await;
                lock(&log).push("alone ends".to_owned());
                Ok(ToolOutput::ok("alone"))
            }
        })
    };
    // `a` and `b` each wait for the other to have begun; `c` comes after the one that runs alone and must not pass it.
    let tools = vec![beside("a", 0, 1), beside("b", 1, 0), alone, beside("c", 2, 2)];
    let first = vec![call("1", "a"), call("2", "b"), call("3", "alone"), call("4", "c"), Step::Done];
    let bench = Bench::new(vec![first, answer("end")], tools).await;
    bench.run("go").await;
    let log = lock(&log).clone();
    let at = |what: &str| log.iter().position(|line| line == what).unwrap();
    assert!(at("a begins") < at("b ends") && at("b begins") < at("a ends"), "{log:?}");
    assert!(at("alone begins") > at("a ends") && at("alone begins") > at("b ends"), "{log:?}");
    assert_eq!(at("alone ends"), at("alone begins") + 1, "{log:?}");
    assert!(at("c begins") > at("alone ends"), "{log:?}");
    bench.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_answers_its_calls_and_goes_on_from_there() {
    for fault in [None, Some(ErrorKind::Interrupted), Some(ErrorKind::Server { after: None })] {
        let first = [vec![call("1", "look")], fault.map(Step::Fail).into_iter().collect()].concat_steps();
        let bench = Bench::new(vec![first, answer("end")], vec![Fake::quick("look")]).await;
        let report = bench.run("go").await;
        assert_eq!(report.end.outcome, Outcome::Completed, "{fault:?}");
        assert_eq!(bench.texts()[..3], ["go", "[1]", "look"], "{fault:?}");
        assert_eq!(bench.said().len(), 1, "one warning: {:?}", bench.said());
        bench.finish().await;
    }
}

/// Joins steps; they cannot be cloned.
trait Concat {
    fn concat_steps(self) -> Vec<Step>;
}

impl Concat for [Vec<Step>; 2] {
    fn concat_steps(self) -> Vec<Step> {
        self.into_iter().flatten().collect()
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_made_is_answered_and_the_turn_goes_on() {
    let refuses = Fake::alone("refuses", |_| async { Err(ToolError::respond("not like this")) });
    let first = vec![call("1", "nothing"), call("2", "refuses"), call("3", "functions.look"), Step::Done];
    let bench = Bench::new(vec![first, answer("end")], vec![refuses, Fake::quick("look")]).await;
    let report = bench.run("go").await;
    assert_eq!((report.end.outcome, report.broken), (Outcome::Completed, false));
    let texts = bench.texts();
    assert!(texts[4].starts_with("there is no tool called `nothing`"), "{texts:?}");
    assert_eq!(texts[5..], ["not like this", "look", "end"]);
    bench.finish().await;
}

#[tokio::test]
async fn a_broken_engine_or_a_panic_in_a_tool_ends_the_turn_with_everything_answered() {
    let fatal = Fake::beside("fatal", |_| async { Err(ToolError::Fatal("the engine is broken".to_owned())) });
    let panics = Fake::beside("panics", |_| async { panic!("a tool panics") });
    let tools = vec![fatal, panics, Fake::quick("look")];
    let first = vec![say("I try"), call("1", "fatal"), call("2", "look"), Step::Done];
    let second = vec![call("3", "look"), call("4", "panics"), call("5", "look"), Step::Done];
    let bench = Bench::new(vec![first, second, answer("well again")], tools).await;
    let report = bench.run("one").await;
    assert_eq!((report.end.outcome, report.broken, report.tasks.len()), (Outcome::Errored, true, 1));
    assert_eq!(report.end.reason.as_deref(), Some("the engine is broken"));
    let report = bench.run("two").await;
    assert_eq!(report.end.outcome, Outcome::Errored);
    assert!(report.end.reason.as_ref().unwrap().contains("`panics` broke down"), "{report:?}");
    let texts = bench.texts();
    assert_eq!(texts[7..11], ["[3]", "[4]", "[5]", "look"]);
    assert!(texts[11].contains("`panics` broke down"), "{texts:?}");
    assert_eq!(texts[12], "look");
    assert_eq!(bench.run("three").await.end.text.as_deref(), Some("well again"));
    bench.finish().await;
}

#[tokio::test]
async fn an_output_is_cut_to_its_cap() {
    let long = Fake::alone("long", |_| async { Ok(ToolOutput::ok("ä".repeat(crate::MAX_OUTPUT_BYTES))) });
    let bench = Bench::new(vec![vec![call("1", "long"), Step::Done]], vec![long]).await;
    bench.run("go").await;
    let text = &bench.texts()[2];
    assert!(text.contains("bytes left out"));
    assert!(text.len() < crate::MAX_OUTPUT_BYTES + 100, "{}", text.len());
    bench.finish().await;
}
