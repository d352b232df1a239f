use std::io::{Read as _, Write as _};

use super::*;

const LABEL: Label = Label { owner: 1 << 100, bytes: 7, ordinal: 2, last_line_bytes: 3, checksum: u64::MAX - 1 };

fn packed(text: &[u8], label: Option<&Label>) -> Vec<u8> {
    let mut packer = Packer::new(Vec::new(), text.len() as u64).unwrap();
    packer.write_all(text).unwrap();
    packer.finish(label).unwrap()
}

fn unpacked(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Unpacker::new(bytes)?.read_to_end(&mut text)?;
    Ok(text)
}

fn text() -> Vec<u8> {
    (0..30_000_u32)
        .flat_map(|n| format!("{{\"ordinal\":{n},\"payload\":{}}}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

#[test]
fn what_goes_in_comes_out_and_is_smaller() {
    let text = text();
    for label in [None, Some(&LABEL)] {
        let bytes = packed(&text, label);
        assert!(bytes.len() < text.len() / 2, "{} of {}", bytes.len(), text.len());
        assert!(unpacked(&bytes).unwrap() == text);
        assert_eq!(Label::at_end(&bytes), label.copied());
    }
}

#[test]
fn a_label_is_believed_only_when_it_is_whole() {
    let bytes = packed(b"a text", Some(&LABEL));
    assert_eq!(Label::at_end(&bytes[bytes.len() - Label::LEN..]), Some(LABEL));
    assert_eq!(Label::at_end(&bytes[..bytes.len() - 1]), None);
    assert_eq!(Label::at_end(&bytes[bytes.len() - 8..]), None);
    for at in bytes.len() - Label::LEN..bytes.len() - 48 {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert_eq!(Label::at_end(&other), None, "its head and its mark");
    }
}

/// Cut anywhere in the text's frame, or with any byte of it changed, it is an error and no shorter or other text.
#[test]
fn damage_is_told() {
    let text = text();
    let bytes = packed(&text, None);
    let cuts = (0..200).chain((200..bytes.len()).step_by(997)).chain([bytes.len() - 4, bytes.len() - 1]);
    for cut in cuts {
        let error = unpacked(&bytes[..cut]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "cut to {cut} of {}: {error}", bytes.len());
    }
    for at in (0..64).chain((64..bytes.len()).step_by(997)).chain([bytes.len() - 1]) {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        assert!(unpacked(&other).map_or(true, |came| came == text), "byte {at} of {}", bytes.len());
    }
    let mut other = bytes.clone();
    other[bytes.len() / 2] ^= 0x10;
    assert!(unpacked(&other).is_err());
    let labelled = packed(&text, Some(&LABEL));
    let label = &labelled[labelled.len() - Label::LEN..];
    assert!(unpacked(label).is_err(), "a label is no text");
}

#[test]
fn another_length_than_announced_is_refused() {
    let mut packer = Packer::new(Vec::new(), 5).unwrap();
    packer.write_all(b"four").unwrap();
    packer.finish(None).unwrap_err();
}
