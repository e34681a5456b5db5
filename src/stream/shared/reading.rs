//! What the reader, on its blocking thread, does with what is shared.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Known, PAGE, ROOMY, Shared, State};
use crate::stream::StreamError;

impl Shared {
    /// Blocks until a byte is there, the file ends, or reading is over.
    pub fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.stopped(&self.track) {
                return Err(error.into());
            }
            let at = state.reader;
            let border = state.stretches.front().map_or(u64::MAX, |stretch| stretch.at - at.min(stretch.at));
            if border == 0 {
                return Ok(0);
            }
            let most = usize::try_from(border).unwrap_or(usize::MAX).min(state.titles.most(at, state.live));
            let most = out.len().min(most);
            let count = state.store.read(at, &mut out[..most]);
            if count > 0 || out.is_empty() {
                self.advance(&mut state, at + count as u64);
                return Ok(count);
            }
            if state.known.is_some() && state.want().is_none() {
                return Ok(0);
            }
            if let Some(error) = &state.failed {
                return Err(error.clone().into());
            }
            if state.idle {
                self.wake.notify_one();
            }
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves the reader forward and wakes the task when that made room.
    fn advance(&self, state: &mut State, to: u64) {
        let crossed = state.reader / PAGE != to / PAGE;
        state.reader = to;
        if state.titles.is_due(to) {
            self.title_due.store(true, Ordering::Release);
        }
        if crossed {
            state.store.trim(to);
            // Not for each page: waking the main thread costs more than fetching much at once.
            state.pace.read(to, Instant::now());
            let enough = ROOMY.min(state.store.pages_held() / 4).min(state.enough()).max(1);
            if state.idle && state.store.room(to) >= enough {
                self.wake.notify_one();
            }
        }
    }

    /// Up to where bytes from `from` on are held.
    pub fn extent(&self, from: u64) -> u64 {
        self.lock().store.extent(from)
    }

    /// The reader's offset, when reading is not over.
    pub fn position(&self) -> io::Result<u64> {
        let state = self.lock();
        state.stopped(&self.track).map_or(Ok(state.reader), |error| Err(error.into()))
    }

    /// Moves the reader; fails where a server without ranges cannot follow.
    pub fn seek(&self, to: u64) -> io::Result<u64> {
        let mut state = self.lock();
        if let Some(error) = state.stopped(&self.track) {
            return Err(error.into());
        }
        let held = state.store.extent(to) > to || to == state.fetching;
        if let Some(known) = &state.known
            && !known.ranges
            && !held
            && to < state.fetching
        {
            let error =
                StreamError::NotSeekable { track: self.track.clone(), host: known.host.clone(), offset: to };
            return Err(error.into());
        }
        state.reader = to;
        state.pace.jumped();
        drop(state);
        self.wake.notify_one();
        Ok(to)
    }

    /// Lets a reader that came to the end of a stretch read the next one, and tells the media type of it.
    /// None at the end of everything.
    pub fn next_stretch(&self) -> Option<Option<String>> {
        let mut state = self.lock();
        let reader = state.reader;
        let is_there = state.stretches.front().is_some_and(|stretch| stretch.at <= reader);
        let stretch = if is_there { state.stretches.pop_front() } else { None };
        stretch.map(|stretch| stretch.content_type)
    }

    /// Moves the position of a file's reader, which is shown in the status.
    pub fn note_position(&self, at: u64) {
        self.lock().reader = at;
    }

    /// Blocks until the head is known; None when the stream ended before.
    pub fn known(&self) -> Option<Known> {
        let mut state = self.lock();
        loop {
            if state.known.is_some() {
                return state.known.clone();
            }
            if state.failed.is_some() || state.stopped(&self.track).is_some() {
                return None;
            }
            state = self.readable.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it comes in pieces, as far as is known.
    pub fn is_pieced(&self) -> bool {
        self.lock().pieced
    }

    /// A file of the disk, all of which is there.
    pub fn know_file(&self, length: u64) {
        self.lock().known = Some(Known {
            content_type: None,
            total: Some(length),
            ranges: true,
            live: false,
            host: String::new(),
        });
    }
}
