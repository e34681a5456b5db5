//! HLS playlists. Pure.
//!
//! The crate reads tags; it is given one entry at a time, so that what is broken spoils only itself and no text
//! takes long: as a whole, a title with a second comma becomes a segment, `METHOD=NONE` is no key, and a tag
//! without `=` searches through all that follows it.

mod choice;

use std::sync::Arc;
use std::time::Duration;

use url::Url;

/// Segments in a playlist.
pub(super) const MOST_SEGMENTS: usize = 10_000;
/// Lines that may belong to one entry.
const MOST_LINES: usize = 64;
/// The longest line, in bytes.
const LONGEST_LINE: usize = 8 * 1024;
/// The longest segment that is believed, in seconds.
const LONGEST: f32 = 3_600.0;

/// A playlist of either kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Playlist {
    /// Where the same is to be had in several forms: those that can be played, the best first.
    Master(Vec<Url>),
    /// Pieces of one recording.
    Media(Media),
}

/// The pieces of one recording, as far as they are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Media {
    /// Number of the first segment.
    pub sequence: u64,
    /// No segment is longer, and a live playlist changes about so often.
    pub target: Duration,
    /// There will be no more segments.
    pub ended: bool,
    /// Where to begin, in seconds: negative from the end.
    pub start: Option<f64>,
    /// In order.
    pub segments: Vec<Segment>,
}

/// One piece.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    pub url: Url,
    /// None for all of it.
    pub range: Option<Range>,
    /// What has to be read before it.
    pub map: Option<Arc<Map>>,
    pub duration: Duration,
    /// It does not continue the one before.
    pub discontinuity: bool,
    /// It is known to be missing.
    pub gap: bool,
    pub encrypted: bool,
}

/// The head that fragments of MP4 need.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Map {
    pub url: Url,
    /// None for all of it.
    pub range: Option<Range>,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub from: u64,
    /// After the last byte.
    pub to: u64,
}

impl Media {
    /// Number of the first segment that is not listed yet.
    pub fn end(&self) -> u64 {
        self.sequence.saturating_add(self.segments.len() as u64)
    }

    /// The segment of that number.
    pub fn segment(&self, number: u64) -> Option<&Segment> {
        let index = usize::try_from(number.checked_sub(self.sequence)?).ok()?;
        self.segments.get(index)
    }

    /// Where to begin in a live stream: as it asks, else three segments before its end.
    pub fn live_edge(&self) -> u64 {
        let Some(offset) = self.start else {
            return self.end().saturating_sub(3).max(self.sequence);
        };
        let whole: f64 = self.segments.iter().map(|segment| segment.duration.as_secs_f64()).sum();
        let at = if offset < 0.0 { whole + offset } else { offset };
        let mut behind = 0.0;
        let place = self.segments.iter().position(|segment| {
            behind += segment.duration.as_secs_f64();
            behind > at
        });
        let place = place.unwrap_or(self.segments.len().saturating_sub(1));
        self.sequence.saturating_add(place as u64)
    }
}

