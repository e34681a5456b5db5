//! AAC has many kinds, of which symphonia decodes one: Low Complexity in mono or stereo. A stream that is of another
//! kind is named, so that people know what to look for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use symphonia::core::codecs::audio::AudioCodecParameters;

/// How many frames a decoder's sound is behind the packet that it gave it for. Known when it has given some.
#[derive(Clone, Debug, Default)]
pub(in crate::decode) struct Lag(Arc<AtomicU32>);

impl Lag {
    pub(in crate::decode) fn frames(&self) -> i64 {
        i64::from(self.0.load(Ordering::Relaxed))
    }

    pub(in crate::decode) fn set(&self, frames: u32) {
        self.0.store(frames, Ordering::Relaxed);
    }
}

/// What a stream is that cannot be decoded.
#[derive(Debug, PartialEq)]
pub(in crate::decode) struct Beyond {
    /// As people call it.
    pub(in crate::decode) name: String,
    /// Why not, as the end of "cannot be played (...)".
    pub(in crate::decode) reason: String,
}

/// What an `AudioSpecificConfig` (ISO/IEC 14496-3, 1.6.2.1) begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Config {
    /// Kind of the whole: 5 and 29 are AAC-LC with what makes it HE-AAC.
    object_type: u32,
    /// In MPEG-4's numbers; 0 means that it is described elsewhere.
    channels: u32,
    /// Of the lower half, in Hz; 0 for a reserved one.
    rate: u32,
}

/// MPEG-4's numbers for rates.
pub(super) const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

impl Config {
    fn parse(bytes: &[u8]) -> Option<Config> {
        let mut bits = Bits { bytes, at: 0 };
        let mut object_type = bits.object_type()?;
        let rate = bits.frequency()?;
        let channels = bits.take(4)?;
        if object_type == 2 {
            // Frame length, core coder and extension; then perhaps what an older decoder does not read.
            bits.take(3)?;
            if bits.take(11) == Some(0x2b7) && bits.object_type() == Some(5) && bits.take(1) == Some(1) {
                object_type = 5;
                bits.frequency()?;
                if bits.take(11) == Some(0x548) && bits.take(1) == Some(1) {
                    object_type = 29;
                }
            }
        }
        Some(Config { object_type, channels, rate })
    }

    fn is_high_efficiency(self) -> bool {
        matches!(self.object_type, 5 | 29)
    }
}

/// Says what a stream is if symphonia cannot decode it. Where nothing tells that a stream is more than AAC-LC, as in
/// ADTS, its lower half plays, as it does in every decoder that knows AAC-LC only.
pub(in crate::decode) fn beyond(params: &AudioCodecParameters) -> Option<Beyond> {
    let config = params.extra_data.as_deref().and_then(Config::parse);
    let channels = params.channels.as_ref().map_or(0, |channels| channels.count());
    let config = config.unwrap_or(Config { object_type: 2, channels: channels as u32, rate: 0 });
    let name = match config.object_type {
        1 => "AAC Main",
        2 => "AAC-LC",
        3 => "AAC-SSR",
        4 => "AAC-LTP",
        5 => "HE-AAC",
        23 => "AAC-LD",
        29 => "HE-AAC v2",
        39 => "AAC-ELD",
        42 => "xHE-AAC",
        _ => "This kind of AAC",
    };
    let reason = match config {
        _ if config.is_high_efficiency() => {
            "this build of Segue has no decoder for it; one with the feature \"he-aac\" has".to_owned()
        }
        Config { object_type: 2, channels: 0, .. } => {
            "its channels are described in a way that is not read".to_owned()
        }
        Config { object_type: 2, channels: 1 | 2, .. } => return None,
        Config { object_type: 2, channels, .. } => {
            // The last of MPEG-4's numbers is 7.1.
            let channels = if channels == 7 { 8 } else { channels };
            format!("it has {channels} channels, and only mono and stereo are decoded")
        }
        _ => "only AAC-LC is".to_owned(),
    };
    Some(Beyond { name: name.to_owned(), reason })
}

/// Whether a stream is, or may well be, one for the decoder of HE-AAC. ADTS and some MP4 do not tell; what comes at no
/// more than 24 kHz is the lower half of an HE-AAC nearly always.
#[cfg(feature = "he-aac")]
pub(in crate::decode) fn wants_high_efficiency(params: &AudioCodecParameters) -> bool {
    let config = params.extra_data.as_deref().and_then(Config::parse).unwrap_or_else(|| Config {
        object_type: 2,
        channels: params.channels.as_ref().map_or(0, |channels| channels.count() as u32),
        rate: params.sample_rate.unwrap_or(0),
    });
    match config {
        Config { object_type: 2, channels: 1 | 2, rate } => rate <= 24_000,
        Config { object_type: 2 | 23 | 39 | 42, .. } => true,
        _ => config.is_high_efficiency(),
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next `count` bits, at most 32. None behind the end.
    fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for at in self.at..self.at + count {
            let byte = self.bytes.get(at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - at % 8) & 1);
        }
        self.at += count;
        Some(value)
    }

    fn object_type(&mut self) -> Option<u32> {
        match self.take(5)? {
            31 => Some(32 + self.take(6)?),
            object_type => Some(object_type),
        }
    }

    fn frequency(&mut self) -> Option<u32> {
        match self.take(4)? {
            15 => self.take(24),
            index => Some(RATES.get(index as usize).copied().unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn configurations_tell_the_kind() {
        for (bytes, object_type, channels, rate) in [
            (&[0x12, 0x10][..], 2, 2, 44_100),
            // As ffmpeg writes it: an extension that says that there is none.
            (&[0x12, 0x10, 0x56, 0xe5, 0x00], 2, 2, 44_100),
            (&[0x2b, 0x92, 0x08, 0x00], 5, 2, 22_050),
            (&[0xeb, 0x8a, 0x08, 0x00], 29, 1, 22_050),
            (&[0x13, 0x90, 0x56, 0xe5, 0xa0], 5, 2, 22_050),
            (&[0x13, 0x88, 0x56, 0xe5, 0xa5, 0x48, 0x80], 29, 1, 22_050),
            (&[0xf9, 0x46, 0x40], 42, 2, 48_000),
        ] {
            let config = Config::parse(bytes);
            assert_eq!(config, Some(Config { object_type, channels, rate }), "{bytes:02x?}");
        }
        assert_eq!(Config::parse(&[0x12]), None);
    }
}
