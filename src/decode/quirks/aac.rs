//! AAC has many kinds, of which symphonia decodes one: Low Complexity in mono or stereo. A stream that is of another
//! kind is named, so that people know what to look for.

use symphonia::core::codecs::audio::AudioCodecParameters;

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
pub(super) struct Config {
    /// Kind of the whole: 5 and 29 are AAC-LC with what makes it HE-AAC.
    object_type: u32,
    /// In MPEG-4's numbers; 0 means that it is described elsewhere.
    channels: u32,
}

impl Config {
    pub(super) fn parse(bytes: &[u8]) -> Option<Config> {
        let mut bits = Bits { bytes, at: 0 };
        let mut object_type = bits.object_type()?;
        bits.frequency()?;
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
        Some(Config { object_type, channels })
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
    let config = config.unwrap_or(Config { object_type: 2, channels: channels as u32 });
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
        Config { object_type: 2, channels: 0 } => {
            "its channels are described in a way that is not read".to_owned()
        }
        Config { object_type: 2, channels: 1 | 2 } => return None,
        Config { object_type: 2, channels } => {
            // The last of MPEG-4's numbers is 7.1.
            let channels = if channels == 7 { 8 } else { channels };
            format!("it has {channels} channels, and only mono and stereo are decoded")
        }
        _ => "only AAC-LC is".to_owned(),
    };
    Some(Beyond { name: name.to_owned(), reason })
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

    fn frequency(&mut self) -> Option<()> {
        if self.take(4)? == 15 {
            self.take(24)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn configurations_tell_the_kind() {
        for (bytes, object_type, channels) in [
            (&[0x12, 0x10][..], 2, 2),
            // As ffmpeg writes it: an extension that says that there is none.
            (&[0x12, 0x10, 0x56, 0xe5, 0x00], 2, 2),
            (&[0x2b, 0x92, 0x08, 0x00], 5, 2),
            (&[0xeb, 0x8a, 0x08, 0x00], 29, 1),
            (&[0x13, 0x90, 0x56, 0xe5, 0xa0], 5, 2),
            (&[0x13, 0x88, 0x56, 0xe5, 0xa5, 0x48, 0x80], 29, 1),
            (&[0xf9, 0x46, 0x40], 42, 2),
        ] {
            let config = Config::parse(bytes);
            assert_eq!(config, Some(Config { object_type, channels }), "{bytes:02x?}");
        }
        assert_eq!(Config::parse(&[0x12]), None);
    }
}
