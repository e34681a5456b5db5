//! Names of tracks: `segue:<plugin>:track:<content id>`, `http(s)://…` and `file:///…`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
pub use segue_protocol::{PluginId, PluginIdError};
use url::Url;

/// The longest URI that is accepted, in bytes. Plugins' content ids and URLs on the web stay far below.
pub const MAX_URI_BYTES: usize = 8_192;

/// Everything but RFC 3986's unreserved characters is escaped in a content id.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a `segue:` URI names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Something that plays.
    Track,
    /// A list of tracks.
    Album,
    /// Somebody who made tracks.
    Artist,
}

impl Kind {
    /// The word in the URI and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Track => "track",
            Kind::Album => "album",
            Kind::Artist => "artist",
        }
    }

    /// The kind that a word means.
    pub fn from_word(word: &str) -> Option<Kind> {
        [Kind::Track, Kind::Album, Kind::Artist].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Content of a plugin's, by the plugin's own id for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrackRef {
    /// Whose content it is.
    pub plugin: PluginId,
    /// The plugin's name for it: any text, never interpreted by us.
    pub content_id: String,
}

/// What can stand in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TrackUri {
    /// Content of a plugin's.
    Plugin(Kind, TrackRef),
    /// A stream on the web, `http` or `https`.
    Web(Url),
    /// A file, allowed only below the folders that the configuration names.
    File(PathBuf),
}

/// A text that is no URI of ours, with what would be.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone)]
pub enum UriError {
    /// Longer than [`MAX_URI_BYTES`].
    #[error("the URI has {0} bytes; at most {MAX_URI_BYTES} are accepted")]
    TooLong(usize),
    /// Neither `segue:` nor `http:`, `https:` or `file:`.
    #[error(
        "“{0}” is not a URI that can be played: use segue:<plugin>:track:<id>, http://…, https://… or file:///…"
    )]
    Unknown(String),
    /// A `segue:` URI with a part missing or wrong.
    #[error("“{0}” is not complete: a segue: URI reads segue:<plugin>:track:<id>")]
    Incomplete(String),
    /// The plugin's name breaks the rule.
    #[error(transparent)]
    Plugin(#[from] PluginIdError),
    /// Not valid UTF-8 after decoding.
    #[error("the content id in “{0}” is not UTF-8 after percent-decoding")]
    Encoding(String),
}

impl FromStr for TrackUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.len() > MAX_URI_BYTES {
            return Err(UriError::TooLong(text.len()));
        }
        let shown = || text.chars().take(200).collect::<String>();
        if let Some(rest) = text.strip_prefix("segue:") {
            return parse_segue(rest).map_err(|error| match error {
                UriError::Incomplete(_) => UriError::Incomplete(shown()),
                UriError::Encoding(_) => UriError::Encoding(shown()),
                other => other,
            });
        }
        let url = Url::parse(text).map_err(|_| UriError::Unknown(shown()))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(TrackUri::Web(url)),
            "file" => url.to_file_path().map(TrackUri::File).map_err(|()| UriError::Unknown(shown())),
            _ => Err(UriError::Unknown(shown())),
        }
    }
}

impl TrackUri {
    /// As it may be shown and logged: what follows a URL's path may hold credentials, and so may what stands before
    /// its host.
    pub fn shown(&self) -> String {
        let TrackUri::Web(url) = self else { return self.to_string() };
        let mut shown = url.clone();
        shown.set_query(None);
        shown.set_fragment(None);
        // Only URLs without a host refuse this.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        shown.to_string()
    }
}

fn parse_segue(rest: &str) -> Result<TrackUri, UriError> {
    let incomplete = || UriError::Incomplete(String::new());
    let mut parts = rest.splitn(3, ':');
    let (Some(plugin), Some(kind), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(incomplete());
    };
    let plugin = plugin.parse::<PluginId>()?;
    let kind = Kind::from_word(kind).ok_or_else(incomplete)?;
    let content_id =
        percent_decode_str(id).decode_utf8().map_err(|_| UriError::Encoding(String::new()))?.into_owned();
    if content_id.is_empty() {
        return Err(incomplete());
    }
    Ok(TrackUri::Plugin(kind, TrackRef { plugin, content_id }))
}

impl fmt::Display for TrackUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrackUri::Plugin(kind, track) => {
                let id = utf8_percent_encode(&track.content_id, ESCAPED);
                write!(f, "segue:{}:{}:{id}", track.plugin, kind.as_str())
            }
            TrackUri::Web(url) => f.write_str(url.as_str()),
            TrackUri::File(path) => match Url::from_file_path(path) {
                Ok(url) => f.write_str(url.as_str()),
                Err(()) => write!(f, "file:{}", path.display()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_uri_is_refused_with_what_would_be() {
        for bad in
            ["", "x", "segue:", "segue:demo", "segue:demo:track", "segue:demo:track:", "segue:demo:song:1"]
        {
            assert!(bad.parse::<TrackUri>().is_err(), "{bad}");
        }
        for bad in ["segue:Demo:track:1", "segue:../x:track:1", "ftp://host/x", "javascript:1", "http://"] {
            assert!(bad.parse::<TrackUri>().is_err(), "{bad}");
        }
        let long = format!("http://host/{}", "x".repeat(MAX_URI_BYTES));
        assert!(matches!(long.parse::<TrackUri>(), Err(UriError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn any_content_id_survives_the_way_through_a_uri(id in ".{1,100}") {
            let plugin: PluginId = "demo".parse().unwrap();
            let uri = TrackUri::Plugin(Kind::Track, TrackRef { plugin, content_id: id });
            prop_assert_eq!(uri.to_string().parse::<TrackUri>().unwrap(), uri);
        }

        #[test]
        fn any_text_is_parsed_or_refused_without_a_panic(text in "(segue:|http://|file:)?.{0,60}") {
            let _ = text.parse::<TrackUri>();
        }
    }
}
