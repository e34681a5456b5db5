//! Fragments of MP4 (fMP4): their head, and of each segment what the decoder reads, so that all together are one file.
//!
//! An index of one segment (`sidx`) is left out, since the demuxer would take its length for that of the whole.

use super::sink::Sink;

/// What tells the fragments in a box, in bytes: some 4 for each frame.
const LONGEST_TABLE: u64 = 1024 * 1024;
/// Boxes inside of each other.
const DEEPEST: u32 = 8;

/// Whether bytes begin with a box that segments begin with.
pub(super) fn is_box(head: &[u8]) -> bool {
    const FIRST: [&[u8; 4]; 10] =
        [b"styp", b"sidx", b"moof", b"ftyp", b"moov", b"emsg", b"prft", b"free", b"skip", b"mdat"];
    head.get(4..8).is_some_and(|kind| FIRST.iter().any(|first| first.as_slice() == kind))
}

/// Checks the head of fragments, and takes lengths out of it: a live stream has none, and others tell that of the
/// first segment.
///
/// # Errors
/// Why it cannot be played, as the end of a sentence.
pub(super) fn head(init: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (mut out, mut movie) = (Vec::with_capacity(init.len()), Movie::default());
    for (kind, bounds) in boxes(init, 0, init.len()) {
        match &kind {
            b"ftyp" => out.extend_from_slice(&init[bounds.whole()]),
            b"moov" => {
                movie.read(init, bounds.body, bounds.to, 0);
                let mut moov = init[bounds.whole()].to_vec();
                for (at, length) in movie.lengths.drain(..) {
                    moov[at - bounds.from..at - bounds.from + length].fill(0);
                }
                out.append(&mut moov);
            }
            _ => {}
        }
    }
    if !is_box(&out) || movie.tracks == 0 {
        return Err("the head of its fragments is broken");
    }
    if movie.encrypted {
        return Err(super::ENCRYPTED);
    }
    if movie.tracks > 1 {
        return Err("its fragments mix sound with pictures, which cannot be played");
    }
    Ok(out)
}

/// Where a box lies.
#[derive(Clone, Copy)]
struct Bounds {
    from: usize,
    body: usize,
    to: usize,
}

impl Bounds {
    fn whole(self) -> std::ops::Range<usize> {
        self.from..self.to
    }
}

/// The boxes between two offsets, as far as they are whole.
fn boxes(bytes: &[u8], from: usize, to: usize) -> impl Iterator<Item = ([u8; 4], Bounds)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..to)?;
        let Head { kind, length, size } = Head::read(rest)?;
        let size = usize::try_from(size?).ok().filter(|size| *size <= rest.len())?;
        let bounds = Bounds { from: at, body: at + length, to: at + size };
        at += size;
        Some((kind, bounds))
    })
}

/// The beginning of a box.
struct Head {
    kind: [u8; 4],
    /// Of the head itself.
    length: usize,
    /// Of all of it; None where it reaches to the end of the file.
    size: Option<u64>,
}

impl Head {
    /// None where it is not all there, or cannot be.
    fn read(bytes: &[u8]) -> Option<Head> {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (length, size) = match u32::from_be_bytes(*size) {
            0 => return Some(Head { kind: *kind, length: 8, size: None }),
            1 => (16, u64::from_be_bytes(*rest.first_chunk::<8>()?)),
            size => (8, u64::from(size)),
        };
        (size >= length as u64).then_some(Head { kind: *kind, length, size: Some(size) })
    }
}

#[derive(Default)]
struct Movie {
    tracks: u32,
    encrypted: bool,
    /// Where lengths stand.
    lengths: Vec<(usize, usize)>,
}

impl Movie {
    fn read(&mut self, bytes: &[u8], from: usize, to: usize, depth: u32) {
        if depth > DEEPEST {
            return;
        }
        for (kind, bounds) in boxes(bytes, from, to) {
            match &kind {
                b"trak" => {
                    self.tracks += 1;
                    self.read(bytes, bounds.body, bounds.to, depth + 1);
                }
                b"mdia" | b"minf" | b"stbl" | b"mvex" => self.read(bytes, bounds.body, bounds.to, depth + 1),
                b"stsd" => self.read(bytes, bounds.body + 8, bounds.to, depth + 1),
                b"enca" | b"encv" => self.encrypted = true,
                b"mvhd" | b"mdhd" | b"mehd" => {
                    let wide = bytes.get(bounds.body).is_some_and(|version| *version == 1);
                    let before = match (&kind, wide) {
                        (b"mehd", _) => 4,
                        (_, true) => 24,
                        (_, false) => 16,
                    };
                    let (at, length) = (bounds.body + before, if wide { 8 } else { 4 });
                    if at + length <= bounds.to {
                        self.lengths.push((at, length));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Takes segments as they come and gives on their fragments.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Of the next box's head.
    held: Vec<u8>,
    /// Bytes of the box that are still to come.
    left: u64,
    /// They are wanted.
    wanted: bool,
    /// What all tables took so far; the demuxer keeps them.
    tables: u64,
}

impl Fragments {
    /// What the demuxer keeps of the fragments so far, in bytes.
    pub fn tables(&self) -> u64 {
        self.tables
    }

    /// Goes on with these bytes.
    ///
    /// # Errors
    /// What is wrong with them, as the end of a sentence.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Sink) -> Result<(), &'static str> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (now, rest) = bytes.split_at(taken);
                if self.wanted {
                    out.push(now);
                }
                self.left -= taken as u64;
                bytes = rest;
                continue;
            }
            let (byte, rest) = (bytes[0], &bytes[1..]);
            self.held.push(byte);
            bytes = rest;
            if let Some(head) = Head::read(&self.held) {
                self.begin(&head, out)?;
            } else if self.held.len() >= 16 {
                return Err(BROKEN);
            }
        }
        Ok(())
    }

    fn begin(&mut self, head: &Head, out: &mut Sink) -> Result<(), &'static str> {
        let size = head.size.ok_or("a box in it has no length")?;
        self.wanted = matches!(&head.kind, b"moof" | b"mdat");
        self.left = size - self.held.len() as u64;
        if &head.kind == b"moof" {
            if size > LONGEST_TABLE {
                return Err(BROKEN);
            }
            self.tables += size;
        }
        if self.wanted {
            out.push(&self.held);
        }
        self.held.clear();
        Ok(())
    }

    /// The segment is over.
    ///
    /// # Errors
    /// It ended within a box.
    pub fn finish(&mut self) -> Result<(), &'static str> {
        let whole = self.left == 0 && self.held.is_empty();
        self.held.clear();
        self.left = 0;
        if whole { Ok(()) } else { Err(BROKEN) }
    }
}

