//! What in a Matroska file misleads its demuxer.
//!
//! Cues may lead into the middle of a cluster, as those of mkvmerge and ffmpeg do. The demuxer takes the time of such a
//! cue for that of the whole cluster, so that all that follows up to the next one seems to be later than it is, by
//! seconds. Where the cue does not say more than the cluster, all is well.
//!
//! In a file that was cut, the table in front tells of what is not there, and the demuxer gives the file up.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::{CLUSTER, EBML, Element, SEGMENT};
use crate::decode::input::Mask;

const SEEK_HEAD: u32 = 0x114d_9b74;
const SEEK: u32 = 0x4dbb;
const SEEK_ID: u32 = 0x53ab;
const SEEK_POSITION: u32 = 0x53ac;
const CUES: u32 = 0x1c53_bb6b;
const CUE_POINT: u32 = 0xbb;
const CUE_TRACK_POSITIONS: u32 = 0xb7;
const CUE_RELATIVE_POSITION: u32 = 0xf0;
/// The name of what is to be skipped.
const VOID: u8 = 0xec;
/// Longer tables are left as they are. So many bytes hold the cues of days.
const LONGEST: u64 = 8 * 1024 * 1024;

/// The bytes that mislead the demuxer of a file of this length, in order.
pub(in crate::decode) fn masks<R: Read + Seek>(file: &mut R, len: u64) -> io::Result<Vec<Mask>> {
    let mut masks = Vec::new();
    let Some(table) = table(file, len, &mut masks)? else { return Ok(masks) };
    file.seek(SeekFrom::Start(table.start))?;
    let mut bytes = Vec::new();
    file.take(table.end - table.start).read_to_end(&mut bytes)?;
    let points = children(&bytes, 0..bytes.len()).filter(|child| child.id == CUE_POINT);
    let tracks = points.flat_map(|point| children(&bytes, point.body));
    let fields = tracks
        .filter(|child| child.id == CUE_TRACK_POSITIONS)
        .flat_map(|positions| children(&bytes, positions.body));
    let into = fields.filter(|field| field.id == CUE_RELATIVE_POSITION);
    masks.extend(into.map(|field| Mask { at: table.start + field.at as u64, byte: VOID }));
    masks.sort_by_key(|mask| mask.at);
    Ok(masks)
}

/// What is inside of the cues, wherever they are. Masks what leads to nowhere on the way.
fn table<R: Read + Seek>(file: &mut R, len: u64, masks: &mut Vec<Mask>) -> io::Result<Option<Range<u64>>> {
    let (mut at, mut segment, mut told) = (0, 0, None);
    // What comes before the first cluster is a handful of elements.
    for _ in 0..256 {
        file.seek(SeekFrom::Start(at))?;
        let Some(Element { id, size, body }) = Element::read(file, at)? else { break };
        match (id, size) {
            (SEGMENT, _) => {
                (segment, at) = (body, body);
                continue;
            }
            (CUES, Some(size)) => return Ok(range(body, size)),
            (SEEK_HEAD, Some(size)) => {
                let there = |position: u64| segment.checked_add(position).filter(|&at| at < len);
                told = told.or(sought(file, body, size, there, masks)?);
            }
            (CLUSTER, _) => break,
            // Everything begins with its own head; this is something else.
            _ if at == 0 && id != EBML => break,
            _ => {}
        }
        let Some(next) = size.and_then(|size| body.checked_add(size)) else { break };
        at = next;
    }
    let Some(at) = told else { return Ok(None) };
    file.seek(SeekFrom::Start(at))?;
    let cues = Element::read(file, at)?.filter(|element| element.id == CUES);
    Ok(cues.and_then(|cues| range(cues.body, cues.size?)))
}

fn range(body: u64, size: u64) -> Option<Range<u64>> {
    Some(body..body.checked_add(size).filter(|_| size <= LONGEST)?)
}

