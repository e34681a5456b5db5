//! One resolved address and what was learnt of it.

use std::time::{Instant, SystemTime};

use reqwest::header::HeaderMap;
use url::Url;

use super::expiry::Deadline;
use super::http;
use crate::track::{Expiry, ResolvedStream};

/// A wall clock that can be believed, a server's or ours, tied to the monotonic one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// When it was read.
    at: Instant,
    /// What it said.
    date: SystemTime,
}

/// Where the bytes come from at present.
pub(super) struct Source {
    pub resolved: ResolvedStream,
    /// `url`, then the alternatives.
    pub candidates: Vec<Url>,
    /// The candidate that served last.
    pub preferred: usize,
    headers: HeaderMap,
    pub deadline: Option<Deadline>,
    pub clock: Option<Clock>,
    /// Whether ranges are asked for: until an answer shows that the server has none or gets them wrong.
    pub ranges: bool,
    /// Came from a resolve in mid-stream and has given no byte yet.
    pub fresh: bool,
    /// The resolver gave the same address again.
    pub same_as_before: bool,
}

impl Source {
    pub fn new(resolved: ResolvedStream, clock: Option<Clock>, track: &str) -> Self {
        let candidates = std::iter::once(&resolved.url).chain(&resolved.alternatives).cloned().collect();
        let mut source = Source {
            headers: http::headers(&resolved.headers, track),
            candidates,
            preferred: 0,
            deadline: None,
            clock,
            ranges: resolved.seekable && !resolved.live,
            fresh: false,
            same_as_before: false,
            resolved,
        };
        source.set_deadline(Instant::now());
        source
    }

    /// A wall-clock expiry means nothing before a clock is known that can be believed.
    fn set_deadline(&mut self, now: Instant) {
        let wall =
            self.clock.and_then(|clock| clock.date.checked_add(now.saturating_duration_since(clock.at)));
        self.deadline = Deadline::of(self.resolved.expiry, now, wall);
    }

    /// An answer came. `date` is what the server says the time is, else our own clock if that can be believed; with
    /// neither, when the address ends stays unknown.
    pub fn learn_date(&mut self, date: Option<SystemTime>, now: Instant) {
        if let (None, Some(date)) = (self.clock, date) {
            self.clock = Some(Clock { at: now, date });
            if matches!(self.resolved.expiry, Expiry::WallClock(_)) {
                self.set_deadline(now);
            }
        }
    }

    pub fn expired(&self, now: Instant) -> bool {
        // A fresh address is tried once whatever it says, or a wrong expiry would resolve for ever.
        !self.fresh && self.deadline.is_some_and(|deadline| deadline.passed(now))
    }

    /// Indices of the candidates, the one that served last first.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.candidates.len()).collect();
        order.sort_by_key(|index| *index != self.preferred);
        order
    }

    /// The headers that belong to the origin of the main URL.
    pub fn headers_for(&self, url: &Url) -> HeaderMap {
        if url.origin() == self.resolved.url.origin() { self.headers.clone() } else { HeaderMap::new() }
    }

    /// The host that served last.
    pub fn host(&self) -> String {
        self.candidates.get(self.preferred).map_or_else(String::new, http::host)
    }

    /// Whether it leads to the same place with the same headers.
    pub fn is_same(&self, other: &Source) -> bool {
        let (ours, theirs) = (&self.resolved, &other.resolved);
        ours.url == theirs.url && ours.alternatives == theirs.alternatives && ours.headers == theirs.headers
    }
}
