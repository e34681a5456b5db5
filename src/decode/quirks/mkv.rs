//! Priming and padding of a Matroska or WebM track, both of which the demuxer keeps to itself; and cues that mislead it.

use std::io::{self, Read, Seek, SeekFrom};

mod cues;

pub(in crate::decode) use cues::masks;

/// How many bytes before the place of reading are kept; what follows the last block (cues) must fit in.
pub(in crate::decode) const WINDOW: usize = 128 * 1024;

/// The `DiscardPadding` in nanoseconds of the block whose last frame is `packet`, looked up in the bytes that
/// were read last.
pub(in crate::decode) fn discard_padding(window: &[u8], packet: &[u8]) -> Option<u64> {
    if packet.is_empty() {
        return None;
    }
    let at = window.windows(packet.len()).rposition(|bytes| bytes == packet)?;
    // What a block group holds beside its block; anything else means that the group is over.
    let mut rest = &window[at + packet.len()..];
    loop {
        let (is_padding, head) = match rest {
            [0x75, 0xa2, ..] => (true, 2),
            [0x75, 0xa1, ..] => (false, 2),
            [0x9b | 0xfa | 0xfb | 0xa4, ..] => (false, 1),
            _ => return None,
        };
        // All of these are short: one byte of size.
        let size = usize::from(*rest.get(head)?).checked_sub(0x80)?;
        let value = rest.get(head + 1..head + 1 + size)?;
        if is_padding {
            let ns = value.iter().fold(0u64, |ns, &byte| ns << 8 | u64::from(byte));
            // Negative ones would be padding in front.
            let negative = value.first().is_some_and(|&byte| byte & 0x80 != 0);
            return (!negative && size <= 8).then_some(ns);
        }
        rest = rest.get(head + 1 + size..)?;
    }
}

/// How long the decoder of a track needs before its first frame of sound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::decode) struct CodecDelay {
    nanoseconds: u64,
}

impl CodecDelay {
    pub(in crate::decode) fn frames(self, rate: u32) -> i64 {
        let frames = (u128::from(self.nanoseconds) * u128::from(rate) + 500_000_000) / 1_000_000_000;
        i64::try_from(frames).unwrap_or(i64::MAX)
    }
}

/// What the head of a file says about its first sound track, and the demuxer does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::decode) struct Head {
    pub(in crate::decode) delay: Option<CodecDelay>,
    /// There may be several packets in a block. After a jump the demuxer gives those first that it has left of the
    /// block before.
    pub(in crate::decode) laced: bool,
    /// Where all of it ends, by what it says. In a file that was cut that is behind its end, and the demuxer takes
    /// nothing that goes beyond.
    pub(in crate::decode) end: Option<u64>,
}

