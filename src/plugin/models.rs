//! From a plugin's words to the program's own values, checked on the way.

use std::time::{Duration, Instant, SystemTime};

use url::Url;

use crate::track::{
    Expiry, GrantedFolders, Kind, MAX_URI_BYTES, PluginId, Reach, ResolvedStream, TrackInfo, TrackRef,
    TrackUri,
};
use segue_protocol::models::{
    Album, Artist, ArtistRef, ResultKind, SearchResult, StreamInfo, Track, TrackStub,
};
use segue_protocol::{ErrorCode, Fault};

/// Something that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// What to add to the queue.
    pub uri: TrackUri,
    /// Track, album or artist.
    pub kind: Kind,
    /// Title of the track or album, or the artist's name.
    pub title: String,
    /// Who performs it, in order.
    pub artists: Vec<String>,
    /// Title of the album.
    pub album: Option<String>,
    /// Playing time.
    pub duration: Option<Duration>,
    /// A picture's address as the plugin gave it. It may hold credentials: never shown on the bus.
    pub artwork: Option<Url>,
    /// Marked as explicit.
    pub explicit: bool,
}

/// An album with its tracks in playing order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlbumInfo {
    /// Its title.
    pub title: String,
    /// Who it is filed under.
    pub artists: Vec<String>,
    /// `YYYY` or `YYYY-MM-DD`.
    pub date: Option<String>,
    /// What to play, and what is known about it beside what holds for the whole album.
    pub tracks: Vec<(TrackRef, TrackInfo)>,
}

impl AlbumInfo {
    /// All that is known about one of its tracks. Not kept for all of them: it would be the album's own words as many
    /// times as it has tracks.
    pub fn complete(&self, track: &TrackInfo) -> TrackInfo {
        TrackInfo {
            album: Some(self.title.clone()),
            album_artists: self.artists.clone(),
            date: self.date.clone(),
            ..track.clone()
        }
    }
}

/// An artist with what can be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistInfo {
    /// The name.
    pub name: String,
    /// As text.
    pub biography: Option<String>,
    /// Most fitting first.
    pub genres: Vec<String>,
    /// Titles, with a URI where the plugin knows one.
    pub albums: Vec<(String, Option<TrackUri>)>,
    /// Most popular first.
    pub top_tracks: Vec<(TrackRef, TrackInfo)>,
}

fn names(artists: Vec<ArtistRef>) -> Vec<String> {
    artists.into_iter().map(|artist| artist.name).collect()
}

/// A reference whose URI can stand in the queue.
fn content(plugin: &PluginId, content_id: String) -> Result<TrackRef, Fault> {
    // Percent-encoding makes three bytes of one at most.
    if content_id.len() * 3 + 100 > MAX_URI_BYTES {
        return Err(Fault::protocol("a content_id is too long for a URI"));
    }
    Ok(TrackRef { plugin: plugin.clone(), content_id })
}

pub(super) fn result_kind(kind: &Kind) -> ResultKind {
    match kind {
        Kind::Track => ResultKind::Track,
        Kind::Album => ResultKind::Album,
        Kind::Artist => ResultKind::Artist,
    }
}

pub(super) fn search_hit(plugin: &PluginId, found: SearchResult) -> Result<SearchHit, Fault> {
    let kind = match found.kind {
        ResultKind::Track => Kind::Track,
        ResultKind::Album => Kind::Album,
        ResultKind::Artist => Kind::Artist,
    };
    Ok(SearchHit {
        uri: TrackUri::Plugin(kind, content(plugin, found.content_id)?),
        kind,
        title: found.title,
        artists: names(found.artists),
        album: found.album.map(|album| album.title),
        duration: found.duration_ms.map(Duration::from_millis),
        artwork: found.artwork.first().and_then(|image| Url::parse(&image.url).ok()),
        explicit: found.explicit.unwrap_or(false),
    })
}