/// Reads a playlist that came from `base`.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn parse(text: &str, base: &Url) -> Result<Playlist, &'static str> {
    let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    if !lines.first().is_some_and(|line| line.starts_with("#EXTM3U")) {
        return Err("it is no HLS playlist");
    }
    if lines.iter().any(|line| line.starts_with("#EXT-X-STREAM-INF:")) {
        return choice::parse(&lines, base).map(Playlist::Master);
    }
    let mut reading = Reading { base, media: Media::default(), map: None, encrypted: false, behind: None };
    let mut entry = Vec::new();
    for line in lines {
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
    Ok(Playlist::Media(media))
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

/// A list of attributes without those that have no value.
fn attributes(list: &str) -> String {
    let mut quoted = false;
    let parts = list.split(|c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    let parts = parts.map(str::trim).filter(|part| {
        part.split_once('=').is_some_and(|(name, value)| !name.is_empty() && !matches!(value, "" | "\"\""))
    });
    parts.collect::<Vec<_>>().join(",")
}

/// A link to a server. What came by https does not lead to plain http.
fn link(base: &Url, link: &str) -> Option<Url> {
    if link.len() > LONGEST_LINE {
        return None;
    }
    let mut url = base.join(link).ok()?;
    url.set_fragment(None);
    let secure = url.scheme() == "https" || (url.scheme() == "http" && base.scheme() == "http");
    (secure && url.host_str().is_some()).then_some(url)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn base() -> Url {
        Url::parse("https://radio.example/live/list.m3u8?key=secret").unwrap()
    }

    fn media(text: &str) -> Media {
        match parse(text, &base()).unwrap() {
            Playlist::Media(media) => media,
            Playlist::Master(_) => panic!("taken for a master playlist"),
        }
    }

    #[test]
    fn a_live_window_is_read_with_its_numbers() {
        let media = media(
            "\u{feff}#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-TARGETDURATION:6\r\n#EXT-X-MEDIA-SEQUENCE:1000\r\n\
             #EXTINF:6.0,Artist, with a comma, Song\r\na.aac\r\n#EXT-X-PROGRAM-DATE-TIME:nonsense\r\n\
             #EXTINF:5.5\r\n/b.aac?x=1\r\n#EXT-X-DISCONTINUITY-SEQUENCE:4\r\n#EXT-X-DISCONTINUITY\r\n#EXTINF:6,\r\n\
             https://cdn.example/c.aac\r\n#EXT-X-GAP\r\n#EXTINF:6,\r\nd.aac"
                .trim_start_matches('\u{feff}'),
        );
        assert_eq!((media.sequence, media.end(), media.ended), (1000, 1004, false));
        assert_eq!(media.target, Duration::from_secs(6));
        let links: Vec<_> = media.segments.iter().map(|segment| segment.url.as_str()).collect();
        assert_eq!(
            links,
            [
                "https://radio.example/live/a.aac",
                "https://radio.example/b.aac?x=1",
                "https://cdn.example/c.aac",
                "https://radio.example/live/d.aac",
            ]
        );
        let broken: Vec<_> = media.segments.iter().map(|segment| segment.discontinuity).collect();
        assert_eq!(broken, [false, false, true, false]);
        assert!(media.segments[3].gap && !media.segments[2].gap);
        assert_eq!(media.segments[1].duration, Duration::from_secs_f32(5.5));
        assert_eq!(media.live_edge(), 1001);
        assert_eq!(media.segment(1002), Some(&media.segments[2]));
        assert_eq!(media.segment(999), None);
        assert_eq!(media.segment(1004), None);
    }

    #[test]
    fn ranges_follow_each_other_and_heads_hold_until_the_next() {
        let media = media(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"700\"\n\
             #EXTINF:4,\n#EXT-X-BYTERANGE:1000@700\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:500\nall.mp4\n\
             #EXT-X-MAP:URI=\"two.mp4\"\n#EXTINF:4,\nother.mp4\n#EXT-X-ENDLIST\n",
        );
        let range = |from, to| Some(Range { from, to });
        let ranges: Vec<_> = media.segments.iter().map(|segment| segment.range).collect();
        assert_eq!(ranges, [range(700, 1700), range(1700, 2200), None]);
        let maps: Vec<_> = media.segments.iter().map(|segment| segment.map.as_ref().unwrap().range).collect();
        assert_eq!(maps, [range(0, 700), range(0, 700), None]);
        assert!(media.ended);
    }

    #[test]
    fn a_key_holds_until_the_one_that_is_none() {
        let media = media(
            "#EXTM3U\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\na\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\nb\n\
             #EXTINF:4,\nc\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\nd\n#EXT-X-KEY:URI=\"k\"\n#EXTINF:4,\ne\n",
        );
        let encrypted: Vec<_> = media.segments.iter().map(|segment| segment.encrypted).collect();
        assert_eq!(encrypted, [false, true, true, false, true]);
    }

    #[test]
    fn a_live_stream_begins_where_it_asks() {
        let text = |start: &str| {
            let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:10\n{start}\n");
            for n in 0..8 {
                text += &format!("#EXTINF:4,\n{n}.ts\n");
            }
            media(&text).live_edge()
        };
        assert_eq!(text(""), 15);
        assert_eq!(text("#EXT-X-START:TIME-OFFSET=-20.0"), 13);
        assert_eq!(text("#EXT-X-START:TIME-OFFSET=9"), 12);
        assert_eq!(text("#EXT-X-START:TIME-OFFSET=-900"), 10);
        assert_eq!(text("#EXT-X-START:TIME-OFFSET=900"), 17);
    }

    #[test]
    fn https_does_not_lead_to_http_nor_anything_to_the_disk() {
        for uri in ["http://radio.example/a.ts", "file:///etc/passwd", "data:audio/aac,x"] {
            assert!(parse(&format!("#EXTM3U\n#EXTINF:4,\n{uri}\n"), &base()).is_err(), "{uri}");
        }
    }

    #[test]
    fn a_playlist_has_a_limit() {
        let text = format!("#EXTM3U\n{}", "#EXTINF:1,\na\n".repeat(MOST_SEGMENTS + 1));
        assert_eq!(parse(&text, &base()), Err("it lists more than 10,000 segments"));
    }

    #[test]
    fn numbers_without_a_successor_are_refused() {
        let text = |first: u64, count: usize| {
            let segments = "#EXTINF:1,\na\n".repeat(count);
            parse(&format!("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:{first}\n{segments}"), &base())
        };
        assert_eq!(text(u64::MAX, 1), Err("the numbers of its segments are too large"));
        assert_eq!(text(u64::MAX - 2, 5), Err("the numbers of its segments are too large"));
        let Ok(Playlist::Media(last)) = text(u64::MAX - 1, 1) else { panic!("it is not read") };
        assert_eq!((last.end(), last.segment(u64::MAX - 1).is_some()), (u64::MAX, true));
    }

    #[test]
    fn no_text_takes_long() {
        let began = std::time::Instant::now();
        let hostile = ["#EXT-X-KEY:a\n", "#EXT-X-MAP:a,", "#EXTINF:1,\n", "#EXT-X-STREAM-INF:a\n", "a\n"];
        for text in hostile {
            let _ = parse(&format!("#EXTM3U\n{}", text.repeat(1024 * 1024 / text.len())), &base());
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na\n";
            let _ = parse(&format!("{master}{}", text.repeat(1024 * 1024 / text.len())), &base());
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser_or_leads_elsewhere_than_to_a_server(
            words in prop::collection::vec(prop::sample::select(vec![
                "#EXTM3U", "\n", "\r\n", "#EXTINF:", "1", "99999999999999999999", "1e39", "-", ".", ",", "=", "\"", "@", "a",
                "http://b/", "file:///x", "//", "#EXT-X-KEY:", "METHOD=", "NONE", "AES-128", "#EXT-X-MAP:", "URI=", "BYTERANGE=",
                "#EXT-X-BYTERANGE:", "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-TARGETDURATION:", "#EXT-X-ENDLIST", "#EXT-X-START:",
                "TIME-OFFSET=", "#EXT-X-STREAM-INF:", "BANDWIDTH=", "CODECS=", "AUDIO=", "#EXT-X-MEDIA:", "TYPE=AUDIO", "GROUP-ID=",
                "NAME=", "DEFAULT=YES", "\u{feff}", "é", " ", "#", "mp4a.40.2",
            ]), 0..80),
        ) {
            match parse(&format!("#EXTM3U\n{}", words.concat()), &base()) {
                Ok(Playlist::Media(media)) => {
                    for segment in &media.segments {
                        prop_assert_eq!(segment.url.scheme(), "https");
                        prop_assert!(segment.range.is_none_or(|range| range.from < range.to));
                    }
                    let edge = media.live_edge();
                    prop_assert!(media.segments.is_empty() || media.segment(edge).is_some());
                }
                Ok(Playlist::Master(urls)) => {
                    prop_assert!(!urls.is_empty());
                    prop_assert!(urls.iter().all(|url| url.scheme() == "https"));
                }
                Err(_) => {}
            }
        }
    }
}
