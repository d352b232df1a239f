use expect_test::{Expect, expect};

use super::*;

fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = Decoder::new(1024);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events).unwrap();
    }
    events.extend(decoder.finish());
    let line = |e: &Event| format!("{}|{}\n", e.name, String::from_utf8_lossy(&e.data).escape_debug());
    events.iter().map(line).collect::<Vec<_>>().concat()
}

/// Whole, byte by byte, and cut in two at every place, a stream gives the same events.
fn check(stream: &str, expect: Expect) {
    let bytes = stream.as_bytes();
    let whole = decode([bytes]);
    expect.assert_eq(&whole);
    assert_eq!(decode(bytes.chunks(1)), whole, "byte by byte");
    for at in 0..=bytes.len() {
        assert_eq!(decode([&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
    }
}

#[test]
fn usual() {
    check(
        "event: a\ndata: {\"x\":1}\n\nevent: b\ndata: 2\n\n",
        expect![[r#"
            a|{\"x\":1}
            b|2
        "#]],
    );
}

#[test]
fn line_endings() {
    check("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", expect!["a|1\n|2\n"]);
    check("event: a\rdata: 1\r\rdata: 2\r\r", expect!["a|1\n|2\n"]);
    check("data: 1\r\n\ndata: 2\n\r\n", expect!["|1\n|2\n"]);
}

#[test]
fn comments_and_unknown_fields() {
    check(": ping\n\n:\n\nid: 7\nretry: 9\nnonsense\ndata: 1\n: in between\n\n", expect!["|1\n"]);
}

#[test]
fn split_characters() {
    check("data: ä€😀\n\n", expect!["|ä€😀\n"]);
}

#[test]
fn several_data_lines_and_empty_ones() {
    check(
        "data: a\ndata: b\ndata\n\ndata:\n\n\n\n",
        expect![[r"
        |a\nb\n
        |
    "]],
    );
    check(
        "data:no blank\ndata:  two blanks\n\n",
        expect![[r"
        |no blank\n two blanks
    "]],
    );
}

#[test]
fn missing_last_blank_line() {
    check("data: 1\n\nevent: e\ndata: 2", expect!["|1\ne|2\n"]);
    check("data: [DONE]\n", expect!["|[DONE]\n"]);
    check("event: only a name\n\n", expect![""]);
}

#[test]
fn faults_in_a_field_of_their_own() {
    check("error: 500\n\ndata: 1\n\n", expect!["error|500\n|1\n"]);
}

#[test]
fn byte_order_mark() {
    check("\u{feff}data: 1\n\n", expect!["|1\n"]);
}

#[test]
fn size_is_bounded_in_one_line_and_over_many() {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(100);
    assert_eq!(decoder.push(b"data: 1\n\ndata: ", &mut events), Ok(()));
    assert_eq!(decoder.push(&[b'x'; 101], &mut events), Err(TooLarge));
    assert_eq!(events.len(), 1, "what was complete before it counts");

    let mut decoder = Decoder::new(100);
    let line = b"data: 0123456789\n";
    let taken = (0..50).take_while(|_| decoder.push(line, &mut events).is_ok()).count();
    assert_eq!(taken, 8, "each line adds ten bytes and, after the first, a line break");

    let mut decoder = Decoder::new(100);
    for _ in 0..1000 {
        decoder.push(b": comments are not kept\n\n", &mut events).unwrap();
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_cut_anywhere(bytes in "(data|event|:|: |\r|\n|x|é){0,40}", cuts in proptest::collection::vec(0..80usize, 0..6)) {
        let bytes = bytes.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        proptest::prop_assert_eq!(decode(pieces), decode([bytes]));
    }
}
