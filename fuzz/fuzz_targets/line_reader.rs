//! The verdict on each line depends on its bytes alone. The first byte is the cap, the second the length of pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use segue_protocol::{Line, LineReader};

fn lines(most: usize, pieces: impl Iterator<Item: AsRef<[u8]>>) -> Vec<Line> {
    let mut reader = LineReader::new(most);
    let mut found = Vec::new();
    for piece in pieces {
        let mut input = piece.as_ref();
        while let Some(line) = reader.take(&mut input) {
            found.push(line);
        }
    }
    found.extend(reader.rest());
    found
}

fuzz_target!(|data: &[u8]| {
    let [most, piece, bytes @ ..] = data else { return };
    let (most, piece) = (usize::from(*most), usize::from(*piece).max(1));
    let whole = lines(most, std::iter::once(bytes));
    assert_eq!(lines(most, bytes.chunks(piece)), whole);
    // A plain reading of the rule.
    let mut parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if parts.last() == Some(&&b""[..]) {
        parts.pop();
    }
    assert_eq!(parts.len(), whole.len());
    for (part, line) in parts.iter().zip(&whole) {
        let text = part.strip_suffix(b"\r").unwrap_or(part);
        match line {
            Line::TooLong => assert!(part.len() > most),
            Line::NotUtf8 => assert!(part.len() <= most && std::str::from_utf8(text).is_err()),
            Line::Text(found) => assert!(part.len() <= most && found.as_bytes() == text),
        }
    }
});
