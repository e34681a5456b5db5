//! What follows a track: joined to it, faded into it, or in the place of one that was taken back.

use super::calls::Call;
use super::work::{Stage, Work};
use super::{Feed, Step};
use crate::playback::feeder::Told;
use crate::playback::open::OpenTrack;
use crate::player::Ticket;

/// What a track that was dropped had been joined to.
pub(super) struct Left {
    from: Ticket,
    /// The dropped track, while some of its sound is in the ring and has not been taken back yet.
    instead_of: Option<Ticket>,
    /// The decoder ran away on `from`, and whether it is opened again or the next one follows is not decided yet.
    undecided: bool,
    /// What `from` had been joined to itself, where that may matter.
    before: Option<Ticket>,
}

impl Left {
    fn behind(from: Ticket, instead_of: Option<Ticket>) -> Left {
        Left { from, instead_of, undecided: false, before: None }
    }

    /// The decoder ran away on `from`, which had been joined to `before`.
    pub(super) fn ran_away(from: Ticket, before: Option<Ticket>) -> Left {
        Left { undecided: true, before, ..Left::behind(from, None) }
    }
}

impl Feed {
    /// What comes when the current track is at its end.
    pub(super) fn hand_over(&mut self, ticket: Ticket, track: Box<OpenTrack>) {
        self.next = Some((ticket, track));
        // What waits is its own to be followed, not the end's.
        self.end.take_if(|_| self.current.as_ref().is_some_and(Work::is_unwritten_at_end));
        match &mut self.current {
            Some(work) if work.stage != Stage::AtEnd || work.undecided => {}
            Some(work) => work.stage = Stage::Ending,
            // The track before it comes back first.
            None if self.before.is_some() => {}
            None => self.take_next_after_taking_back(),
        }
    }

    /// What comes behind this track, which failed, is decided.
    pub(super) fn go_on(&mut self, ticket: Ticket) {
        if let Some(work) = self.current.as_mut().filter(|work| work.ticket == ticket) {
            work.undecided = false;
            if work.stage == Stage::AtEnd && self.next.is_some() {
                work.stage = Stage::Ending;
            }
        }
        if let Some(left) = self.left.as_mut().filter(|left| left.undecided && left.from == ticket) {
            left.undecided = false;
            self.take_next_after_taking_back();
        }
    }

    /// Nothing more is decoded of this track. What the ring has of it stays there.
    pub(super) fn abandon(&mut self, ticket: Ticket) {
        if let Some(work) = self.current.take_if(|work| work.ticket == ticket) {
            self.left = work.follows.map(|from| Left::behind(from, Some(ticket)));
            if let Some(before) = &mut self.before {
                before.restore(work);
            }
        }
        if self.before.take_if(|work| work.ticket == ticket).is_some() {
            self.forget_done_fade();
        }
        self.next.take_if(|(next, _)| *next == ticket);
    }

    /// Not one more frame of this track goes to the ring: under the new generation it would be heard.
    pub(super) fn take_back(&mut self, ticket: Ticket, generation: u64) -> Option<Call> {
        self.generation = generation;
        if let Some(left) = &mut self.left
            && left.instead_of == Some(ticket)
        {
            left.instead_of = None;
            if self.current.is_none()
                && let Some(before) = self.before.take()
            {
                self.come_back(before);
            }
        }
        if let Some(work) = self.current.take_if(|work| work.ticket == ticket) {
            self.left = work.follows.map(|from| Left::behind(from, None));
            if let Some(mut before) = self.before.take() {
                before.restore(work);
                self.come_back(before);
            }
            return None;
        }
        if let Some(left) = self.left.as_mut().filter(|left| left.from == ticket) {
            self.left = left.before.map(|before| Left::behind(before, None));
        }
        let work = self.current.as_mut()?;
        if work.behind == Some(ticket) {
            // What it has in the ring is taken back too: from its beginning again.
            work.behind = None;
            let (again, start) = (work.ticket, work.track.decoder.format().time_of(work.track.start_frame));
            return self.seek(again, start);
        }
        None
    }

    /// All that was decoded is in the ring, or waits for what may be joined to it or faded into it.
    pub(super) fn come_to_the_end(&mut self) -> Step {
        let fades = self.fades();
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        let next = self.next.as_ref().map(|(_, next)| next.decoder.format());
        let format = work.track.decoder.format();
        let joins = !fades && next.is_none_or(|next| next == format);
        if work.holds_back() && (work.is_mixing() || !joins) {
            work.finish(&self.sound);
            return Step::Again;
        }
        if work.is_mixing() {
            work.fade_out(&self.sound);
            return Step::Again;
        }
        if next.is_some() && !fades && work.waiting() > 0 {
            // No fade for this one: the end is heard as it is.
            work.released = true;
            return Step::Again;
        }
        // A track that is shorter than what the chain holds back has its mark all the same.
        let is_due = work.sounded && work.waiting() == 0 && (next.is_some() || !work.holds_back());
        if is_due && !self.mark(format) {
            return Step::WaitForRoom;
        }
        let Some(work) = &mut self.current else { return Step::WaitForMessage };
        work.stage = Stage::AtEnd;
        if work.undecided {
            return Step::Again;
        }
        if next.is_some() {
            self.take_next();
        } else if !std::mem::replace(&mut work.told_end, true) {
            let ticket = work.ticket;
            self.tell(Told::AtEnd(ticket, self.generation));
        }
        Step::Again
    }

    /// Whether the next track is faded into the current one.
    fn fades(&self) -> bool {
        let (Some(work), Some((_, next))) = (&self.current, &self.next) else { return false };
        !work.undecided && work.fades_into(next, &self.sound, &self.writer)
    }

    /// A track that was to fade out is not to, and has its end again.
    fn come_back(&mut self, mut before: Work) {
        if self.next.is_some() {
            before.stage = Stage::Ending;
        }
        (self.current, self.left) = (Some(before), None);
    }

    /// Once the current track is heard and the fade is mixed, what it was mixed with is not wanted any more.
    pub(super) fn forget_done_fade(&mut self) {
        if let Some(work) = self.current.as_mut().filter(|_| self.before.is_none()) {
            work.fade.take_if(|fade| fade.is_done());
        }
    }

    /// Goes on with the next track. In the same format the converter goes on too, so that the join is no seam.
    fn take_next(&mut self) {
        let fades = self.fades();
        let Some((ticket, track)) = self.next.take() else { return };
        let Some(mut before) = self.current.take() else { return };
        let joins = before.track.decoder.format() == track.decoder.format();
        let (from, entry) = (before.ticket, track.entry);
        let mut work = Work { follows: Some(from), ..Work::new(ticket, track) };
        if fades {
            work.fade_from(&mut before);
        } else if let Some(conversion) = before.conversion.take_if(|_| joins) {
            work.join(conversion, &self.sound);
        }
        self.before = Some(before).filter(|_| fades);
        self.current = Some(work);
        self.tell(Told::TookNext { from, ticket, entry });
    }

    /// The next track was decoded already when the queue changed, and its decoder is gone. What was decoded before
    /// it is still heard, and another one follows that.
    fn take_next_after_taking_back(&mut self) {
        let Some(left) = self.left.take_if(|left| !left.undecided && self.next.is_some()) else { return };
        let Some((ticket, track)) = self.next.take() else { return };
        let Left { from, instead_of, .. } = left;
        let entry = track.entry;
        let work = Work::new(ticket, track);
        self.current = Some(Work { follows: Some(from), behind: instead_of, ..work });
        self.tell(Told::TookNext { from, ticket, entry });
    }
}
