//! The head of an Opus stream (RFC 7845, section 5.1). The decoder is kept from reading it: it knows nothing
//! of the gain and drops the pre-skip only from the first packet.

/// What an `OpusHead` says about playing the stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::decode) struct Head {
    /// Frames at 48 kHz that only warm the decoder up.
    pub(in crate::decode) pre_skip: u16,
    /// Factor for every sample.
    pub(in crate::decode) gain: f32,
}

impl Head {
    /// Reads the identification header, with or without its magic `OpusHead`; MP4's `dOps` box holds the same
    /// fields in big-endian order and a version of 0.
    pub(in crate::decode) fn parse(bytes: &[u8]) -> Option<Head> {
        let body = bytes.strip_prefix(b"OpusHead").unwrap_or(bytes);
        let (version, pre_skip, gain) =
            (*body.first()?, [*body.get(2)?, *body.get(3)?], [*body.get(8)?, *body.get(9)?]);
        let (pre_skip, gain) = match version {
            0 => (u16::from_be_bytes(pre_skip), i16::from_be_bytes(gain)),
            _ => (u16::from_le_bytes(pre_skip), i16::from_le_bytes(gain)),
        };
        // Q7.8 decibels.
        Some(Head { pre_skip, gain: 10f32.powf(f32::from(gain) / (20.0 * 256.0)) })
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn pre_skip_and_gain_are_read() {
        let head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\xf6\0";
        let head = Head::parse(head).unwrap();
        assert_eq!(head.pre_skip, 312);
        assert!((head.gain - 10f32.powf(-0.5)).abs() < 1e-6, "{}", head.gain);
        assert_eq!(Head::parse(b"OpusHead\x01\x02"), None);
    }
}
