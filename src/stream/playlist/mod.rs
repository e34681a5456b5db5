//! Playlists that lead to a station: PLS, M3U and XSPF, told from audio and from HLS. Pure.

mod m3u;
mod pls;
mod xspf;

use std::fmt;
use std::time::Duration;

use url::Url;

use super::icy::{decode, tidy};

/// The longest text that is read, in bytes.
pub(super) const TEXT_CAP: usize = 1024 * 1024;
/// How much of a text tells what it is, in bytes.
pub(super) const FIRST: usize = 1024;
/// Entries that are kept of one playlist.
pub(super) const MOST_ENTRIES: usize = 1_000;
/// The longest link, in bytes.
const LONGEST_LINK: usize = 8 * 1024;

/// A link in a playlist.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaylistEntry {
    /// `http` or `https`. May hold credentials in its query.
    pub url: Url,
    /// What the playlist calls it; at most 1,024 characters.
    pub title: Option<String>,
    /// None where it is unknown or endless.
    pub duration: Option<Duration>,
}

/// Shows the host only: queries may hold credentials.
impl fmt::Debug for PlaylistEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlaylistEntry")
            .field("host", &self.url.host_str())
            .field("title", &self.title)
            .field("duration", &self.duration)
            .finish()
    }
}

/// What a playlist holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Links, at least one.
    Entries {
        /// In the playlist's order.
        entries: Vec<PlaylistEntry>,
        /// Each of them has an end: an album, or a single recording, rather than a station.
        finite: bool,
    },
    /// HTTP Live Streaming: what is in it are pieces of one stream, or other playlists of the kind.
    Hls {
        /// The playlist.
        text: String,
        /// Where it came from, after redirects; links in it are relative to this.
        base: Url,
    },
}

/// The format of a playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `[playlist]`, with `File1=`.
    Pls,
    /// A link in each line; perhaps HLS.
    M3u,
    /// XML.
    Xspf,
}

impl Kind {
    fn of_type(content_type: &str) -> Option<Kind> {
        match essence(content_type).as_str() {
            "audio/x-scpls" | "audio/scpls" | "application/pls+xml" | "application/x-scpls" => {
                Some(Kind::Pls)
            }
            "audio/x-mpegurl"
            | "audio/mpegurl"
            | "application/x-mpegurl"
            | "application/mpegurl"
            | "application/vnd.apple.mpegurl"
            | "audio/m3u"
            | "audio/x-m3u" => Some(Kind::M3u),
            "application/xspf+xml" => Some(Kind::Xspf),
            _ => None,
        }
    }

    fn of_path(path: &str) -> Option<Kind> {
        match path.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "pls" => Some(Kind::Pls),
            "m3u" | "m3u8" => Some(Kind::M3u),
            "xspf" => Some(Kind::Xspf),
            _ => None,
        }
    }

    /// By what a text begins with.
    fn of_text(first: &[u8]) -> Option<Kind> {
        let text = String::from_utf8_lossy(without_mark(first).trim_ascii_start()).to_ascii_lowercase();
        if text.starts_with("[playlist]") {
            Some(Kind::Pls)
        } else if text.starts_with("#extm3u") {
            Some(Kind::M3u)
        } else if text.starts_with('<') && text.contains("<playlist") {
            Some(Kind::Xspf)
        } else {
            None
        }
    }
}

/// Whether the first bytes have to be looked at: audio by its type and name is none.
pub(super) fn may_be(content_type: Option<&str>, path: &str) -> bool {
    let vague = |kind: &str| {
        let kind = essence(kind);
        kind.starts_with("text/") || kind.starts_with("application/") || kind == "binary/octet-stream"
    };
    Kind::of_path(path).is_some()
        || content_type.is_none_or(|kind| vague(kind) || Kind::of_type(kind).is_some())
}

/// The format, by the beginning of the text, else by what it is called as long as it is text at all.
pub(super) fn detect(content_type: Option<&str>, path: &str, first: &[u8]) -> Option<Kind> {
    let called = content_type.and_then(Kind::of_type).or_else(|| Kind::of_path(path));
    Kind::of_text(first).or_else(|| called.filter(|_| is_text(first)))
}

