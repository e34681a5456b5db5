//! What the decode thread is told to do now, and whether that is a call of the decoder.

use std::time::Duration;

use super::Feed;
use super::calls::Call;
use super::work::Work;
use crate::playback::feeder::{Message, Told};
use crate::playback::open::OpenTrack;
use crate::player::Ticket;

impl Feed {
    /// What it leads to may be a call of a decoder.
    pub(super) fn obey(&mut self, message: Message) -> Option<Call> {
        match message {
            Message::Feed { ticket, track, generation } => {
                self.generation = generation;
                self.end = None;
                return self.feed(ticket, track);
            }
            Message::Next { ticket, track } => self.hand_over(ticket, track),
            Message::GoOn(ticket) => self.go_on(ticket),
            Message::Abandon(ticket) => self.abandon(ticket),
            Message::Seek { ticket, generation, position } => {
                self.generation = generation;
                self.end = None;
                return self.seek(ticket, position);
            }
            Message::Measure(ticket) => return self.measure(ticket),
            Message::TakeBack { ticket, generation } => return self.take_back(ticket, generation),
            Message::Sound(settings) => {
                self.sound = settings;
                if let Some(work) = &mut self.current {
                    work.change_sound(&settings);
                }
            }
            Message::End { generation } => self.end = Some(generation),
        }
        None
    }

    fn feed(&mut self, ticket: Ticket, track: Option<Box<OpenTrack>>) -> Option<Call> {
        let handed_over_before = || self.next.take_if(|(next, _)| *next == ticket).map(|(_, track)| track);
        if let Some(track) = track.or_else(handed_over_before) {
            self.left = None;
            self.before = None;
            self.current = Some(Work::new(ticket, track));
            return None;
        }
        // It was taken as the next track a moment ago: begin it anew.
        self.seek(ticket, Duration::ZERO)
    }

    pub(super) fn seek(&mut self, ticket: Ticket, position: Duration) -> Option<Call> {
        let work = self.current.as_mut().filter(|work| work.ticket == ticket);
        let Some(work) = work else {
            self.tell(Told::Lost(ticket));
            return None;
        };
        work.track.stream.clear_interrupt();
        Some(Call::Seek(position))
    }

    fn measure(&self, ticket: Ticket) -> Option<Call> {
        if self.current.as_ref().is_some_and(|work| work.ticket == ticket) {
            return Some(Call::Measure);
        }
        self.next.as_ref().filter(|(next, _)| *next == ticket).map(|_| Call::MeasureNext)
    }
}
