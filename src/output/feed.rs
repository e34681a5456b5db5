//! From the ring to the card, as bookkeeping: which frame comes next, which has been heard, what was cut.
//!
//! Two counts must not be mixed. The *ring count* is the writer's: every frame it ever wrote. The *play count* is the
//! listener's: every frame that was taken to be played. A cut drops frames from the ring and so moves the first without
//! the second; a note is translated from one to the other when its frame is taken.

use std::collections::VecDeque;

use rtrb::Consumer;

use super::format::SourceFormat;
use super::history::History;
use super::marks::{Mark, Note, What};
use super::playhead::duration;
use super::treatment::Treatment;
use crate::track::EntryId;

/// Notes that may wait in the ring or in the card; the writer waits while there are more.
pub(super) const MOST_NOTES: usize = 256;

/// A note whose frame has been taken, at its play count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub at: u64,
    pub note: Note,
}

/// The entry that is heard, and the play count at which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current {
    pub mark: Mark,
    pub at: u64,
}

/// From ring count `at` on, everything below `generation` is dropped.
#[derive(Clone, Copy, Debug)]
struct Hole {
    at: u64,
    generation: u64,
}

pub(super) struct Feed {
    notes: Consumer<Note>,
    ring: Option<Consumer<i32>>,
    channels: usize,
    history: History,
    /// Notes of frames still in the ring.
    upcoming: VecDeque<Note>,
    /// Notes of frames that were taken but not yet heard.
    taken_notes: VecDeque<Taken>,
    /// Ring count of the next frame in the ring.
    ring_at: u64,
    /// Play count of the next frame to take from the ring.
    taken: u64,
    /// Play count of the next frame to give to the card; below `taken` when frames are given again.
    pub written: u64,
    /// Play count of the frame that is heard now.
    pub heard: u64,
    /// Of the frames that are taken now.
    pub generation: u64,
    /// Their source's format.
    pub format: Option<SourceFormat>,
    /// Their samples are not the source's own.
    pub treated: bool,
    /// The last that was taken, but for marks, is an end or a change of format.
    ended: bool,
    discard: Option<u64>,
    hole: Option<Hole>,
    taken_back: Option<(EntryId, u64)>,
    pub current: Option<Current>,
}

impl Feed {
    pub fn new(notes: Consumer<Note>) -> Feed {
        Feed {
            notes,
            ring: None,
            channels: 1,
            history: History::new(0, 1, 0),
            upcoming: VecDeque::with_capacity(MOST_NOTES),
            taken_notes: VecDeque::with_capacity(MOST_NOTES),
            ring_at: 0,
            taken: 0,
            written: 0,
            heard: 0,
            generation: 0,
            format: None,
            treated: false,
            ended: false,
            discard: None,
            hole: None,
            taken_back: None,
            current: None,
        }
    }

    /// Goes on with a new ring for a card of `channels`, keeping `keep` frames to give again.
    /// All frames of the old ring have been heard or cut by now.
    pub fn set_ring(&mut self, ring: Consumer<i32>, channels: u16, keep: usize, old_rate: u32) {
        self.rebase(old_rate);
        self.ring = Some(ring);
        self.channels = usize::from(channels).max(1);
        self.history = History::new(keep, self.channels, self.taken);
        self.written = self.taken;
        self.heard = self.taken;
    }

    /// Keeps at least `frames` to give again, for a device that holds more than the one before it.
    pub fn keep(&mut self, frames: usize) {
        if self.ring.is_some() {
            self.history.keep(frames);
        }
    }

    /// Moves the origin of what is heard to here, since other frames or another rate follow.
    fn rebase(&mut self, rate: u32) {
        if let Some(current) = self.current.as_mut().filter(|c| self.heard > c.at && rate > 0) {
            current.mark.position += duration(self.heard - current.at, rate);
            current.at = self.heard;
        }
    }

    /// Frames in the ring.
    pub fn in_ring(&self) -> u64 {
        self.ring.as_ref().map_or(0, |r| (r.slots() / self.channels) as u64)
    }

    /// Frames that the ring can hold.
    pub fn capacity(&self) -> u64 {
        self.ring.as_ref().map_or(0, |r| (r.buffer().capacity() / self.channels) as u64)
    }