/// Reads the head, up to `limit` bytes into the file if that is given. Leaves the position anywhere; anything but
/// Matroska has none.
pub(in crate::decode) fn scan<R: Read + Seek>(file: &mut R, limit: Option<u64>) -> io::Result<Head> {
    let mut track = Track::default();
    let (mut at, mut end) = (0, None);
    // What comes before the first cluster is a handful of elements, and fewer than this inside a track.
    for _ in 0..256 {
        if limit.is_some_and(|limit| at + LONGEST_HEAD > limit) {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let Some(Element { id, size, body }) = Element::read(file, at)? else { break };
        match id {
            SEGMENT | TRACKS => {
                if id == SEGMENT {
                    end = size.and_then(|size| body.checked_add(size));
                }
                at = body;
                continue;
            }
            TRACK => {
                if track.is_sound {
                    break;
                }
                (track, at) = (Track { laced: true, ..Track::default() }, body);
                continue;
            }
            TRACK_TYPE => track.is_sound = number(file, body, size)? == 2,
            CODEC_DELAY => track.delay = Some(number(file, body, size)?),
            LACING => track.laced = number(file, body, size)? != 0,
            CLUSTER => break,
            EBML => {}
            // Everything begins with its own head; this is something else.
            _ if at == 0 => break,
            _ => {}
        }
        let Some(next) = size.and_then(|size| body.checked_add(size)) else { break };
        at = next;
    }
    let Track { delay, laced, .. } = Some(track).filter(|track| track.is_sound).unwrap_or_default();
    Ok(Head { delay: delay.map(|nanoseconds| CodecDelay { nanoseconds }), laced, end })
}

/// An element's head: four bytes of name and eight of size.
const LONGEST_HEAD: u64 = 12;

const EBML: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const TRACK_TYPE: u32 = 0x83;
const LACING: u32 = 0x9c;
const CODEC_DELAY: u32 = 0x56aa;
const CLUSTER: u32 = 0x1f43_b675;

#[derive(Default)]
struct Track {
    is_sound: bool,
    delay: Option<u64>,
    laced: bool,
}

struct Element {
    id: u32,
    /// None where it reaches to the end.
    size: Option<u64>,
    body: u64,
}

impl Element {
    /// None at the end of the file and for what cannot be an element.
    fn read<R: Read>(file: &mut R, at: u64) -> io::Result<Option<Element>> {
        let mut head = Vec::with_capacity(LONGEST_HEAD as usize);
        file.take(LONGEST_HEAD).read_to_end(&mut head)?;
        Ok(Element::parse(&head, at))
    }

    fn parse(head: &[u8], at: u64) -> Option<Element> {
        let length = |byte: u8| byte.leading_zeros() as usize + 1;
        let id_len = length(*head.first()?);
        let id = head.get(..id_len).filter(|id| id.len() <= 4)?;
        let id = id.iter().fold(0, |id, &byte| id << 8 | u32::from(byte));
        let first = *head.get(id_len)?;
        let size_len = length(first);
        let size = head.get(id_len..id_len + size_len).filter(|_| size_len <= 8)?;
        let size = size.iter().fold(0u64, |size, &byte| size << 8 | u64::from(byte));
        // The first bit that is set tells the length; all set after it is no size at all.
        let mask = (1u64 << (7 * size_len)) - 1;
        let size = Some(size & mask).filter(|&size| size != mask);
        Some(Element { id, size, body: at + (id_len + size_len) as u64 })
    }
}

/// An unsigned number; 0 for what is none.
fn number<R: Read + Seek>(file: &mut R, body: u64, size: Option<u64>) -> io::Result<u64> {
    file.seek(SeekFrom::Start(body))?;
    let mut bytes = Vec::with_capacity(8);
    file.take(size.filter(|&size| size <= 8).unwrap_or(0)).read_to_end(&mut bytes)?;
    Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{CodecDelay, Head, discard_padding, scan};

    #[test]
    fn padding_stands_behind_the_block() {
        let file = b"..\xa1\x85\x81\0\0\0AB\x9b\x81\x14\x75\xa2\x83\x01\x86\xa0\x1c\x53";
        assert_eq!(discard_padding(file, b"AB"), Some(100_000));
        assert_eq!(discard_padding(b"AB\xa3\x81", b"AB"), None);
        assert_eq!(discard_padding(b"AB\x75\xa2\x84\x01", b"AB"), None);
        assert_eq!(discard_padding(b"CD", b"AB"), None);
    }

    #[test]
    fn the_delay_of_the_sound_track_is_found() {
        let track = |kind: u8, delay: &[u8]| {
            let body = [&[0x83, 0x81, kind, 0x56, 0xaa, 0x80 | delay.len() as u8], delay].concat();
            [&[0xae, 0x80 | body.len() as u8][..], &body].concat()
        };
        let file = |tracks: &[u8]| {
            let mut file =
                b"\x1a\x45\xdf\xa3\x83ABC\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff".to_vec();
            file.extend(b"\xec\x81\0\x16\x54\xae\x6b");
            file.push(0x80 | tracks.len() as u8);
            file.extend(tracks);
            file.extend(b"\x1f\x43\xb6\x75\x84");
            file
        };
        let priming = [0x01, 0x45, 0x85, 0x55];
        let bytes = file(&[track(1, &[1]), track(2, &priming), track(2, &[5])].concat());
        let found = scan(&mut Cursor::new(&bytes), None).unwrap();
        let delay = Some(CodecDelay { nanoseconds: 21_333_333 });
        assert_eq!(found, Head { delay, laced: true, end: None });
        assert_eq!(found.delay.map(|delay| delay.frames(48_000)), Some(1024));
        let unlaced = b"\xae\x86\x83\x81\x02\x9c\x81\0";
        assert_eq!(scan(&mut Cursor::new(file(unlaced)), None).unwrap(), Head::default());
        assert_eq!(scan(&mut Cursor::new(&bytes), Some(16)).unwrap(), Head::default());
        assert_eq!(scan(&mut Cursor::new(file(&track(1, &priming))), None).unwrap(), Head::default());
        assert_eq!(scan(&mut Cursor::new(b"RIFF....WAVE"), None).unwrap(), Head::default());
        assert_eq!(scan(&mut Cursor::new(b""), None).unwrap(), Head::default());
    }
}
