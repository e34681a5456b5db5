//! Where the frames of an MP3, or of AAC in ADTS, begin: known for what has passed, guessed for the rest.

use std::io::{self, Read};

use super::header::{Frame, HEADER, Kind};
use super::toc::Toc;

/// Every so many frames are noted at first; whenever there are too many notes, every second one goes.
const FIRST_STEP: u64 = 16;
const MOST_NOTES: usize = 4096;
/// The bytes that a frame of an MP3 may borrow from those before it.
const RESERVOIR: u64 = 511;
/// Frames that a decoder needs beside those: the overlap and the filter bank.
const OVERLAP: u64 = 2;
/// A tag at the end, by its first bytes, and how much may follow from there on.
const TAGS_BEHIND: [(&[u8], u64); 3] = [(b"TAG", 512), (b"APETAGE", 1024 * 1024), (b"LYRICSB", 128 * 1024)];
/// Length of the head of a tag of ID3v2.
const ID3V2: usize = 10;
/// A first frame that is longer than this is none.
const LONGEST: usize = 8 * 1024;

/// Where to read on, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decode) struct Entrance {
    /// Offset of a frame's header; about there, if it is a guess.
    pub(in crate::decode) byte: u64,
    /// That frame's number.
    pub(in crate::decode) frame: u64,
    /// Seen, not guessed.
    pub(in crate::decode) exact: bool,
}

/// Sees all bytes that pass in order, and notes where frames begin. Memory: 32 KiB.
#[derive(Debug)]
pub(in crate::decode) struct Index {
    kind: Kind,
    /// The next frame, how much of its beginning is wanted, and what of that has passed.
    at: u64,
    peek: usize,
    part: Vec<u8>,
    /// Bytes of the first frame, which may hold a table, until it is whole.
    first: Vec<u8>,
    shape: Option<Frame>,
    toc: Option<Toc>,
    /// Where the first frame of sound begins.
    start: u64,
    /// Offsets of frames 0, `step`, 2 × `step`, …
    notes: Vec<u64>,
    step: u64,
    /// Frames that have passed.
    passed: u64,
    /// All of them have one bit rate.
    constant: bool,
    /// What comes is no frame: the end, a tag, or damage, behind which numbers mean nothing.
    stopped: bool,
    /// Nothing follows if the input goes no further than this; 0 where frames may follow.
    ends_within: u64,
    /// Length of the tag that it stopped at, behind which another recording may be.
    between: u64,
}

impl Index {
    pub(in crate::decode) fn of_mpeg() -> Index {
        Index::new(Kind::Mpeg)
    }

    pub(in crate::decode) fn of_adts() -> Index {
        Index::new(Kind::Adts)
    }

    fn new(kind: Kind) -> Index {
        Index {
            kind,
            at: 0,
            peek: HEADER,
            part: Vec::new(),
            first: Vec::new(),
            shape: None,
            toc: None,
            start: 0,
            notes: Vec::new(),
            step: FIRST_STEP,
            passed: 0,
            constant: true,
            stopped: false,
            ends_within: 0,
            between: 0,
        }
    }

    /// Samples in a frame.
    pub(in crate::decode) fn samples(&self) -> Option<u64> {
        self.shape.map(|frame| u64::from(frame.samples))
    }

    /// What the encoder found out about the loudness, in dB to ReplayGain's aim.
    pub(in crate::decode) fn gain_db(&self) -> Option<f32> {
        self.toc.as_ref()?.gain_db
    }

    /// Where the next bytes are wanted; None when no more are.
    pub(in crate::decode) fn wants(&self) -> Option<u64> {
        let read = (self.first.len() + self.part.len()) as u64;
        (!self.stopped).then_some(self.at + read)
    }

    /// These bytes lie at this offset. Those that are not wanted next are passed over.
    pub(in crate::decode) fn pass(&mut self, pos: u64, bytes: &[u8]) {
        while let Some(wanted) = self.wants() {
            let Some(skip) = wanted.checked_sub(pos) else { return };
            let Some(bytes) = usize::try_from(skip).ok().and_then(|skip| bytes.get(skip..)) else { return };
            if bytes.is_empty() {
                return;
            }
            self.take(bytes);
        }
    }

    /// Walks on over what `read` gives, from where bytes are wanted, until so many frames have passed.
    pub(in crate::decode) fn walk(&mut self, read: &mut impl Read, until: u64) -> io::Result<()> {
        let mut buf = vec![0; 16 * 1024];
        let mut pos = self.wants().unwrap_or(0);
        while !self.stopped && self.passed <= until {
            let n = read.read(&mut buf)?;
            if n == 0 {
                (self.stopped, self.ends_within) = (true, u64::MAX);
            }
            self.pass(pos, &buf[..n]);
            pos += n as u64;
        }
        Ok(())
    }

