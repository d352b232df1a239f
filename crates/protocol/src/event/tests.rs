use stdx::{AbsPath, Timestamp};
use uuid::Uuid;

use super::*;
use crate::{Item, Role};

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// One event of each type, and a second one where fields may be left out.
fn samples() -> Vec<EventKind> {
    let turn = TurnId::from(id(3));
    let mail = MailId::from(id(4));
    let item = Item::parse(r#"{ "type":"message", "z":1,"a":1.50, "role":"assistant","content":"hi\u00e9"}"#).unwrap();
    let usage = Usage { input: 5, cached_input: 4, output: 3, reasoning: 2 };
    vec![
        EventKind::TreeStarted {
            cwd: AbsPath::new("/somewhere").unwrap(),
            model: "lab/model".to_owned(),
            sandbox: Sandbox::WorkspaceWrite,
            approval: Approval::OnRequest,
            resumed: true,
        },
        EventKind::AgentSpawned {
            parent: Some(AgentPath::root()),
            role: "worker".to_owned(),
            nickname: None,
            task: "look".to_owned(),
        },
        EventKind::AgentStatus { status: Status::Waiting, waiting_on: Some(WaitingOn::Model), position: None },
        EventKind::AgentStatus { status: Status::Queued, waiting_on: None, position: Some(2) },
        EventKind::AgentEvicted,
        EventKind::AgentRehydrated { items: 7 },
        EventKind::AgentClosed { reason: "done".to_owned() },
        EventKind::TurnStarted { turn },
        EventKind::ItemCompleted { turn: Some(turn), item },
        EventKind::ItemCompleted { turn: None, item: Item::message(Role::User, "a\nb") },
        EventKind::MailAccepted { mail, from: "user".to_owned(), kind: MailKind::Input, preview: "hi".to_owned() },
        EventKind::MailDelivered { mail, from: "/root/a".to_owned(), kind: MailKind::Result },
        EventKind::MailReturned { mail, reason: "closed".to_owned() },
        EventKind::TurnCompleted {
            turn,
            outcome: Outcome::OverBudget,
            text: Some("partly".to_owned()),
            reason: Some("spent".to_owned()),
            usage,
        },
        EventKind::TurnCompleted { turn, outcome: Outcome::Completed, text: None, reason: None, usage },
        EventKind::Warning { message: "careful".to_owned() },
        EventKind::Error { message: "broken".to_owned(), hints: vec!["mend it".to_owned()] },
        EventKind::TreeFinished {
            outcome: Outcome::Completed,
            answer: None,
            usage,
            unread_results: vec![UnreadResult {
                from: "/root/a".to_owned(),
                outcome: Some(Outcome::Lost),
                text: "t".to_owned(),
            }],
        },
        EventKind::AgentStalled {
            stalled_ms: 300_000,
            status: Status::Waiting,
            waits: Some(Waits::Tool { calls: vec!["$ make".to_owned()] }),
        },
    ]
}

fn events() -> impl Iterator<Item = TreeEvent> {
    samples().into_iter().zip(1..).map(|(kind, seq)| TreeEvent {
        seq,
        time: Timestamp::EPOCH,
        tree: TreeId::from(id(1)),
        path: AgentPath::root(),
        thread: ThreadId::from(id(2)),
        kind,
    })
}

/// These lines are the contract of `--json`: they change by addition only.
#[test]
fn lines_are_frozen() {
    let lines: Vec<String> = events().map(|event| serde_json::to_string(&event).unwrap()).collect();
    expect_test::expect![[r#"
        {"seq":1,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"tree.started","cwd":"/somewhere","model":"lab/model","sandbox":"workspace-write","approval":"on-request","resumed":true}
        {"seq":2,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.spawned","parent":"/root","role":"worker","nickname":null,"task":"look"}
        {"seq":3,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.status","status":"waiting","waiting_on":"model"}
        {"seq":4,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.status","status":"queued","position":2}
        {"seq":5,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.evicted"}
        {"seq":6,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.rehydrated","items":7}
        {"seq":7,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.closed","reason":"done"}
        {"seq":8,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"turn.started","turn":"00000000-0000-0000-0000-000000000003"}
        {"seq":9,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"item.completed","turn":"00000000-0000-0000-0000-000000000003","item":{ "type":"message", "z":1,"a":1.50, "role":"assistant","content":"hi\u00e9"}}
        {"seq":10,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"item.completed","turn":null,"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"a\nb"}]}}
        {"seq":11,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"mail.accepted","mail":"00000000-0000-0000-0000-000000000004","from":"user","kind":"input","preview":"hi"}
        {"seq":12,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"mail.delivered","mail":"00000000-0000-0000-0000-000000000004","from":"/root/a","kind":"result"}
        {"seq":13,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"mail.returned","mail":"00000000-0000-0000-0000-000000000004","reason":"closed"}
        {"seq":14,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"turn.completed","turn":"00000000-0000-0000-0000-000000000003","outcome":"over_budget","text":"partly","reason":"spent","usage":{"input":5,"cached_input":4,"output":3,"reasoning":2}}
        {"seq":15,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"turn.completed","turn":"00000000-0000-0000-0000-000000000003","outcome":"completed","usage":{"input":5,"cached_input":4,"output":3,"reasoning":2}}
        {"seq":16,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"warning","message":"careful"}
        {"seq":17,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"error","message":"broken","hints":["mend it"]}
        {"seq":18,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"tree.finished","outcome":"completed","answer":null,"usage":{"input":5,"cached_input":4,"output":3,"reasoning":2},"unread_results":[{"from":"/root/a","outcome":"lost","text":"t"}]}
        {"seq":19,"time":"1970-01-01T00:00:00.000Z","tree":"00000000-0000-0000-0000-000000000001","path":"/root","thread":"00000000-0000-0000-0000-000000000002","type":"agent.stalled","stalled_ms":300000,"status":"waiting","waits":{"for":"tool","calls":["$ make"]}}
    "#]].assert_eq(&(lines.join("\n") + "\n"));
}

#[test]
fn what_is_written_is_read_back() {
    for event in events() {
        let line = serde_json::to_string(&event).unwrap();
        let back: TreeEvent = serde_json::from_str(&line).unwrap();
        assert_eq!(back, event);
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
        let kind = serde_json::to_string(&event.kind).unwrap();
        assert_eq!(serde_json::from_str::<EventKind>(&kind).unwrap(), event.kind, "{kind}");
    }
}

#[test]
fn an_item_keeps_its_bytes() {
    let bytes = r#"{ "type":"reasoning", "z":1,"a":1.50,"n":12345678901234567890123,"x":"\u00e9" }"#;
    let line = format!(r#"{{"item":{bytes},"turn":null,"type":"item.completed"}}"#);
    let EventKind::ItemCompleted { item, .. } = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
    assert_eq!(item.raw(), bytes);
}

#[test]
fn a_newer_version_may_say_more() {
    let line = r#"{"type":"agent.closed","by":{"who":["user"]},"seq":9,"reason":"done","path":"/root/a","new":1,
        "thread":"00000000-0000-0000-0000-000000000002","tree":"00000000-0000-0000-0000-000000000001",
        "time":"2026-11-30T15:13:02.120Z"}"#;
    let event: TreeEvent = serde_json::from_str(line).unwrap();
    assert_eq!((event.seq, event.kind), (9, EventKind::AgentClosed { reason: "done".to_owned() }));
    let error = serde_json::from_str::<TreeEvent>(&line.replace("agent.closed", "agent.dreamt")).unwrap_err();
    assert!(error.to_string().contains("agent.dreamt"), "{error}");
    assert!(serde_json::from_str::<TreeEvent>(&line.replace(r#""seq":9,"#, "")).is_err());
}
