//! What cannot be played, and how it goes on then.

use std::time::Duration;

use super::slot::{NextSlot, Slot};
use super::{Machine, Now};
use crate::control::{LastError, Notice, Reason};
use crate::player::effect::{Effect, Ticket};
use crate::player::event::Failure;
use crate::track::EntryId;

/// So many different tracks in a row may fail without a sound; then playback stops instead of racing on.
pub(super) const FAILURES_IN_A_ROW: usize = 3;

impl Machine {
    /// An entry was given up before a sound of it was heard.
    pub(super) fn count_failure(&mut self, entry: Option<EntryId>, failure: &Failure) {
        self.failures += 1;
        if !failure.for_good {
            self.first_failed = self.first_failed.or(entry);
        }
    }

    pub(super) fn forget_failed_nexts(&mut self) {
        self.passed_over.clear();
        self.postponed = None;
    }

    pub(super) fn fail(&mut self, failure: Failure, effects: &mut Vec<Effect>) {
        let error = LastError { code: failure.code.to_owned(), message: failure.message };
        self.last_error = Some(error.clone());
        effects.push(Effect::Notify(Notice::Error(error)));
    }

    pub(super) fn open_failed(
        &mut self,
        ticket: Ticket,
        failure: Failure,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        if let Slot::Opening { ticket: awaited, start } = self.slot
            && awaited == ticket
        {
            self.slot = Slot::Empty;
            if self.waits_for_station(&failure, now, effects) || self.opens_again(&failure, start, effects) {
                return;
            }
            self.count_failure(self.current, &failure);
            self.fail(failure, effects);
            self.go_on_after_failure(effects);
        } else if let NextSlot::Opening(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Empty;
            let current_is_done = matches!(self.slot, Slot::Fed { .. });
            if self.again.take().is_some() {
                if self.waits_for_station(&failure, now, effects) {
                    return;
                }
                // The rest of the current entry is lost, not what comes behind it.
                self.failures += 1;
                self.fail(failure, effects);
            } else if failure.for_good || current_is_done {
                self.count_failure(Some(coming.entry), &failure);
                self.passed_over.push(coming.entry);
                self.fail(failure, effects);
            } else {
                self.postponed = Some(coming.entry);
            }
        }
    }

    pub(super) fn decode_failed(
        &mut self,
        ticket: Ticket,
        failure: Failure,
        reached: Duration,
        effects: &mut Vec<Effect>,
    ) {
        if let NextSlot::Ready(coming) = self.next
            && coming.ticket == ticket
        {
            // The decoder broke down on it before its turn had come.
            self.abandon_next(effects);
            self.passed_over.push(coming.entry);
            self.fail(failure, effects);
            return;
        }
        if !self.fed_to_end(ticket) {
            effects.push(Effect::GoOn(ticket));
            return;
        }
        if self.goes_on_again(ticket, &failure, reached) {
            if self.slot.ticket() == Some(ticket) {
                self.abandon_next(effects);
            }
            self.event("trouble", format!("{}; it is opened again", failure.message), effects);
        } else {
            if !self.sounding {
                self.count_failure(self.current, &failure);
            }
            self.fail(failure, effects);
        }
        effects.push(Effect::GoOn(ticket));
    }

    fn go_on_after_failure(&mut self, effects: &mut Vec<Effect>) {
        let failed = self.current;
        let next = failed.and_then(|entry| self.queue.successor(entry, self.repeat));
        match next {
            Some(next) if self.failures < FAILURES_IN_A_ROW => self.begin(next, Duration::ZERO, effects),
            _ => self.halt(Reason::Error, effects),
        }
    }
}
