//! Playlists on the way: from the address of a list to a station in it.
//!
//! The entries of a list take its place among the candidates. They are tried in turn like alternatives, and when
//! none of them serves the list is fetched again.

use std::collections::HashMap;

use url::Url;

use super::Fetch;
use super::setback::Setback;
use crate::stream::http::{self, Answer};
use crate::stream::incoming::{Incoming, WebBody};
use crate::stream::playlist::{self, Found, MOST_ENTRIES, PlaylistEntry};
use crate::stream::range::Asked;
use crate::stream::{StreamError, StreamEvent};

/// Playlists inside of each other, the outermost included.
const MOST_NESTED: usize = 5;
/// Playlists that are read in search of one station.
const MOST_LISTS: usize = 64;

/// What a candidate answered.
pub(super) enum Reply {
    Bytes(Box<Answer>),
    Playlist(Found),
}

/// What was found in playlists.
#[derive(Default)]
pub(super) struct Stations {
    /// The resolved address led to a playlist.
    found: bool,
    /// It was an album rather than a station.
    finite: bool,
    /// How many playlists lead to each candidate that came out of one.
    depths: HashMap<Url, usize>,
    /// The innermost list that was read last, in its order.
    listed: Vec<Url>,
    /// The entry with an end that is being played, and where it stood: it is not left for another.
    chosen: Option<(usize, Url)>,
    /// The album, until it is told which of its tracks plays.
    album: Vec<PlaylistEntry>,
}

impl Stations {
    /// Whether the candidate came out of a playlist.
    fn holds(&self, url: &Url) -> bool {
        self.depths.contains_key(url)
    }

    /// Whether the candidate is known to be a playlist, which is wanted whole whatever byte comes next.
    pub fn is_list(&self, url: &Url) -> bool {
        self.found && !self.holds(url)
    }

    /// Whether what a candidate sends without a length is a station's stream and not a file.
    pub fn is_station(&self, url: &Url) -> bool {
        self.holds(url) && !self.finite
    }

    /// After a fresh list: the entry that was being played, by its path, since queries are what is fresh, else by
    /// its place.
    fn again(&self, entries: &mut Vec<Url>) {
        let Some((place, url)) = &self.chosen else { return };
        let same = |other: &&Url| other.host_str() == url.host_str() && other.path() == url.path();
        if let Some(same) = entries.iter().find(same).or(entries.get(*place)).cloned() {
            *entries = vec![same];
        }
    }
}

impl Fetch {
    /// Tells a playlist from what is to be played. `from` is where the answer came from, after redirects.
    pub(super) async fn reply(
        &self,
        url: &Url,
        asked: Asked,
        mut answer: Answer,
        from: Url,
    ) -> Result<Reply, Setback> {
        let beginning = matches!(asked, Asked::Whole | Asked::From(0));
        let early = self.shared.fetched() == 0 || self.source.resolved.live;
        let content_type = answer.content_type.as_deref();
        if !beginning
            || !(early || self.stations.is_list(url) || self.hls.is_some())
            || !matches!(answer.head.status, 200 | 206)
            || !playlist::may_be(content_type, from.path())
        {
            return Ok(Reply::Bytes(Box::new(answer)));
        }
        let Incoming::Web(body) = &mut answer.body else { return Ok(Reply::Bytes(Box::new(answer))) };
        match read_playlist(body, content_type, from).await {
            Ok(None) => Ok(Reply::Bytes(Box::new(answer))),
            Ok(Some(Ok(found))) => Ok(Reply::Playlist(found)),
            Ok(Some(Err(why))) => Err(self.bad_list(url, why)),
            Err(why) => Err(Setback::Failing(why)),
        }
    }

