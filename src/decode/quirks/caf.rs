//! Where the sound of a CAF ends. Its demuxer looks for all chunks first, and gives up a file whose sound reaches to an
//! end that nobody has written down, as in what is written while it is recorded, or beyond the end of the file.

use std::io::{self, Read, Seek, SeekFrom};

use crate::decode::input::Mask;

/// Nobody has more chunks in front of the sound or behind it.
const MOST: usize = 256;
/// What stands in front of the first chunk: the name, a version, flags.
const FILE_HEADER: u64 = 8;
/// A chunk's name and its size.
const HEADER: usize = 12;
/// In front of the sound: how often the file was edited.
const EDITS: u64 = 4;

/// What stands in front of the sound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::decode) struct Head {
    /// The file says that it holds more sound than there is: so many frames.
    pub(in crate::decode) told: Option<u64>,
    /// Its sound reaches to the end of the file or beyond, so that no table of packets can be behind it.
    pub(in crate::decode) is_open: bool,
}

/// Whether a file begins like a CAF.
pub(in crate::decode) fn is_caf<R: Read + Seek>(file: &mut R) -> io::Result<bool> {
    let mut name = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(4).read_to_end(&mut name)?;
    Ok(name == b"caff")
}

/// What to change so that the demuxer of a CAF of `len` bytes takes what sound there is. Leaves the position anywhere.
pub(in crate::decode) fn scan<R: Read + Seek>(file: &mut R, len: u64) -> io::Result<(Head, Vec<Mask>)> {
    let (mut at, mut packet) = (FILE_HEADER, None);
    for _ in 0..MOST {
        let mut header = Vec::with_capacity(HEADER);
        file.seek(SeekFrom::Start(at))?;
        file.by_ref().take(HEADER as u64).read_to_end(&mut header)?;
        let Some((name, size)) = header.split_first_chunk::<4>() else { break };
        let Some(size) = size.first_chunk().map(|&size| i64::from_be_bytes(size)) else { break };
        let body = at + HEADER as u64;
        let there = len.saturating_sub(body);
        let told = u64::try_from(size).ok();
        match (name, told) {
            (b"data", told) if told.is_none_or(|told| told > there) => {
                let size = (at + 4..).zip(there.to_be_bytes());
                let masks = size.map(|(at, byte)| Mask { at, byte }).collect();
                let frames = |bytes: u64, (size, frames): (u32, u32)| {
                    let packets = bytes.saturating_sub(EDITS).checked_div(size.into())?;
                    packets.checked_mul(frames.into()).filter(|&frames| frames > 0)
                };
                let told = told.zip(packet).and_then(|(told, packet)| frames(told, packet));
                return Ok((Head { told, is_open: true }, masks));
            }
            (b"desc", _) => packet = read_packet(file)?,
            _ => {}
        }
        match told {
            Some(told) if told < there => at = body + told,
            _ => break,
        }
    }
    Ok((Head::default(), Vec::new()))
}

/// How many bytes and frames there are in a packet, by the description of the sound: 0 where that is not always the
/// same.
fn read_packet<R: Read>(file: &mut R) -> io::Result<Option<(u32, u32)>> {
    // Behind the rate, the codec and its flags.
    let mut description = Vec::new();
    file.take(24).read_to_end(&mut description)?;
    let number = |at: usize| Some(u32::from_be_bytes(*description.get(at..)?.first_chunk()?));
    Ok(number(16).zip(number(20)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Head, scan};

    fn file(size: i64, sound: usize, behind: &[u8]) -> Vec<u8> {
        let mut bytes = b"caff\0\x01\0\0desc\0\0\0\0\0\0\0\x20".to_vec();
        bytes.extend([&[1; 16][..], &[0, 0, 0, 4, 0, 0, 0, 1], &[1; 8]].concat());
        bytes.extend(b"free\0\0\0\0\0\0\0\x02..data");
        bytes.extend(size.to_be_bytes());
        bytes.resize(bytes.len() + 4 + sound, 7);
        bytes.extend(behind);
        bytes
    }

    #[test]
    fn the_sound_ends_where_the_file_does() {
        let scanned = |bytes: &[u8]| scan(&mut Cursor::new(bytes), bytes.len() as u64).unwrap();
        for (size, told) in [(-1, None), (1_004, Some(250)), (i64::MAX, Some((i64::MAX as u64 - 4) / 4))] {
            let mut bytes = file(size, 300, b"");
            let (head, masks) = scanned(&bytes);
            assert_eq!((head, masks.len()), (Head { told, is_open: true }, 8), "{size}");
            masks.iter().for_each(|mask| bytes[mask.at as usize] = mask.byte);
            assert_eq!(bytes, file(304, 300, b""));
        }
        // What is as it should be is left alone, also with a table behind; and so is what is no CAF.
        for bytes in
            [file(304, 300, b""), file(304, 300, b"pakt\0\0\0\0\0\0\0\x02.."), file(304, 300, b"pak")]
        {
            assert_eq!(scanned(&bytes), (Head::default(), Vec::new()));
        }
        for len in 0..60 {
            assert_eq!(scanned(&file(-1, 300, b"")[..len]), (Head::default(), Vec::new()));
        }
    }
}
