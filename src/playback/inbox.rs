//! What the tasks and threads that work for the player tell, and what it means to the player.

use super::actor::Playback;
use super::feeder::Told;
use super::open::{OpenTrack, failed_decode};
use crate::player::{Event, Failure, OpenedTrack, Ticket};
use crate::stream::{StreamEvent, StreamHandle};
use crate::track::{EntryId, TrackInfo};

/// Names of parts of a recording that may wait for the ear: the ring holds two seconds.
const PARTS: usize = 64;

/// What arrives from the tasks and threads that work for the player.
pub(super) enum Inbox {
    Feeder(Told),
    Stream(Ticket, StreamHandle),
    StreamEvent(Ticket, StreamEvent),
    Opened(Ticket, Result<(Box<OpenTrack>, OpenedTrack), Failure>),
    Info(EntryId, TrackInfo),
    Say(EntryId, &'static str, String),
}

impl Playback {
    pub(super) fn read(&mut self, message: Inbox) {
        match message {
            Inbox::Feeder(told) => self.fed(told),
            Inbox::Stream(ticket, stream) => self.watch_stream(ticket, stream),
            Inbox::StreamEvent(ticket, event) => self.streamed(ticket, event),
            Inbox::Opened(ticket, outcome) => self.opened(ticket, outcome),
            Inbox::Info(entry, info) => self.happened(Event::Info(entry, info)),
            Inbox::Say(entry, kind, text) => self.say(Some(entry), kind, text),
        }
    }

    fn opened(&mut self, ticket: Ticket, outcome: Result<(Box<OpenTrack>, OpenedTrack), Failure>) {
        let Some(held) = self.held.get_mut(&ticket) else { return };
        held.opening = None;
        match outcome {
            Ok((track, facts)) => {
                held.track = Some(track);
                self.happened(Event::Opened(ticket, facts));
            }
            Err(failure) => {
                self.forget(ticket);
                self.happened(Event::OpenFailed(ticket, failure));
            }
        }
    }

    fn fed(&mut self, told: Told) {
        let event = match told {
            // It has been told to decode elsewhere since, after a seek for example, and does so by now.
            Told::AtEnd(_, generation) | Told::Failed(_, generation, ..)
                if generation < self.machine.valid_from() =>
            {
                return;
            }
            Told::TookNext { from, ticket, entry } => Event::TookNext { from, ticket, entry },
            Told::AtEnd(ticket, _) => match self.broke_off(ticket) {
                Some(failure) => {
                    Event::DecodeFailed { ticket, failure, reached: self.machine.position(self.now()) }
                }
                None => Event::FedToEnd(ticket),
            },
            Told::Lost(ticket) => Event::Lost(ticket),
            Told::Landed { ticket, position, exact } => Event::Landed { ticket, position, exact },
            Told::Measured(ticket, duration) => Event::Measured(ticket, duration),
            Told::Failed(ticket, _, error, reached) => {
                let Some(held) = self.held.get(&ticket) else { return };
                let mut failure = failed_decode(&held.uri, &error);
                failure.again |= self.machine.is_live(ticket);
                Event::DecodeFailed { ticket, failure, reached }
            }
            Told::Part(ticket, part) => {
                if let Some(held) = self.held.get_mut(&ticket) {
                    held.parts.push_back(part);
                    if held.parts.len() > PARTS {
                        held.parts.pop_front();
                    }
                }
                return;
            }
        };
        self.happened(event);
    }

    /// A station's sound is at an end although the station is not.
    fn broke_off(&self, ticket: Ticket) -> Option<Failure> {
        let held = self.held.get(&ticket).filter(|_| self.machine.is_live(ticket))?;
        let ended = held.stream.as_ref().is_none_or(|stream| stream.status().complete);
        let message = format!("{}: the station's sound broke off", held.uri.shown());
        (!ended).then_some(Failure { code: "decode", message, for_good: false, again: true })
    }
}
