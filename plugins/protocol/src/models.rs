use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bounded::{optional_text, text, texts, texts_by_name, up_to};

/// The longest content id, in characters.
pub const MAX_CONTENT_ID: usize = 2_048;
/// A title, a name or a genre, in characters.
pub const MAX_TEXT: usize = 1_024;
/// A biography, in characters.
pub const MAX_BIOGRAPHY: usize = 65_536;
/// A media type, in characters.
const MAX_CONTENT_TYPE: usize = 200;
/// The longest URL, in characters.
pub const MAX_URL: usize = 8_192;
/// A time by RFC 3339, in characters.
const MAX_TIME: usize = 64;
/// Results of one search.
pub const MAX_RESULTS: usize = 500;
/// Tracks or albums in one reply.
pub const MAX_TRACKS: usize = 10_000;
/// Names, genres or pictures of one thing.
pub const MAX_DETAILS: usize = 64;
/// Other URLs to try.
pub const MAX_ALTERNATIVES: usize = 16;
/// Headers for a URL.
pub const MAX_HEADERS: usize = 32;

/// What a search result is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// Something that plays.
    #[default]
    Track,
    /// A list of tracks.
    Album,
    /// Somebody who made tracks.
    Artist,
}

/// Something that a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchResult {
    /// What it is.
    pub kind: ResultKind,
    /// The plugin's own id for it; never empty.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_ID, _>")]
    pub content_id: String,
    /// Title of the track or album, or the artist's name.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub title: String,
    /// Who performs it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artists: Vec<ArtistRef>,
    /// The album that a track is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<AlbumRef>,
    /// Playing time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Pictures, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artwork: Vec<Image>,
    /// Marked as explicit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explicit: Option<bool>,
}

/// A mention of an artist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtistRef {
    /// The name.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub name: String,
    /// For `get_artist`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<1, MAX_CONTENT_ID, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    pub content_id: Option<String>,
}

/// A mention of an album.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlbumRef {
    /// The title.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub title: String,
    /// For `get_album`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<1, MAX_CONTENT_ID, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    pub content_id: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// Where it is. It may hold credentials: the player shows it to nobody.
    #[serde(deserialize_with = "text::<1, MAX_URL, _>")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 8_192)))]
    pub url: String,
    /// In pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// In pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

/// A track within an album, or of an artist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrackStub {
    /// For `get_track` and `stream`; never empty.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_ID, _>")]
    pub content_id: String,
    /// The title.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub title: String,
    /// Who performs it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artists: Vec<ArtistRef>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_no: Option<u32>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disc_no: Option<u32>,
    /// Playing time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// The result of `get_track`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrackReply {
    /// The track that was asked for.
    pub track: Track,
}

/// All about a track: a [`TrackStub`]'s fields and more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Track {
    /// The id that was asked for, or a better one for the same track; never empty.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_ID, _>")]
    pub content_id: String,
    /// The title.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub title: String,
    /// Who performs it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artists: Vec<ArtistRef>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_no: Option<u32>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disc_no: Option<u32>,
    /// Playing time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The album that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<AlbumRef>,
    /// `YYYY` or `YYYY-MM-DD`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_TEXT, _>"
    )]
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = r"^\d{4}(-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?$"))
    )]
    pub date: Option<String>,
    /// The most fitting first.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "texts::<MAX_DETAILS, 0, MAX_TEXT, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(length(max = 1_024))))]
    pub genres: Vec<String>,
    /// International Standard Recording Code.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_TEXT, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub isrc: Option<String>,
    /// MusicBrainz' id of the recording.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_TEXT, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub musicbrainz_id: Option<String>,
    /// Marked as explicit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explicit: Option<bool>,
    /// Pictures, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artwork: Vec<Image>,
    /// How loud it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
}

/// ReplayGain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// In dB, against the reference loudness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_db: Option<f64>,
    /// Where 1.0 is full scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_peak: Option<f64>,
    /// In dB, against the reference loudness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album_db: Option<f64>,
    /// Where 1.0 is full scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album_peak: Option<f64>,
}