    /// Moves on everything that needs no card: drops what is cut, takes the notes that are due.
    /// Returns how many frames may be taken from the ring in one go.
    fn settle(&mut self) -> u64 {
        // The frames first, then the notes: a note is pushed before its frame, so no visible frame lacks its note.
        let mut frames = self.in_ring();
        self.collect();
        loop {
            if self.hole.is_some_and(|h| h.at <= self.ring_at) {
                self.discard = self.discard.max(self.hole.take().map(|h| h.generation));
            }
            while let Some(note) = self.upcoming.front().copied().filter(|n| n.at <= self.ring_at) {
                if self.discard.is_some_and(|g| note.generation < g) {
                    self.upcoming.pop_front();
                    continue;
                }
                if self.taken_notes.len() == MOST_NOTES {
                    return 0;
                }
                self.discard = None;
                self.generation = note.generation;
                match note.what {
                    What::Continue(format) | What::SetUp { format, .. } => self.format = Some(format),
                    What::Mark(mark) => self.treated = mark.treatment != Treatment::NONE,
                    What::End => {}
                }
                self.ended |= note.what.stops();
                self.upcoming.pop_front();
                self.taken_notes.push_back(Taken { at: self.taken, note });
            }
            let next = self.upcoming.front().map_or(u64::MAX, |n| n.at);
            let hole = self.hole.map_or(u64::MAX, |h| h.at);
            let free = frames.min(next.min(hole).saturating_sub(self.ring_at));
            if self.discard.is_none() || free == 0 {
                let blocked = self.discard.is_some();
                return if blocked { 0 } else { free };
            }
            if let Some(ring) = &mut self.ring
                && let Ok(chunk) = ring.read_chunk(free as usize * self.channels)
            {
                chunk.commit_all();
            }
            self.ring_at += free;
            frames -= free;
        }
    }

    /// Takes the writer's notes over, minding what was taken back meanwhile.
    fn collect(&mut self) {
        while self.upcoming.len() < MOST_NOTES {
            let Ok(note) = self.notes.pop() else { break };
            if let What::Mark(mark) = note.what
                && self.taken_back.is_some_and(|(e, g)| mark.entry == e && note.generation < g)
            {
                self.hole =
                    self.hole.or(self.taken_back.map(|(_, generation)| Hole { at: note.at, generation }));
            }
            // Inside a hole nothing counts until the new generation.
            if self.hole.is_some_and(|h| note.at >= h.at && note.generation < h.generation) {
                continue;
            }
            self.upcoming.push_back(note);
        }
    }

    /// Copies the next frames for the card into `out`; returns how many frames. `wrote` says how many it took.
    pub fn next(&mut self, out: &mut [i32]) -> usize {
        if self.written < self.taken {
            return self.history.read(self.written, out);
        }
        let most = (out.len() / self.channels) as u64;
        let frames = self.settle().min(most) as usize;
        let Some(ring) = &mut self.ring else { return 0 };
        if frames == 0 {
            return 0;
        }
        let out = &mut out[..frames * self.channels];
        if ring.pop_entire_slice(out).is_err() {
            return 0;
        }
        self.history.push(out);
        self.ended = false;
        self.ring_at += frames as u64;
        self.taken += frames as u64;
        frames
    }

    /// The card took this many of the frames that `next` gave.
    pub fn wrote(&mut self, frames: usize) {
        self.written += frames as u64;
    }

    /// True when there is a frame to give to the card.
    pub fn has_frames(&mut self) -> bool {
        self.settle() > 0 || self.written < self.taken
    }

    /// True when the next frame for the card is the very first of an entry.
    pub fn starts_entry(&self) -> bool {
        let first = |w: &What| matches!(w, What::Mark(m) if m.position.is_zero());
        self.taken_notes.iter().any(|t| t.at == self.written && first(&t.note.what))
    }

    /// True when the last that was taken is an end or a change of format, with nothing behind it yet.
    pub fn at_stop(&self) -> bool {
        self.written == self.taken && self.ended
    }

    /// The card has played up to this play count.
    pub fn set_heard(&mut self, at: u64) {
        self.heard = self.heard.max(at.min(self.written));
    }

    /// The next note that is reached. A mark is heard when its frame sounds (`running`) or when nothing is behind it.
    pub fn reached(&mut self, running: bool) -> Option<Taken> {
        let next = *self.taken_notes.front().filter(|t| t.at <= self.heard)?;
        if matches!(next.note.what, What::SetUp { .. }) {
            return None; // `pending_set_up` takes it
        }
        if let What::Mark(mark) = next.note.what {
            let sounds = running && next.at < self.written;
            let empty = self.taken_notes.iter().any(|t| t.at == next.at && t.note.what.stops());
            if !sounds && !empty {
                return None;
            }
            self.current = Some(Current { mark, at: next.at });
        }
        self.taken_notes.pop_front()
    }

