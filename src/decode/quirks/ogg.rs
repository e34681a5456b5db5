//! What the Ogg demuxer does not tell.

use std::io::{self, Read, Seek, SeekFrom};

/// The longest page: header, lacing values and 255 segments of 255 bytes.
const LONGEST_PAGE: u64 = 27 + 255 + 255 * 255;
/// So many pages are looked at, which are gigabytes.
const MOST_PAGES: u32 = 1 << 20;

/// Whether there is another stream in the file behind the one that it begins with. Its length is then not that of the
/// first, and a search by time leads anywhere. Surely where all of the file is at hand; elsewhere as far as its end shows
/// it, since the streams may have one number and be of one kind.
pub(in crate::decode) fn is_chained<R: Read + Seek>(
    file: &mut R,
    len: u64,
    serials: &[u32],
    at_hand: bool,
) -> io::Result<bool> {
    file.seek(SeekFrom::Start(len.saturating_sub(2 * LONGEST_PAGE)))?;
    let mut tail = Vec::new();
    file.by_ref().take(2 * LONGEST_PAGE).read_to_end(&mut tail)?;
    let last = tail.windows(22).rev().find_map(Page::parse);
    let ends_otherwise = last.is_some_and(|page| {
        let most = (u64::from(page.number) + 1).saturating_mul(LONGEST_PAGE);
        !serials.contains(&page.serial) || serials.len() == 1 && most < len
    });
    Ok(ends_otherwise || at_hand && begins_twice(file)?)
}

/// The head of a page.
struct Page {
    is_first: bool,
    serial: u32,
    number: u32,
}

impl Page {
    fn parse(bytes: &[u8]) -> Option<Page> {
        let head = bytes.first_chunk::<22>().filter(|head| head.starts_with(b"OggS\0"))?;
        let word = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
        Some(Page { is_first: head[5] & 2 != 0, serial: word(14)?, number: word(18)? })
    }
}

/// Goes from page to page: whether a stream begins where others are under way.
fn begins_twice<R: Read + Seek>(file: &mut R) -> io::Result<bool> {
    let (mut at, mut head, mut under_way) = (0, Vec::new(), false);
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(2 * LONGEST_PAGE).read_to_end(&mut head)?;
    // Something else may stand in front.
    at += head.windows(5).position(|bytes| bytes == b"OggS\0").unwrap_or(0) as u64;
    for _ in 0..MOST_PAGES {
        head.clear();
        file.seek(SeekFrom::Start(at))?;
        file.by_ref().take(27 + 255).read_to_end(&mut head)?;
        let (Some(page), Some(&segments)) = (Page::parse(&head), head.get(26)) else { break };
        if page.is_first && under_way {
            return Ok(true);
        }
        under_way |= !page.is_first;
        let lengths = head[27..].iter().take(segments.into());
        at += 27 + u64::from(segments) + lengths.map(|&length| u64::from(length)).sum::<u64>();
    }
    Ok(false)
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
