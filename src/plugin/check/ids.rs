//! What is known of a plugin's catalogue: ids to ask for.

use segue_protocol::models::{ArtistRef, ResultKind, SearchResult, Track};

use super::Options;

/// At most one id of each kind: those that were given, else the first that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) track: Option<String>,
    pub(super) album: Option<String>,
    pub(super) artist: Option<String>,
}

impl Ids {
    pub(super) fn given(options: &Options) -> Ids {
        Ids { track: options.track.clone(), album: options.album.clone(), artist: options.artist.clone() }
    }

    pub(super) fn found(&mut self, results: &[SearchResult]) {
        for found in results {
            let known = match found.kind {
                ResultKind::Track => &mut self.track,
                ResultKind::Album => &mut self.album,
                ResultKind::Artist => &mut self.artist,
            };
            known.get_or_insert_with(|| found.content_id.clone());
            self.mentioned(&found.artists);
            if let Some(album) = found.album.as_ref().and_then(|album| album.content_id.clone()) {
                self.album.get_or_insert(album);
            }
        }
    }

    pub(super) fn heard_of(&mut self, track: &Track) {
        self.mentioned(&track.artists);
        if let Some(album) = track.album.as_ref().and_then(|album| album.content_id.clone()) {
            self.album.get_or_insert(album);
        }
    }

    pub(super) fn mentioned(&mut self, artists: &[ArtistRef]) {
        if let Some(artist) = artists.iter().find_map(|artist| artist.content_id.clone()) {
            self.artist.get_or_insert(artist);
        }
    }
}
