//! How many frames a packet gives, read from its first bytes without decoding it.

use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, well_known as id};

use crate::decode::mpeg::samples_of_mpeg;

/// Tells for the packets of one stream, which come in order.
#[derive(Debug)]
pub(in crate::decode) enum Lengths {
    Constant(u32),
    Opus,
    Mpeg,
    /// Bytes in a frame.
    Pcm(u32),
    Vorbis {
        modes: Modes,
        /// Length of the block before.
        last: Option<u32>,
    },
}

impl Lengths {
    /// None for a codec whose packets do not tell; `last` is what the last one gave.
    pub(in crate::decode) fn of(
        params: &AudioCodecParameters,
        pcm_bytes: Option<u32>,
        last: u32,
    ) -> Option<Lengths> {
        Some(match params.codec {
            id::CODEC_ID_AAC => Lengths::Constant(last.max(1024)),
            id::CODEC_ID_OPUS => Lengths::Opus,
            id::CODEC_ID_MP1 | id::CODEC_ID_MP2 | id::CODEC_ID_MP3 => Lengths::Mpeg,
            id::CODEC_ID_VORBIS => {
                Lengths::Vorbis { modes: Modes::read(params.extra_data.as_deref()?)?, last: None }
            }
            _ => Lengths::Pcm(pcm_bytes.filter(|&bytes| bytes > 0)?),
        })
    }

    /// Frames that the next packet gives; None for one that is damaged.
    pub(in crate::decode) fn next(&mut self, packet: &[u8]) -> Option<u32> {
        match self {
            Lengths::Constant(frames) => Some(*frames),
            Lengths::Opus => opus(packet),
            Lengths::Mpeg => samples_of_mpeg(packet),
            Lengths::Pcm(bytes) => u32::try_from(packet.len()).ok().map(|len| len / *bytes),
            Lengths::Vorbis { modes, last } => {
                let block = modes.block(*packet.first()?)?;
                let before = last.replace(block);
                // Each gives the half that overlaps with the one before; the first gives none.
                Some(before.map_or(0, |before| before / 4 + block / 4))
            }
        }
    }
}

/// Codecs whose packets are all of one length, but for a last one.
pub(in crate::decode) fn is_even(codec: AudioCodecId) -> bool {
    matches!(
        codec,
        id::CODEC_ID_AAC
            | id::CODEC_ID_OPUS
            | id::CODEC_ID_ALAC
            | id::CODEC_ID_MP1
            | id::CODEC_ID_MP2
            | id::CODEC_ID_MP3
    )
}

/// RFC 6716, section 3.1, at 48 kHz.
fn opus(packet: &[u8]) -> Option<u32> {
    let toc = packet.first()?;
    let config = toc >> 3;
    let frame = match config {
        0..12 => [480, 960, 1920, 2880][usize::from(config & 3)],
        12..16 => [480, 960][usize::from(config & 1)],
        _ => [120, 240, 480, 960][usize::from(config & 3)],
    };
    let count = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    Some(frame * count).filter(|frames| (1..=5760).contains(frames))
}

/// The blocks of a Vorbis stream: which mode takes the short, which the long one.
#[derive(Debug, PartialEq)]
pub(in crate::decode) struct Modes {
    short: u32,
    long: u32,
    /// A bit for each mode.
    is_long: u64,
    bits: u32,
}

/// Length of Vorbis's first header.
const IDENTIFICATION: usize = 30;
/// Bits of a mode: one that says whether its block is long, 32 of zeros, 8 that name a mapping.
const MODE: usize = 41;

impl Modes {
    /// From the headers of identification and setup, one behind the other. Modes are what the setup ends with, so
    /// they are found from its end, without reading all the books in front of them.
    fn read(headers: &[u8]) -> Option<Modes> {
        let (identification, setup) = headers.split_at_checked(IDENTIFICATION)?;
        if !identification.starts_with(b"\x01vorbis") || !setup.starts_with(b"\x05vorbis") {
            return None;
        }
        let (short, long) = (identification[28] & 15, identification[28] >> 4);
        let bit = |at: usize| setup.get(at / 8).map(|byte| usize::from(byte >> (at % 8) & 1));
        let number = |at: usize, len: usize| (0..len).try_fold(0, |sum, n| Some(sum | bit(at + n)? << n));
        // The last bit that is set is the framing.
        let end = (0..setup.len() * 8).rev().find(|&at| bit(at) == Some(1))?;
        let (mut first, mut count, mut found) = (end, 0, None);
        while count < 64 {
            let Some(before) = first.checked_sub(MODE) else { break };
            if number(before + 1, 32) != Some(0) || number(before + 33, 8)? >= 64 {
                break;
            }
            (first, count) = (before, count + 1);
            // In front of them is their number less one. A mapping may look like one more mode: the most win.
            if first.checked_sub(6).and_then(|at| number(at, 6)) == Some(count - 1) {
                found = Some((first, count));
            }
        }
        let (first, count) = found?;
        let is_long =
            (0..count).try_fold(0u64, |bits, n| Some(bits | (bit(first + n * MODE)? as u64) << n))?;
        let bits = usize::BITS - (count - 1).leading_zeros();
        (6..=13).contains(&short).then_some(Modes { short: 1 << short, long: 1 << long, is_long, bits })
    }

    /// Frames in the block of a packet that begins with this byte.
    fn block(&self, first: u8) -> Option<u32> {
        if first & 1 != 0 {
            return None;
        }
        let mode = u32::from(first) >> 1 & ((1 << self.bits) - 1);
        Some(if self.is_long >> mode & 1 == 1 { self.long } else { self.short })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opus_tells_its_length() {
        for (packet, frames) in [
            (&[0x08][..], Some(960)),
            (&[0xfc], Some(960)),
            (&[0xe1], Some(240)),
            (&[0x1b, 2], Some(5760)),
            (&[0x1b, 3], None),
            (&[0x03, 0], None),
            (&[], None),
        ] {
            assert_eq!(opus(packet), frames, "{packet:x?}");
        }
    }

    #[test]
    fn modes_of_vorbis_are_read_from_the_end() {
        let mut bits = Vec::new();
        let mut put = |value: u64, len: usize| bits.extend((0..len).map(|n| value >> n & 1 == 1));
        put(0xdead_beef_0bad_cafe, 64);
        put(1, 6);
        for is_long in [0, 1] {
            put(is_long, 1);
            put(0, 32);
            put(is_long, 8);
        }
        put(1, 1);
        let mut headers = b"\x01vorbis".to_vec();
        headers.resize(IDENTIFICATION, 0);
        headers[28] = 0xb8;
        headers.extend(b"\x05vorbis");
        for byte in bits.chunks(8) {
            headers.push(byte.iter().enumerate().fold(0, |sum, (n, &bit)| sum | u8::from(bit) << n));
        }
        let modes = Modes::read(&headers).unwrap();
        assert_eq!(modes, Modes { short: 256, long: 2048, is_long: 2, bits: 1 });
        let mut lengths = Lengths::Vorbis { modes, last: None };
        let got: Vec<_> = [2, 2, 0, 0, 2, 1].iter().map(|&first| lengths.next(&[first])).collect();
        assert_eq!(got, [Some(0), Some(1024), Some(576), Some(128), Some(576), None]);
        for len in 0..headers.len() {
            let _ = Modes::read(&headers[..len]);
        }
    }
}
