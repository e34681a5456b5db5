//! Padding at the end of a Matroska or WebM track, which the demuxer drops from its packets.

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

#[cfg(test)]
mod tests {
    use super::discard_padding;

    #[test]
    fn padding_stands_behind_the_block() {
        let file = b"..\xa1\x85\x81\0\0\0AB\x9b\x81\x14\x75\xa2\x83\x01\x86\xa0\x1c\x53";
        assert_eq!(discard_padding(file, b"AB"), Some(100_000));
        assert_eq!(discard_padding(b"AB\xa3\x81", b"AB"), None);
        assert_eq!(discard_padding(b"AB\x75\xa2\x84\x01", b"AB"), None);
        assert_eq!(discard_padding(b"CD", b"AB"), None);
    }
}
