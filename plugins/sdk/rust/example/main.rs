//! A plugin with all five methods, over a catalogue that never changes.

use std::process::ExitCode;

use segue_plugin::{
    Album, AlbumRef, Artist, ArtistRef, Error, Plugin, ResultKind, SearchParams, SearchResult, StreamInfo,
    Track, TrackStub, run,
};

const ARTIST: &str = "The Weather";
const ALBUM: &str = "Four Skies";
const TRACKS: [(&str, &str, u64); 3] =
    [("haze", "Haze", 182_000), ("drizzle", "Drizzle", 201_500), ("clear", "Clear Night", 244_000)];

struct Catalogue;

fn artists() -> Vec<ArtistRef> {
    vec![ArtistRef { name: ARTIST.to_owned(), content_id: Some("weather".to_owned()) }]
}

fn stubs() -> Vec<TrackStub> {
    let stub = |(number, (id, title, duration_ms)): (u32, &(&str, &str, u64))| TrackStub {
        content_id: (*id).to_owned(),
        title: (*title).to_owned(),
        artists: artists(),
        track_no: Some(number),
        duration_ms: Some(*duration_ms),
        ..TrackStub::default()
    };
    (1..).zip(&TRACKS).map(stub).collect()
}

fn found(content_id: &str) -> Result<TrackStub, Error> {
    let missing = || Error::content_not_found(format!("there is no “{content_id}” here"));
    stubs().into_iter().find(|track| track.content_id == content_id).ok_or_else(missing)
}

fn result(kind: ResultKind, content_id: &str, title: &str) -> SearchResult {
    SearchResult {
        kind,
        content_id: content_id.to_owned(),
        title: title.to_owned(),
        artists: artists(),
        ..SearchResult::default()
    }
}

impl Plugin for Catalogue {
    fn search(&self, search: &SearchParams) -> Result<Vec<SearchResult>, Error> {
        let words = search.query.to_lowercase();
        let tracks = TRACKS.iter().map(|(id, title, _)| result(ResultKind::Track, id, title));
        let others =
            [result(ResultKind::Album, "skies", ALBUM), result(ResultKind::Artist, "weather", ARTIST)];
        let all = tracks.chain(others);
        Ok(all.filter(|found| found.title.to_lowercase().contains(&words)).collect())
    }

    fn get_track(&self, content_id: &str) -> Result<Track, Error> {
        let stub = found(content_id)?;
        Ok(Track {
            content_id: stub.content_id,
            title: stub.title,
            artists: stub.artists,
            track_no: stub.track_no,
            duration_ms: stub.duration_ms,
            album: Some(AlbumRef { title: ALBUM.to_owned(), content_id: Some("skies".to_owned()) }),
            ..Track::default()
        })
    }

    fn get_album(&self, content_id: &str) -> Result<Album, Error> {
        if content_id != "skies" {
            return Err(Error::content_not_found("there is one album only: “skies”"));
        }
        Ok(Album {
            content_id: content_id.to_owned(),
            title: ALBUM.to_owned(),
            tracks: stubs(),
            artists: artists(),
            ..Album::default()
        })
    }

    fn get_artist(&self, content_id: &str) -> Result<Artist, Error> {
        if content_id != "weather" {
            return Err(Error::content_not_found("there is one artist only: “weather”"));
        }
        Ok(Artist {
            content_id: content_id.to_owned(),
            name: ARTIST.to_owned(),
            top_tracks: stubs(),
            ..Artist::default()
        })
    }

    fn stream(&self, content_id: &str) -> Result<StreamInfo, Error> {
        let track = found(content_id)?;
        Ok(StreamInfo {
            url: format!("https://example.org/{}.flac", track.content_id),
            content_type: "audio/flac".to_owned(),
            duration_ms: track.duration_ms,
            // A real service would sign its URL; the player asks again before this time has passed.
            expires_in_ms: Some(3_600_000),
            ..StreamInfo::default()
        })
    }
}

fn main() -> ExitCode {
    run(include_str!("plugin.json"), Catalogue)
}
