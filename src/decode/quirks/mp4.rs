//! Where the sound begins and ends in an MP4. The demuxer reads edit lists but does not apply them.

use std::io::{self, Read, Seek, SeekFrom};

use super::mkv::CodecDelay;

/// What stands in front of the media and the demuxers keep to themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::decode) struct Layout {
    /// Media data came before the index.
    pub(in crate::decode) index_behind: bool,
    /// The sound track's edit.
    pub(in crate::decode) edit: Option<Edit>,
    /// Its samples have their highest byte first, although the demuxer takes them for the opposite.
    pub(in crate::decode) big_endian: bool,
    /// The sound track's priming in Matroska.
    pub(in crate::decode) mkv_delay: Option<CodecDelay>,
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
    let mut pos = 0;
    // A playable file has a handful of boxes here; a fragmented one has its index in front.
    for _ in 0..64 {
        file.seek(SeekFrom::Start(pos))?;
        let Some(header) = Header::read(file)? else { break };
        match &header.kind {
            b"moov" => {
                let movie = Movie::read(file, header.body(pos), header.end(pos, limit))?;
                (layout.edit, layout.big_endian) = (movie.edit(), movie.big_endian);
                break;
            }
            b"mdat" => {
                layout.index_behind = true;
                if limit.is_some() {
                    break;
                }
            }
            b"ftyp" => {}
            // Every MP4 begins with its type; this is something else.
            _ if pos == 0 => break,
            _ => {}
        }
        let Some(end) = header.end(pos, None) else { break };
        pos = end;
        if limit.is_some_and(|limit| pos >= limit) {
            break;
        }
    }
    Ok(layout)
}

struct Header {
    kind: [u8; 4],
    /// Of the header itself.
    len: u64,
    /// Of the whole box; 0 reaches to the end.
    size: u64,
}

impl Header {
    /// None at the end of the file and for what cannot be a box.
    fn read<R: Read>(file: &mut R) -> io::Result<Option<Header>> {
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

    fn body(&self, pos: u64) -> u64 {
        pos.saturating_add(self.len)
    }

    fn end(&self, pos: u64, outer: Option<u64>) -> Option<u64> {
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
    is_sound: bool,
    big_endian: bool,
    found: Option<Option<(u64, u64)>>,
}

impl Movie {
    fn read<R: Read + Seek>(file: &mut R, from: u64, to: Option<u64>) -> io::Result<Movie> {
        let mut movie = Movie::default();
        movie.children(file, from, to, 0)?;
        Ok(movie)
    }

    fn edit(&self) -> Option<Edit> {
        let (start, length) = self.found.flatten()?;
        Some(Edit { start, length, movie_timescale: self.timescale })
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
            if depth > 4 || self.found.is_some() || to.is_some_and(|to| pos >= to) {
                break;
            }
            file.seek(SeekFrom::Start(pos))?;
            let Some(header) = Header::read(file)? else { break };
            let (body, end) = (header.body(pos), header.end(pos, to));
            match &header.kind {
                b"mvhd" => self.timescale = read_timescale(file)?.unwrap_or(0),
                b"trak" => {
                    (self.edit, self.is_sound, self.big_endian) = (None, false, false);
                    self.children(file, body, end, depth + 1)?;
                    if self.is_sound {
                        self.found = Some(self.edit);
                    }
                }
                b"edts" | b"mdia" | b"minf" | b"stbl" => self.children(file, body, end, depth + 1)?,
                b"elst" => self.edit = read_edit(file)?,
                b"hdlr" => {
                    let mut fields = [0; 12];
                    // In QuickTime another one tells where the media is.
                    self.is_sound |= filled(file, &mut fields)? && fields.ends_with(b"soun");
                }
                b"stsd" => self.big_endian = is_big_endian(file)?,
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

/// Whether samples described here have their highest byte first: those of QuickTime's wider PCM do, unless `enda` says
/// that they do not.
fn is_big_endian<R: Read>(file: &mut R) -> io::Result<bool> {
    let mut description = Vec::new();
    file.take(512).read_to_end(&mut description)?;
    // Version, count and size come before the kind of the first entry.
    let is_either = matches!(description.get(12..16), Some(b"in24" | b"in32" | b"fl32" | b"fl64"));
    let says_little = |bytes: &[u8]| bytes.starts_with(b"enda") && bytes.ends_with(&[1]);
    Ok(is_either && !description.windows(6).any(says_little))
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
