//! Lines with a hard cap, in whatever pieces their bytes arrive.

/// The longest line in bytes without its `\n`, either way.
pub const MAX_LINE_BYTES: usize = 10 * 1024 * 1024;
/// A buffer beyond this is given back after its line, so that one long reply does not cost memory for ever.
const KEPT_BYTES: usize = 64 * 1024;

/// A whole line, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// What it says.
    Text(String),
    /// More than the cap; its bytes were not kept.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
}

/// Puts lines together. The verdict on a line depends on its bytes alone, not on the pieces.
///
/// A codec that hands out copies of its buffer would hold a long line twice; here the buffer becomes the line.
#[derive(Debug)]
pub struct LineReader {
    line: Vec<u8>,
    discarding: bool,
    most: usize,
}

impl Default for LineReader {
    fn default() -> Self {
        LineReader::new(MAX_LINE_BYTES)
    }
}

impl LineReader {
    /// Lines of at most `most` bytes.
    pub fn new(most: usize) -> LineReader {
        LineReader { line: Vec::new(), discarding: false, most }
    }

    /// Takes bytes from the front of `input` until a line is whole; `None` when all are taken.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Line> {
        match input.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.keep(&input[..end]);
                *input = &input[end + 1..];
                Some(self.finish())
            }
            None => {
                self.keep(input);
                *input = &[];
                None
            }
        }
    }

    /// What was written after the last line's end, when no more will come.
    pub fn rest(&mut self) -> Option<Line> {
        (self.discarding || !self.line.is_empty()).then(|| self.finish())
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.discarding {
            return;
        }
        if self.line.len() + bytes.len() > self.most {
            self.discarding = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn finish(&mut self) -> Line {
        if std::mem::take(&mut self.discarding) {
            return Line::TooLong;
        }
        let mut bytes = if self.line.len() > KEPT_BYTES {
            std::mem::take(&mut self.line)
        } else {
            let bytes = self.line.clone();
            self.line.clear();
            bytes
        };
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        String::from_utf8(bytes).map_or(Line::NotUtf8, Line::Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(reader: &mut LineReader, pieces: &[&[u8]]) -> Vec<Line> {
        let mut found = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(line) = reader.take(&mut input) {
                found.push(line);
            }
        }
        found.extend(reader.rest());
        found
    }

    proptest! {
        #[test]
        fn the_verdict_does_not_depend_on_the_pieces(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            cut in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let whole = lines(&mut LineReader::new(16), &[&bytes]);
            let singly: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&lines(&mut LineReader::new(16), &singly), &whole);
            let mut cuts: Vec<usize> = cut.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&lines(&mut LineReader::new(16), &pieces), &whole);
        }
    }

    #[test]
    fn the_longest_line_passes_and_one_byte_more_does_not() {
        for (len, passes) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            for piece in [len, 4_096] {
                let line = vec![b'x'; len];
                let mut pieces: Vec<&[u8]> = line.chunks(piece).collect();
                pieces.push(b"\nnext\r\n");
                let found = lines(&mut LineReader::default(), &pieces);
                assert_eq!(matches!(&found[0], Line::Text(text) if text.len() == len), passes);
                assert_eq!(found[0] == Line::TooLong, !passes);
                assert_eq!(found[1..], [Line::Text("next".to_owned())]);
            }
        }
    }
}
