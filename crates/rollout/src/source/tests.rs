use super::*;

/// Bytes as a file.
struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    /// Never more than asked for, and less now and then, as a system may.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap().min(self.0.len());
        let most = if into.len() > 7 { into.len() - 5 } else { into.len() };
        let read = most.min(self.0.len() - from);
        into[..read].copy_from_slice(&self.0[from..from + read]);
        Ok(read)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

pub(crate) fn source(bytes: &[u8]) -> Source {
    Source { len: bytes.len() as u64, reader: Box::new(Bytes(bytes.to_vec())), forwards: false }
}

/// Offset, length, and whether it is whole, of every line; and where reading ended.
fn walk(source: &Source) -> (Vec<(u64, u64, bool)>, u64) {
    let mut lines = Vec::new();
    let mut walk = Walk::new(source, 0);
    while let Some(line) = walk.next().unwrap() {
        assert_eq!(line.text.ends_with(b"\n"), line.whole);
        lines.push((line.offset, line.bytes, line.whole));
    }
    (lines, walk.end())
}

fn starts_backwards(source: &Source) -> Vec<u64> {
    let mut starts = Vec::new();
    let none = source.backwards(|offset, front| {
        let mut same = vec![0; front.len()];
        assert_eq!(source.fill(offset, &mut same).unwrap(), front.len());
        assert_eq!(same, front);
        starts.push(offset);
        Ok(false)
    });
    assert_eq!(none.unwrap(), None);
    starts
}

/// Lines of every size around that of what is read at once, forwards and backwards.
#[test]
fn lines_are_found_across_reads() {
    let sizes =
        [1, 2, 100, FIRST - 1, FIRST, FIRST + 1, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3, 4 * CHUNK + 7, 5 * CHUNK, 1];
    let mut bytes = Vec::new();
    let mut expect = Vec::new();
    for size in sizes {
        expect.push((bytes.len() as u64, size as u64, true));
        bytes.extend(std::iter::repeat_n(b'x', size - 1));
        bytes.push(b'\n');
    }
    let whole = bytes.len() as u64;
    for tail in [&b""[..], b"torn"] {
        let source = source(&[&bytes[..], tail].concat());
        assert_eq!(walk(&source), (expect.clone(), whole + tail.len() as u64));
        let mut starts: Vec<u64> = expect.iter().map(|(offset, ..)| *offset).chain([whole]).skip(1).collect();
        starts.reverse();
        assert_eq!(starts_backwards(&source), starts);
    }
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
    let front = br#"{"timestamp":"t","ordinal":9,"type":"mail","part":[2,3],"payload":""#;
    let mut bytes = b"first\n".to_vec();
    bytes.extend_from_slice(front);
    bytes.resize(6 + MAX_LINE + CHUNK, b'x');
    bytes.extend_from_slice(b"\nlast\n");
    let long = (MAX_LINE + CHUNK + 1) as u64;
    let file = source(&bytes);
    assert_eq!(walk(&file).0, [(0, 6, true), (6, long, false), (6 + long, 5, true)]);
    let mut lines = Walk::new(&file, 6);
    let line = lines.next().unwrap().unwrap();
    assert_eq!(line.front(), Some(Front { ordinal: 9, kind: "mail", part: Some([2, 3]) }));
    assert!(!line.has_zeros());
    // What was taken for it is given back.
    lines.next().unwrap();
    assert!(lines.buffer.capacity() < 4 * CHUNK, "{}", lines.buffer.capacity());
    // A page of it that never reached the disk shows, and so does the missing end of a file.
    bytes[MAX_LINE + 9] = 0;
    assert!(Walk::new(&source(&bytes), 6).next().unwrap().unwrap().has_zeros());
    bytes.truncate(MAX_LINE + CHUNK);
    assert_eq!(walk(&source(&bytes)), (vec![(0, 6, true)], bytes.len() as u64));
}

#[test]
fn a_file_that_somebody_cuts_is_shorter_and_no_more() {
    let mut short = source(b"one\ntwo\nthree\n");
    short.len = 1 << 30;
    assert_eq!(walk(&short), (vec![(0, 4, true), (4, 4, true), (8, 6, true)], 14));
}