    /// Frames until the next note is heard.
    pub fn until_note(&self) -> Option<u64> {
        self.taken_notes.front().map(|t| t.at.saturating_sub(self.heard))
    }

    /// Gives everything that was not heard once more, oldest first.
    pub fn again(&mut self) {
        self.written = self.heard.max(self.history.start()).min(self.taken);
        self.heard = self.written;
    }

    /// Drops everything below `generation`; true if that touches what the card has: it must be stopped.
    pub fn cut(&mut self, generation: u64) -> bool {
        let keep = self.taken_notes.iter().find(|t| t.note.generation >= generation).map(|t| t.at);
        let sounding = self.current.is_some_and(|c| c.mark.generation >= generation);
        if sounding || (keep.is_none() && self.taken > 0 && self.generation >= generation) {
            return false;
        }
        self.current = None;
        self.taken_back = self.taken_back.filter(|(_, g)| *g > generation);
        self.taken_notes.retain(|t| t.note.generation >= generation);
        if let Some(at) = keep {
            if at <= self.heard {
                return false;
            }
            self.heard = at;
            self.written = at;
            return true;
        }
        self.hole = self.hole.filter(|h| h.generation > generation);
        self.ended = false;
        self.discard = self.discard.max(Some(generation));
        self.history.restart(self.taken);
        self.written = self.taken;
        self.heard = self.taken;
        self.settle();
        true
    }

    /// Takes `entry` back if it is not heard yet: drops its frames and all behind them below `generation`.
    /// True if the card has some of them already; then it must be stopped and fed again from `again`.
    pub fn cut_after(&mut self, entry: EntryId, generation: u64) -> bool {
        let is_it =
            |n: &Note| matches!(n.what, What::Mark(m) if m.entry == entry) && n.generation < generation;
        if self.current.is_some_and(|c| c.mark.entry == entry) {
            return false;
        }
        if let Some(first) = self.taken_notes.iter().position(|t| is_it(&t.note)) {
            let at = self.taken_notes[first].at;
            self.taken_notes.truncate(first);
            self.taken = at;
            self.history.truncate(at);
            self.ended = false;
            self.hole = None;
            self.discard = self.discard.max(Some(generation));
            let in_card = self.written > at;
            self.settle();
            return in_card;
        }
        self.taken_back = Some((entry, generation));
        if let Some(first) = self.upcoming.iter().position(is_it) {
            let at = self.upcoming[first].at;
            self.hole = Some(Hole { at, generation });
            let mut index = 0;
            self.upcoming.retain(|n| {
                index += 1;
                index <= first || n.generation >= generation
            });
        }
        false
    }

    /// Drops everything until a generation above the present one: its frames have the wrong format.
    /// What is heard stays where it was, since the player goes on from there.
    pub fn abandon(&mut self, rate: u32) -> u64 {
        let generation = self.generation;
        self.rebase(rate);
        let current = self.current;
        self.cut(generation.saturating_add(1));
        self.current = current.map(|c| Current { at: self.heard, ..c });
        generation
    }

    /// The change of format that is waiting to be carried out, if everything before it is heard.
    /// A later one replaces an earlier one that nobody waits for any more.
    pub fn pending_set_up(&mut self) -> Option<Note> {
        self.settle();
        let mut last = None;
        while let Some(front) = self.taken_notes.front().copied() {
            let due = front.at <= self.heard && self.written <= front.at;
            if !due || !matches!(front.note.what, What::SetUp { .. }) {
                break;
            }
            last = self.taken_notes.pop_front();
        }
        last.map(|t| t.note)
    }

    /// True while a change of format could not be carried out yet.
    pub fn waits_for_set_up(&self) -> bool {
        self.taken_notes
            .front()
            .is_some_and(|t| t.at <= self.heard && matches!(t.note.what, What::SetUp { .. }))
    }

    /// Puts a change of format back that could not be carried out yet.
    pub fn put_back(&mut self, note: Note) {
        self.taken_notes.push_front(Taken { at: self.taken, note });
    }

    /// Frames that the card has or that are given again, not yet heard.
    pub fn unheard(&self) -> u64 {
        self.taken.saturating_sub(self.heard)
    }

    /// True when at least half of the ring is free.
    pub fn is_half_free(&self) -> bool {
        self.ring.as_ref().is_some_and(|r| r.slots() * 2 <= r.buffer().capacity())
    }

    pub fn channels(&self) -> usize {
        self.channels
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
