use expect_test::{Expect, expect};

use super::*;
use crate::tests::{every_reply, tree, warning};
use crate::{Lagged, Mode};

fn check<T: Serialize>(values: impl IntoIterator<Item = T>, expect: Expect) {
    let lines = values.into_iter().map(|value| String::from_utf8(line(&value).unwrap()).unwrap());
    expect.assert_eq(&lines.collect::<String>());
}

fn requests() -> Vec<Request> {
    let path = protocol::AgentPath::root();
    let request: protocol::RequestId = "01939d5e-0000-7000-8000-000000000002".parse().unwrap();
    let body = "say \"hi\"\n".to_owned();
    let ops = [
        Op::Send { path: path.clone(), body, wake: false, request, mode: Mode::StartIfIdle, deadline: None },
        Op::Answer { task: request.mail() },
        Op::Interrupt { path: path.clone(), reason: "enough".to_owned() },
        Op::Close { path, reason: "done".to_owned() },
        Op::Tree,
        Op::Resume,
        Op::Continue,
        Op::Subscribe { after: Some(7) },
        Op::Subscribe { after: None },
        Op::Ping,
    ];
    ops.into_iter().zip(1..).map(|(op, id)| Request { id, op }).collect()
}

#[test]
fn requests_are_frozen() {
    check(
        requests(),
        expect![[r#"
        {"id":1,"op":"send","path":"/root","body":"say \"hi\"\n","wake":false,"request":"01939d5e-0000-7000-8000-000000000002","mode":"start_if_idle"}
        {"id":2,"op":"answer","task":"3810464d-f7cb-5ace-b479-c2a521b06add"}
        {"id":3,"op":"interrupt","path":"/root","reason":"enough"}
        {"id":4,"op":"close","path":"/root","reason":"done"}
        {"id":5,"op":"tree"}
        {"id":6,"op":"resume"}
        {"id":7,"op":"continue"}
        {"id":8,"op":"subscribe","after":7}
        {"id":9,"op":"subscribe"}
        {"id":10,"op":"ping"}
    "#]],
    );
    for sent in requests() {
        assert_eq!(request(&line(&sent).unwrap()).unwrap(), sent);
        // The list of names that is told to people has them all.
        let json = serde_json::to_value(&sent).unwrap();
        assert!(Op::NAMES.contains(&json["op"].as_str().unwrap()), "{json}");
    }
}

#[test]
fn what_may_be_left_out_of_a_request() {
    let short = r#"{"op":"send","id":1,"path":"/root","body":"b","request":"01939d5e-0000-7000-8000-000000000002"}"#;
    let Op::Send { wake, mode, .. } = request(short.as_bytes()).unwrap().op else { panic!("no send") };
    assert_eq!((wake, mode), (true, Mode::StartOrSteer));
    let short = request(br#"{"op":"interrupt","id":1,"path":"/root"}"#).unwrap();
    assert!(matches!(short.op, Op::Interrupt { reason, .. } if reason.is_empty()));
}

#[test]
fn responses_are_frozen() {
    let fault = Fault::new(Code::NoAgent, "nobody there").hint("look");
    let settled = every_reply().into_iter().map(Settled::Ok).chain([Settled::Err(fault)]);
    let all: Vec<Response> = settled.zip(1..).map(|(outcome, id)| Response { id, outcome }).collect();
    check(
        &all,
        expect![[r#"
            {"id":1,"ok":{"reply":"submitted","state":"started","task":"3810464d-f7cb-5ace-b479-c2a521b06add","turn":"01939d5e-0000-7000-8000-000000000001"}}
            {"id":2,"ok":{"reply":"submitted","state":"started","task":"3810464d-f7cb-5ace-b479-c2a521b06add"}}
            {"id":3,"ok":{"reply":"submitted","state":"steered","task":"3810464d-f7cb-5ace-b479-c2a521b06add","turn":"01939d5e-0000-7000-8000-000000000001"}}
            {"id":4,"ok":{"reply":"submitted","state":"queued","task":"3810464d-f7cb-5ace-b479-c2a521b06add","position":2}}
            {"id":5,"ok":{"reply":"submitted","state":"not_submitted","reason":"no_active_turn","message":"nothing runs"}}
            {"id":6,"ok":{"reply":"answered","task":"3810464d-f7cb-5ace-b479-c2a521b06add","agent":"/root","end":{"outcome":"completed","text":"done"},"fault":{"message":"no key","hints":["set one"],"code":"provider"}}}
            {"id":7,"ok":{"reply":"interrupted","agents":["/root"]}}
            {"id":8,"ok":{"reply":"closed","agents":[]}}
            {"id":9,"ok":{"reply":"tree","tree":"01939d5e-0000-7000-8000-000000000001","root":"01939d5e-0000-7000-8000-000000000001","agents":[{"path":"/root","thread_id":"01939d5e-0000-7000-8000-000000000001","parent":null,"role":"default","nickname":null,"edge":"open","status":"queued","waiting_on":null,"position":3,"waits":{"for":"slot","position":3},"since":"1970-01-01T00:00:00.000Z","resident":true,"unread":1,"skipped":0,"tokens":{"input":5,"cached_input":4,"output":3},"cost_usd":0.25,"task":"look","opened_at":"1970-01-01T00:00:00.000Z","closed_at":null,"last_activity":"1970-01-01T00:00:00.000Z"}]}}
            {"id":10,"ok":{"reply":"report","tree":"01939d5e-0000-7000-8000-000000000001","agents":[{"path":"/root","role":"default","status":"lost","last":"lost","cut":{"in_turn":true,"calls":1,"torn":7,"skipped":0,"paid":0},"unread":2,"unread_results":1,"swept":["sleep 9"],"survive":[]}],"unborn":[],"problems":["odd"]}}
            {"id":11,"ok":{"reply":"continued","tasks":[{"task":"3810464d-f7cb-5ace-b479-c2a521b06add","agent":"/root"}]}}
            {"id":12,"ok":{"reply":"subscribed"}}
            {"id":13,"ok":{"reply":"pong"}}
            {"id":14,"err":{"message":"nobody there","hints":["look"],"code":"no_agent"}}
        "#]],
    );
    for response in all {
        assert_eq!(incoming(&line(&response).unwrap()).unwrap(), Incoming::Response(response));
    }
}

#[test]
fn notices_are_frozen() {
    let hello = Hello {
        protocol: 1,
        version: "0.1.0".to_owned(),
        pid: 4711,
        tree: Some(tree()),
        since: Some(Timestamp::EPOCH),
    };
    let all = [
        Notice::Hello(hello),
        Notice::Event(warning(3, "careful")),
        Notice::Gap(Gap { after: 3, first: 9 }),
        Notice::Lagged(Lagged { resume_after: 3 }),
        Notice::Ended {},
        Notice::Fault(Fault::new(Code::TooLong, "too long")),
    ];
    check(
        &all,
        expect![[r#"
        {"hello":{"protocol":1,"version":"0.1.0","pid":4711,"tree":"01939d5e-0000-7000-8000-000000000001","since":"1970-01-01T00:00:00.000Z"}}
        {"event":{"seq":3,"time":"1970-01-01T00:00:00.000Z","tree":"01939d5e-0000-7000-8000-000000000001","path":"/root","thread":"01939d5e-0000-7000-8000-000000000001","type":"warning","message":"careful"}}
        {"gap":{"after":3,"first":9}}
        {"lagged":{"resume_after":3}}
        {"ended":{}}
        {"fault":{"message":"too long","hints":[],"code":"too_long"}}
    "#]],
    );
    for notice in all {
        assert_eq!(incoming(&line(&notice).unwrap()).unwrap(), Incoming::Notice(notice));
    }
}

#[test]
fn words_of_a_newer_version_do_not_hurt() {
    let fault = r#"{"id":1,"err":{"message":"m","code":"overslept","since":3}}"#;
    let Incoming::Response(Response { outcome: Settled::Err(fault), .. }) = incoming(fault.as_bytes()).unwrap() else {
        panic!("no fault")
    };
    assert_eq!(fault, Fault::new(Code::Other, "m"));
    let refused = r#"{"reply":"submitted","state":"not_submitted","reason":"asleep","message":"m"}"#;
    let refused: Reply = serde_json::from_str(refused).unwrap();
    let reason = crate::Refusal::Other;
    assert_eq!(refused, Reply::Submitted(crate::Submission::NotSubmitted { reason, message: "m".to_owned() }));
}

#[test]
fn what_is_no_line_is_an_error() {
    for line in ["", "7", "[]", "{", r#"{"lagged":{}}"#, "\u{1}"] {
        assert!(incoming(line.as_bytes()).is_err(), "{line}");
    }
    assert_eq!(incoming(br#"{"id":4}"#).unwrap(), Incoming::Unknown);
}
