//! Each opening of a track, from its ticket until it is abandoned, and what is learnt of it.

use std::time::Duration;

use super::Machine;
use super::slot::{NextSlot, Slot};
use crate::control::{Notice, Reason};
use crate::player::effect::{Effect, Ticket};
use crate::player::event::OpenedTrack;
use crate::player::queue::Source;
use crate::track::{EntryId, TrackInfo, TrackUri};

impl Machine {
    /// The track that serves the current entry, once it is open.
    pub(super) fn opened_track(&self) -> Option<&OpenedTrack> {
        self.opened.get(&self.slot.ticket()?)
    }

    pub(super) fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    pub(super) fn open(&mut self, entry: EntryId, start: Duration, effects: &mut Vec<Effect>) -> Slot {
        let Some(uri) = self.queue.get(entry).map(|found| found.uri.clone()) else { return Slot::Empty };
        let ticket = self.new_ticket();
        self.fetch_info(entry, &uri, effects);
        effects.push(Effect::Open { ticket, entry, uri, start });
        Slot::Opening { ticket, start }
    }

    fn fetch_info(&self, entry: EntryId, uri: &TrackUri, effects: &mut Vec<Effect>) {
        let unknown = self.queue.get(entry).is_some_and(|entry| entry.info.title.is_none());
        if unknown && matches!(uri, TrackUri::Plugin(..)) {
            effects.push(Effect::FetchInfo(entry, uri.clone()));
        }
    }

    /// Why this opening waits, if it did when it was that of what comes.
    pub(super) fn why_waits(&self, ticket: Ticket) -> Option<Reason> {
        self.coming_waits.filter(|(of, _)| *of == ticket).map(|(_, reason)| reason)
    }

    pub(super) fn abandon(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        self.again.take_if(|(of, _)| *of == ticket);
        self.opened.remove(&ticket);
        self.fetched.retain(|fetched| *fetched != ticket);
        effects.push(Effect::Abandon(ticket));
    }

    pub(super) fn abandon_current(&mut self, effects: &mut Vec<Effect>) {
        if let Some(ticket) = self.slot.ticket() {
            self.abandon(ticket, effects);
        }
        self.slot = Slot::Empty;
    }

    pub(super) fn abandon_next(&mut self, effects: &mut Vec<Effect>) {
        if let Some(coming) = self.next.coming() {
            self.abandon(coming.ticket, effects);
        }
        self.next = NextSlot::Empty;
    }

    pub(super) fn opened(&mut self, ticket: Ticket, track: OpenedTrack, effects: &mut Vec<Effect>) {
        // What a station's bytes say is about what it plays at the moment.
        let info = if track.live { TrackInfo::default() } else { track.info.clone() };
        let (start, exact) = (track.start, !track.start_is_a_guess);
        let seekable = track.not_seekable.is_none();
        self.opened.insert(ticket, track);
        if let Slot::Opening { ticket: awaited, start: asked } = self.slot
            && awaited == ticket
        {
            self.slot = Slot::Feeding { ticket };
            self.reason = Reason::None;
            if let Some(entry) = self.current {
                self.learn(entry, &info, Source::Container, effects);
                effects.push(Effect::Place(ticket, self.queue.place(entry, self.wraps())));
            }
            effects.push(Effect::Feed { ticket, generation: self.generation });
            let sought_meanwhile = self.anchor != asked;
            if sought_meanwhile && seekable {
                self.jump(self.anchor, effects);
            } else {
                (self.anchor, self.exact) = (start, exact);
            }
        } else if let NextSlot::Opening(coming) = self.next
            && coming.ticket == ticket
        {
            self.next = NextSlot::Ready(coming);
            self.learn(coming.entry, &info, Source::Container, effects);
            effects.push(Effect::Place(ticket, self.queue.place(coming.entry, self.wraps())));
            effects.push(Effect::FeedNext(ticket));
        } else {
            self.abandon(ticket, effects);
        }
    }

    pub(super) fn fetched(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        let is_current = self.slot.ticket() == Some(ticket);
        let is_next = self.next.coming().is_some_and(|next| next.ticket == ticket);
        if (is_current || is_next) && !self.fetched.contains(&ticket) {
            self.fetched.push(ticket);
            let next = self.next.coming().filter(|_| is_next).map(|next| next.entry);
            let which = if is_current { "this track is" } else { "the next track is" };
            let (kind, text) = ("fetched", format!("{which} completely here"));
            effects.push(Effect::Notify(Notice::Event { kind, entry: next.or(self.current), text }));
        }
    }

    pub(super) fn measured(&mut self, ticket: Ticket, duration: Duration, effects: &mut Vec<Effect>) {
        let Some(track) = self.opened.get_mut(&ticket) else { return };
        track.info.duration = Some(duration);
        let next = self.next.coming().filter(|next| next.ticket == ticket).map(|next| next.entry);
        let current = self.current.filter(|_| self.slot.ticket() == Some(ticket));
        if let Some(entry) = next.or(current) {
            let info = TrackInfo { duration: Some(duration), ..TrackInfo::default() };
            self.learn(entry, &info, Source::Container, effects);
        }
    }
}
