//! Making the output of a command fit to be read by a model: text, harmless, and of bounded length.

use exec::Chunk;

/// Bytes of output that a model reads when it asks for no other number. Commands say the most at their ends, and
/// what was read once is paid for with every later request.
pub(crate) const DEFAULT_BYTES: usize = 10_000;

/// Bytes of output that a model can ask for at most: 10,000 tokens, the most that any item may have.
pub(crate) const MAX_BYTES: usize = 40_000;

/// Bytes that count as one token. Close enough for a bound, and the same whatever the model.
const BYTES_PER_TOKEN: u64 = 4;

/// The bound in bytes that stands for a number of tokens.
pub(crate) fn budget(tokens: Option<u64>) -> usize {
    let bytes = tokens.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN));
    bytes.map_or(DEFAULT_BYTES, |bytes| usize::try_from(bytes).unwrap_or(MAX_BYTES).min(MAX_BYTES))
}

/// How many tokens these bytes are about.
pub(crate) fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The output as text. At most `max` bytes of it are kept, half of the beginning and half of the end; then the first
/// lines say how much there was.
pub(crate) fn truncate(chunk: &Chunk, max: usize) -> String {
    // Decoding never makes text shorter than its bytes, but for what is left out here anyway, so that a megabyte
    // need not be decoded to keep ten thousand bytes of it.
    let (head, tail) = if chunk.omitted == 0 && chunk.head.len() <= max {
        (decode(&chunk.head), String::new())
    } else {
        let end = if chunk.tail.is_empty() { &chunk.head } else { &chunk.tail };
        let head = chunk.head.get(..max).unwrap_or(&chunk.head);
        let tail = end.get(end.len().saturating_sub(max)..).unwrap_or_default();
        (decode(head), decode(tail))
    };
    if tail.is_empty() && head.len() <= max && chunk.total() <= max as u64 {
        return head;
    }
    let whole = if tail.is_empty() { head.as_str() } else { tail.as_str() };
    let head = stdx::cut_end(&head, max / 2);
    let tail = whole.get(whole.ceil_char_boundary(whole.len().saturating_sub(max - max / 2))..).unwrap_or_default();
    let left_out = tokens(chunk.total().saturating_sub((head.len() + tail.len()) as u64));
    format!(
        "Warning: truncated output (original token count: {})\nTotal output lines: {}\n\n{head}…{left_out} tokens truncated…{tail}",
        tokens(chunk.total()),
        chunk.lines,
    )
}

/// Text of any bytes. Control characters but tab and line ends become their pictures: a terminal that shows the text
/// does not obey them, and a NUL breaks no wire.
fn decode(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(dangerous) {
        return text.into_owned();
    }
    text.chars().map(|c| if dangerous(c) { picture(c) } else { c }).collect()
}

fn dangerous(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

fn picture(c: char) -> char {
    let code = match u32::from(c) {
        code @ 0..=0x1f => 0x2400 + code,
        0x7f => 0x2421,
        _ => 0xfffd,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn chunk(bytes: &[u8]) -> Chunk {
        let lines = bytes.split_inclusive(|b| *b == b'\n').count() as u64;
        Chunk { head: bytes.to_vec(), lines, ..Chunk::default() }
    }

    fn check(bytes: &[u8], max: usize, expect: Expect) {
        expect.assert_eq(&truncate(&chunk(bytes), max));
    }

    #[test]
    fn what_fits_is_left_alone() {
        check(b"", 10, expect![""]);
        check(b"0123456789", 10, expect!["0123456789"]);
        check("äöü\r\n\tx".as_bytes(), 10, expect!["äöü\r\n\tx"]);
    }

    #[test]
    fn the_middle_is_cut() {
        check(
            b"0123456789a",
            10,
            expect![[r"
                Warning: truncated output (original token count: 3)
                Total output lines: 1

                01234…1 tokens truncated…6789a"]],
        );
        check(
            b"one\ntwo\nthree\n",
            0,
            expect![[r"
                Warning: truncated output (original token count: 4)
                Total output lines: 3

                …4 tokens truncated…"]],
        );
    }

    #[test]
    fn cuts_fall_between_characters() {
        check(
            "ääääääää".as_bytes(),
            7,
            expect![[r"
                Warning: truncated output (original token count: 4)
                Total output lines: 1

                ä…3 tokens truncated…ää"]],
        );
        let text = "a€😀b".repeat(40);
        for max in 0..text.len() {
            let seen = truncate(&chunk(text.as_bytes()), max);
            let (head, tail) = seen.split_once("\n\n").unwrap().1.split_once(" tokens truncated…").unwrap();
            let head = head.rsplit_once('…').unwrap().0;
            assert!(text.starts_with(head) && text.ends_with(tail), "{max}: {seen}");
            assert!(head.len() + tail.len() <= max && head.len() + tail.len() + 7 > max, "{max}: {seen}");
        }
    }

    #[test]
    fn what_is_no_text_does_no_harm() {
        check(b"a\0b\x1b[31m\x7f\x08", 40, expect!["a␀b␛[31m␡␈"]);
        check(b"ok \xff\xfe \xc3", 40, expect!["ok �� �"]);
        check("\u{9b}2J".as_bytes(), 40, expect!["�2J"]);
        // Pictures are longer than what they stand for: the bound holds for what is shown.
        check(
            &[0; 8],
            12,
            expect![[r"
                Warning: truncated output (original token count: 2)
                Total output lines: 1

                ␀␀…0 tokens truncated…␀␀"]],
        );
    }

    #[test]
    fn what_was_not_kept_is_counted() {
        let chunk = Chunk { head: b"head".repeat(100), omitted: 4_000, tail: b"tail".repeat(100), lines: 7 };
        expect![[r"
            Warning: truncated output (original token count: 1200)
            Total output lines: 7

            head…1198 tokens truncated…tail"]]
        .assert_eq(&truncate(&chunk, 8));
        // Even when what is left would fit.
        assert!(truncate(&chunk, 2_000).starts_with("Warning: truncated output (original token count: 1200)\n"));
    }

    #[test]
    fn a_model_may_ask_for_less_or_more() {
        assert_eq!(
            [None, Some(0), Some(100), Some(5_000), Some(u64::MAX)].map(budget),
            [10_000, 0, 400, 20_000, 40_000]
        );
    }
}