pub(super) fn track_info(track: Track) -> Result<TrackInfo, Fault> {
    Ok(TrackInfo {
        title: Some(track.title),
        artists: names(track.artists),
        album: track.album.map(|album| album.title),
        album_artists: Vec::new(),
        track_no: track.track_no,
        disc_no: track.disc_no,
        date: track.date.map(checked_date).transpose()?,
        genres: track.genres,
        duration: track.duration_ms.map(Duration::from_millis),
    })
}

fn checked_date(date: String) -> Result<String, Fault> {
    let year = |text: &str| text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit());
    let day = |text: &str| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
    if year(&date) || day(&date) {
        return Ok(date);
    }
    Err(Fault::protocol("date must be YYYY or YYYY-MM-DD"))
}

fn stub(plugin: &PluginId, stub: TrackStub) -> Result<(TrackRef, TrackInfo), Fault> {
    let info = TrackInfo {
        title: Some(stub.title),
        artists: names(stub.artists),
        track_no: stub.track_no,
        disc_no: stub.disc_no,
        duration: stub.duration_ms.map(Duration::from_millis),
        ..TrackInfo::default()
    };
    Ok((content(plugin, stub.content_id)?, info))
}

pub(super) fn album_info(plugin: &PluginId, album: Album) -> Result<AlbumInfo, Fault> {
    let artists = names(album.artists);
    let date = album.date.map(checked_date).transpose()?;
    let tracks = album.tracks.into_iter().map(|track| stub(plugin, track)).collect::<Result<_, Fault>>()?;
    Ok(AlbumInfo { title: album.title, artists, date, tracks })
}

pub(super) fn artist_info(plugin: &PluginId, artist: Artist) -> Result<ArtistInfo, Fault> {
    let albums = artist.albums.into_iter().map(|album| {
        let uri = album.content_id.map(|id| content(plugin, id)).transpose()?;
        Ok((album.title, uri.map(|reference| TrackUri::Plugin(Kind::Album, reference))))
    });
    let tracks = artist.top_tracks.into_iter().map(|track| stub(plugin, track));
    Ok(ArtistInfo {
        name: artist.name,
        biography: artist.biography,
        genres: artist.genres,
        albums: albums.collect::<Result<_, Fault>>()?,
        top_tracks: tracks.collect::<Result<_, Fault>>()?,
    })
}

/// `now` is when the reply came.
pub(super) fn resolved(
    info: StreamInfo,
    reach: Reach,
    files: GrantedFolders,
    now: Instant,
) -> Result<ResolvedStream, Fault> {
    let alternatives = info.alternatives.iter().map(|url| checked_url(url, &files));
    Ok(ResolvedStream {
        url: checked_url(&info.url, &files)?,
        alternatives: alternatives.collect::<Result<_, Fault>>()?,
        content_type: Some(info.content_type),
        duration: info.duration_ms.map(Duration::from_millis),
        size: info.file_size_bytes,
        expiry: expiry(info.expires_in_ms, info.expires_at.as_deref(), now)?,
        headers: checked_headers(info.headers.into_iter().collect())?,
        seekable: info.seekable.unwrap_or(true),
        live: info.live.unwrap_or(false),
        reach,
        files,
    })
}

/// Never shown when wrong: an address may hold credentials.
fn checked_url(text: &str, files: &GrantedFolders) -> Result<Url, Fault> {
    // A browser forgives much more: one slash, two dots, spaces around.
    if !["http://", "https://", "file:///"].iter().any(|start| text.starts_with(start)) {
        return Err(Fault::protocol("url must begin with http://, https:// or file:///"));
    }
    let url = Url::parse(text).map_err(|error| Fault::protocol(format_args!("url: {error}")))?;
    if url.scheme() == "file" && text.len() <= MAX_URI_BYTES {
        let located = files.locate(&url);
        return located
            .map(|_| url)
            .map_err(|refusal| Fault::new(ErrorCode::ScopeDenied, refusal.to_string()));
    }
    if text.len() > MAX_URI_BYTES || !url.has_host() {
        return Err(Fault::protocol("url must have a host and at most 8 KiB"));
    }
    Ok(url)
}

