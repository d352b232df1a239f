//! Cutting text at UTF-8 boundaries, and finding the nearest known word.

/// The largest index `<= at` that is a character boundary of `text`.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// A text cut in the middle.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// What was kept of the beginning.
    pub head: &'a str,
    /// How many bytes were left out between head and tail.
    pub omitted: usize,
    /// What was kept of the end.
    pub tail: &'a str,
}

/// Cuts `text` in the middle so that head and tail together have at most `max` bytes. `None` when it fits.
pub fn cut_middle(text: &str, max: usize) -> Option<Cut<'_>> {
    if text.len() <= max {
        return None;
    }
    let head = floor_boundary(text, max / 2);
    let tail = text.ceil_char_boundary(text.len() - (max - max / 2));
    Some(Cut { head: &text[..head], omitted: tail - head, tail: &text[tail..] })
}

/// The longest beginning of `text` with at most `max` bytes that ends on a character boundary.
pub fn cut_end(text: &str, max: usize) -> &str {
    &text[..floor_boundary(text, max)]
}

/// `text` on one line of at most `max` characters: white space is folded, control characters are dropped,
/// and what is cut is marked with `…`.
pub fn one_line(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(!out.is_empty());
        for c in std::iter::repeat_n(' ', gap).chain(word.chars().filter(|c| !c.is_control())) {
            if count == max {
                out.pop();
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// The candidate that differs least from `word`, if it differs by no more than a third of its letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .min()
        .filter(|(d, c)| *d * 3 <= c.chars().count().max(word.chars().count()))
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middle_is_cut_on_boundaries() {
        assert_eq!(cut_middle("abcdef", 6), None);
        assert_eq!(cut_middle("abcdef", 4), Some(Cut { head: "ab", omitted: 2, tail: "ef" }));
        let text = "äöüß".repeat(50);
        for max in 0..text.len() {
            let cut = cut_middle(&text, max).unwrap();
            assert!(cut.head.len() + cut.tail.len() <= max);
            assert_eq!(cut.head.len() + cut.omitted + cut.tail.len(), text.len());
        }
    }

    #[test]
    fn one_line_folds_and_marks() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("abcd", 4), "abcd");
        assert_eq!(one_line("\u{1b}[31mred", 9), "[31mred");
    }

    #[test]
    fn nearest_word() {
        let known = ["model", "sandbox", "max_running"];
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("max-running", known), Some("max_running"));
        assert_eq!(nearest("zebra", known), None);
    }
}