/// Where the cues are by the table at this place. What it tells of is `there`, or is masked: nobody knows an element
/// of such a name.
fn sought<R: Read + Seek>(
    file: &mut R,
    body: u64,
    size: u64,
    there: impl Fn(u64) -> Option<u64>,
    masks: &mut Vec<Mask>,
) -> io::Result<Option<u64>> {
    let Some(table) = range(body, size) else { return Ok(None) };
    file.seek(SeekFrom::Start(body))?;
    let mut bytes = Vec::new();
    file.take(table.end - body).read_to_end(&mut bytes)?;
    let field = |entry: &Child, id: u32| children(&bytes, entry.body.clone()).find(|field| field.id == id);
    let number = |field: &Child| {
        let value = bytes.get(field.body.clone()).filter(|value| value.len() <= 8)?;
        Some(value.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte)))
    };
    let mut cues = None;
    for entry in children(&bytes, 0..bytes.len()).filter(|entry| entry.id == SEEK) {
        let Some(name) = field(&entry, SEEK_ID).filter(|name| !name.body.is_empty()) else { continue };
        match field(&entry, SEEK_POSITION).and_then(|field| number(&field)).and_then(&there) {
            Some(at) if number(&name) == Some(u64::from(CUES)) => cues = cues.or(Some(at)),
            Some(_) => {}
            None => masks.push(Mask { at: body + name.body.end as u64 - 1, byte: 0 }),
        }
    }
    Ok(cues)
}

/// An element in memory.
struct Child {
    id: u32,
    /// Where its name is.
    at: usize,
    body: Range<usize>,
}

/// The elements that lie whole in this part of `bytes`, as far as they follow each other.
fn children(bytes: &[u8], within: Range<usize>) -> impl Iterator<Item = Child> {
    let mut at = within.start;
    std::iter::from_fn(move || {
        let Element { id, size, body } = Element::parse(bytes.get(at..within.end)?, at as u64)?;
        let body = usize::try_from(body).ok()?;
        let end = body.checked_add(usize::try_from(size?).ok()?).filter(|&end| end <= within.end)?;
        Some(Child { id, at: std::mem::replace(&mut at, end), body: body..end })
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn wrap(id: u32, body: &[u8]) -> Vec<u8> {
        let id: Vec<u8> = id.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
        [&id[..], &[0x80 | body.len() as u8], body].concat()
    }

    /// With the cues in front of the sound or behind it.
    fn file(front: bool) -> Vec<u8> {
        let cue = |inner: &[u8]| wrap(CUE_POINT, &wrap(CUE_TRACK_POSITIONS, inner));
        // The second is a number that looks like a name.
        let cues = wrap(CUES, &[cue(&[0xf7, 0x81, 1, 0xf0, 0x81, 9]), cue(&[0xf0, 0x81, 0xf0])].concat());
        let position = |at: u8| [wrap(SEEK_ID, &CUES.to_be_bytes()), wrap(SEEK_POSITION, &[at])].concat();
        let head = |at: u8| wrap(SEEK_HEAD, &wrap(SEEK, &position(at)));
        let cluster = wrap(CLUSTER, b"sound");
        let parts = match front {
            true => [cues, cluster].concat(),
            false => {
                let at = head(0).len() + cluster.len();
                [head(at as u8), cluster, cues].concat()
            }
        };
        [wrap(EBML, b"head"), wrap(SEGMENT, &parts)].concat()
    }

    fn found(file: &[u8]) -> Vec<Mask> {
        masks(&mut Cursor::new(file), file.len() as u64).unwrap()
    }

    #[test]
    fn what_leads_into_a_cluster_is_found() {
        for front in [true, false] {
            let file = file(front);
            let found = found(&file);
            let named: Vec<&[u8]> =
                found.iter().map(|mask| &file[mask.at as usize..mask.at as usize + 3]).collect();
            assert_eq!(named, [[0xf0, 0x81, 9], [0xf0, 0x81, 0xf0]], "{front}");
            assert!(found.iter().all(|mask| mask.byte == VOID));
        }
    }

    #[test]
    fn what_leads_out_of_the_file_is_found() {
        let file = file(false);
        let sound = file.windows(5).position(|bytes| bytes == b"sound").unwrap();
        let found = found(&file[..sound + 3]);
        // The last byte of the name in the table.
        let name = file.windows(4).position(|bytes| bytes == CUES.to_be_bytes()).unwrap();
        assert_eq!(found, [Mask { at: name as u64 + 3, byte: 0 }]);
    }

    #[test]
    fn what_is_damaged_or_no_matroska_leads_nowhere() {
        let mut file = file(false);
        for len in 0..file.len() {
            found(&file[..len]);
        }
        for at in 0..file.len() {
            let before = std::mem::replace(&mut file[at], 0xff);
            found(&file);
            file[at] = before;
        }
        for other in [&b"RIFF\0\0\0\0WAVE"[..], b"", b"\xff\xfb\x90\x64"] {
            assert_eq!(found(other), []);
        }
    }
}
