use expect_test::{Expect, expect};
use protocol::{MailKind, Outcome};

use super::*;
use crate::encode;
use crate::fixture::{accepted, birth, id, mail, meta, time, turn, turn_end, words};
use crate::source::tests::source;

fn fold(file: &AbsPath, source: &Source) -> Result<Loaded, Error> {
    super::fold(file, source, Conversation::Kept, &|_, _| Ok(None))
}

/// Groups of records, each one write.
fn file(writes: &[Vec<Record>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut ordinal = 0;
    for write in writes {
        let count = u32::try_from(write.len()).unwrap();
        for (record, index) in write.iter().zip(1..) {
            ordinal += 1;
            encode(&mut bytes, time(0), ordinal, (count > 1).then_some([index, count]), record).unwrap();
        }
    }
    bytes
}

fn first() -> Vec<Record> {
    let mut records = vec![Record::SessionMeta(Box::new(meta(1)))];
    records.extend(birth());
    records
}

fn edit(bytes: &[u8], line: usize, with: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    lines[line] = with;
    lines.concat()
}

fn check(bytes: &[u8], expect: Expect) {
    let mut kinds = Vec::new();
    let tally = read(&source(bytes), 0, all, |line| {
        kinds.push(format!("{}:{}", line.ordinal, line.record.kind()));
        ControlFlow::Continue(())
    })
    .unwrap();
    let Tally { skipped, unknown, torn, last, .. } = tally;
    assert_eq!(tally.good + torn, bytes.len() as u64);
    expect.assert_eq(&format!("{} | skipped {skipped}, unknown {unknown}, torn {torn}, last {last}", kinds.join(" ")));
}

#[test]
fn groups_count_together() {
    let whole = file(&[first(), vec![turn(2)], vec![turn_end(2, Outcome::Completed), words("a"), words("b")]]);
    check(
        &whole,
        expect![
            "1:session_meta 2:edge 3:mail 4:event_msg 5:turn_end 6:response_item 7:response_item | skipped 0, unknown 0, torn 0, last 7"
        ],
    );
    let cut: usize = whole.split_inclusive(|b| *b == b'\n').take(6).map(<[u8]>::len).sum();
    check(&whole[..cut], expect!["1:session_meta 2:edge 3:mail 4:event_msg | skipped 0, unknown 0, torn 364, last 4"]);
    // The same, with an unreadable line in the middle of the unfinished write, or behind it.
    check(
        &edit(&whole, 5, b"\0\0\0\0\n"),
        expect!["1:session_meta 2:edge 3:mail 4:event_msg | skipped 0, unknown 0, torn 369, last 4"],
    );
    check(
        &[&whole[..cut], b"{\n"].concat(),
        expect!["1:session_meta 2:edge 3:mail 4:event_msg | skipped 0, unknown 0, torn 366, last 4"],
    );
    // Its first line is gone.
    check(
        &edit(&whole, 4, b"\0\0\0\0\n"),
        expect!["1:session_meta 2:edge 3:mail 4:event_msg | skipped 1, unknown 0, torn 366, last 4"],
    );
}

/// Its last line is there, so it was written to its end; zeros, and a missing end, are what a crash leaves.
#[test]
fn a_damaged_group_at_the_end_is_kept() {
    let whole = file(&[first(), vec![turn_end(2, Outcome::Completed), words("a"), words("b")]]);
    for (line, expect) in [
        (
            3,
            expect![
                "1:session_meta 2:edge 3:mail 5:response_item 6:response_item | skipped 1, unknown 0, torn 0, last 6"
            ],
        ),
        (4, expect!["1:session_meta 2:edge 3:mail 4:turn_end 6:response_item | skipped 1, unknown 0, torn 0, last 6"]),
        (5, expect!["1:session_meta 2:edge 3:mail | skipped 0, unknown 0, torn 366, last 3"]),
    ] {
        check(&edit(&whole, line, b"\xff\n"), expect);
    }
    check(&edit(&whole, 4, b"\0\n"), expect!["1:session_meta 2:edge 3:mail | skipped 0, unknown 0, torn 366, last 3"]);
    check(&edit(&whole, 3, b"\0\n"), expect!["1:session_meta 2:edge 3:mail | skipped 1, unknown 0, torn 366, last 3"]);
    // Zeros long before it, or behind its end, are not its own.
    let two = file(&[vec![turn(3)], vec![turn(4)], vec![words("a"), words("b"), words("c")]]);
    check(
        &[&edit(&edit(&two, 0, b"\0\n"), 2, b"\xff\n")[..], b"\0\n"].concat(),
        expect!["2:event_msg 4:response_item 5:response_item | skipped 3, unknown 0, torn 0, last 5"],
    );
}

#[test]
fn a_damaged_group_in_the_middle_is_kept() {
    let whole = file(&[first(), vec![turn_end(2, Outcome::Completed), words("a"), words("b")], vec![turn(3)]]);
    check(
        &edit(&whole, 4, b"\0\0\n"),
        expect![
            "1:session_meta 2:edge 3:mail 4:turn_end 6:response_item 7:event_msg | skipped 1, unknown 0, torn 0, last 7"
        ],
    );
    let two = file(&[first(), vec![words("a"), words("b")], vec![words("c"), words("d")]]);
    check(
        &edit(&two, 4, b"\xff\xfe\n"),
        expect![
            "1:session_meta 2:edge 3:mail 4:response_item 6:response_item 7:response_item | skipped 1, unknown 0, torn 0, last 7"
        ],
    );
}

#[test]
fn a_payload_that_does_not_parse_is_skipped_but_does_not_tear_its_group() {
    let whole = file(&[first(), vec![turn_end(2, Outcome::Completed), turn(3)]]);
    let newer = br#"{"timestamp":"2026-11-30T15:13:00Z","ordinal":5,"type":"turn_end","part":[2,2],"payload":{"outcome":"paused"}}
"#;
    check(
        &edit(&whole, 4, newer),
        expect!["1:session_meta 2:edge 3:mail 4:turn_end | skipped 1, unknown 0, torn 0, last 5"],
    );
}

#[test]
fn a_foreign_file_is_read() {
    let foreign = br#"{"timestamp":"2026-11-30T15:13:00Z","type":"session_meta","payload":{"id":"x","source":"exec"}}
{"timestamp":"2026-11-30T15:13:00Z","type":"world_state","payload":{"full":true}}
{"timestamp":"2026-11-30T15:13:00Z","type":"event_msg","payload":{"type":"token_count"}}
{"timestamp":"2026-11-30T15:13:00Z","type":"response_item","payload":{"type":"message","role":"user","content":"hi"}}
"#;
    check(foreign, expect!["1:world_state 2:event_msg 3:response_item | skipped 1, unknown 1, torn 0, last 3"]);
    let at = AbsPath::new("/somewhere/x").unwrap();
    assert!(matches!(fold(&at, &source(foreign)), Err(Error::Headless { .. })));
    let lines = lines(id(1), at, &source(foreign)).unwrap();
    assert_eq!((lines.lines.len(), lines.skipped, lines.unknown), (3, 1, 1));
    assert_eq!(lines.bad[0].offset, 0);
}

#[test]
fn unknown_lines_among_ours_are_counted() {
    let mut bytes = file(&[first()]);
    bytes.extend_from_slice(
        b"{\"timestamp\":\"2027-01-01T00:00:00Z\",\"ordinal\":4,\"type\":\"goal\",\"payload\":{}}\n",
    );
    let at = AbsPath::new("/somewhere/x").unwrap();
    let loaded = fold(&at, &source(&bytes)).unwrap();
    assert_eq!((loaded.unknown, loaded.skipped, loaded.torn), (1, 0, 0));
    let bare = super::fold(&at, &source(&bytes), Conversation::LeftOut, &|_, _| Ok(None)).unwrap();
    assert_eq!((bare.state.transcript.len(), bare.summary()), (0, loaded.summary()));
    assert_eq!(loaded.state.last_ordinal, 4);
}

#[test]
fn many_bad_lines_are_counted_and_few_described() {
    let mut bytes = file(&[first()]);
    bytes.extend(b"junk\n".repeat(MAX_LISTED * 2));
    bytes.extend(file(&[vec![accepted(mail(5, 2, MailKind::Message))]]));
    let lines = lines(id(1), AbsPath::new("/somewhere/x").unwrap(), &source(&bytes)).unwrap();
    assert_eq!((lines.skipped, lines.bad.len(), lines.lines.len()), (MAX_LISTED * 2, MAX_LISTED, 4));
}

#[test]
fn an_unborn_file_is_told_from_a_headless_one() {
    let at = AbsPath::new("/somewhere/x").unwrap();
    let whole = file(&[first()]);
    for cut in 0..whole.len() {
        assert!(matches!(fold(&at, &source(&whole[..cut])), Err(Error::Unborn { .. })), "at {cut}");
    }
    assert!(fold(&at, &source(&whole)).is_ok());
    assert!(matches!(
        fold(&at, &source(&edit(&whole, 0, b"\xff\n"))),
        Err(Error::Headless { .. } | Error::Unborn { .. })
    ));
    assert!(matches!(fold(&at, &source(b"junk\n")), Err(Error::Headless { .. })));
}

/// What this version does not know may be what the rest rests on, so such a file is told, not read.
#[test]
fn a_file_of_a_newer_version_is_refused() {
    let at = AbsPath::new("/somewhere/x").unwrap();
    let file = |format| {
        let meta = SessionMeta { format, ..meta(1) };
        let mut bytes = Vec::new();
        encode(&mut bytes, time(0), 1, None, &Record::SessionMeta(Box::new(meta))).unwrap();
        bytes
    };
    assert!(fold(&at, &source(&file(FORMAT))).is_ok());
    let newer = file(FORMAT + 1);
    let error = fold(&at, &source(&newer)).unwrap_err().to_string();
    assert!(error.contains("newer version of the program (format 3; this one knows 2)"), "{error}");
    assert!(matches!(begin(&source(&newer)).unwrap(), Begin::Headless(why) if why.contains("use that one")));
}
