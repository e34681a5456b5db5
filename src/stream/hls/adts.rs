//! AAC as a run of frames (ADTS): whole frames only, and nothing else that lies between them.

use super::sink::Sink;

/// Of a header without a checksum, in bytes.
const HEADER: usize = 7;
/// Of the head of an ID3 tag, and of its tail.
const TAG_HEAD: usize = 10;

/// How many bytes an ID3 tag takes; None where there is none, or not all of its head.
pub(super) fn id3_length(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..TAG_HEAD)?;
    let &[b'I', b'D', b'3', _, _, flags, a, b, c, d] = head else { return None };
    let size = [a, b, c, d].iter().fold(0, |size, byte| size << 7 | u64::from(byte & 0x7f));
    let tail = if flags & 0x10 != 0 { TAG_HEAD as u64 } else { 0 };
    Some(size + TAG_HEAD as u64 + tail)
}

/// Takes bytes as they come and gives on frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    held: Vec<u8>,
    /// Bytes of a tag that are still to come.
    skip: u64,
    /// The last frame ended where another began.
    sure: bool,
    /// What the headers say of the sound: profile, rate and channels.
    form: Option<[u8; 2]>,
}

/// What lies at the beginning of some bytes.
enum Begins {
    Frame(usize),
    Tag(u64),
    /// It cannot be told from so few.
    Unknown,
    Nothing,
}

impl Frames {
    /// Goes on with these bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Sink) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        self.held.extend_from_slice(&bytes[skipped..]);
        let mut at = 0;
        loop {
            let rest = &self.held[at..];
            match begins(rest) {
                Begins::Unknown => break,
                Begins::Nothing => {
                    (at, self.sure) = (at + 1, false);
                }
                Begins::Tag(length) => {
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    self.skip = length.saturating_sub(rest.len()) as u64;
                    at += length.min(rest.len());
                }
                Begins::Frame(length) => {
                    // Two bytes of sound may look like a header: what is not known to begin here has to end where
                    // another begins.
                    let needed = if self.sure { length } else { length + 2 };
                    if rest.len() < needed {
                        break;
                    }
                    let next = &rest[length..];
                    if !(self.sure || is_sync(next) || next.starts_with(b"ID")) {
                        at += 1;
                        continue;
                    }
                    let form = [rest[2] & 0xfd, rest[3] & 0xc0];
                    if self.form.replace(form).is_some_and(|before| before != form) {
                        out.cut();
                    }
                    out.push(&rest[..length]);
                    (at, self.sure) = (at + length, true);
                }
            }
        }
        self.held.drain(..at);
    }

    /// Bytes are missing here, or none come any more: a frame that is not all there is lost.
    pub fn finish(&mut self, out: &mut Sink) {
        if let Begins::Frame(length) = begins(&self.held)
            && self.held.len() == length
        {
            out.push(&self.held);
        }
        self.held.clear();
        (self.skip, self.sure) = (0, false);
    }
}

fn is_sync(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, b, ..] if b & 0xf6 == 0xf0)
}

fn begins(bytes: &[u8]) -> Begins {
    if bytes.is_empty() {
        return Begins::Unknown;
    }
    if b"ID3".starts_with(&bytes[..bytes.len().min(3)]) {
        return match id3_length(bytes) {
            Some(length) => Begins::Tag(length),
            None => Begins::Unknown,
        };
    }
    if bytes.len() < 2 && bytes[0] == 0xff {
        return Begins::Unknown;
    }
    if !is_sync(bytes) {
        return Begins::Nothing;
    }
    if bytes.len() < HEADER {
        return Begins::Unknown;
    }
    let length = usize::from(bytes[3] & 0x03) << 11 | usize::from(bytes[4]) << 3 | usize::from(bytes[5]) >> 5;
    let has_checksum = bytes[1] & 1 == 0;
    let least = if has_checksum { HEADER + 2 } else { HEADER };
    // Rates 13 to 15 are none.
    if length <= least || bytes[2] >> 2 & 0x0f > 12 { Begins::Nothing } else { Begins::Frame(length) }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame whose body is of these bytes.
    pub(in crate::stream::hls) fn frame(rate: u8, body: &[u8]) -> Vec<u8> {
        let length = HEADER + body.len();
        let mut frame = vec![
            0xff,
            0xf1,
            0x40 | rate << 2,
            0x80 | (length >> 11) as u8,
            (length >> 3) as u8,
            (length << 5) as u8 | 0x1f,
            0xfc,
        ];
        frame.extend_from_slice(body);
        frame
    }

    fn id3(length: usize) -> Vec<u8> {
        let mut tag = b"ID3\x04\0\0\0\0".to_vec();
        tag.extend([(length >> 7) as u8, (length & 0x7f) as u8]);
        tag.resize(TAG_HEAD + length, 0xff);
        tag
    }

    fn runs(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut frames, mut out) = (Frames::default(), Sink::default());
        for piece in pieces {
            frames.push(piece, &mut out);
        }
        frames.finish(&mut out);
        out.take()
    }

    #[test]
    fn tags_and_rubbish_between_frames_are_left_out() {
        let (a, b, c) = (frame(4, &[1; 300]), frame(4, &[0xff; 20]), frame(4, &[3; 9]));
        let all = [&id3(900)[..], &a, &b, &id3(63), b"rubbish\xff\xf1", &a, &c].concat();
        assert_eq!(runs(&[&all]), [[&a[..], &b, &a, &c].concat()]);
    }

    #[test]
    fn another_rate_begins_another_recording() {
        let (a, b) = (frame(4, &[1; 30]), frame(3, &[2; 30]));
        assert_eq!(runs(&[&a, &a, &b, &b]), [[a.clone(), a].concat(), [b.clone(), b].concat()]);
    }

    #[test]
    fn a_frame_that_was_begun_before_a_gap_is_lost_and_no_other() {
        let (a, b, c) = (frame(4, &[1; 300]), frame(4, &[2; 300]), frame(4, &[3; 300]));
        let (mut frames, mut out) = (Frames::default(), Sink::default());
        frames.push(&[&a[..], &b[..100]].concat(), &mut out);
        frames.finish(&mut out);
        frames.push(&[&c[200..], &a[..], &c[..]].concat(), &mut out);
        assert_eq!(out.take(), [[&a[..], &a, &c].concat()]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_are_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..80), 1..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let whole: Vec<u8> = bodies.iter().flat_map(|body| [id3(5), frame(4, body)].concat()).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([whole.len()]) {
                pieces.push(&whole[from..cut]);
                from = cut;
            }
            let frames: Vec<u8> = bodies.iter().flat_map(|body| frame(4, body)).collect();
            prop_assert_eq!(runs(&pieces), [frames]);
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(prop_oneof![Just(0xff), Just(0xf1), Just(b'I'), Just(b'D'), Just(b'3'), any::<u8>()], 0..400)) {
            runs(&[&bytes]);
        }
    }
}
