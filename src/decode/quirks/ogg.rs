//! What the Ogg demuxer does not tell.

use std::io::{self, Read, Seek, SeekFrom};

/// The longest page: header, lacing values and 255 segments of 255 bytes.
const LONGEST_PAGE: u64 = 27 + 255 + 255 * 255;

/// Whether the file ends with another stream than it began with. Its length is then not that of the first.
pub(in crate::decode) fn is_chained<R: Read + Seek>(
    file: &mut R,
    len: u64,
    serials: &[u32],
) -> io::Result<bool> {
    file.seek(SeekFrom::Start(len.saturating_sub(2 * LONGEST_PAGE)))?;
    let mut tail = Vec::new();
    file.take(2 * LONGEST_PAGE).read_to_end(&mut tail)?;
    let last = tail.windows(18).rev().find(|page| page.starts_with(b"OggS\0"));
    Ok(last.is_some_and(|page| {
        let serial = u32::from_le_bytes([page[14], page[15], page[16], page[17]]);
        !serials.contains(&serial)
    }))
}

/// The first frame of a FLAC packet by its own header. Pages tell only where the last packet on them ends,
/// and after a jump the demuxer misses by a packet. `block_size` is the stream's, if all blocks have one.
pub(in crate::decode) fn flac_start(packet: &[u8], block_size: u64) -> Option<i64> {
    let [0xff, sync, _, _, first, more @ ..] = packet else { return None };
    // A number in UTF-8's scheme, extended to 36 bits.
    let len = first.leading_ones() as usize;
    let mut number = match len {
        0 => u64::from(*first),
        2..=7 => u64::from(*first & (0x7f >> len)),
        _ => return None,
    };
    for byte in more.get(..len.saturating_sub(1))? {
        number = number << 6 | u64::from(byte & 0x3f);
    }
    let start = if sync & 1 == 0 { number.checked_mul(block_size)? } else { number };
    i64::try_from(start).ok()
}

#[cfg(test)]
mod tests {
    use super::flac_start;

    #[test]
    fn frame_numbers_of_flac_are_read() {
        assert_eq!(flac_start(&[0xff, 0xf8, 0xc9, 0x18, 0x05, 0], 4096), Some(5 * 4096));
        assert_eq!(flac_start(&[0xff, 0xf8, 0xc9, 0x18, 0xc4, 0x80, 0], 4096), Some(256 * 4096));
        assert_eq!(flac_start(&[0xff, 0xf9, 0xc9, 0x18, 0xc4, 0x80, 0], 4096), Some(256));
        assert_eq!(flac_start(&[0xff, 0xf8, 0xc9, 0x18, 0xff, 0], 4096), None);
        assert_eq!(flac_start(&[0xff], 4096), None);
    }
}