/// The result of `get_album`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlbumReply {
    /// The album that was asked for.
    pub album: Album,
}

/// What kind of release an album is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlbumType {
    /// A full album.
    Album,
    /// A single.
    Single,
    /// An extended play.
    Ep,
    /// A compilation.
    Compilation,
    /// Nobody knows.
    Unknown,
}

/// An album with its tracks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Album {
    /// The id that was asked for, or a better one; never empty.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_ID, _>")]
    pub content_id: String,
    /// The title.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub title: String,
    /// In playing order.
    #[serde(deserialize_with = "up_to::<MAX_TRACKS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 10_000)))]
    pub tracks: Vec<TrackStub>,
    /// Who it is filed under.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artists: Vec<ArtistRef>,
    /// What kind of release it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album_type: Option<AlbumType>,
    /// `YYYY` or `YYYY-MM-DD`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_TEXT, _>"
    )]
    #[cfg_attr(
        feature = "schema",
        schemars(regex(pattern = r"^\d{4}(-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))?$"))
    )]
    pub date: Option<String>,
    /// Pictures, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artwork: Vec<Image>,
}

/// The result of `get_artist`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtistReply {
    /// The artist that was asked for.
    pub artist: Artist,
}

/// An artist.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artist {
    /// The id that was asked for, or a better one; never empty.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 2_048)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_ID, _>")]
    pub content_id: String,
    /// The name.
    #[serde(deserialize_with = "text::<0, MAX_TEXT, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1_024)))]
    pub name: String,
    /// As plain text.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_BIOGRAPHY, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 65_536)))]
    pub biography: Option<String>,
    /// The most fitting first.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "texts::<MAX_DETAILS, 0, MAX_TEXT, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(length(max = 64), inner(length(max = 1_024))))]
    pub genres: Vec<String>,
    /// In the order in which they are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_TRACKS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 10_000)))]
    pub albums: Vec<AlbumRef>,
    /// The most popular first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_TRACKS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 10_000)))]
    pub top_tracks: Vec<TrackStub>,
    /// Pictures, the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "up_to::<MAX_DETAILS, _, _>")]
    #[cfg_attr(feature = "schema", schemars(length(max = 64)))]
    pub artwork: Vec<Image>,
}

/// The result of `stream`: where a track's bytes are, and what is promised about them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamInfo {
    /// `http:`, `https:`, or `file:` below a granted folder.
    #[cfg_attr(
        feature = "schema",
        schemars(length(max = 8_192), regex(pattern = r"^(https?://[^/\s]+|file:///)"))
    )]
    #[serde(deserialize_with = "text::<1, MAX_URL, _>")]
    pub url: String,
    /// Media type, for example `audio/flac`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
    #[serde(deserialize_with = "text::<1, MAX_CONTENT_TYPE, _>")]
    pub content_type: String,
    /// Playing time; unknown or without an end: null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size_bytes: Option<u64>,
    /// When the URL stops being good, by RFC 3339.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_text::<0, MAX_TIME, _>"
    )]
    #[cfg_attr(
        feature = "schema",
        schemars(regex(
            pattern = r"^\d{4}-(0[1-9]|1[0-2])-([0-2]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$"
        ))
    )]
    pub expires_at: Option<String>,
    /// How long the URL is good, counted from the reply. Wins over `expires_at`: it survives a wrong clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
    /// Sent with each request for this URL, never logged. Not the player's own ones, such as `Range`.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "texts_by_name::<MAX_HEADERS, _>"
    )]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::headers"))]
    pub headers: BTreeMap<String, String>,
    /// False when the server is known not to serve ranges; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seekable: Option<bool>,
    /// A stream without an end; default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// Tried in this order when `url` does not answer.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "texts::<MAX_ALTERNATIVES, 1, MAX_URL, _>"
    )]
    #[cfg_attr(
        feature = "schema",
        schemars(
            length(max = 16),
            inner(length(max = 8_192), regex(pattern = r"^(https?://[^/\s]+|file:///)"))
        )
    )]
    pub alternatives: Vec<String>,
}
