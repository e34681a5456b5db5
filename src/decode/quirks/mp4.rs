//! Where the sound begins and ends in an MP4. The demuxer reads edit lists but does not apply them.

use std::io::{self, Read, Seek, SeekFrom};

use super::{caf, mkv};

/// What stands in front of the media and the demuxers keep to themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::decode) struct Layout {
    /// Media data came before the index.
    pub(in crate::decode) index_behind: bool,
    /// Neither was found as far as was looked.
    pub(in crate::decode) index_unseen: bool,
    /// Where the first media data behind the index end, by what is said of them. In a file that was cut that is behind
    /// its end, and the demuxer reads nothing of what goes beyond.
    pub(in crate::decode) media_end: Option<u64>,
    /// The sound track's edit.
    pub(in crate::decode) edit: Option<Edit>,
    /// How the sound track is stored.
    pub(in crate::decode) entry: Option<Entry>,
    /// Of Matroska.
    pub(in crate::decode) mkv: mkv::Head,
    /// Of CAF.
    pub(in crate::decode) caf: caf::Head,
}

/// What the table of samples says about them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::decode) struct Entry {
    /// The name of the codec.
    pub(in crate::decode) kind: [u8; 4],
    /// Each sample's last byte comes first, by `enda`.
    pub(in crate::decode) little_endian: bool,
}

impl Entry {
    /// As people call it.
    pub(in crate::decode) fn codec(&self) -> String {
        match &self.kind {
            b"samr" | b"sawb" => "AMR".to_owned(),
            b"dtsc" | b"dtse" | b"dtsh" | b"dtsl" => "DTS".to_owned(),
            b"mlpa" => "TrueHD".to_owned(),
            b"ac-4" => "AC-4".to_owned(),
            b"alac" => "ALAC in QuickTime's manner".to_owned(),
            b"mp4a" => "this kind of MPEG-4 sound".to_owned(),
            other => format!("the codec \u{201c}{}\u{201d}", other.escape_ascii()),
        }
    }

    /// Whether these are samples of QuickTime's that have their first byte first, which the demuxer never expects.
    pub(in crate::decode) fn is_big_endian(&self) -> bool {
        matches!(&self.kind, b"in24" | b"in32" | b"fl32" | b"fl64") && !self.little_endian
    }
}

/// The first edit of a sound track that plays something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::decode) struct Edit {
    /// Where playing starts, in the track's own timescale.
    pub(in crate::decode) start: u64,
    /// How long it plays, in the movie's timescale; 0 for unknown.
    pub(in crate::decode) length: u64,
    /// Units of `length` in a second.
    pub(in crate::decode) movie_timescale: u32,
}

impl Edit {
    /// How many frames at `rate` the edit plays, given that the media holds `media` frames from its start.
    ///
    /// The media's own length is exact in what most encoders write; the edit's is often in milliseconds. So
    /// the edit counts only where its unit is fine enough or where it is clearly shorter.
    pub(in crate::decode) fn frames(&self, media: u64, rate: u32) -> u64 {
        if self.length == 0 || self.movie_timescale == 0 {
            return media;
        }
        let (rate, scale) = (u64::from(rate), u64::from(self.movie_timescale));
        let edit = u128::from(self.length) * u128::from(rate) / u128::from(scale);
        let edit = u64::try_from(edit).unwrap_or(u64::MAX);
        let unit = rate.div_ceil(scale);
        if scale == rate || edit.saturating_add(unit) < media { edit.min(media) } else { media }
    }
}

/// Reads the boxes at the beginning of an MP4, up to `limit` bytes if that is given. Leaves the position
/// anywhere.
pub(in crate::decode) fn scan<R: Read + Seek>(file: &mut R, limit: Option<u64>) -> io::Result<Layout> {
    let mut layout = Layout::default();
    let (mut pos, mut has_index) = (0, false);
    // A playable file has a handful of boxes here; a fragmented one has its index in front.
    for _ in 0..64 {
        file.seek(SeekFrom::Start(pos))?;
        let Some(header) = Header::read(file)? else { break };
        match &header.kind {
            b"moov" => {
                (layout.edit, layout.entry) = Movie::read(file, header.body(pos), header.end(pos, limit))?;
                has_index = true;
            }
            b"mdat" if has_index => {
                layout.media_end = header.end(pos, None);
                break;
            }
            b"mdat" => {
                layout.index_behind = true;
                if limit.is_some() {
                    break;
                }
            }
            _ if has_index && layout.index_behind => break,
            b"ftyp" => {}
            // Every MP4 begins with its type; this is something else.
            _ if pos == 0 => break,
            _ => {}
        }
        let Some(end) = header.end(pos, None) else { break };
        pos = end;
        if limit.is_some_and(|limit| pos >= limit) {
            layout.index_unseen = !has_index;
            break;
        }
    }
    Ok(layout)
}

pub(super) struct Header {
    pub(super) kind: [u8; 4],
    /// Of the header itself.
    len: u64,
    /// Of the whole box; 0 reaches to the end.
    size: u64,
}

