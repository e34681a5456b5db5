//! A station's titles on their way to the reader: each waits for the byte at which it stands. Pure.

use std::collections::VecDeque;

use super::icy::StreamTitle;

/// Titles that wait at the most; the oldest gives way.
const MOST: usize = 64;
/// What a reader gets at once of a live stream, in bytes, so that it does not run far into the next title.
const STEP: usize = 2 * 1024;

/// Titles with the offset of the first byte that they belong to, in order.
#[derive(Debug, Default)]
pub(super) struct Titles {
    waiting: VecDeque<(u64, StreamTitle)>,
}

impl Titles {
    /// A title that belongs to what follows `at`.
    pub fn push(&mut self, at: u64, title: StreamTitle) {
        // Of two at the same byte only the newer is ever seen, and none stands before an older one.
        self.begin_anew(at);
        if self.waiting.len() == MOST {
            self.waiting.pop_front();
        }
        self.waiting.push_back((at, title));
    }

    /// Another recording begins at `at`: a title that came with the last byte before it belongs to nothing.
    pub fn begin_anew(&mut self, at: u64) {
        while self.waiting.back().is_some_and(|(last, _)| *last >= at) {
            self.waiting.pop_back();
        }
    }

    /// How much a reader at `reader` may read at once: never across a title.
    pub fn most(&self, reader: u64, live: bool) -> usize {
        let next = self.waiting.iter().map(|(at, _)| *at).find(|at| *at > reader);
        let most = next.map_or(usize::MAX, |at| usize::try_from(at - reader).unwrap_or(usize::MAX));
        if live { most.min(STEP) } else { most }
    }

    /// Whether the reader has read a byte of one.
    pub fn is_due(&self, reader: u64) -> bool {
        self.waiting.front().is_some_and(|(at, _)| *at < reader)
    }

    /// The newest that the reader has read a byte of; older ones are forgotten.
    pub fn take(&mut self, reader: u64) -> Option<StreamTitle> {
        let mut newest = None;
        while self.is_due(reader) {
            newest = self.waiting.pop_front().map(|(_, title)| title);
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(text: &str) -> StreamTitle {
        StreamTitle { text: text.to_owned(), url: None }
    }

    #[test]
    fn a_title_is_due_with_its_first_byte_and_read_up_to_exactly() {
        let mut titles = Titles::default();
        titles.push(5_000, title("a"));
        assert_eq!((titles.most(0, true), titles.most(0, false)), (STEP, 5_000));
        assert_eq!(titles.most(4_990, true), 10);
        assert_eq!(titles.most(5_000, true), STEP);
        assert!(!titles.is_due(5_000) && titles.is_due(5_001));
        assert_eq!(titles.take(5_000), None);
        assert_eq!(titles.take(5_001), Some(title("a")));
        assert_eq!(titles.take(5_001), None);
    }

    #[test]
    fn the_newest_that_was_reached_counts_and_their_number_is_bounded() {
        let mut titles = Titles::default();
        for at in 1..1_000 {
            titles.push(at * 10, title(&at.to_string()));
        }
        titles.push(9_990, title("instead"));
        assert_eq!(titles.waiting.len(), MOST);
        assert_eq!(titles.take(9_985), Some(title("998")));
        assert_eq!(titles.take(10_000), Some(title("instead")));
    }
}