const BROKEN: &str = "a segment of it is broken";

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::stream::hls) fn mp4_box(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes()[..], kind, body].concat()
    }

    /// A head with tracks whose samples are of these kinds.
    pub(in crate::stream::hls) fn init(samples: &[&[u8; 4]]) -> Vec<u8> {
        let header = mp4_box(b"mvhd", &[9; 100]);
        let tracks = samples.iter().flat_map(|sample| {
            let stsd = mp4_box(b"stsd", &[&[0; 8][..], &mp4_box(sample, &[0; 28])].concat());
            let stbl = mp4_box(b"minf", &mp4_box(b"stbl", &stsd));
            mp4_box(b"trak", &mp4_box(b"mdia", &[mp4_box(b"mdhd", &[0; 24]), stbl].concat()))
        });
        let tracks: Vec<u8> = tracks.collect();
        [mp4_box(b"ftyp", b"iso6"), mp4_box(b"sidx", &[1; 30]), mp4_box(b"moov", &[header, tracks].concat())]
            .concat()
    }

    fn pass(pieces: &[&[u8]]) -> Result<Vec<u8>, &'static str> {
        let (mut fragments, mut out) = (Fragments::default(), Sink::default());
        for piece in pieces {
            fragments.push(piece, &mut out)?;
        }
        fragments.finish()?;
        Ok(out.take().concat())
    }

    #[test]
    fn lengths_and_indices_are_taken_out_of_the_head() {
        let head = head(&init(&[b"mp4a"])).unwrap();
        assert!(!head.windows(4).any(|kind| kind == b"sidx"));
        let at = head.windows(4).position(|kind| kind == b"mvhd").unwrap() + 4;
        assert_eq!(head[at..at + 100], [&[9; 16][..], &[0; 4], &[9; 80]].concat());
    }

    #[test]
    fn heads_that_cannot_be_played_are_refused_with_the_reason() {
        assert_eq!(head(&init(&[b"enca"])), Err(crate::stream::hls::ENCRYPTED));
        assert!(head(&init(&[b"avc1", b"mp4a"])).unwrap_err().contains("pictures"));
        assert!(head(&init(&[])).unwrap_err().contains("broken"));
        assert!(head(b"<html>").unwrap_err().contains("broken"));
        let whole = init(&[b"mp4a"]);
        assert!(head(&whole[..whole.len() - 1]).unwrap_err().contains("broken"));
    }

    #[test]
    fn a_segment_that_ends_within_a_box_is_broken() {
        let whole = [mp4_box(b"moof", &[1; 40]), mp4_box(b"mdat", &[2; 400])].concat();
        assert_eq!(pass(&[&whole]), Ok(whole.clone()));
        assert_eq!(pass(&[&whole[..whole.len() - 1]]), Err(BROKEN));
        assert_eq!(pass(&[&[0, 0, 0, 0, b'm', b'd', b'a', b't', 1]]), Err("a box in it has no length"));
    }

    proptest! {
        #[test]
        fn fragments_are_given_on_and_nothing_else(
            kinds in prop::collection::vec((prop::sample::select(vec![*b"styp", *b"sidx", *b"emsg", *b"moof", *b"mdat"]), 0usize..90), 0..9),
            cut in any::<prop::sample::Index>(),
        ) {
            let boxes: Vec<_> = kinds.iter().map(|(kind, length)| (kind, mp4_box(kind, &vec![7; *length]))).collect();
            let all: Vec<u8> = boxes.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let wanted = boxes.iter().filter(|(kind, _)| matches!(*kind, b"moof" | b"mdat"));
            let wanted: Vec<u8> = wanted.flat_map(|(_, bytes)| bytes.clone()).collect();
            let cut = cut.index(all.len() + 1);
            prop_assert_eq!(pass(&[&all[..cut], &all[cut..]]), Ok(wanted));
        }

        #[test]
        fn no_bytes_break_it(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20)) {
            let mut bytes = init(&[b"mp4a"]);
            for (place, value) in flips {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let _ = head(&bytes);
            let _ = pass(&[&bytes]);
        }
    }
}
