//! The pieces of one recording, as a playlist lists them.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::{LONGEST_LINE, MOST_SEGMENTS, Map, Media, Range, Segment, attributes, link};

/// Lines that may belong to one entry.
const MOST_LINES: usize = 64;
/// The longest segment that is believed, in seconds.
const LONGEST: f32 = 3_600.0;

/// Reads the lines of a playlist that came from `base`.
pub(super) fn parse(lines: &[&str], base: &Url) -> Result<Media, &'static str> {
    let mut reading = Reading { base, media: Media::default(), map: None, encrypted: false, behind: None };
    let mut entry = Vec::new();
    for &line in lines {
        if line.starts_with('#') {
            entry.extend(tag(line).filter(|_| entry.len() < MOST_LINES));
            continue;
        }
        reading.entry(&entry, Some(line))?;
        entry.clear();
    }
    reading.entry(&entry, None)?;
    let mut media = reading.media;
    if media.sequence.checked_add(media.segments.len() as u64).is_none() {
        return Err("the numbers of its segments are too large");
    }
    let longest = media.segments.iter().map(|segment| segment.duration).max().unwrap_or_default();
    if media.target.is_zero() {
        media.target = longest;
    }
    media.target = media.target.clamp(Duration::from_millis(500), Duration::from_secs_f32(LONGEST));
    Ok(media)
}

/// A line that means something here, without what the crate stumbles over: what it leaves of a line becomes a
/// segment.
fn tag(line: &str) -> Option<String> {
    const FLAGS: [&str; 3] = ["#EXT-X-ENDLIST", "#EXT-X-DISCONTINUITY", "#EXT-X-GAP"];
    if line.len() > LONGEST_LINE {
        return None;
    }
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    let kept = |allowed: fn(char) -> bool| {
        let value = value.trim();
        &value[..value.find(|c: char| !allowed(c)).unwrap_or(value.len())]
    };
    Some(match name {
        // Without the title.
        "#EXTINF" => format!("{name}:{},", kept(|c| c.is_ascii_digit() || c == '.')),
        "#EXT-X-TARGETDURATION" | "#EXT-X-MEDIA-SEQUENCE" => {
            format!("{name}:{}", kept(|c| c.is_ascii_digit()))
        }
        "#EXT-X-BYTERANGE" => format!("{name}:{}", kept(|c| c.is_ascii_digit() || c == '@')),
        "#EXT-X-KEY" | "#EXT-X-MAP" | "#EXT-X-START" => format!("{name}:{}", attributes(value)),
        _ => FLAGS.iter().find(|flag| **flag == name)?.to_string(),
    })
}

struct Reading<'a> {
    base: &'a Url,
    media: Media,
    map: Option<Arc<Map>>,
    encrypted: bool,
    /// The file and the offset that a range without one goes on at.
    behind: Option<(Url, u64)>,
}

impl Reading<'_> {
    /// Tags, and the link that they belong to.
    fn entry(&mut self, tags: &[String], uri: Option<&str>) -> Result<(), &'static str> {
        // The crate keeps what it knows of a segment only where a link follows.
        let text = format!("#EXTM3U\n{}\n{}\n", tags.join("\n"), uri.unwrap_or("none"));
        let Ok((_, read)) = m3u8_rs::parse_media_playlist(text.as_bytes()) else {
            return Err("it is broken");
        };
        if read.target_duration > 0 {
            self.media.target = Duration::from_secs(read.target_duration);
        }
        if tags.iter().any(|tag| tag.starts_with("#EXT-X-MEDIA-SEQUENCE:")) && self.media.segments.is_empty()
        {
            self.media.sequence = read.media_sequence;
        }
        self.media.ended |= read.end_list;
        if let Some(start) = read.start.filter(|start| start.time_offset.is_finite()) {
            self.media.start = Some(start.time_offset);
        }
        let Some(segment) = read.segments.into_iter().next() else { return Ok(()) };
        self.key(tags);
        if let Some(map) = &segment.map {
            let url = link(self.base, &map.uri).ok_or("a link in it leads to no server")?;
            let range = match &map.byte_range {
                Some(range) => Some(self.range(&url, range, Some(0))?),
                None => None,
            };
            if self.map.as_deref().is_none_or(|known| known.url != url || known.range != range) {
                self.map = Some(Arc::new(Map { url, range }));
            }
        }
        let Some(uri) = uri else { return Ok(()) };
        let url = link(self.base, uri).ok_or("a link in it leads to no server")?;
        let range = match &segment.byte_range {
            Some(range) => Some(self.range(&url, range, None)?),
            None => None,
        };
        self.behind = range.map(|range| (url.clone(), range.to));
        if self.media.segments.len() == MOST_SEGMENTS {
            return Err("it lists more than 10,000 segments");
        }
        let seconds = if segment.duration.is_finite() { segment.duration.clamp(0.0, LONGEST) } else { 0.0 };
        self.media.segments.push(Segment {
            url,
            range,
            map: self.map.clone(),
            duration: Duration::from_secs_f32(seconds),
            discontinuity: segment.discontinuity,
            gap: tags.iter().any(|tag| tag.starts_with("#EXT-X-GAP")),
            encrypted: self.encrypted,
        });
        Ok(())
    }

    /// A key holds until another is told; the crate does not know the one that is none.
    fn key(&mut self, tags: &[String]) {
        let mut keys = tags.iter().filter_map(|tag| tag.strip_prefix("#EXT-X-KEY:")).peekable();
        if keys.peek().is_some() {
            self.encrypted =
                keys.any(|key| !key.split(',').any(|pair| pair.trim().eq_ignore_ascii_case("METHOD=NONE")));
        }
    }

    fn range(
        &self,
        url: &Url,
        range: &m3u8_rs::ByteRange,
        default: Option<u64>,
    ) -> Result<Range, &'static str> {
        let behind = self.behind.as_ref().filter(|(before, _)| before == url).map(|(_, at)| *at);
        let from = range.offset.or(default).or(behind).unwrap_or(0);
        let to = from.checked_add(range.length).filter(|to| *to > from && *to < u64::MAX);
        Ok(Range { from, to: to.ok_or("a range in it is empty")? })
    }
}