impl Header {
    /// None at the end of the file and for what cannot be a box.
    pub(super) fn read<R: Read>(file: &mut R) -> io::Result<Option<Header>> {
        let mut head = [0; 8];
        if !filled(file, &mut head)? {
            return Ok(None);
        }
        let [a, b, c, d, kind @ ..] = head;
        let (mut size, mut len) = (u64::from(u32::from_be_bytes([a, b, c, d])), 8);
        if size == 1 {
            let mut large = [0; 8];
            if !filled(file, &mut large)? {
                return Ok(None);
            }
            (size, len) = (u64::from_be_bytes(large), 16);
        }
        Ok((size == 0 || size >= len).then_some(Header { kind, len, size }))
    }

    pub(super) fn body(&self, pos: u64) -> u64 {
        pos.saturating_add(self.len)
    }

    pub(super) fn end(&self, pos: u64, outer: Option<u64>) -> Option<u64> {
        if self.size == 0 {
            return outer;
        }
        let end = pos.checked_add(self.size)?;
        Some(outer.map_or(end, |outer| end.min(outer)))
    }
}

fn filled<R: Read>(file: &mut R, buf: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buf) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

/// What is gathered inside `moov`.
#[derive(Default)]
struct Movie {
    timescale: u32,
    /// Of the track that is being read.
    edit: Option<(u64, u64)>,
    entry: Option<Entry>,
    is_sound: bool,
    is_found: bool,
}

impl Movie {
    fn read<R: Read + Seek>(
        file: &mut R,
        from: u64,
        to: Option<u64>,
    ) -> io::Result<(Option<Edit>, Option<Entry>)> {
        let mut movie = Movie::default();
        movie.children(file, from, to, 0)?;
        if !movie.is_found {
            return Ok((None, None));
        }
        let edit = movie.edit.map(|(start, length)| Edit { start, length, movie_timescale: movie.timescale });
        Ok((edit, movie.entry))
    }

    fn children<R: Read + Seek>(
        &mut self,
        file: &mut R,
        from: u64,
        to: Option<u64>,
        depth: u32,
    ) -> io::Result<()> {
        let mut pos = from;
        for _ in 0..256 {
            if depth > 4 || self.is_found || to.is_some_and(|to| pos >= to) {
                break;
            }
            file.seek(SeekFrom::Start(pos))?;
            let Some(header) = Header::read(file)? else { break };
            let (body, end) = (header.body(pos), header.end(pos, to));
            match &header.kind {
                b"mvhd" => self.timescale = read_timescale(file)?.unwrap_or(0),
                b"trak" => {
                    (self.edit, self.entry, self.is_sound) = (None, None, false);
                    self.children(file, body, end, depth + 1)?;
                    self.is_found = self.is_sound;
                }
                b"edts" | b"mdia" | b"minf" | b"stbl" => self.children(file, body, end, depth + 1)?,
                b"elst" => self.edit = read_edit(file)?,
                b"stsd" => self.entry = read_entry(file, header.size)?,
                b"hdlr" => {
                    let mut fields = [0; 12];
                    // QuickTime has another one further inside, which says where the bytes are.
                    self.is_sound |= filled(file, &mut fields)? && fields.ends_with(b"soun");
                }
                _ => {}
            }
            let Some(end) = end else { break };
            pos = end;
        }
        Ok(())
    }
}

fn read_timescale<R: Read>(file: &mut R) -> io::Result<Option<u32>> {
    let mut head = [0; 4];
    if !filled(file, &mut head)? {
        return Ok(None);
    }
    // Two times of creation and change come first, of 8 bytes each in version 1.
    let mut times = [0; 16];
    let times = if head[0] == 1 { &mut times[..] } else { &mut times[..8] };
    let mut scale = [0; 4];
    Ok((filled(file, times)? && filled(file, &mut scale)?).then(|| u32::from_be_bytes(scale)))
}

/// The first entry of a table of this size.
fn read_entry<R: Read>(file: &mut R, size: u64) -> io::Result<Option<Entry>> {
    // What says how samples lie is in the first few hundred.
    let mut bytes = Vec::new();
    file.take(size.min(1024)).read_to_end(&mut bytes)?;
    let kind = bytes.get(12..).and_then(|bytes| bytes.first_chunk()).copied();
    let enda = bytes.windows(4).position(|name| name == b"enda").and_then(|at| bytes.get(at + 4..at + 6));
    Ok(kind.map(|kind| Entry { kind, little_endian: enda == Some(&[0, 1]) }))
}

/// Start and length of the first edit that is not a pause.
fn read_edit<R: Read>(file: &mut R) -> io::Result<Option<(u64, u64)>> {
    let mut head = [0; 8];
    if !filled(file, &mut head)? {
        return Ok(None);
    }
    let [version, _, _, _, count @ ..] = head;
    for _ in 0..u32::from_be_bytes(count).min(16) {
        let mut entry = [0; 20];
        let entry = if version == 1 { &mut entry[..] } else { &mut entry[..12] };
        if !filled(file, entry)? {
            return Ok(None);
        }
        let half = if version == 1 { 8 } else { 4 };
        let length = entry[..half].iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
        let start = entry[half..2 * half].iter().fold(0u64, |sum, &b| sum << 8 | u64::from(b));
        let pause = if version == 1 { u64::MAX } else { u64::from(u32::MAX) };
        if start != pause {
            return Ok(Some((start, length)));
        }
    }
    Ok(None)
}