    /// Where to read on so that this frame comes out as it should; its number may be that of none.
    pub(in crate::decode) fn entrance(&self, frame: u64) -> Option<Entrance> {
        let shape = self.shape?;
        let from = frame.saturating_sub(self.lead(&shape));
        if from < self.passed {
            let note = usize::try_from(from / self.step).ok()?.min(self.notes.len().checked_sub(1)?);
            return Some(Entrance { byte: self.notes[note], frame: note as u64 * self.step, exact: true });
        }
        if from == 0 {
            return Some(Entrance { byte: self.start, frame: 0, exact: true });
        }
        let guess = self.guess(from, &shape);
        let byte = if guess < self.at { guess } else { guess.saturating_add(self.between) };
        Some(Entrance { byte, frame: from, exact: false })
    }

    /// How many frames have passed, if those are all of an input of `len` bytes.
    pub(in crate::decode) fn total(&self, len: Option<u64>) -> Option<u64> {
        let left = len.map_or(0, |len| len.saturating_sub(self.at));
        let ended = self.stopped && self.ends_within > 0 && left <= self.ends_within;
        (ended && self.passed > 0).then_some(self.passed)
    }

    /// Whether a frame has passed.
    pub(in crate::decode) fn knows(&self, frame: u64) -> bool {
        frame < self.passed
    }

    /// Finds the first frame at or behind the beginning of these bytes.
    pub(in crate::decode) fn find(&self, bytes: &[u8]) -> Option<usize> {
        let shape = self.shape?;
        (0..bytes.len()).find(|&at| {
            let is_as_long = |frame: &Frame| (frame.samples, frame.rate) == (shape.samples, shape.rate);
            let Some(frame) = self.kind.parse(&bytes[at..]).filter(is_as_long) else { return false };
            // Sound may look like a header, but not twice in the right distance.
            let behind = bytes.get(at + frame.len as usize..).and_then(|rest| self.kind.parse(rest));
            behind.is_some_and(|behind| behind.is_like(&frame))
        })
    }

    /// Frames to decode before one, for what it borrows from them.
    fn lead(&self, shape: &Frame) -> u64 {
        if self.kind == Kind::Adts {
            return OVERLAP;
        }
        let mean = match self.passed {
            0 => u64::from(shape.len),
            passed => (self.at - self.start) / passed,
        };
        // The frames there may be half as long as the mean.
        OVERLAP + RESERVOIR.div_ceil((mean / 2).saturating_sub(u64::from(shape.side)).max(8))
    }

    fn guess(&self, frame: u64, shape: &Frame) -> u64 {
        let table = self.toc.as_ref();
        let is_constant = table.map_or(self.constant, |table| table.is_constant);
        if let (false, Some(table)) = (is_constant, table)
            && let Some(frames) = table.frames
            && let Some(byte) = table.byte_at(frame as f64 / frames as f64)
        {
            // The table counts from the frame that holds it.
            return self.start.saturating_sub(u64::from(shape.len)) + byte;
        }
        let ahead = frame.saturating_sub(self.passed);
        if is_constant && shape.bit_rate > 0 {
            // Padding evens out what does not divide.
            let bits = u128::from(ahead) * u128::from(shape.samples) * u128::from(shape.bit_rate);
            return self.at + u64::try_from(bits / u128::from(shape.rate) / 8).unwrap_or(u64::MAX);
        }
        let bytes = (self.at - self.start).max(1);
        self.at
            + u64::try_from(u128::from(ahead) * u128::from(bytes) / u128::from(self.passed.max(1)))
                .unwrap_or(u64::MAX)
    }

    /// Takes the next bytes: a header, or the rest of one.
    fn take(&mut self, bytes: &[u8]) {
        if self.shape.is_none() {
            return self.take_first(bytes);
        }
        let missing = self.peek - self.part.len();
        self.part.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        if self.part.len() < self.peek {
            return;
        }
        let alike = |frame: &Frame| self.shape.is_some_and(|shape| shape.is_like(frame));
        let Some(frame) = self.kind.parse(&self.part).filter(alike) else {
            return self.stop();
        };
        if self.part.len() < frame.peek() {
            self.peek = frame.peek();
            return;
        }
        let is_tag = frame.tag(&self.part).is_some();
        self.part.clear();
        self.peek = HEADER;
        if is_tag {
            // Of a recording that was put behind another one: it is no sound.
            self.at += u64::from(frame.len);
        } else {
            self.note(&frame);
        }
    }

