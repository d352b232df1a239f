use expect_test::{Expect, expect};
use protocol::{MailKind, Outcome, Party, ProcessEvent, ProcessRecord, Usage};

use super::*;
use crate::fixture::{accepted, address, closed, id, mail, meta, task_done, time, turn, turn_end, words};
use crate::{Budgets, Limits, MailReturned, TurnContext, UsageRecord, UsageStage};

fn text(record: &Record) -> String {
    let mut out = Vec::new();
    encode(&mut out, time(0), 7, None, record).unwrap();
    String::from_utf8(out).unwrap()
}

/// Writes a record, compares the line, reads it back and writes it again.
fn check(record: &Record, expect: Expect) {
    let line = text(record);
    expect.assert_eq(&line);
    let back = decode(line.as_bytes()).unwrap();
    assert_eq!((back.ordinal, back.part, back.timestamp), (7, None, time(0)));
    assert_eq!(back.record.kind(), record.kind());
    assert_eq!(text(&back.record), line);
}

/// These bytes are in files: they may never change.
#[test]
fn wire_names_are_frozen() {
    let usage = Usage { input: 10, cached_input: 4, output: 5, reasoning: 1 };
    check(
        &Record::SessionMeta(Box::new(meta(1))),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"session_meta","payload":{"id":"01939d5e-0000-7000-8000-000000000001","session_id":"01939d5e-0000-7000-8000-000000000001","timestamp":"2026-11-30T15:13:02.000Z","agent_path":"/root","incarnation":1,"agent_role":"default","depth":0,"cwd":"/tmp/project","model":"test/one","sandbox":"workspace-write","approval":"never","originator":"agent","cli_version":"0.1.0","format":1}}
    "#]],
    );
    check(
        &words("hi"),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}
    "#]],
    );
    let full = ItemRecord {
        item: Item::function_call("call_0", "exec_command", "{}"),
        effect: Some(id(9)),
        mail: vec![id(10), id(11)],
        turn: Some(id(12)),
        copied_from: Some(id(13)),
    };
    check(
        &Record::Item(full),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"response_item","metadata":{"effect":"01939d5e-0000-7000-8000-000000000009","mail":["01939d5e-0000-7000-8000-00000000000a","01939d5e-0000-7000-8000-00000000000b"],"turn":"01939d5e-0000-7000-8000-00000000000c","copied_from":"01939d5e-0000-7000-8000-00000000000d"},"payload":{"type":"function_call","call_id":"call_0","name":"exec_command","arguments":"{}"}}
    "#]],
    );
    let context = TurnContext {
        turn_id: id(2),
        cwd: meta(1).cwd,
        model: "test/one".to_owned(),
        effort: None,
        sandbox_policy: protocol::Sandbox::ReadOnly,
        approval_policy: protocol::Approval::Never,
        tools: vec!["exec_command".to_owned()],
        tools_digest: "d".to_owned(),
    };
    check(
        &Record::TurnContext(Box::new(context)),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"turn_context","payload":{"turn_id":"01939d5e-0000-7000-8000-000000000002","cwd":"/tmp/project","model":"test/one","sandbox_policy":"read-only","approval_policy":"never","tools":["exec_command"],"tools_digest":"d"}}
    "#]],
    );
    check(
        &accepted(mail(3, 2, MailKind::Followup)),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"mail","payload":{"id":"01939d5e-0000-7000-8000-000000000003","tree":"01939d5e-0000-7000-8000-000000000001","from":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000002"},"to":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000001"},"kind":"followup","trigger_turn":true,"sequence":3,"body":"mail 3\nwith two lines"}}
    "#]],
    );
    check(
        &Record::MailReturned(MailReturned { ids: vec![id(3)], reason: "closed".to_owned() }),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"mail_returned","payload":{"ids":["01939d5e-0000-7000-8000-000000000003"],"reason":"closed"}}
    "#]],
    );
    check(
        &turn_end(2, Outcome::Completed),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"turn_end","payload":{"turn_id":"01939d5e-0000-7000-8000-000000000002","outcome":"completed","text":"done"}}
    "#]],
    );
    check(
        &task_done(3, Party::Agent(address(2)), Outcome::OverBudget),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"task_done","payload":{"task":"01939d5e-0000-7000-8000-000000000003","giver":{"path":"/root","thread":"01939d5e-0000-7000-8000-000000000002"},"outcome":"over_budget","text":"done"}}
    "#]],
    );
    check(
        &task_done(3, Party::Client { client: id(4) }, Outcome::Lost),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"task_done","payload":{"task":"01939d5e-0000-7000-8000-000000000003","giver":{"client":"01939d5e-0000-7000-8000-000000000004"},"outcome":"lost","text":"done"}}
    "#]],
    );
    check(
        &Record::Sent { obligation: id(3), mail: id(4) },
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"sent","payload":{"obligation":"01939d5e-0000-7000-8000-000000000003","mail":"01939d5e-0000-7000-8000-000000000004"}}
    "#]],
    );
    check(
        &closed(),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"edge","payload":{"status":"closed","reason":"enough","by":"/root"}}
    "#]],
    );
    for (event, expect) in [
        (
            ProcessEvent::Starting { command: "make".to_owned(), boot_id: "b".to_owned() },
            expect![[r#"
            {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"process","payload":{"token":"01939d5e-0000-7000-8000-000000000005","event":"starting","command":"make","boot_id":"b"}}
        "#]],
        ),
        (
            ProcessEvent::Started { pid: 41, start_time: 42 },
            expect![[r#"
            {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"process","payload":{"token":"01939d5e-0000-7000-8000-000000000005","event":"started","pid":41,"start_time":42}}
        "#]],
        ),
        (
            ProcessEvent::Ended { exit_code: Some(137) },
            expect![[r#"
            {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"process","payload":{"token":"01939d5e-0000-7000-8000-000000000005","event":"ended","exit_code":137}}
        "#]],
        ),
    ] {
        check(&Record::Process(ProcessRecord { token: id(5), event }), expect);
    }
    let spent = UsageRecord {
        stage: UsageStage::Settled,
        turn_id: id(2),
        usage,
        cost_usd: Some(0.25),
        total: usage,
        estimated: false,
    };
    check(
        &Record::Usage(spent),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"usage","payload":{"stage":"settled","turn_id":"01939d5e-0000-7000-8000-000000000002","input":10,"cached_input":4,"output":5,"reasoning":1,"cost_usd":0.25,"total":{"input":10,"cached_input":4,"output":5,"reasoning":1}}}
    "#]],
    );
    let limits = Limits {
        max_running: 8,
        max_resident: 64,
        max_depth: 4,
        max_agents: 2000,
        roles: vec!["worker".to_owned()],
        budgets: Budgets { tokens: Some(1_000), ..Budgets::default() },
    };
    check(
        &Record::Limits(Box::new(limits)),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"limits","payload":{"max_running":8,"max_resident":64,"max_depth":4,"max_agents":2000,"roles":["worker"],"budgets":{"tokens":1000}}}
    "#]],
    );
    check(
        &turn(2),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"event_msg","payload":{"type":"task_started","turn_id":"01939d5e-0000-7000-8000-000000000002"}}
    "#]],
    );
    check(
        &Record::Event(EventRecord::Warning { message: "w".to_owned() }),
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"event_msg","payload":{"type":"warning","message":"w"}}
    "#]],
    );
    let payload = RawValue::from_string("{\"a\": [1,\n2]}".to_owned()).unwrap();
    check(
        &Record::Other { kind: "goal".to_owned(), payload },
        expect![[r#"
        {"timestamp":"2026-11-30T15:13:00.000Z","ordinal":7,"type":"goal","payload":{"a": [1, 2]}}
    "#]],
    );
}

#[test]
fn parts_stand_in_the_envelope() {
    let mut out = Vec::new();
    encode(&mut out, time(0), 3, Some([1, 2]), &turn(2)).unwrap();
    assert!(String::from_utf8_lossy(&out).contains(r#""type":"event_msg","part":[1,2],"payload""#));
    assert_eq!(decode(&out).unwrap().part, Some([1, 2]));
}

/// A request's prefix stays the same to the last byte only if nobody writes an item anew.
#[test]
fn items_are_spliced_in_byte_for_byte() {
    for json in [
        r#"{ "type":"reasoning" , "id":"rs_1","summary":[],  "encrypted_content":"Zz==","n":1.0,"big":123456789012345678901234567890,"a":{"z":1,"a":2} }"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"\u00e9 é \/ \ud83d\ude00"}],"dup":1,"dup":2}"#,
        r#"{"type":"image_generation_call","result":null}"#,
    ] {
        let line = text(&crate::fixture::item(Item::parse(json).unwrap()));
        assert!(line.ends_with(&format!(r#""payload":{json}}}{}"#, '\n')), "{line}");
        let Record::Item(back) = decode(line.as_bytes()).unwrap().record else { panic!("not an item") };
        assert_eq!(back.item.raw(), json);
    }
}

fn why(line: &str) -> String {
    match decode(line.as_bytes()) {
        Ok(line) => format!("read: {}", line.record.kind()),
        Err(why) => why,
    }
}

#[test]
fn what_is_a_line() {
    let check = |line: &str, expect: Expect| expect.assert_eq(&why(line));
    check(
        r#"{"timestamp":"2026-11-30T15:13:00.000Z","type":"sent","payload":{"obligation":"x","mail":"y"}}"#,
        expect!["in a `sent` line: UUID parsing failed: invalid character: found `x` at 0 at line 1 column 17"],
    );
    // A field we do not know, in envelope and payload.
    check(
        r#"{"timestamp":"2026-11-30T15:13:00Z","ordinal":1,"new":{},"type":"edge","payload":{"status":"open","reason":"","by":"","new":[1]}}"#,
        expect!["read: edge"],
    );
    // Ordinal and part may be missing or make no sense.
    check(r#"{"timestamp":"2026-11-30T15:13:00Z","type":"later","part":[3,2],"payload":null}"#, expect!["read: later"]);
    check(
        r#"{"timestamp":"2026-11-30T15:13:00Z","ordinal":1,"type":"event_msg","payload":{"type":"token_count","info":{}}}"#,
        expect!["read: event_msg"],
    );
    check(
        r#"{"timestamp":"2026-11-30T15:13:00Z","ordinal":1,"type":"response_item","metadata":{"mail":[1]},"payload":{"type":"message"}}"#,
        expect![
            "in a `response_item` line: invalid type: integer `1`, expected a formatted UUID string at line 1 column 10"
        ],
    );
    check(
        r#"{"timestamp":"2026-11-30T15:13:00Z","ordinal":1,"type":"response_item","payload":[]}"#,
        expect!["in a `response_item` line: not a conversation item: expected an object"],
    );
    check("", expect!["EOF while parsing a value at line 1 column 0"]);
    check("7", expect!["invalid type: integer `7`, expected struct Envelope at line 1 column 1"]);
    assert!(decode(b"{\"timestamp\":\"2026-11-30T15:13:00Z\",\"type\":\"a\",\"payload\":\"\xff\"}").is_err());
}
