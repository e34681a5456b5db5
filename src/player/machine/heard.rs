//! What is decoded behind what, and what the ear hears of it: one entry becomes the other.

use std::time::Duration;

use super::failures::FAILURES_IN_A_ROW;
use super::notices::named;
use super::restart::Restarts;
use super::slot::{Coming, NextSlot, Slot};
use super::{Intent, Machine, Now};
use crate::control::Reason;
use crate::player::effect::{Effect, Ticket};
use crate::track::{EntryId, TrackInfo};

impl Machine {
    pub(super) fn took_next(
        &mut self,
        from: Ticket,
        ticket: Ticket,
        entry: EntryId,
        effects: &mut Vec<Effect>,
    ) {
        if self.slot.ticket() != Some(from) {
            return;
        }
        self.slot = Slot::Fed { ticket: from };
        if let NextSlot::Ready(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Taken { coming, fed: false };
        } else {
            // It was not to be next any more, and the decoder was a moment faster.
            self.generation += 1;
            effects.push(Effect::CutAfter { ticket, entry, generation: self.generation });
        }
    }

    pub(super) fn fed_to_end(&mut self, ticket: Ticket) -> bool {
        if let NextSlot::Taken { coming, fed } = &mut self.next
            && coming.ticket == ticket
        {
            *fed = true;
            return true;
        }
        let is_current = self.slot == Slot::Feeding { ticket };
        if is_current {
            self.slot = Slot::Fed { ticket };
        }
        is_current
    }

    pub(super) fn heard(
        &mut self,
        entry: EntryId,
        position: Duration,
        ticket: Ticket,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        if let NextSlot::Taken { coming, fed } = self.next
            && coming.ticket == ticket
        {
            self.joined(coming, fed, position, effects);
        } else if self.current == Some(entry) {
            if !self.announced {
                self.announced = true;
                self.last_error = None;
                self.event("playing", self.title(entry), effects);
            }
        } else if self.intent != Intent::Stopped {
            // It was taken back a moment too late: go to what follows now.
            match self.current.and_then(|current| self.queue.successor(current, self.repeat)) {
                Some(next) => self.begin(next, Duration::ZERO, effects),
                None => self.halt(Reason::EndOfQueue, effects),
            }
            return;
        }
        self.sounds(now, effects);
    }

    /// What came behind the current sound is heard now.
    fn joined(&mut self, coming: Coming, fed: bool, position: Duration, effects: &mut Vec<Effect>) {
        let Coming { ticket, entry, .. } = coming;
        let goes_on = self.again.is_some() && self.current == Some(entry);
        self.abandon_current(effects);
        if self.current == Some(entry) {
            // The same track again: only the position says so.
            self.sought(position, effects);
        } else {
            self.restarts = Restarts::default();
        }
        self.exact = self.opened.get(&ticket).is_none_or(|track| !track.start_is_a_guess);
        self.slot = if fed { Slot::Fed { ticket } } else { Slot::Feeding { ticket } };
        self.next = NextSlot::Empty;
        self.current = Some(entry);
        self.now_playing = None;
        self.anchor = position;
        self.forget_failed_nexts();
        self.announced = true;
        self.last_error = None;
        if goes_on {
            self.event("playing", format!("{} goes on", self.title(entry)), effects);
        } else {
            self.event("joined", format!("{} follows without a break", self.title(entry)), effects);
        }
        effects.push(Effect::SaveState);
    }

    /// A station says what it plays: heard from now on, and not written down.
    pub(super) fn now_playing(&mut self, info: TrackInfo, effects: &mut Vec<Effect>) {
        let Some(shown) = named(&info) else {
            // It says nothing any more.
            self.now_playing = None;
            return;
        };
        if self.now_playing.as_ref() != Some(&info) {
            self.now_playing = Some(info);
            self.event("title", shown, effects);
        }
    }

    pub(super) fn sounds(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.stalled) {
            // Whoever counted on by the rate is wrong by as long as it was silent.
            self.sought(self.position(now), effects);
        }
        self.sounding = true;
        if self.plays_live() && !self.is_station() {
            self.station = self.current;
            effects.push(Effect::SaveState);
        }
        self.failures = 0;
        self.first_failed = None;
        self.reason = Reason::None;
    }

    pub(super) fn finished(&mut self, effects: &mut Vec<Effect>) {
        self.sounding = false;
        if self.next != NextSlot::Empty || !matches!(self.slot, Slot::Fed { .. }) {
            return;
        }
        let reason = if self.failures >= FAILURES_IN_A_ROW { Reason::Error } else { Reason::EndOfQueue };
        self.event("finished", "the queue has been played to its end".to_owned(), effects);
        self.halt(reason, effects);
        if reason == Reason::EndOfQueue {
            self.current = self.queue.first();
        }
    }
}