    /// What has passed of the next frame is none of this recording.
    fn stop(&mut self) {
        if self.part.starts_with(b"ID3") && self.part.len() < ID3V2 {
            self.peek = ID3V2;
            return;
        }
        self.stopped = true;
        let tag = TAGS_BEHIND.iter().find(|(begins, _)| self.part.starts_with(begins));
        self.ends_within = tag.map_or(0, |(_, longest)| *longest);
        self.between = id3v2(&self.part).unwrap_or(0);
    }

    fn note(&mut self, frame: &Frame) {
        if self.passed.is_multiple_of(self.step) {
            self.notes.push(self.at);
            if self.notes.len() > MOST_NOTES {
                let mut index = 0;
                self.notes.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.step *= 2;
            }
        }
        self.constant &= self.shape.is_some_and(|shape| shape.bit_rate == frame.bit_rate);
        self.passed += 1;
        self.at += u64::from(frame.len);
    }

    /// The beginning: tags of ID3v2, then a frame that may hold a table.
    fn take_first(&mut self, bytes: &[u8]) {
        let room = LONGEST - self.first.len();
        self.first.extend_from_slice(&bytes[..room.min(bytes.len())]);
        if self.first.len() < ID3V2 {
            return;
        }
        if let Some(len) = id3v2(&self.first) {
            self.at += len;
            self.first.clear();
            return;
        }
        let Some(frame) = self.kind.parse(&self.first) else {
            self.stopped = true;
            return;
        };
        let len = frame.len as usize;
        if self.first.len() < len + HEADER {
            self.stopped = room == 0;
            return;
        }
        let toc = if self.kind == Kind::Mpeg { Toc::read(&frame, &self.first[..len]) } else { None };
        let shape = if toc.is_some() { self.kind.parse(&self.first[len..]) } else { Some(frame) };
        let (first, from) = (std::mem::take(&mut self.first), self.at);
        let Some(shape) = shape else {
            self.stopped = true;
            return;
        };
        self.at += if toc.is_some() { u64::from(frame.len) } else { 0 };
        (self.start, self.shape, self.toc) = (self.at, Some(shape), toc);
        self.pass(from, &first);
    }
}

