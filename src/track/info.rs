//! What is known about a track, and the number under which it stands in the queue.

use std::fmt;
use std::time::Duration;

/// The number of a queue entry. Given once, never used again, also after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EntryId(pub u64);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Metadata as a person reads it. Everything may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct TrackInfo {
    /// Title of the track.
    pub title: Option<String>,
    /// Who performs it, in order.
    pub artists: Vec<String>,
    /// Title of the album.
    pub album: Option<String>,
    /// Who the album is filed under.
    pub album_artists: Vec<String>,
    /// Number on its disc, from 1.
    pub track_no: Option<u32>,
    /// Number of the disc, from 1.
    pub disc_no: Option<u32>,
    /// `YYYY` or `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Genres, most fitting first.
    pub genres: Vec<String>,
    /// How long it plays, as far as known.
    pub duration: Option<Duration>,
}

impl TrackInfo {
    /// Takes from `other` what this one lacks.
    pub fn fill_from(&mut self, other: &TrackInfo) {
        fn fill<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
        fn fill_list(mine: &mut Vec<String>, theirs: &[String]) {
            if mine.is_empty() {
                mine.extend_from_slice(theirs);
            }
        }
        fill(&mut self.title, &other.title);
        fill_list(&mut self.artists, &other.artists);
        fill(&mut self.album, &other.album);
        fill_list(&mut self.album_artists, &other.album_artists);
        fill(&mut self.track_no, &other.track_no);
        fill(&mut self.disc_no, &other.disc_no);
        fill(&mut self.date, &other.date);
        fill_list(&mut self.genres, &other.genres);
        fill(&mut self.duration, &other.duration);
    }
}
