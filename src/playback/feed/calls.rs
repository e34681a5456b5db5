//! Calls of a decoder, and what came of them. A call may never come back: whatever the decode thread has besides
//! the decoder is laid down for another thread to take up.

use std::time::Duration;

use super::Feed;
use super::joins::Left;
use super::work::Stage;
use crate::decode::{DecodeError, Landed};
use crate::playback::feeder::Told;
use crate::playback::open::OpenTrack;
use crate::playback::runaway::Desk;
use crate::player::Ticket;
use crate::stream::StreamError;

/// What a decoder is called for.
#[derive(Clone, Copy)]
pub(super) enum Call {
    /// The next frames of the current track.
    Next,
    /// To go elsewhere in it.
    Seek(Duration),
    /// How long it is.
    Measure,
    /// How long the next track is.
    MeasureNext,
}

/// What the decode thread lays down while it is in a decoder.
pub(in crate::playback) struct LaidDown {
    feed: Box<Feed>,
    /// Whose decoder it is in.
    ticket: Ticket,
    /// The track that this was joined to.
    follows: Option<Ticket>,
    /// How far in the current track it had come; `None` for the next one.
    at: Option<Duration>,
}

impl LaidDown {
    /// For a thread that takes it up.
    pub(in crate::playback) fn without_the_track(self) -> Box<Feed> {
        let LaidDown { mut feed, ticket, follows, at } = self;
        feed.ran_away(ticket, follows, at);
        feed
    }
}

impl Feed {
    /// Calls the decoder. `None` if somebody else has taken up what was laid down.
    pub(super) fn call(mut self: Box<Self>, call: Call, desk: &Desk<LaidDown>) -> Option<Box<Feed>> {
        if let Call::MeasureNext = call {
            let Some((ticket, mut track)) = self.next.take() else { return Some(self) };
            desk.lay_down(LaidDown { feed: self, ticket, follows: None, at: None });
            let outcome = track.decoder.measure();
            let mut feed = desk.take_up()?.feed;
            feed.measured(ticket, &track, outcome);
            feed.next = Some((ticket, track));
            return Some(feed);
        }
        let Some(mut work) = self.current.take() else { return Some(self) };
        let (ticket, follows, decoder) = (work.ticket, work.follows, &mut work.track.decoder);
        let (before, format) = (decoder.position(), decoder.format());
        desk.lay_down(LaidDown { feed: self, ticket, follows, at: Some(format.time_of(before)) });
        let mut feed;
        match call {
            Call::Next => {
                let outcome = decoder.next(&mut work.pcm);
                feed = desk.take_up()?.feed;
                feed.current = Some(work);
                feed.decoded(before, outcome);
            }
            Call::Seek(position) => {
                let outcome = decoder.seek(format.frame_at(position));
                feed = desk.take_up()?.feed;
                feed.current = Some(work);
                feed.sought(position, outcome);
            }
            Call::Measure | Call::MeasureNext => {
                let outcome = decoder.measure();
                feed = desk.take_up()?.feed;
                feed.measured(ticket, &work.track, outcome);
                feed.current = Some(work);
            }
        }
        Some(feed)
    }

    /// The decoder, which stood at the frame `before`, has given what it has.
    fn decoded(&mut self, before: u64, outcome: Result<Option<usize>, DecodeError>) {
        let Some(work) = &mut self.current else { return };
        match outcome {
            Ok(Some(_)) => {
                if let Some(part) = work.new_part() {
                    // Its mark stands where its sound begins.
                    work.begin_part(&self.sound);
                    work.released = true;
                    work.unmarked.get_or_insert(before);
                    let told = Told::Part(work.ticket, part);
                    self.tell(told);
                }
            }
            Ok(None) => work.stage = Stage::Ending,
            Err(error) => {
                let reached = work.track.decoder.format().time_of(before);
                self.failed(error, reached);
            }
        }
    }

    fn sought(&mut self, position: Duration, outcome: Result<Landed, DecodeError>) {
        let Some(work) = &mut self.current else { return };
        let format = work.track.decoder.format();
        match outcome {
            Ok(landed) => {
                work.restart_at(landed.frame);
                let (ticket, position) = (work.ticket, format.time_of(landed.frame));
                self.tell(Told::Landed { ticket, position, exact: landed.exact });
            }
            Err(error) => {
                work.restart_at(format.frame_at(position));
                self.failed(error, position);
            }
        }
    }

    fn measured(&self, ticket: Ticket, track: &OpenTrack, outcome: Result<Option<u64>, DecodeError>) {
        // What cannot be measured stays unknown; if the track is broken, decoding it will say so.
        if let Ok(Some(frames)) = outcome {
            self.tell(Told::Measured(ticket, track.decoder.format().time_of(frames)));
        }
    }

    /// The decoder of the current track ran away, in a thread that is left to itself; or that of the next one, before
    /// its turn.
    fn ran_away(&mut self, ticket: Ticket, follows: Option<Ticket>, at: Option<Duration>) {
        if at.is_some() {
            self.before = None;
            self.left = Some(Left::ran_away(ticket, follows));
        }
        let reached = at.unwrap_or_default();
        self.tell(Told::Failed(ticket, self.generation, DecodeError::RanAway, reached));
    }

    pub(super) fn failed(&mut self, error: DecodeError, reached: Duration) {
        let Some(work) = &mut self.current else { return };
        if was_wanted(&error) {
            work.stage = Stage::AwaitingSeek;
            return;
        }
        let ticket = work.ticket;
        work.undecided = true;
        work.released = true;
        work.stage = Stage::Ending;
        self.tell(Told::Failed(ticket, self.generation, error, reached));
    }
}

/// The stream was interrupted or closed by us: a message says what comes now.
fn was_wanted(error: &DecodeError) -> bool {
    let DecodeError::Input(error) = error else { return false };
    matches!(StreamError::of(error), Some(StreamError::Interrupted { .. } | StreamError::Aborted { .. }))
}
