//! HLS playlists. Pure.
//!
//! The crate reads tags; it is given one entry at a time, so that what is broken spoils only itself and no text
//! takes long: as a whole, a title with a second comma becomes a segment, `METHOD=NONE` is no key, and a tag
//! without `=` searches through all that follows it.

mod choice;
mod segments;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use url::Url;

/// Segments in a playlist.
pub(super) const MOST_SEGMENTS: usize = 10_000;
/// The longest line, in bytes.
const LONGEST_LINE: usize = 8 * 1024;

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
    segments::parse(&lines, base).map(Playlist::Media)
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
