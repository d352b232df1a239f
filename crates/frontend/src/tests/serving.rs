//! Requests and their answers.

use futures::future::join_all;

use super::*;
use crate::{MAX_AT_ONCE, MAX_CONNECTIONS, MAX_WAITS, RequestError};

async fn ask(client: &Client, op: Op) -> Result<Reply, RequestError> {
    within(client.request(op)).await
}

/// Every operation but the waiting ones.
fn ops() -> Vec<Op> {
    let path = AgentPath::root();
    vec![
        send("hello\nthere \u{2028} \0"),
        send(" "),
        Op::Interrupt { path: path.clone(), reason: "enough".to_owned() },
        Op::Close { path, reason: String::new() },
        Op::Tree,
        Op::Resume,
        Op::Continue,
        Op::Subscribe { after: Some(1) },
        Op::Ping,
    ]
}

#[tokio::test]
async fn a_face_sees_the_same_in_process_and_over_the_socket() {
    async fn tour(desk: &dyn Desk) -> Vec<Result<Reply, Fault>> {
        let mut seen = Vec::new();
        for op in ops() {
            let subscribe = matches!(op, Op::Subscribe { .. });
            let outcome = within(desk.call(op)).await;
            // Both refuse, each in its own words.
            seen.push(if subscribe { Err(Fault::new(outcome.unwrap_err().code, "")) } else { outcome });
        }
        seen
    }
    let scene = Scene::new().await;
    let client = scene.client().await;
    let near = tour(&*scene.desk).await;
    assert_eq!(tour(&client).await, near);
    let calls = scene.desk.calls();
    let (near, far) = calls.split_at(ops().len());
    let asked: Vec<Op> = near.iter().filter(|op| !matches!(op, Op::Subscribe { .. })).cloned().collect();
    assert_eq!(far, asked, "what was asked arrives as it was");
    assert_eq!(client.hello().tree, Some(tree()));
    assert_eq!(client.hello().pid, std::process::id());
}

#[tokio::test]
async fn the_answer_of_a_task_comes_when_it_ends() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let Ok(Reply::Submitted(submission)) = ask(&client, send("work")).await else { panic!("refused") };
    let task = submission.task().unwrap();
    let wait = tokio::spawn({
        let client = client.clone();
        async move { ask(&client, Op::Answer { task }).await }
    });
    scene.desk.waits_begun.reaches(1).await;
    // Others are not held up by it.
    assert_eq!(ask(&client, Op::Ping).await.unwrap(), Reply::Pong);
    let end = TaskEnd { outcome: Outcome::Errored, text: None, reason: Some("spent".to_owned()) };
    scene.desk.end.send_replace(Some(end.clone()));
    let answer = Answer { task, agent: AgentPath::root(), end, fault: None, seq: None };
    assert_eq!(within(wait).await.unwrap().unwrap(), Reply::Answered(answer));
}

#[tokio::test]
async fn requests_run_side_by_side_up_to_a_bound() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let many = MAX_AT_ONCE + 8;
    let asked = tokio::spawn({
        let client = client.clone();
        async move { join_all((0..many).map(|_| ask(&client, send("slow")))).await }
    });
    scene.desk.begun.reaches(MAX_AT_ONCE).await;
    // One after the other is let through; there are never more inside than the bound.
    for ended in 1..=many {
        assert!(scene.desk.begun.get() < ended + MAX_AT_ONCE, "{ended}");
        scene.desk.gate.add_permits(1);
        scene.desk.done.reaches(ended).await;
        scene.desk.begun.reaches(many.min(ended + MAX_AT_ONCE)).await;
    }
    let answers = within(asked).await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Reply::Submitted(Submission::Steered { .. })))));
}

