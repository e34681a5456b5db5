//! The Segue plugin {{id}}.

use std::process::ExitCode;

use segue_plugin::{
    ArtistRef, Context, Error, Plugin, ResultKind, SearchParams, SearchResult, StreamInfo, Track,
    log, run,
};

/// Content id, title, milliseconds.
const TRACKS: [(&str, &str, u64); 2] = [("one", "First", 180_000), ("two", "Second", 200_000)];

struct Source;

fn artists() -> Vec<ArtistRef> {
    vec![ArtistRef {
        name: "Somebody".to_owned(),
        content_id: None,
    }]
}

impl Plugin for Source {
    fn start(&self, _context: &Context) -> Result<(), Error> {
        // `context` holds what the plugin's owner set (config, secrets), and folders to write in.
        log::info(format_args!("ready, with {} tracks", TRACKS.len()));
        Ok(())
    }

    fn search(&self, search: &SearchParams) -> Result<Vec<SearchResult>, Error> {
        let query = search.query.to_lowercase();
        let found = TRACKS
            .iter()
            .filter(|(_, title, _)| title.to_lowercase().contains(&query));
        let results = found.map(|(id, title, duration_ms)| SearchResult {
            kind: ResultKind::Track,
            content_id: (*id).to_owned(),
            title: (*title).to_owned(),
            artists: artists(),
            album: None,
            duration_ms: Some(*duration_ms),
            artwork: Vec::new(),
            explicit: None,
        });
        Ok(results.collect())
    }

    fn get_track(&self, content_id: &str) -> Result<Track, Error> {
        let missing = || Error::content_not_found(format!("there is no track {content_id}"));
        let (id, title, duration_ms) = TRACKS
            .iter()
            .find(|(id, ..)| *id == content_id)
            .ok_or_else(missing)?;
        Ok(Track {
            content_id: (*id).to_owned(),
            title: (*title).to_owned(),
            artists: artists(),
            duration_ms: Some(*duration_ms),
            ..Track::default()
        })
    }

    fn stream(&self, content_id: &str) -> Result<StreamInfo, Error> {
        let track = self.get_track(content_id)?;
        // Put the real address here. If it expires, say when: `expires_in_ms`.
        Ok(StreamInfo {
            url: format!("https://example.org/{content_id}.mp3"),
            content_type: "audio/mpeg".to_owned(),
            duration_ms: track.duration_ms,
            ..StreamInfo::default()
        })
    }
}

fn main() -> ExitCode {
    run(include_str!("../plugin.json"), Source)
}