/// The length of the tag that these bytes begin with.
fn id3v2(bytes: &[u8]) -> Option<u64> {
    let [b'I', b'D', b'3', _, _, flags, size @ ..] = bytes.first_chunk::<ID3V2>()? else { return None };
    let size = size.iter().fold(0u64, |size, &b| size << 7 | u64::from(b & 0x7f));
    // A footer repeats the header.
    Some(size + if flags & 0x10 != 0 { 20 } else { 10 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Frames of 128 or 160 kbit/s, whose sound is zeros, behind a tag; and where they begin.
    fn recording(rates: &[bool]) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = b"ID3\x04\0\0\0\0\x01\x00".to_vec();
        bytes.resize(10 + 128, 7);
        let mut starts = Vec::new();
        for &high in rates {
            starts.push(bytes.len() as u64);
            let at = bytes.len();
            bytes.extend([0xff, 0xfb, if high { 0xa0 } else { 0x90 }, 0x44]);
            bytes.resize(at + if high { 522 } else { 417 }, 0);
        }
        (bytes, starts)
    }

    fn passed(bytes: &[u8], sizes: &[usize]) -> Index {
        let (mut index, mut pos) = (Index::of_mpeg(), 0);
        for &size in sizes.iter().cycle() {
            let piece = &bytes[pos..(pos + size.max(1)).min(bytes.len())];
            index.pass(pos as u64, piece);
            pos += piece.len();
            if pos == bytes.len() {
                return index;
            }
        }
        index
    }

    proptest! {
        #[test]
        fn every_frame_that_passed_is_found_however_the_bytes_come(
            rates in prop::collection::vec(any::<bool>(), 2..200),
            sizes in prop::collection::vec(1usize..3000, 1..20),
        ) {
            let (bytes, starts) = recording(&rates);
            let index = passed(&bytes, &sizes);
            prop_assert_eq!(index.passed, starts.len() as u64);
            for frame in 0..starts.len() as u64 {
                let entrance = index.entrance(frame).unwrap();
                prop_assert!(entrance.exact && entrance.frame <= frame);
                prop_assert_eq!(entrance.byte, starts[entrance.frame as usize]);
                prop_assert!(frame < OVERLAP || entrance.frame < frame);
            }
        }

        #[test]
        fn junk_never_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..4000), at in 0u64..100) {
            for mut index in [Index::of_mpeg(), Index::of_adts()] {
                index.pass(at, &bytes);
                index.pass(0, &bytes);
                let _ = (index.entrance(7), index.find(&bytes), index.total(Some(4000)));
            }
        }
    }

    #[test]
    fn notes_are_thinned_out_and_stay_right() {
        let (bytes, starts) = recording(&vec![false; 70_000]);
        let index = passed(&bytes, &[8192]);
        assert!(index.notes.len() <= MOST_NOTES && index.step == 32, "{} {}", index.notes.len(), index.step);
        for frame in [0, 1, 31, 32, 40_000, 69_999] {
            let entrance = index.entrance(frame).unwrap();
            assert_eq!(entrance.byte, starts[entrance.frame as usize]);
        }
    }

    #[test]
    fn what_has_not_passed_is_guessed_by_the_bit_rate() {
        let (bytes, starts) = recording(&[false; 1000]);
        let index = passed(&bytes[..20_000], &[4096]);
        let entrance = index.entrance(900).unwrap();
        assert!(!entrance.exact);
        // These have no padding, so that they are a little shorter than their bit rate says.
        assert!(entrance.byte.abs_diff(starts[entrance.frame as usize]) < 1_000, "{entrance:?}");
        let at = index.find(&bytes[entrance.byte as usize..]).unwrap();
        assert!(starts.contains(&(entrance.byte + at as u64)));
    }

    /// The same at any sizes of pieces, since a frame's beginning is looked at in parts.
    fn walked(bytes: &[u8]) -> Index {
        let mut index = Index::of_mpeg();
        index.walk(&mut &bytes[..], u64::MAX).unwrap();
        for size in [1, 7, 11, 500] {
            assert_eq!((index.passed, index.at), (passed(bytes, &[size]).passed, passed(bytes, &[size]).at));
        }
        index
    }

    #[test]
    fn only_the_end_is_the_end() {
        let (bytes, starts) = recording(&[false; 200]);
        let total = |bytes: &[u8]| walked(bytes).total(Some(bytes.len() as u64));
        assert_eq!(total(&bytes), Some(200));
        let tag = |begins: &[u8], len: usize| [begins, &vec![b' '; len - begins.len()]].concat();
        for behind in [tag(b"TAG", 128), tag(b"APETAGEX", 3_000), tag(b"LYRICSBEGIN", 900)] {
            assert_eq!(total(&[&bytes[..], &behind].concat()), Some(200));
            assert_eq!(total(&[&bytes[..], &behind, &vec![0; 2_000_000]].concat()), None, "more follows");
        }
        let mut broken = bytes.clone();
        broken[starts[70] as usize] = 0;
        assert_eq!(total(&broken), None);
        let entrance = walked(&broken).entrance(150).unwrap();
        assert!(!entrance.exact && entrance.byte.abs_diff(starts[entrance.frame as usize]) < 500);
        // A tag in the middle, of which the arithmetic knows.
        let tagged = [b"ID3\x04\0\0\0\0\x7f\x76", &[7; 16_374][..], &bytes[138..]].concat();
        let joined = [&bytes[..], &tagged].concat();
        assert_eq!(total(&joined), None);
        let entrance = walked(&joined).entrance(300).unwrap();
        let there = joined.len() as u64 - (400 - entrance.frame) * 417;
        assert!(!entrance.exact && entrance.byte.abs_diff(there) < 500, "{entrance:?}, {there}");
    }

    #[test]
    fn what_an_encoder_wrote_about_a_recording_in_the_middle_is_no_frame() {
        let (mut bytes, starts) = recording(&[false; 200]);
        for (frame, at, name) in [(50, 36, &b"Xing"[..]), (60, 36, b"Info"), (70, 36, b"VBRI\0\x01")] {
            bytes[starts[frame] as usize + at..][..name.len()].copy_from_slice(name);
        }
        // Sound that looks like it: its side information is not empty, or it stands elsewhere.
        for (frame, at, name) in [(80, 30, &b"..x...Info"[..]), (90, 34, b"Info"), (99, 38, b"Xing")] {
            bytes[starts[frame] as usize + at..][..name.len()].copy_from_slice(name);
        }
        assert_eq!(walked(&bytes).total(None), Some(197));
    }

    #[test]
    fn a_hole_in_the_bytes_is_waited_for() {
        let (bytes, _) = recording(&[true; 100]);
        let mut index = Index::of_mpeg();
        index.pass(0, &bytes[..5_000]);
        let before = index.passed;
        index.pass(9_000, &bytes[9_000..]);
        assert_eq!(index.passed, before);
        index.walk(&mut &bytes[index.wants().unwrap() as usize..], u64::MAX).unwrap();
        assert_eq!(index.passed, 100);
    }
}
