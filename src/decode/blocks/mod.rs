//! Which frame a block of Matroska or WebM begins with. Those tell only in milliseconds; counting tells exactly.

mod length;

pub(super) use length::{Lengths, is_even};

/// Every so many blocks are noted at first; whenever there are too many notes, every second one goes.
const FIRST_STEP: u64 = 16;
const MOST_NOTES: usize = 4096;

/// Where the number of a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// All blocks before it were counted.
    Counted,
    /// The packet itself tells, or all are of one length, so that its time says which one it is.
    Told,
    /// From its time, which is rounded.
    Timed,
}

/// A block whose frames are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    /// The container's time of the block.
    pub(super) ts: i64,
    /// The raw frame that follows the block's last.
    pub(super) end: i64,
}

/// Counts the frames of blocks that come in order from the first one on. Memory: 64 KiB.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Of blocks 0, `step`, 2 × `step`, …, but for those that share their time with the one before.
    notes: Vec<Note>,
    step: u64,
    passed: u64,
    /// The last block that was counted.
    tail: Option<Note>,
    /// That one is the last of all.
    whole: bool,
    /// Something is missing behind the tail, over which nobody can count.
    torn: bool,
    /// Frames in a block, as long as all had the same number.
    each: Each,
    /// Where the demuxer was sent to.
    awaited: Option<Note>,
}

#[derive(Debug, Default, PartialEq)]
enum Each {
    #[default]
    Unknown,
    Same(u32),
    Various,
}

impl Blocks {
    /// A block was counted, and follows the one before it. What has been counted before is passed over.
    pub(super) fn pass(&mut self, block: Note, frames: u32) {
        if self.torn || self.tail.is_some_and(|tail| block.end <= tail.end) {
            return;
        }
        self.each = match self.each {
            Each::Unknown => Each::Same(frames),
            Each::Same(same) if same == frames => Each::Same(same),
            _ => Each::Various,
        };
        let is_later = self.tail.is_none_or(|tail| block.ts > tail.ts);
        self.step = self.step.max(FIRST_STEP);
        if is_later && self.passed.is_multiple_of(self.step) {
            self.notes.push(block);
            if self.notes.len() > MOST_NOTES {
                let mut index = 0;
                self.notes.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.step *= 2;
            }
        }
        self.passed += 1;
        self.tail = Some(block);
    }

    /// What is behind the last counted block does not follow it.
    pub(super) fn tear(&mut self) {
        self.torn = true;
    }

    /// There is no block behind the last counted one.
    pub(super) fn finish(&mut self) {
        self.whole = true;
    }

    /// The raw frame up to which all is counted.
    pub(super) fn end(&self) -> Option<i64> {
        self.tail.map(|tail| tail.end)
    }

    /// Whether it is known where this raw frame is, or that it is behind the end.
    pub(super) fn know(&self, raw: i64) -> bool {
        self.tail.is_some_and(|tail| raw < tail.end || self.whole)
    }

    /// Whether counting may go on behind the tail.
    pub(super) fn may_grow(&self) -> bool {
        self.tail.is_some() && !self.torn && !self.whole
    }

    /// The last noted block that is over before this raw frame.
    pub(super) fn before(&self, raw: i64) -> Option<Note> {
        let behind = self.notes.partition_point(|note| note.end <= raw);
        self.notes[..behind].last().copied()
    }

    /// What a block holds, where all that were counted held the same.
    pub(super) fn each(&self) -> Option<u32> {
        match self.each {
            Each::Same(frames) => Some(frames),
            _ => None,
        }
    }

    /// The demuxer was sent to this block, and may give others before it.
    pub(super) fn wait_for(&mut self, block: Option<Note>) {
        self.awaited = block;
    }

    /// Whether a block comes before the one that is waited for.
    pub(super) fn pass_over(&self, ts: i64) -> bool {
        self.awaited.is_some_and(|note| ts < note.ts)
    }

    /// The frame behind a block, if it is the one that was waited for. Any block ends the waiting.
    pub(super) fn arrive(&mut self, ts: i64) -> Option<i64> {
        self.awaited.take().filter(|note| note.ts == ts).map(|note| note.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_frame_that_was_counted_is_found(
            lengths in prop::collection::vec(1u32..2000, 1..300),
            rate in prop::sample::select(vec![8_000i64, 44_100, 48_000, 96_000]),
        ) {
            let (mut blocks, mut all, mut raw) = (Blocks::default(), Vec::new(), 0i64);
            for &frames in &lengths {
                let ts = raw * 1000 / rate;
                raw += i64::from(frames);
                all.push(Note { ts, end: raw });
                blocks.pass(Note { ts, end: raw }, frames);
            }
            prop_assert_eq!(blocks.end(), Some(raw));
            prop_assert!(blocks.know(raw - 1) && !blocks.know(raw));
            for wanted in (0..raw).step_by(97) {
                let Some(note) = blocks.before(wanted) else {
                    prop_assert!(wanted < i64::from(lengths[0]), "the first block is noted");
                    continue;
                };
                prop_assert!(note.end <= wanted);
                // The first block of that time is the one that was noted, so that it is found by its time.
                prop_assert_eq!(all.iter().find(|block| block.ts == note.ts), Some(&note));
            }
        }
    }

    #[test]
    fn notes_are_thinned_out_and_stay_right() {
        let mut blocks = Blocks::default();
        for n in 0..200_000i64 {
            blocks.pass(Note { ts: n * 20, end: (n + 1) * 960 }, 960);
            // Heard again after a jump back.
            blocks.pass(Note { ts: n * 10, end: (n / 2 + 1) * 960 }, 960);
        }
        assert!(blocks.notes.len() <= MOST_NOTES, "{}", blocks.notes.len());
        let note = blocks.before(150_000 * 960 + 5).unwrap();
        assert!(note.end == (note.ts / 20 + 1) * 960 && note.ts > 149_900 * 20, "{note:?}");
        assert_eq!(blocks.each(), Some(960));
    }

    #[test]
    fn nothing_is_counted_over_a_gap_and_what_is_waited_for_is_known_by_its_time() {
        let mut blocks = Blocks::default();
        blocks.pass(Note { ts: 0, end: 1024 }, 1024);
        blocks.tear();
        blocks.pass(Note { ts: 90, end: 5000 }, 1024);
        assert_eq!((blocks.end(), blocks.may_grow()), (Some(1024), false));
        blocks.wait_for(Some(Note { ts: 46, end: 3072 }));
        assert!(blocks.pass_over(23) && !blocks.pass_over(46));
        assert_eq!(blocks.arrive(46), Some(3072));
        assert_eq!(blocks.arrive(46), None);
        blocks.wait_for(Some(Note { ts: 46, end: 3072 }));
        assert_eq!(blocks.arrive(70), None, "it was missed");
    }
}
