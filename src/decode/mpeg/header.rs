//! Headers of MPEG audio frames (ISO 11172-3, 13818-3) and of ADTS frames (13818-7).

/// What a run of frames has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Layer 1, 2 or 3.
    Mpeg,
    /// AAC in ADTS.
    Adts,
}

/// A frame by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Bytes from this header to the next.
    pub(super) len: u32,
    /// Sound in it, in frames of PCM.
    pub(super) samples: u32,
    /// Frames of PCM in a second.
    pub(super) rate: u32,
    /// Bits in a second; 0 in ADTS, which does not tell.
    pub(super) bit_rate: u32,
    /// What never changes within a recording: version, layer, rate.
    same: u32,
    /// Bytes of the header, with a checksum where there is one.
    head: u32,
    /// Bytes of header and side information in front of the sound's own.
    pub(super) side: u32,
}

/// Bytes of a header that [`Kind::parse`] looks at.
pub(super) const HEADER: usize = 7;

/// Where the tag of Fraunhofer's encoder stands, and how long it is at least.
const VBRI_AT: usize = 36;
const VBRI: usize = 26;

const BIT_RATES_1: [[u32; 15]; 3] = [
    [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
];
const BIT_RATES_2: [[u32; 15]; 2] = [
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const ADTS_RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

impl Kind {
    /// The frame whose header `bytes` begin with. A free-format frame tells no length and is none here.
    pub(super) fn parse(self, bytes: &[u8]) -> Option<Frame> {
        let header = bytes.first_chunk::<HEADER>()?;
        match self {
            Kind::Mpeg => mpeg(header),
            Kind::Adts => adts(header),
        }
    }
}

impl Frame {
    /// Whether both may be of one recording.
    pub(super) fn is_like(&self, other: &Frame) -> bool {
        self.same == other.same
    }

    /// So many bytes of it are enough for [`Frame::tag`].
    pub(super) fn peek(&self) -> usize {
        let most = if self.has_side_information() { VBRI_AT + VBRI } else { HEADER };
        most.min(self.len as usize).max(HEADER)
    }

    /// Where in the frame that begins with `bytes` a tag of the encoder's stands instead of sound. By the same rules as
    /// the demuxer's, which plays what it does not take for one, and passes over what it does, wherever that stands.
    pub(super) fn tag(&self, bytes: &[u8]) -> Option<usize> {
        if !self.has_side_information() {
            return None;
        }
        let head = self.head as usize;
        let stands = |at: usize, name: &[u8], len: usize| {
            let is_there = bytes.get(at..).is_some_and(|tag| tag.starts_with(name));
            let is_silent = || bytes.get(head..at).is_some_and(|side| side.iter().all(|&byte| byte == 0));
            (is_there && self.len as usize >= at + len && is_silent()).then_some(at)
        };
        // A checksum does not count.
        let at = 4 + (self.side - self.head) as usize;
        let xing = || stands(at, b"Xing", 8).or_else(|| stands(at, b"Info", 8));
        xing().or_else(|| stands(VBRI_AT, b"VBRI\0\x01", VBRI))
    }

    /// As in layer 3.
    fn has_side_information(&self) -> bool {
        self.side > self.head
    }
}

fn mpeg(header: &[u8; HEADER]) -> Option<Frame> {
    let [a, b, c, d, ..] = *header;
    if a != 0xff || b & 0xe0 != 0xe0 {
        return None;
    }
    let (version, layer) = (b >> 3 & 3, 4 - (b >> 1 & 3));
    let (rate_index, bit_rate_index, padding) = (c >> 2 & 3, usize::from(c >> 4), u32::from(c >> 1 & 1));
    if version == 1 || layer == 4 || rate_index == 3 || bit_rate_index == 15 || bit_rate_index == 0 {
        return None;
    }
    let is_first = version == 3;
    let rate = [44_100, 48_000, 32_000][usize::from(rate_index)] >> (3 - version).min(2);
    let bit_rate = 1000
        * if is_first {
            BIT_RATES_1[usize::from(layer - 1)][bit_rate_index]
        } else {
            BIT_RATES_2[usize::from(layer.min(2) - 1)][bit_rate_index]
        };
    let (samples, len) = match layer {
        1 => (384, (12 * bit_rate / rate + padding) * 4),
        3 if !is_first => (576, 72 * bit_rate / rate + padding),
        _ => (1152, 144 * bit_rate / rate + padding),
    };
    let is_mono = d >> 6 == 3;
    let checksum = if b & 1 == 0 { 2 } else { 0 };
    let side = match (is_first, is_mono) {
        _ if layer < 3 => 0,
        (true, false) => 32,
        (false, true) => 9,
        _ => 17,
    };
    // The number of channels stays, too, while joint stereo and stereo may take turns.
    let same = u32::from(b & 0x1e) << 8 | u32::from(c & 0x0c) | u32::from(is_mono);
    let head = 4 + checksum;
    Some(Frame { len, samples, rate, bit_rate, same, head, side: head + side })
}

fn adts(header: &[u8; HEADER]) -> Option<Frame> {
    let [a, b, c, d, e, f, g] = *header;
    if a != 0xff || b & 0xf6 != 0xf0 {
        return None;
    }
    let rate = *ADTS_RATES.get(usize::from(c >> 2 & 0xf))?;
    let len = u32::from(d & 3) << 11 | u32::from(e) << 3 | u32::from(f) >> 5;
    let blocks = u32::from(g & 3) + 1;
    let side = if b & 1 == 0 { 9 } else { 7 };
    // Version, profile, rate, channels.
    let same = u32::from(b & 0x08) << 16 | u32::from(c & 0xfd) << 8 | u32::from(d & 0xc0);
    (len > side).then_some(Frame { len, samples: 1024 * blocks, rate, bit_rate: 0, same, head: side, side })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_rates_are_those_of_the_standard() {
        let frame = |bytes: [u8; 4]| Kind::Mpeg.parse(&[bytes[0], bytes[1], bytes[2], bytes[3], 0, 0, 0]);
        let is = |bytes, len, samples, rate, bit_rate| {
            let got = frame(bytes).map(|f| (f.len, f.samples, f.rate, f.bit_rate));
            assert_eq!(got, Some((len, samples, rate, bit_rate)), "{bytes:02x?}");
        };
        is([0xff, 0xfb, 0x90, 0x44], 417, 1152, 44_100, 128_000);
        is([0xff, 0xfb, 0x92, 0x44], 418, 1152, 44_100, 128_000);
        is([0xff, 0xf3, 0x84, 0xc0], 192, 576, 24_000, 64_000);
        is([0xff, 0xe3, 0x18, 0xc0], 72, 576, 8_000, 8_000);
        is([0xff, 0xfd, 0xa4, 0x00], 576, 1152, 48_000, 192_000);
        is([0xff, 0xff, 0xc0, 0x00], 416, 384, 44_100, 384_000);
        for bad in
            [[0xff, 0xeb, 0x90, 0], [0xff, 0xf9, 0x90, 0], [0xff, 0xfb, 0xf0, 0], [0xff, 0xfb, 0x9c, 0]]
        {
            assert_eq!(frame(bad), None, "{bad:02x?}");
        }
    }

    #[test]
    fn adts_tells_its_length() {
        let frame = Kind::Adts.parse(&[0xff, 0xf1, 0x50, 0x80, 0x2f, 0xff, 0xfc]).unwrap();
        assert_eq!((frame.len, frame.samples, frame.rate, frame.side), (0x17f, 1024, 44_100, 7));
        assert_eq!(
            Kind::Adts.parse(&[0xff, 0xf1, 0x50, 0x80, 0, 0x1f, 0xfc]),
            None,
            "shorter than its header"
        );
    }
}
