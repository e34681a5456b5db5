//! Whether entries that follow each other are of one album.

use super::queue::{Queue, QueueEntry};
use crate::track::{EntryId, TrackUri};

/// Where an entry stands among its neighbours in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The entry before it or the one behind it is of the same album: its loudness is the album's.
    pub in_album: bool,
    /// The entry before it is of the same album: nothing may come between the two, and no fade.
    pub continues_album: bool,
}

impl Queue {
    /// By what is known now; more may become known later, which changes nothing that plays. `wrap`: the last entry
    /// is followed by the first.
    pub(super) fn place(&self, id: EntryId, wrap: bool) -> Place {
        let Some(entry) = self.get(id) else { return Place::default() };
        let is_of_it = |other: Option<EntryId>| {
            let other = other.filter(|other| *other != id).and_then(|other| self.get(other));
            other.is_some_and(|other| are_of_one_album(entry, other))
        };
        let continues_album = is_of_it(self.preceding(id, wrap));
        Place { in_album: continues_album || is_of_it(self.following(id, wrap)), continues_album }
    }
}

fn are_of_one_album(one: &QueueEntry, other: &QueueEntry) -> bool {
    match (&one.info.album, &other.info.album) {
        (Some(album), Some(its)) => {
            let (artists, theirs) = (&one.info.album_artists, &other.info.album_artists);
            album == its && (artists.is_empty() || theirs.is_empty() || artists == theirs)
        }
        // One of them has not been opened yet: what lies in one folder is an album.
        (Some(_), None) | (None, Some(_)) => {
            folder(&one.uri).is_some_and(|mine| Some(mine) == folder(&other.uri))
        }
        (None, None) => false,
    }
}

fn folder(uri: &TrackUri) -> Option<&str> {
    match uri {
        TrackUri::File(path) => path.parent()?.to_str(),
        TrackUri::Web(url) => url.as_str().split('?').next()?.rsplit_once('/').map(|(folder, _)| folder),
        TrackUri::Plugin(..) => None,
    }
}
