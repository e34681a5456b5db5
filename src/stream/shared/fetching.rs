//! What the task that fetches does with what is shared.

use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::{Known, NEAR, PAGE, Put, STRETCHES, Shared, Stretch};
use crate::stream::icy::{Station, StreamTitle};
use crate::stream::{StreamError, StreamEvent, Wait, WaitReason};

impl Shared {
    /// Waits until a request is worth while and returns its offset.
    pub async fn work(&self) -> u64 {
        loop {
            if let Some(at) = self.request_at() {
                return at;
            }
            self.moved().await;
        }
    }

    /// Waits until the reader moved or memory became free.
    pub async fn moved(&self) {
        self.wake.notified().await;
    }

    /// Since when the music is paused.
    pub fn held_since(&self) -> Option<Instant> {
        self.lock().held
    }

    fn request_at(&self) -> Option<u64> {
        let mut state = self.lock();
        state.idle = true;
        let Some(at) = state.want() else {
            let completed = state.known.is_some() && !std::mem::replace(&mut state.complete, true);
            drop(state);
            if completed {
                self.emit(StreamEvent::Complete);
            }
            return None;
        };
        state.complete = false;
        let reader = state.reader;
        // Not a request for each page: only when a good part is free, or the reader waits.
        let enough = state.enough();
        // Nor while nobody listens: the URL may run out meanwhile, and the connection would stand idle.
        let ahead = state.held.is_none() && state.store.room(reader) >= enough;
        let due = state.store.has_room(at, reader) && (at == reader || ahead);
        state.idle = !due;
        due.then_some(at)
    }

    /// Takes bytes that lie at `at`.
    pub fn put(&self, at: u64, bytes: &[u8], ranges: bool) -> Put {
        let mut state = self.lock();
        state.idle = false;
        let Some(want) = state.want() else { return Put::Elsewhere };
        if want < at || (ranges && want - at > NEAR) {
            return Put::Elsewhere;
        }
        let reader = state.reader;
        if at < want {
            let piece = bytes.len().min((want - at).min(PAGE - at % PAGE) as usize);
            if state.store.joins(at) {
                // Whether it was kept or not, the reader does not need it now.
                let _ = state.store.write(at, &bytes[..piece], reader);
            }
            state.fetching = at + piece as u64;
            return Put::Took(piece);
        }
        let count = state.store.write(at, bytes, reader);
        if count == 0 {
            if bytes.is_empty() && state.store.has_room(at, reader) {
                return Put::Took(0);
            }
            state.idle = true;
            return Put::Full;
        }
        state.fetching = at + count as u64;
        let first = state.bytes_fetched == 0;
        state.bytes_fetched += count as u64;
        let waited = state.waiting.take();
        drop(state);
        self.readable.notify_all();
        if first {
            self.emit(StreamEvent::Prefetching);
        }
        if let Some(wait) = waited {
            info!(track = self.track, seconds = wait.since.elapsed().as_secs(), "data comes again");
            self.emit(StreamEvent::Flowing);
        }
        Put::Took(count)
    }

    /// Notes what an answer said.
    pub fn know(&self, known: Known) {
        let mut state = self.lock();
        let first = state.known.is_none();
        let (content_type, total) = (known.content_type.clone(), known.total);
        state.live |= known.live;
        match &mut state.known {
            Some(before) => {
                before.total = before.total.or(known.total);
                before.ranges = known.ranges;
                before.live |= known.live;
                before.host = known.host;
            }
            empty => *empty = Some(known),
        }
        drop(state);
        if first {
            self.readable.notify_all();
            self.emit(StreamEvent::Head { content_type, total });
        }
    }

    /// A file of unknown length ends at `at`.
    pub fn ended(&self, at: u64) {
        self.lock().end = Some(at);
        self.readable.notify_all();
    }

    /// What comes from `at` on does not continue the bytes before: the reader sees an end there, until it asks
    /// for the next stretch.
    pub fn begin_stretch(&self, at: u64, content_type: Option<String>) {
        let mut state = self.lock();
        if at == 0 && state.bytes_fetched == 0 {
            // Nothing lies before it.
            return;
        }
        // One that holds not a byte is none.
        while state.stretches.back().is_some_and(|last| last.at >= at) {
            state.stretches.pop_back();
        }
        state.titles.begin_anew(at);
        if state.stretches.len() >= STRETCHES {
            // A server may begin anew at every byte. The decoder finds its way in what it takes for one recording.
            return;
        }
        state.stretches.push_back(Stretch { at, content_type });
        drop(state);
        self.readable.notify_all();
    }

    pub fn tell(&self, event: StreamEvent) {
        self.emit(event);
    }

    /// It is known to have no end, before any answer.
    pub fn live(&self) {
        self.lock().live = true;
    }

    /// It comes in pieces, of which none tells how long all are; before anything of them is known.
    pub fn pieced(&self) {
        self.lock().pieced = true;
    }

    /// A title that belongs to what lies at `at` and after.
    pub fn title(&self, at: u64, title: StreamTitle) {
        debug!(track = self.track, at, title = title.text, "the station tells a title");
        self.lock().titles.push(at, title);
    }

    /// What a station says about itself; told once.
    pub fn station(&self, station: Station) {
        if !std::mem::replace(&mut self.lock().introduced, true) {
            self.emit(StreamEvent::Station(station));
        }
    }

    /// A connection begins at `at`.
    pub fn connected(&self, at: u64) {
        self.lock().fetching = at;
    }

    /// What the first answer said that it is.
    pub fn content_type(&self) -> Option<String> {
        self.lock().known.as_ref()?.content_type.clone()
    }

    /// The byte that the reader will miss next.
    pub fn wanted(&self) -> Option<u64> {
        self.lock().want()
    }

    /// Bytes that were kept so far.
    pub fn fetched(&self) -> u64 {
        self.lock().bytes_fetched
    }

    /// A request was answered after this time.
    pub fn answered(&self, after: Duration) {
        self.lock().pace.answered(after);
    }

    pub fn set_deadline(&self, at: Option<Instant>) {
        self.lock().deadline = at;
    }

    pub fn waiting(&self, reason: WaitReason, message: &str) {
        let mut state = self.lock();
        if state.waiting.is_some_and(|wait| wait.reason == reason) {
            return;
        }
        let since = state.waiting.map_or_else(Instant::now, |wait| wait.since);
        state.waiting = Some(Wait { reason, since });
        drop(state);
        info!(track = self.track, ?reason, message, "no data comes");
        self.emit(StreamEvent::Waiting(reason, message.to_owned()));
    }

    pub fn renewing(&self) {
        self.emit(StreamEvent::Renewing);
    }

    pub fn renewed(&self, before_deadline: bool) {
        self.lock().re_resolved += 1;
        self.emit(StreamEvent::Renewed { before_deadline });
    }

    pub fn fail(&self, error: StreamError) {
        warn!(track = self.track, %error, "the stream ends");
        let mut state = self.lock();
        state.failed = Some(error.clone());
        state.waiting = None;
        drop(state);
        self.readable.notify_all();
        self.emit(StreamEvent::Failed(error));
    }
}
