//! Cover art, which may be megabytes, and which the demuxers keep for as long as a track is open: the limits that they are
//! given are not looked at. It comes from elsewhere here.

use std::io::{self, Read, Seek, SeekFrom};

use symphonia::core::errors::Result;
use symphonia::core::formats::probe::{ProbeMetadataData, ProbeableMetadata, Score, Scoreable};
use symphonia::core::io::{MediaSourceStream, ScopedStream};
use symphonia::core::meta::{MetadataBuffer, MetadataInfo, MetadataOptions, MetadataReader};
use symphonia::default::meta::Id3v2Reader;

use super::mp4::Header;
use crate::decode::input::Mask;

/// Nobody has more blocks or fields in front of the sound.
const MOST: usize = 256;

/// ID3v2 without its pictures.
pub(in crate::decode) struct Id3v2WithoutPictures<'s> {
    reader: Id3v2Reader<'s>,
}

impl Scoreable for Id3v2WithoutPictures<'_> {
    fn score(src: ScopedStream<&mut MediaSourceStream<'_>>) -> Result<Score> {
        Id3v2Reader::score(src)
    }
}

impl ProbeableMetadata<'_> for Id3v2WithoutPictures<'_> {
    fn try_probe_new(
        mss: MediaSourceStream<'_>,
        opts: MetadataOptions,
    ) -> Result<Box<dyn MetadataReader + '_>> {
        Ok(Box::new(Id3v2WithoutPictures { reader: Id3v2Reader::try_new(mss, opts)? }))
    }

    fn probe_data() -> &'static [ProbeMetadataData] {
        Id3v2Reader::probe_data()
    }
}

impl MetadataReader for Id3v2WithoutPictures<'_> {
    fn metadata_info(&self) -> &MetadataInfo {
        self.reader.metadata_info()
    }

    fn read_all(&mut self) -> Result<MetadataBuffer> {
        let mut read = self.reader.read_all()?;
        read.revision.media.visuals = Vec::new();
        Ok(read)
    }

    fn into_inner<'s>(self: Box<Self>) -> MediaSourceStream<'s>
    where
        Self: 's,
    {
        Box::new(self.reader).into_inner()
    }
}

/// What to change so that the demuxer of a FLAC or MP4 file passes over its pictures, up to `limit` bytes into the file
/// if that is given. Leaves the position anywhere.
pub(in crate::decode) fn masks<R: Read + Seek>(file: &mut R, limit: Option<u64>) -> io::Result<Vec<Mask>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.by_ref().take(8).read_to_end(&mut head)?;
    let limit = limit.unwrap_or(u64::MAX);
    match head[..] {
        [b'f', b'L', b'a', b'C', ..] => in_flac(file, limit),
        [_, _, _, _, b'f', b't', b'y', b'p'] => in_mp4(file, limit),
        _ => Ok(Vec::new()),
    }
}

/// A block of a picture becomes one of padding.
fn in_flac<R: Read + Seek>(file: &mut R, limit: u64) -> io::Result<Vec<Mask>> {
    const PADDING: u8 = 1;
    const PICTURE: u8 = 6;
    let (mut at, mut masks) = (4, Vec::new());
    for _ in 0..MOST {
        if at + 4 > limit {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let mut head = Vec::new();
        file.by_ref().take(4).read_to_end(&mut head)?;
        let &[kind, a, b, c] = &head[..] else { break };
        if kind & 0x7f == PICTURE {
            masks.push(Mask { at, byte: kind & 0x80 | PADDING });
        }
        if kind & 0x80 != 0 {
            break;
        }
        at += 4 + u64::from(u32::from_be_bytes([0, a, b, c]));
    }
    Ok(masks)
}

/// A field of a picture becomes a free one.
fn in_mp4<R: Read + Seek>(file: &mut R, limit: u64) -> io::Result<Vec<Mask>> {
    let mut within = (0, limit);
    for name in [b"moov", b"udta", b"meta", b"ilst"] {
        let Some((_, body, end)) = find(file, within, name)? else { return Ok(Vec::new()) };
        // Version and flags.
        within = (if name == b"meta" { body + 4 } else { body }, end);
    }
    let mut masks = Vec::new();
    for _ in 0..MOST {
        let Some((name, _, end)) = find(file, within, b"covr")? else { break };
        masks.extend((name..).zip(*b"free").map(|(at, byte)| Mask { at, byte }));
        within.0 = end;
    }
    Ok(masks)
}

/// Where the name of the first box of this name is, its body and its end.
fn find<R: Read + Seek>(
    file: &mut R,
    (mut at, end): (u64, u64),
    name: &[u8; 4],
) -> io::Result<Option<(u64, u64, u64)>> {
    for _ in 0..MOST {
        if at >= end {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let Some(header) = Header::read(file)? else { break };
        let Some(next) = header.end(at, Some(end)) else { break };
        if header.kind == *name {
            return Ok(Some((at + 4, header.body(at), next)));
        }
        at = next;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{MOST, masks};

    #[test]
    fn who_writes_pictures_without_end_is_not_followed() {
        let wrap =
            |name: &[u8; 4], body: &[u8]| [&(body.len() as u32 + 8).to_be_bytes()[..], name, body].concat();
        let file = |pictures: usize| {
            let list = wrap(b"ilst", &wrap(b"covr", b"").repeat(pictures));
            let meta = wrap(b"meta", &[&[0; 4], &list[..]].concat());
            [wrap(b"ftyp", b"M4A "), wrap(b"moov", &wrap(b"udta", &meta))].concat()
        };
        for (pictures, masked) in [(0, 0), (2, 2), (10_000, MOST)] {
            let masks = masks(&mut Cursor::new(file(pictures)), None).unwrap();
            assert_eq!(masks.len(), 4 * masked, "{pictures}");
        }
    }
}