/// Reads a playlist that came from `base`.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub(super) fn parse(kind: Kind, bytes: &[u8], base: &Url) -> Result<Found, &'static str> {
    let text = decode(without_mark(bytes));
    let found = match kind {
        Kind::Pls => pls::parse(&text),
        Kind::M3u if m3u::is_hls(&text) => return Ok(Found::Hls { text, base: base.clone() }),
        Kind::M3u => m3u::parse(&text),
        Kind::Xspf => xspf::parse(&text).ok_or("the XML in it is broken")?,
    };
    let found: Vec<_> = found.into_iter().filter_map(|entry| entry.resolve(base)).collect();
    // Of a single link its name says little: stations call themselves `live.mp3`.
    let told = found.len() > 1 || found.iter().all(|(entry, _)| entry.duration.is_some());
    let finite = told && found.iter().all(|(_, finite)| *finite);
    let entries: Vec<_> = found.into_iter().map(|(entry, _)| entry).collect();
    if entries.is_empty() {
        Err("it holds no link that can be played")
    } else {
        Ok(Found::Entries { entries, finite })
    }
}

/// A link as it stands in the text.
#[derive(Debug, Default)]
struct Raw {
    link: String,
    title: String,
    /// Negative or zero for what has no end, as is the custom.
    seconds: Option<f64>,
}

impl Raw {
    /// Absolute, and whether it has an end. None where it leads to no server: `file:` and all others are left out.
    fn resolve(self, base: &Url) -> Option<(PlaylistEntry, bool)> {
        let link = self.link.trim();
        if link.is_empty() || link.len() > LONGEST_LINK {
            return None;
        }
        let mut url = base.join(link).ok()?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return None;
        }
        url.set_fragment(None);
        let duration = self.seconds.filter(|seconds| *seconds > 0.0);
        let duration = duration.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let finite = duration.is_some() || (self.seconds.is_none() && is_file(url.path()));
        let title = tidy(&self.title);
        Some((PlaylistEntry { url, title: (!title.is_empty()).then_some(title), duration }, finite))
    }
}

/// Whether a path is called like a file of music.
fn is_file(path: &str) -> bool {
    const NAMES: [&str; 15] = [
        "mp3", "flac", "ogg", "oga", "opus", "m4a", "mp4", "aac", "wav", "aif", "aiff", "caf", "mka", "mp2",
        "webm",
    ];
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|extension| NAMES.contains(&extension.as_str()))
}

/// A media type without its parameters.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Audio holds control characters within its first bytes.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte >= b' ' || b"\t\r\n".contains(byte))
}