#[tokio::test]
async fn waits_do_not_stand_in_the_way_of_an_interrupt() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let waits = tokio::spawn({
        let client = client.clone();
        async move { join_all((0..MAX_WAITS).map(|_| ask(&client, Op::Answer { task: task() }))).await }
    });
    scene.desk.waits_begun.reaches(MAX_WAITS).await;
    let path = AgentPath::root();
    let interrupted = ask(&client, Op::Interrupt { path: path.clone(), reason: String::new() }).await.unwrap();
    assert_eq!(interrupted, Reply::Interrupted { agents: vec![path] });
    let Err(RequestError::Refused(fault)) = ask(&client, Op::Answer { task: task() }).await else { panic!("no bound") };
    assert_eq!(fault.code, Code::Busy);
    let end = TaskEnd { outcome: Outcome::Completed, text: None, reason: None };
    scene.desk.end.send_replace(Some(end));
    assert!(within(waits).await.unwrap().iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_client_that_disappears_ends_its_waits_and_no_work() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let asked =
        tokio::spawn(
            async move { tokio::join!(ask(&client, Op::Answer { task: task() }), ask(&client, send("slow"))) },
        );
    scene.desk.waits_begun.reaches(1).await;
    scene.desk.begun.reaches(1).await;
    asked.abort();
    scene.desk.waits_over.reaches(1).await;
    assert_eq!(scene.desk.done.get(), 0);
    scene.desk.gate.add_permits(1);
    scene.desk.done.reaches(1).await;
    assert_eq!(ask(&scene.client().await, Op::Ping).await.unwrap(), Reply::Pong);
}

#[tokio::test]
async fn a_panic_is_one_failed_request() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let Err(RequestError::Refused(fault)) = ask(&client, send("panic")).await else { panic!("no fault") };
    assert_eq!(fault.code, Code::Internal);
    assert_eq!(ask(&client, Op::Ping).await.unwrap(), Reply::Pong);
}

#[tokio::test]
async fn an_owner_that_stops_says_so_and_leaves_nothing() {
    let scene = Scene::new().await;
    let (client, path) = (scene.client().await, scene.path.clone());
    let asked = tokio::spawn({
        let client = client.clone();
        async move { tokio::join!(ask(&client, Op::Answer { task: task() }), ask(&client, send("slow"))) }
    });
    scene.desk.waits_begun.reaches(1).await;
    scene.desk.begun.reaches(1).await;
    scene.cancel.cancel();
    scene.desk.waits_over.reaches(1).await;
    assert!(!scene.server.is_finished(), "an operation is still under way");
    scene.desk.gate.add_permits(1);
    let desk = scene.stop().await;
    assert_eq!(desk.done.get(), 1);
    let (wait, slow) = within(asked).await.unwrap();
    let Err(RequestError::Refused(fault)) = wait else { panic!("{wait:?}") };
    assert_eq!(fault.code, Code::ShuttingDown);
    assert!(matches!(slow, Ok(Reply::Submitted(_))), "{slow:?}");
    assert!(!path.exists());
    let gone = ask(&client, Op::Ping).await.unwrap_err();
    assert!(matches!(gone, RequestError::Gone(None)), "{gone}");
    assert!(gone.to_string().contains("safe on disk"), "{gone}");
}

#[tokio::test]
async fn the_connection_that_asked_for_nothing_longest_makes_room() {
    let scene = Scene::with(House { stall: STALL, spare: Duration::ZERO, admits: |_| true }).await;
    let waits = scene.client().await;
    let waiting = tokio::spawn(async move { ask(&waits, Op::Answer { task: task() }).await });
    scene.desk.waits_begun.reaches(1).await;
    let mut silent = Raw::connect(&scene.path).await;
    let mut idle = Vec::new();
    for _ in 2..MAX_CONNECTIONS {
        idle.push(scene.client().await);
    }
    assert_eq!(ask(&scene.client().await, Op::Ping).await.unwrap(), Reply::Pong);
    let said = silent.hear().await.unwrap();
    assert!(said["fault"]["message"].as_str().unwrap().contains("asked for nothing longest"), "{said}");
    assert_eq!(silent.hear().await, None);
    assert_eq!(ask(&idle[0], Op::Ping).await.unwrap(), Reply::Pong);
    scene.desk.end.send_replace(Some(TaskEnd { outcome: Outcome::Completed, text: None, reason: None }));
    assert!(matches!(waiting.await.unwrap(), Ok(Reply::Answered(_))));
}

#[tokio::test]
async fn one_connection_too_many_is_turned_away() {
    let scene = Scene::with(House { stall: STALL, spare: HANG, admits: |_| true }).await;
    let mut clients = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        clients.push(scene.client().await);
    }
    let fault = match within(Client::connect(&scene.path, || true)).await {
        Err(crate::ConnectError::Refused(fault)) => fault,
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(fault.code, Code::Busy);
    assert_eq!(ask(&clients[0], Op::Ping).await.unwrap(), Reply::Pong);
    clients.pop();
    within(async { while Client::connect(&scene.path, || true).await.is_err() {} }).await;
}