fn checked_headers(headers: Vec<(String, String)>) -> Result<Vec<(String, String)>, Fault> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let good = |(name, value): &(String, String)| {
        !name.is_empty()
            && name.len() + value.len() <= 8_192
            && name.bytes().all(token)
            && value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f))
    };
    if !headers.iter().all(good) {
        return Err(Fault::protocol("headers must be plain HTTP headers of at most 8 KiB each"));
    }
    // Which bytes are wanted, and of which host, is the player's to say.
    let ours =
        ["host", "range", "if-range", "content-length", "transfer-encoding", "connection", "icy-metadata"];
    if let Some((name, _)) =
        headers.iter().find(|(name, _)| ours.contains(&name.to_ascii_lowercase().as_str()))
    {
        return Err(Fault::protocol(format_args!("the header “{name}” is the player's own")));
    }
    Ok(headers)
}

fn expiry(in_ms: Option<u64>, at: Option<&str>, now: Instant) -> Result<Expiry, Fault> {
    if let Some(lifetime) = in_ms.map(Duration::from_millis) {
        // What overflows the clock never expires.
        return Ok(now.checked_add(lifetime).map_or(Expiry::Unknown, |at| Expiry::Deadline { at, lifetime }));
    }
    let Some(at) = at else { return Ok(Expiry::Unknown) };
    let at: jiff::Timestamp = at.parse().map_err(|_| Fault::protocol("expires_at is no time by RFC 3339"))?;
    Ok(Expiry::WallClock(
        SystemTime::try_from(at).map_err(|_| Fault::protocol("expires_at is out of range"))?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use segue_protocol::messages::parse_strictly;

    fn stream(extra: serde_json::Value) -> Result<ResolvedStream, Fault> {
        let mut value = json!({"url": "https://host/x", "content_type": "audio/flac"});
        for (name, field) in extra.as_object().unwrap() {
            value[name] = field.clone();
        }
        resolved(parse_strictly(&value.to_string())?, Reach::Internet, GrantedFolders::none(), Instant::now())
    }

    #[test]
    fn a_relative_expiry_wins_over_the_wall_clock() {
        let both = json!({"expires_in_ms": 60_000, "expires_at": "2020-01-01T00:00:00Z"});
        let Expiry::Deadline { lifetime, .. } = stream(both).unwrap().expiry else { panic!("no deadline") };
        assert_eq!(lifetime, Duration::from_secs(60));
        let wall = stream(json!({"expires_at": "2030-01-01T00:00:00+02:00"})).unwrap().expiry;
        assert!(matches!(wall, Expiry::WallClock(_)));
        let forever = stream(json!({"expires_in_ms": u64::MAX})).unwrap().expiry;
        assert!(matches!(forever, Expiry::Unknown | Expiry::Deadline { .. }));
    }

    #[test]
    fn what_a_stream_reply_may_not_say_is_refused() {
        for bad in [
            json!({"url": "file:///etc/passwd"}),
            json!({"url": "ftp://host/x"}),
            json!({"url": "nonsense"}),
            json!({"alternatives": ["file:///x"]}),
            json!({"expires_at": "tomorrow"}),
            json!({"expire_at": "2030-01-01T00:00:00Z"}),
            json!({"headers": {"X-A": "a\r\nHost: b"}}),
            json!({"headers": {"Range": "bytes=0-"}}),
            json!({"headers": {"": "x"}}),
            json!({"content_type": ""}),
            json!({"duration_ms": -1}),
        ] {
            assert!(stream(bad.clone()).is_err(), "{bad}");
        }
        let good = stream(json!({"x_note": {"any": 1}, "headers": {"x_key": "v"}, "duration_ms": null}));
        assert_eq!(good.unwrap().headers, [("x_key".to_owned(), "v".to_owned())]);
    }
}
