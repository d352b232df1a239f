//! How a line begins, read without parsing the line: enough to tell what it is, and never fooled by a payload.

/// Bytes from the start of a line within which our writers have everything up to `part`: a time of 24 bytes, two
/// numbers of up to 10 digits, one of up to 20, and the longest name of a type leave some over.
pub(crate) const FRONT: usize = 192;

/// The front of a line as our writers lay it out. Other layouts are as good, but have to be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Front<'a> {
    pub(crate) ordinal: u64,
    pub(crate) kind: &'a str,
    pub(crate) part: Option<[u32; 2]>,
}

impl<'a> Front<'a> {
    /// That of a line with these first bytes.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        let text = line.get(..FRONT).unwrap_or(line);
        // Letters of several bytes only stand behind the front; they may be cut in the middle.
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).ok()?,
        };
        let rest = text.strip_prefix(r#"{"timestamp":""#)?;
        let (_, rest) = rest.split_once('"')?;
        let rest = rest.strip_prefix(r#","ordinal":"#)?;
        let (ordinal, rest) = rest.split_once(',')?;
        let rest = rest.strip_prefix(r#""type":""#)?;
        let (kind, rest) = rest.split_once('"')?;
        // An escape in a name is for the parser.
        if kind.contains('\\') {
            return None;
        }
        let part = match rest.strip_prefix(r#","part":["#) {
            None if rest.starts_with(r#","payload":"#) || rest.starts_with(r#","metadata":"#) => None,
            None => return None,
            Some(rest) => {
                let (index, rest) = rest.split_once(',')?;
                let (count, _) = rest.split_once(']')?;
                Some([index.parse().ok()?, count.parse().ok()?])
            }
        };
        Some(Self { ordinal: ordinal.parse().ok()?, kind, part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use crate::fixture::{accepted, mail, time, turn, words};
    use crate::{ItemRecord, Record};
    use protocol::{Item, MailKind, Role};

    fn check(line: &str, expect: Option<(u64, &str, Option<[u32; 2]>)>) {
        let expect = expect.map(|(ordinal, kind, part)| Front { ordinal, kind, part });
        assert_eq!(Front::of(line.as_bytes()), expect, "{line}");
    }

    #[test]
    fn what_is_written_is_recognised() {
        let item = ItemRecord {
            item: Item::message(Role::User, "ä"),
            effect: Some(protocol::EffectId::new()),
            mail: Vec::new(),
            turn: None,
            copied_from: None,
        };
        for record in
            [turn(1), words("\"type\":\"compacted\""), accepted(mail(3, 0, MailKind::Input)), Record::Item(item)]
        {
            for part in [None, Some([2, 3]), Some([u32::MAX, u32::MAX])] {
                let mut line = Vec::new();
                encode(&mut line, time(0), u64::MAX, part, &record).unwrap();
                let front = Front::of(&line).unwrap();
                assert_eq!((front.ordinal, front.kind, front.part), (u64::MAX, record.kind(), part));
            }
        }
    }

    #[test]
    fn what_is_laid_out_otherwise_is_left_to_the_parser() {
        check(r#"{"timestamp":"t","ordinal":3,"type":"mail","payload":{}}"#, Some((3, "mail", None)));
        check(
            r#"{"timestamp":"t","ordinal":3,"type":"mail","part":[1,4],"payload":{}}"#,
            Some((3, "mail", Some([1, 4]))),
        );
        check(r#"{"timestamp":"t","type":"mail","payload":{}}"#, None);
        check(r#"{"timestamp":"t","ordinal":3,"type":"mail","more":1,"part":[1,4],"payload":{}}"#, None);
        check(r#"{"ordinal":3,"type":"mail","payload":{}}"#, None);
        check(r#"{"timestamp":"t","ordinal":3,"type":"m\u0061il","payload":{}}"#, None);
        check(r#"{"timestamp":"t","ordinal":"3","type":"mail","payload":{}}"#, None);
        check("", None);
        check("{\"timestamp\":\"\u{e4}", None);
    }
}
