//! What comes behind the current sound: opened in time, taken back when it is not to come any more.

use std::time::Duration;

use super::failures::FAILURES_IN_A_ROW;
use super::slot::{Coming, NextSlot, Slot};
use super::{Machine, Now, preload};
use crate::player::effect::Effect;
use crate::track::EntryId;

impl Machine {
    /// The entry that is to follow the current one, without those that are known to be unplayable.
    fn wanted_next(&self) -> Option<EntryId> {
        if self.failures >= FAILURES_IN_A_ROW {
            return None;
        }
        let mut next = self.queue.successor(self.current?, self.repeat)?;
        while self.passed_over.contains(&next) {
            next = self.queue.following(next, self.wraps())?;
            if Some(next) == self.current {
                return None;
            }
        }
        Some(next)
    }

    /// Opens the next entry when it is time, takes back what is not next any more, and lets the music end
    /// where nothing follows. Called after each change of anything that matters here.
    pub(super) fn plan(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let (fed, ticket) = match self.slot {
            Slot::Feeding { ticket } => (false, ticket),
            Slot::Fed { ticket } => (true, ticket),
            Slot::Empty | Slot::Opening { .. } => return,
        };
        if self.station_due.is_some() {
            // The same station comes next.
            return;
        }
        let again = self.again.filter(|(of, _)| fed && *of == ticket).map(|(_, at)| at).zip(self.current);
        let wanted = match again {
            Some((at, current)) => Some((current, at)),
            None => self.wanted_next().map(|entry| (entry, Duration::ZERO)),
        };
        self.take_back_unless(wanted, effects);
        if self.next != NextSlot::Empty {
            return;
        }
        let fed = fed || matches!(self.slot, Slot::Fed { .. });
        match wanted {
            None if fed && !self.ending => {
                self.ending = true;
                effects.push(Effect::EndOfMusic { generation: self.generation });
            }
            None => {}
            Some((entry, start)) => {
                let fetched = self.fetched.contains(&ticket);
                let due = preload::is_due(fetched, self.position(now), self.duration());
                if (fed || due && self.postponed != Some(entry))
                    && let Slot::Opening { ticket, .. } = self.open(entry, start, effects)
                {
                    self.next = NextSlot::Opening(Coming { ticket, entry, start });
                    self.ending = false;
                }
            }
        }
    }

    fn take_back_unless(&mut self, wanted: Option<(EntryId, Duration)>, effects: &mut Vec<Effect>) {
        let Some(Coming { ticket, entry, start }) = self.next.coming() else { return };
        if Some((entry, start)) == wanted {
            return;
        }
        if let (NextSlot::Taken { .. }, Some(heard)) = (self.next, self.slot.ticket()) {
            self.generation += 1;
            effects.push(Effect::CutAfter { ticket, entry, generation: self.generation });
            self.slot = Slot::Fed { ticket: heard };
        }
        self.abandon_next(effects);
    }
}
