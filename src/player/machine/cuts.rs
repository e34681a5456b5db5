//! What is heard breaks off, and begins elsewhere or not at all: each time a new generation.

use std::time::Duration;

use super::restart::Restarts;
use super::slot::{Coming, NextSlot, Slot};
use super::{Intent, Machine};
use crate::control::Reason;
use crate::player::effect::{Effect, Ticket};
use crate::track::EntryId;

impl Machine {
    /// Ends all that is heard, decoded or coming, and makes way for a new generation.
    pub(super) fn cut(&mut self, effects: &mut Vec<Effect>) {
        self.generation += 1;
        self.valid_from = self.generation;
        self.sounding = false;
        self.stalled = false;
        self.exact = true;
        self.ending = false;
        self.again = None;
        effects.push(Effect::Cut { generation: self.generation });
    }

    /// Plays this entry from `start`, now, with whatever of it is open already.
    pub(super) fn begin(&mut self, entry: EntryId, start: Duration, effects: &mut Vec<Effect>) {
        self.cut(effects);
        self.abandon_current(effects);
        let is_this = |coming: Coming| coming.entry == entry && coming.start.is_zero();
        let reusable = start.is_zero() && self.next.coming().is_some_and(is_this);
        let prepared = std::mem::replace(&mut self.next, NextSlot::Empty);
        if !reusable && let Some(coming) = prepared.coming() {
            self.abandon(coming.ticket, effects);
        }
        let generation = self.generation;
        self.slot = match prepared {
            NextSlot::Opening(Coming { ticket, .. }) if reusable => Slot::Opening { ticket, start },
            NextSlot::Ready(Coming { ticket, .. }) if reusable => {
                effects.push(Effect::Feed { ticket, generation });
                Slot::Feeding { ticket }
            }
            NextSlot::Taken { coming: Coming { ticket, .. }, .. } if reusable => {
                effects.push(Effect::Seek { ticket, generation, position: Duration::ZERO });
                Slot::Feeding { ticket }
            }
            _ => self.open(entry, start, effects),
        };
        self.station_due = None;
        if self.current != Some(entry) {
            self.station = None;
            self.forget_failed_nexts();
            self.restarts = Restarts::default();
        }
        self.current = Some(entry);
        self.now_playing = None;
        self.anchor = start;
        self.announced = false;
        self.reason = self.slot.ticket().and_then(|ticket| self.why_waits(ticket)).unwrap_or(Reason::Opening);
        effects.push(if self.intent == Intent::Playing { Effect::Resume } else { Effect::Pause });
        effects.push(Effect::SaveState);
    }

    /// Stops, and stays at the current entry; after failures, at the first that may play another time.
    pub(super) fn halt(&mut self, reason: Reason, effects: &mut Vec<Effect>) {
        let first = self.first_failed.take().filter(|entry| self.queue.get(*entry).is_some());
        if reason == Reason::Error && first.is_some() {
            self.current = first;
        }
        self.cut(effects);
        effects.push(Effect::Rest);
        self.abandon_current(effects);
        self.abandon_next(effects);
        self.intent = Intent::Stopped;
        self.now_playing = None;
        self.station_due = None;
        self.restarts = Restarts::default();
        self.reason = reason;
        self.anchor = Duration::ZERO;
        self.failures = 0;
        // Nobody waits for the card any more.
        self.last_error.take_if(|error| error.code == "device");
        self.forget_failed_nexts();
        effects.push(Effect::SaveState);
    }

    /// Goes on at another position of the current entry.
    pub(super) fn jump(&mut self, position: Duration, effects: &mut Vec<Effect>) {
        self.anchor = position;
        match (self.slot, self.next) {
            (Slot::Empty | Slot::Opening { .. }, _) => {}
            // The decoder has left this track already.
            (Slot::Feeding { ticket } | Slot::Fed { ticket }, NextSlot::Taken { .. }) => {
                self.lost(ticket, effects);
            }
            (Slot::Feeding { ticket } | Slot::Fed { ticket }, _) => {
                self.cut(effects);
                self.slot = Slot::Feeding { ticket };
                effects.push(Effect::Seek { ticket, generation: self.generation, position });
            }
        }
    }

    pub(super) fn lost(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        if self.slot.ticket() == Some(ticket)
            && let Some(entry) = self.current
        {
            let announced = self.announced;
            self.begin(entry, self.anchor, effects);
            self.announced = announced;
        }
    }
}
