//! The patterns of scripts: plain text that must occur, `*` for anything, `{name}` for what is to be remembered.

/// A pattern. It matches anywhere in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Anything, line breaks included.
    Any,
    /// What this name stands for: some characters of one line, up to the text that follows or the line's end.
    Name(String),
}

impl Pattern {
    /// A pattern of text and `*`.
    pub(crate) fn plain(text: &str) -> Self {
        let mut parts = Vec::new();
        for (n, piece) in text.split('*').enumerate() {
            if n > 0 {
                parts.push(Part::Any);
            }
            if !piece.is_empty() {
                parts.push(Part::Text(piece.to_owned()));
            }
        }
        Self { parts }
    }

    /// A pattern with names. A brace that is meant as such is doubled.
    pub(crate) fn capturing(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '{' | '}' if chars.next_if_eq(&c).is_some() => literal.push(c),
                '}' => return Err(format!("`{text}` has a `}}` without `{{`; a brace meant as such is written twice")),
                '*' => {
                    flush(&mut literal, &mut parts);
                    parts.push(Part::Any);
                }
                '{' => {
                    let name: String = std::iter::from_fn(|| chars.next_if(|c| *c != '}')).collect();
                    if chars.next().is_none() || !is_name(&name) {
                        return Err(format!(
                            "`{text}`: a name in braces has letters, digits and `_` only, as in `{{file}}`; \
                             a brace meant as such is written twice"
                        ));
                    }
                    flush(&mut literal, &mut parts);
                    if !matches!(parts.last(), Some(Part::Text(_))) {
                        return Err(format!("`{text}` needs some text before `{{{name}}}`, to know where it begins"));
                    }
                    parts.push(Part::Name(name));
                }
                _ => literal.push(c),
            }
        }
        flush(&mut literal, &mut parts);
        Ok(Self { parts })
    }

    /// The names it has, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) | Part::Any => None,
        })
    }

    /// Whether it occurs in `text`.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// What its names stand for at the first place where it occurs.
    pub(crate) fn find<'a>(&self, text: &'a str) -> Option<Vec<(&str, &'a str)>> {
        let Some(Part::Text(first)) = self.parts.first() else {
            return self.at(text);
        };
        let mut from = 0;
        while let Some(at) = text[from..].find(first.as_str()) {
            let start = from + at;
            if let Some(found) = self.at(&text[start..]) {
                return Some(found);
            }
            from = start + first.chars().next().map_or(1, char::len_utf8);
        }
        None
    }

    /// Matches from the beginning of `rest`. What a `*` or a name stands for is as short as can be.
    fn at<'a>(&self, mut rest: &'a str) -> Option<Vec<(&str, &'a str)>> {
        let mut found = Vec::new();
        let mut open = false;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(text) => {
                    let at = if open { rest.find(text.as_str()) } else { rest.starts_with(text.as_str()).then_some(0) };
                    rest = &rest[at? + text.len()..];
                    open = false;
                }
                Part::Any => open = true,
                Part::Name(name) => {
                    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
                    let end = match parts.peek() {
                        Some(Part::Text(next)) => line_end(rest, line, next)?,
                        _ => line.len(),
                    };
                    let value = line[..end].trim();
                    if value.is_empty() {
                        return None;
                    }
                    found.push((name.as_str(), value));
                    rest = &rest[end..];
                }
            }
        }
        Some(found)
    }
}

/// Where a name's text ends: at `next`, which must begin on the same line.
fn line_end(rest: &str, line: &str, next: &str) -> Option<usize> {
    rest.find(next).filter(|end| *end <= line.len())
}

fn flush(literal: &mut String, parts: &mut Vec<Part>) {
    if !literal.is_empty() {
        parts.push(Part::Text(std::mem::take(literal)));
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether `path` is one of those that `glob` means: `*` is any part of one segment, a last segment `**` anything
/// below, and the place itself.
pub(crate) fn glob(glob: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let mut wanted = glob.split('/').peekable();
    while let Some(want) = wanted.next() {
        if want == "**" && wanted.peek().is_none() {
            return true;
        }
        if !segments.next().is_some_and(|segment| segment_matches(want, segment)) {
            return false;
        }
    }
    segments.next().is_none()
}

fn segment_matches(want: &str, segment: &str) -> bool {
    let Some((first, rest)) = want.split_once('*') else { return want == segment };
    let Some(mut left) = segment.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
