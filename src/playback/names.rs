//! What stations and playlists say, as metadata.

use crate::stream::{PlaylistEntry, Station};
use crate::track::{TrackInfo, TrackUri};

/// Between performer and title in nearly all stations' titles.
const DASH: &str = " - ";

/// A station's title: performer and title where they can be told apart. `None` where it is silent about it.
pub(super) fn of_title(text: &str) -> Option<TrackInfo> {
    let text = text.trim();
    let (artist, title) = match text.split_once(DASH) {
        Some((artist, title)) if !artist.trim().is_empty() && !title.trim().is_empty() => {
            (Some(artist.trim()), title.trim())
        }
        _ => (None, text.trim_matches(['-', ' '])),
    };
    let artists = artist.map(str::to_owned).into_iter().collect();
    (!title.is_empty()).then(|| TrackInfo { title: Some(title.to_owned()), artists, ..TrackInfo::default() })
}

/// The station itself.
pub(super) fn of_station(station: &Station) -> TrackInfo {
    let genres = station.genre.clone().into_iter().collect();
    TrackInfo { title: station.name.clone(), genres, ..TrackInfo::default() }
}

/// A track of a playlist.
pub(super) fn of_listed(entry: PlaylistEntry) -> (TrackUri, TrackInfo) {
    let named = entry.title.as_deref().and_then(of_title).unwrap_or_default();
    (TrackUri::Web(entry.url), TrackInfo { duration: entry.duration, ..named })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn performer_and_title_are_told_apart_where_both_are_there() {
        let read = |text| of_title(text).map(|info| (info.artists.join(","), info.title.unwrap_or_default()));
        let some = |artist: &str, title: &str| Some((artist.to_owned(), title.to_owned()));
        assert_eq!(read("Nina Simone - Feeling Good"), some("Nina Simone", "Feeling Good"));
        assert_eq!(read("A-ha - Take On Me - Live"), some("A-ha", "Take On Me - Live"));
        assert_eq!(read("  News at ten "), some("", "News at ten"));
        assert_eq!(read(" - Jingle"), some("", "Jingle"));
        assert_eq!(read(" - "), None);
        assert_eq!(read(""), None);
    }
}