/// In any of the three conventions.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn entries(kind: Kind, bytes: &[u8]) -> Vec<(String, Option<String>, Option<u64>)> {
        let base = Url::parse("https://radio.example/lists/all?key=secret").unwrap();
        match parse(kind, bytes, &base) {
            Ok(Found::Entries { entries, .. }) => entries
                .into_iter()
                .map(|entry| {
                    let millis = entry.duration.map(|duration| duration.as_millis() as u64);
                    (entry.url.to_string(), entry.title, millis)
                })
                .collect(),
            Ok(Found::Hls { .. }) => panic!("taken for HLS"),
            Err(why) => {
                assert_eq!(why, "it holds no link that can be played");
                Vec::new()
            }
        }
    }

    fn finite(text: &str) -> bool {
        let base = Url::parse("http://a.example/").unwrap();
        matches!(parse(Kind::M3u, text.as_bytes(), &base), Ok(Found::Entries { finite: true, .. }))
    }

    #[test]
    fn a_format_is_known_by_its_text_before_its_name() {
        let kind = |content_type: Option<&str>, path, text: &str| {
            may_be(content_type, path).then(|| detect(content_type, path, text.as_bytes())).flatten()
        };
        assert_eq!(kind(Some("audio/x-scpls"), "/a", "[Playlist]\r\n"), Some(Kind::Pls));
        assert_eq!(kind(Some("audio/x-mpegurl; charset=utf-8"), "/a", "http://b/"), Some(Kind::M3u));
        assert_eq!(kind(Some("application/xspf+xml"), "/a", "<x/>"), Some(Kind::Xspf));
        assert_eq!(kind(Some("text/plain"), "/a.PLS", "File1=x"), Some(Kind::Pls));
        assert_eq!(kind(Some("audio/x-mpegurl"), "/a.m3u", "\u{feff}\n[playlist]"), Some(Kind::Pls));
        assert_eq!(kind(None, "/a", "\u{feff}#EXTM3U"), Some(Kind::M3u));
        assert_eq!(kind(Some("text/xml"), "/a", "<?xml version='1.0'?>\n<playlist>"), Some(Kind::Xspf));
        assert_eq!(kind(Some("audio/mpeg"), "/a.m3u", "http://b/"), Some(Kind::M3u));
        assert_eq!(kind(Some("application/octet-stream"), "/a", "http://b/"), None);
        assert_eq!(kind(Some("audio/mpeg"), "/a", "#EXTM3U"), None);
        // Called a playlist, but audio.
        assert_eq!(kind(Some("audio/x-mpegurl"), "/a.m3u", "ID3\u{4}\0\0"), None);
        assert_eq!(kind(None, "/a", "<html><playlist"), Some(Kind::Xspf));
        assert_eq!(kind(Some("text/html"), "/a", "<html>"), None);
    }

    #[test]
    fn links_are_resolved_and_only_those_to_servers_are_kept() {
        let list = b"sub/a.mp3\n/b\n//c.example/c\nhttp://d.example/d#x\nhttps://e.example/\n\
            file:///etc/passwd\nmms://f.example/\nC:\\music\\a.mp3\ndata:audio/mpeg,x\nhttp://\n../../g?x=1\n";
        let links: Vec<_> = entries(Kind::M3u, list).into_iter().map(|(url, ..)| url).collect();
        assert_eq!(
            links,
            [
                "https://radio.example/lists/sub/a.mp3",
                "https://radio.example/b",
                "https://c.example/c",
                "http://d.example/d",
                "https://e.example/",
                "https://radio.example/g?x=1",
            ]
        );
    }

    #[test]
    fn an_album_is_told_from_a_station() {
        assert!(finite("a.mp3\nb.flac\n"));
        assert!(finite("#EXTINF:120,A\na\n#EXTINF:1.5,B\nb\n"));
        assert!(!finite("#EXTINF:-1,A\na.mp3\n#EXTINF:-1,B\nb.mp3\n"));
        assert!(finite("#EXTINF:120,A\na\n"));
        assert!(!finite("a.mp3\n"));
        assert!(!finite("a.mp3\nstream\n"));
    }

    #[test]
    fn an_entry_shows_no_secret() {
        let url = Url::parse("https://user:pass@a.example/b?key=secret").unwrap();
        let shown = format!("{:?}", PlaylistEntry { url, title: None, duration: None });
        assert!(
            shown.contains("a.example") && !shown.contains("secret") && !shown.contains("pass"),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_parser_or_leads_elsewhere_than_to_a_server(
            kind in prop::sample::select(vec![Kind::Pls, Kind::M3u, Kind::Xspf]),
            words in prop::collection::vec(prop::sample::select(vec![
                "[playlist]", "\n", "\r", "File1=", "File99999999999=", "Title1", "=", "Length1=-1", "#EXTM3U", "#EXTINF:",
                "1e400", "-1", ",", "http://a/", "file:///x", "//", "<", ">", "</", "<playlist>", "<trackList>", "<track>",
                "<location>", "</location>", "</track>", "&", "&#0;", "&#x110000;", "&lt;", "<![CDATA[", "]]>", "<!DOCTYPE a [",
                "<!ENTITY a 'b'>", "\u{feff}", "é", " ", "\"", "[", "#",
            ]), 0..60),
        ) {
            let base = Url::parse("http://a.example/b").unwrap();
            if let Ok(Found::Entries { entries, .. }) = parse(kind, words.concat().as_bytes(), &base) {
                prop_assert!(entries.len() <= MOST_ENTRIES);
                for entry in entries {
                    prop_assert!(matches!(entry.url.scheme(), "http" | "https"));
                }
            }
        }
    }
}