    /// Puts a playlist's entries in its place. `read` are those that were read on this search, to which it is added.
    pub(super) fn expand(
        &mut self,
        index: usize,
        (entries, finite): (Vec<PlaylistEntry>, bool),
        read: &mut Vec<Url>,
    ) -> Result<(), Setback> {
        let list = self.source.candidates.remove(index);
        self.source.preferred = 0;
        let entries = match self.entries(&list, entries, finite, read) {
            Ok(entries) => entries,
            Err(why) => return Err(self.bad_list(&list, why)),
        };
        let mut candidates = entries;
        // Those that failed before it come last.
        let after = self.source.candidates.split_off(index);
        for other in after.into_iter().chain(std::mem::take(&mut self.source.candidates)) {
            if !candidates.contains(&other) {
                candidates.push(other);
            }
        }
        candidates.truncate(MOST_ENTRIES);
        self.source.candidates = candidates;
        Ok(())
    }

    fn entries(
        &mut self,
        list: &Url,
        entries: Vec<PlaylistEntry>,
        finite: bool,
        read: &mut Vec<Url>,
    ) -> Result<Vec<Url>, &'static str> {
        let depth = self.stations.depths.get(list).copied().unwrap_or(0);
        if read.contains(list) {
            return Err("it leads back to itself");
        }
        if depth + 1 > MOST_NESTED || read.len() >= MOST_LISTS {
            return Err("too many playlists lie inside of each other");
        }
        read.push(list.clone());
        if depth == 0 {
            // A fresh list replaces what an older one said.
            let stations = &self.stations;
            self.source.candidates.retain(|url| !stations.holds(url));
            self.stations.depths.clear();
        }
        self.stations.found = true;
        self.stations.finite = finite;
        self.stations.album = if finite && entries.len() > 1 { entries.clone() } else { Vec::new() };
        let mut urls: Vec<Url> = entries.into_iter().map(|entry: PlaylistEntry| entry.url).collect();
        self.stations.listed.clone_from(&urls);
        self.stations.again(&mut urls);
        for url in &urls {
            self.stations.depths.entry(url.clone()).or_insert(depth + 1);
        }
        Ok(urls)
    }

    /// A candidate serves. One with an end is kept: the others of its list are other recordings.
    pub(super) fn settle(&mut self, index: usize) {
        let Some(url) = self.source.candidates.get(index).cloned() else { return };
        if self.source.resolved.live || !self.stations.holds(&url) {
            return;
        }
        let place = self.stations.listed.iter().position(|listed| *listed == url).unwrap_or(0);
        let first_time = self.stations.chosen.is_none();
        self.stations.chosen.get_or_insert((place, url.clone()));
        let entries = std::mem::take(&mut self.stations.album);
        if first_time && !entries.is_empty() {
            self.shared.tell(StreamEvent::Playlist { entries, playing: place });
        }
        self.source.candidates = vec![url];
        self.source.preferred = 0;
    }

    /// No candidate served: the list is asked for again, and what it said last stays in reserve.
    pub(super) fn back_to_the_list(&mut self) {
        if !self.stations.found {
            return;
        }
        let resolved = &self.source.resolved;
        let lists = std::iter::once(&resolved.url).chain(&resolved.alternatives).cloned();
        let known = self.source.candidates.iter().filter(|url| self.stations.holds(url)).cloned();
        self.source.candidates = lists.chain(known).collect();
        self.source.preferred = 0;
    }

    /// A station that was heard may have its list back in a moment.
    fn bad_list(&self, url: &Url, why: &str) -> Setback {
        let host = http::host(url);
        if self.is_heard_live() {
            return Setback::Failing(format!("the playlist on {host} is of no use: {why}"));
        }
        let (track, why) = (self.shared.track.clone(), why.to_owned());
        Setback::Final(StreamError::Playlist { track, host, why })
    }
}

/// None where the body is not a playlist; then nothing of it is lost.
async fn read_playlist(
    body: &mut WebBody,
    content_type: Option<&str>,
    from: Url,
) -> Result<Option<Result<Found, &'static str>>, String> {
    let Some(first) = body.first(playlist::FIRST).await? else { return Ok(None) };
    let Some(kind) = playlist::detect(content_type, from.path(), first) else { return Ok(None) };
    let Some(text) = body.text(playlist::TEXT_CAP).await? else {
        return Ok(Some(Err("it is longer than 1 MiB")));
    };
    Ok(Some(playlist::parse(kind, &text, &from)))
}
