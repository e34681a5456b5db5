//! Which segment comes next, and when to look for more. Pure: the clock is passed in.

use std::time::{Duration, Instant};

use super::m3u8::{Media, Segment};

/// Playlists in a row whose numbers lie behind, until that is no stale copy but a server that was started anew.
const MOST_BEHIND: u32 = 3;

/// A playlist that has changed is not asked for again before.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Fetch the playlist.
    Playlist,
    /// Fetch this segment.
    Segment(Box<Segment>),
    /// Nothing before this moment.
    Wait(Instant),
    /// All was played.
    End,
}

/// What a playlist tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The next segment is another one than before.
    pub jumped: bool,
    /// It has not changed for long.
    pub stands: bool,
}

/// A place in a media playlist.
#[derive(Debug, Default)]
pub(super) struct Follow {
    media: Option<Media>,
    /// Number of the next segment.
    next: Option<u64>,
    /// The next segment does not continue the one before.
    cut: bool,
    /// The playlist that was read last had no end.
    live: bool,
    /// When the playlist was read last.
    read: Option<Instant>,
    /// When it changed last.
    changed: Option<Instant>,
    reload_at: Option<Instant>,
    /// Playlists in a row that lie behind what was played.
    behind: u32,
}

impl Follow {
    /// Whether the playlist has no end.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether the next segment does not continue the one before.
    pub fn is_cut(&self) -> bool {
        let segment = self.next.zip(self.media.as_ref()).and_then(|(next, media)| media.segment(next));
        self.cut || segment.is_some_and(|segment| segment.discontinuity)
    }

    /// The next segment does not continue the one before.
    pub fn cut(&mut self) {
        self.cut = true;
    }

    /// On to the next segment.
    pub fn advance(&mut self) {
        self.next = self.next.map(|next| next.saturating_add(1));
        self.cut = false;
    }

    /// The playlist is to be read before anything else.
    pub fn reload(&mut self) {
        self.reload_at = None;
        if self.live {
            self.read = None;
        }
    }

    /// The playlist is another one; the place in it stays.
    pub fn forget(&mut self) {
        (self.media, self.read, self.reload_at) = (None, None, None);
    }

    /// What to do next.
    pub fn next(&mut self, now: Instant) -> Next {
        let (Some(media), Some(next)) = (&self.media, &mut self.next) else { return Next::Playlist };
        let stale = self.read.is_none_or(|read| now > read + media.target * 2);
        if !media.ended && stale {
            return Next::Playlist;
        }
        while let Some(segment) = media.segment(*next) {
            if segment.gap {
                (*next, self.cut) = (next.saturating_add(1), true);
                continue;
            }
            return Next::Segment(Box::new(segment.clone()));
        }
        match self.reload_at {
            _ if media.ended => Next::End,
            Some(at) if at > now => Next::Wait(at),
            _ => Next::Playlist,
        }
    }

    /// A playlist came.
    pub fn listed(&mut self, media: Media, now: Instant) -> Told {
        let fresh = self
            .media
            .as_ref()
            .is_none_or(|before| (before.end(), before.ended) != (media.end(), media.ended));
        let pause = pause(&media);
        let pause = if fresh { pause } else { pause / 2 };
        (self.read, self.reload_at) = (Some(now), Some(now + pause));
        if fresh {
            self.changed = Some(now);
        }
        let still = self.changed.map_or(Duration::ZERO, |changed| now - changed);
        let stands = !media.ended && still > media.target * 3;
        let jumped = self.place(&media);
        self.live = !media.ended;
        self.media = Some(media);
        Told { jumped, stands }
    }

    /// Finds the place in a new list; true when it is another one than it was.
    fn place(&mut self, media: &Media) -> bool {
        let edge = if media.ended { media.sequence } else { media.live_edge() };
        let Some(next) = self.next else {
            self.next = Some(edge);
            return false;
        };
        if media.ended && !self.live {
            // A recording is listed whole, and never left out in part.
            return false;
        }
        let behind = media.end() < next;
        self.behind = if behind { self.behind + 1 } else { 0 };
        let restarted = behind
            && (self.behind >= MOST_BEHIND || media.end().saturating_add(media.segments.len() as u64) < next);
        if next >= media.sequence && !restarted {
            return false;
        }
        self.next = Some(media.live_edge());
        (self.cut, self.behind) = (true, 0);
        true
    }
}

