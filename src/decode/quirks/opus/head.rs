//! The head of an Opus stream (RFC 7845, section 5.1).

/// Channels that a stream may have and that have a place in a room.
const MOST_CHANNELS: usize = 8;

/// For so many channels, which of Vorbis's order stands at each place of WAVE's.
const WAVE_ORDER: [&[u8]; MOST_CHANNELS] = [
    &[0],
    &[0, 1],
    &[0, 2, 1],
    &[0, 1, 2, 3],
    &[0, 2, 1, 3, 4],
    &[0, 2, 1, 5, 3, 4],
    &[0, 2, 1, 6, 5, 3, 4],
    &[0, 2, 1, 7, 5, 6, 3, 4],
];

/// Families of channels: as in Vorbis, and without any meaning. All the others describe a field of sound, which needs
/// mixing first.
const FAMILY_VORBIS: u8 = 1;
const FAMILY_BARE: u8 = 255;

/// What an `OpusHead` says about playing the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::decode) struct Head {
    /// Frames at 48 kHz that only warm the decoder up.
    pub(in crate::decode) pre_skip: u16,
    /// Factor for every sample.
    pub(in crate::decode) gain: f32,
    /// Of the sound, in the order of WAVE.
    pub(in crate::decode) channels: u8,
    /// Opus streams in a packet, and how many of them are stereo.
    pub(super) streams: u8,
    pub(super) coupled: u8,
    /// Which decoded channel goes to each of the sound's; 255 is silence.
    pub(super) mapping: [u8; MOST_CHANNELS],
}

impl Head {
    /// Whether it is mono or stereo as one stream, with nothing moved.
    pub(super) fn is_plain(&self) -> bool {
        self.streams == 1
            && self.channels.checked_sub(1) == Some(self.coupled)
            && self.mapping.starts_with(if self.channels == 1 { &[0] } else { &[0, 1] })
    }

    /// For a stream without a head, as some Matroska files have it.
    pub(in crate::decode) fn plain(channels: usize) -> Option<Head> {
        let channels = u8::try_from(channels).ok().filter(|channels| (1..=2).contains(channels))?;
        let mut mapping = [255; MOST_CHANNELS];
        (mapping[0], mapping[1]) = (0, 1);
        Some(Head { pre_skip: 0, gain: 1.0, channels, streams: 1, coupled: channels - 1, mapping })
    }

    /// Reads the identification header, with or without its magic `OpusHead`; MP4's `dOps` box holds the same
    /// fields in big-endian order and a version of 0. None where it is none, or where nothing tells which of its
    /// channels belong where.
    pub(in crate::decode) fn parse(bytes: &[u8]) -> Option<Head> {
        let body = bytes.strip_prefix(b"OpusHead").unwrap_or(bytes);
        let (version, channels) = (*body.first()?, *body.get(1)?);
        let (pre_skip, gain) = ([*body.get(2)?, *body.get(3)?], [*body.get(8)?, *body.get(9)?]);
        let (pre_skip, gain) = match version {
            0 => (u16::from_be_bytes(pre_skip), i16::from_be_bytes(gain)),
            _ => (u16::from_le_bytes(pre_skip), i16::from_le_bytes(gain)),
        };
        let family = body.get(10).copied().unwrap_or(0);
        let order = *WAVE_ORDER.get(usize::from(channels).checked_sub(1)?)?;
        let (streams, coupled, table) = match family {
            0 if channels <= 2 => (1, channels - 1, &[0, 1][..]),
            FAMILY_VORBIS | FAMILY_BARE => {
                (*body.get(11)?, *body.get(12)?, body.get(13..13 + usize::from(channels))?)
            }
            _ => return None,
        };
        let mut mapping = [255; MOST_CHANNELS];
        for (place, (to, &from)) in mapping.iter_mut().zip(order).enumerate() {
            // Only that family names places; channels without one keep their order.
            *to = *table.get(if family == FAMILY_VORBIS { usize::from(from) } else { place })?;
        }
        // Q7.8 decibels.
        let gain = 10f32.powf(f32::from(gain) / (20.0 * 256.0));
        Some(Head { pre_skip, gain, channels, streams, coupled, mapping })
    }
}

/// What is wrong with a head, or none, as the end of "cannot be played (...)".
pub(in crate::decode) fn refusal(bytes: &[u8]) -> Option<String> {
    let body = bytes.strip_prefix(b"OpusHead").unwrap_or(bytes);
    let channels = body.get(1).map_or(0, |&channels| usize::from(channels));
    match body.get(10) {
        Some(2 | 3) => Some("it is Ambisonics, which nothing here turns into channels".to_owned()),
        _ if channels > MOST_CHANNELS => {
            Some(format!("it has {channels} channels, and only up to 7.1 are decoded"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, refusal};

    #[test]
    fn pre_skip_and_gain_are_read() {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\xf6\0";
        let head = Head::parse(head).unwrap();
        assert_eq!((head.pre_skip, head.channels, head.streams, head.coupled), (312, 2, 1, 1));
        assert!((head.gain - 10f32.powf(-0.5)).abs() < 1e-6, "{}", head.gain);
        assert_eq!(Head::parse(b"OpusHead\x01\x02"), None);
    }

    #[test]
    fn surround_is_brought_to_the_order_of_wave() {
        let head = b"OpusHead\x01\x06\x38\x01\x80\xbb\0\0\0\0\x01\x04\x02\0\x04\x01\x02\x03\x05";
        let head = Head::parse(head).unwrap();
        assert_eq!((head.channels, head.streams, head.coupled), (6, 4, 2));
        assert_eq!(head.mapping[..6], [0, 1, 4, 5, 2, 3]);
    }

    #[test]
    fn channels_without_a_meaning_keep_their_order() {
        let head = b"OpusHead\x01\x04\x38\x01\x80\xbb\0\0\0\0\xff\x04\0\0\x01\x02\x03";
        let head = Head::parse(head).unwrap();
        assert_eq!((head.channels, head.streams, head.coupled), (4, 4, 0));
        assert_eq!(head.mapping[..4], [0, 1, 2, 3]);
    }

    #[test]
    fn what_cannot_be_played_is_no_head_and_says_why() {
        for (head, why) in [
            (&b"OpusHead\x01\0\x38\x01\x80\xbb\0\0\0\0\0"[..], ""),
            (b"OpusHead\x01\x03\x38\x01\x80\xbb\0\0\0\0\0", ""),
            (
                b"OpusHead\x01\x09\x38\x01\x80\xbb\0\0\0\0\x01\x09\0\0\x01\x02\x03\x04\x05\x06\x07\x08",
                "9 channels, and only up to 7.1",
            ),
            (b"OpusHead\x01\x06\x38\x01\x80\xbb\0\0\0\0\x01\x04\x02\0", ""),
            (b"OpusHead\x01\x04\x38\x01\x80\xbb\0\0\0\0\x02\x04\0\0\x01\x02\x03", "Ambisonics"),
            (b"OpusHead\x01\x04\x38\x01\x80\xbb\0\0\0\0\x03\x02\x02\0\0\0\0\0", "Ambisonics"),
            (b"OpusHead\x01\x04\x38\x01\x80\xbb\0\0\0\0\x07\x04\0\0\x01\x02\x03", ""),
        ] {
            assert_eq!(Head::parse(head), None, "{head:?}");
            assert!(refusal(head).unwrap_or_default().contains(why), "{head:?}");
            assert_eq!(refusal(head).is_none(), why.is_empty(), "{head:?}");
        }
    }
}