/// How long nothing new is to be expected: by the last segment where that tells less than what all of them keep
/// to, since no more than that may be left to hear.
fn pause(media: &Media) -> Duration {
    let last = media.segments.last().map(|segment| segment.duration).filter(|last| !last.is_zero());
    last.map_or(media.target, |last| last.min(media.target)).max(SHORTEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::m3u8::{Playlist, parse};
    use super::*;

    fn media(sequence: u64, count: usize, rest: &str) -> Media {
        let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:{sequence}\n");
        for n in 0..count as u64 {
            text += &format!("#EXTINF:4,\n{}.ts\n", sequence + n);
        }
        match parse(&(text + rest), &Url::parse("http://a.example/").unwrap()) {
            Ok(Playlist::Media(media)) => media,
            other => panic!("{other:?}"),
        }
    }

    /// Names of the segments that come until there are no more.
    fn names(follow: &mut Follow, now: Instant) -> Vec<String> {
        let mut names = Vec::new();
        while let Next::Segment(segment) = follow.next(now) {
            let cut = if follow.is_cut() { "|" } else { "" };
            names.push(format!("{cut}{}", segment.url.path().trim_matches(['/', '.', 't', 's'])));
            follow.advance();
        }
        names
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_recording_is_played_whole() {
        let (mut follow, now) = (Follow::default(), Instant::now());
        assert_eq!(follow.next(now), Next::Playlist);
        follow.listed(media(7, 5, "#EXT-X-ENDLIST\n"), now);
        assert!(!follow.is_live());
        assert_eq!(names(&mut follow, now + SECOND * 1_000), ["7", "8", "9", "10", "11"]);
        assert_eq!(follow.next(now), Next::End);
    }

    #[test]
    fn a_live_stream_begins_near_its_end_and_is_followed() {
        let (mut follow, now) = (Follow::default(), Instant::now());
        assert_eq!(follow.listed(media(10, 6, ""), now), Told::default());
        assert!(follow.is_live());
        assert_eq!(names(&mut follow, now), ["13", "14", "15"]);
        assert_eq!(follow.next(now), Next::Wait(now + SECOND * 4));
        let now = now + SECOND * 4;
        assert_eq!(follow.next(now), Next::Playlist);
        follow.listed(media(10, 6, ""), now);
        assert_eq!(follow.next(now), Next::Wait(now + SECOND * 2));
        let now = now + SECOND * 2;
        follow.listed(
            media(11, 6, "#EXT-X-DISCONTINUITY\n#EXT-X-GAP\n#EXTINF:4,\n17.ts\n#EXTINF:4,\n18.ts\n"),
            now,
        );
        assert_eq!(names(&mut follow, now), ["16", "|18"]);
        follow.listed(media(11, 8, "#EXT-X-ENDLIST"), now + SECOND * 4);
        assert_eq!(follow.next(now + SECOND * 4), Next::End);
    }

    #[test]
    fn short_segments_are_looked_for_before_the_time_of_the_longest() {
        let wait = |target: u32, last: &str, lists: usize| {
            let (mut follow, now) = (Follow::default(), Instant::now());
            let text =
                format!("#EXTM3U\n#EXT-X-TARGETDURATION:{target}\n#EXTINF:9,\na.ts\n#EXTINF:{last},\nb.ts\n");
            for _ in 0..lists {
                let Ok(Playlist::Media(media)) = parse(&text, &Url::parse("http://a.example/").unwrap())
                else {
                    panic!("it is not read")
                };
                follow.listed(media, now);
            }
            names(&mut follow, now);
            let Next::Wait(until) = follow.next(now) else { panic!("it does not wait") };
            until - now
        };
        assert_eq!(wait(30, "2", 1), SECOND * 2);
        assert_eq!(wait(30, "2", 2), SECOND);
        assert_eq!(wait(4, "6", 1), SECOND * 4);
        assert_eq!(wait(30, "0.1", 1), SHORTEST_PAUSE);
        assert_eq!(wait(30, "0", 1), SECOND * 30);
        assert_eq!(wait(0, "0", 1), SECOND * 9);
    }

    #[test]
    fn who_falls_behind_goes_on_near_the_end() {
        let (mut follow, now) = (Follow::default(), Instant::now());
        follow.listed(media(10, 6, ""), now);
        let now = now + SECOND * 60;
        assert_eq!(follow.next(now), Next::Playlist);
        assert!(follow.listed(media(30, 6, ""), now).jumped);
        assert_eq!(names(&mut follow, now), ["|33", "34", "35"]);
    }

    #[test]
    fn numbers_that_go_back_are_a_server_that_was_started_anew_and_a_stale_copy_is_not() {
        let (mut follow, now) = (Follow::default(), Instant::now());
        follow.listed(media(100, 6, ""), now);
        assert_eq!(names(&mut follow, now), ["103", "104", "105"]);
        assert!(!follow.listed(media(99, 6, ""), now).jumped);
        assert!(!follow.listed(media(101, 6, ""), now).jumped);
        assert_eq!(names(&mut follow, now), ["106"]);
        assert!(follow.listed(media(0, 4, ""), now).jumped);
        assert_eq!(names(&mut follow, now), ["|1", "2", "3"]);
        follow.listed(media(1, 4, ""), now);
        assert_eq!(names(&mut follow, now), ["4"]);
        assert!(!follow.listed(media(0, 4, ""), now).jumped);
        assert!(!follow.listed(media(0, 4, ""), now).jumped);
        assert!(follow.listed(media(0, 4, ""), now).jumped);
    }

    #[test]
    fn a_list_that_stands_still_is_noticed() {
        let (mut follow, now) = (Follow::default(), Instant::now());
        follow.listed(media(10, 6, ""), now);
        assert!(!follow.listed(media(10, 6, ""), now + SECOND * 12).stands);
        assert!(follow.listed(media(10, 6, ""), now + SECOND * 13).stands);
        assert!(!follow.listed(media(11, 6, ""), now + SECOND * 14).stands);
    }
}
