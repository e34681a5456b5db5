//! Calls of a decoder, which may never come back: whatever the decode thread has besides the decoder is laid down for
//! another thread to take up.

use std::time::Duration;

use super::feed::Feed;
use super::runaway::Desk;
use crate::player::Ticket;

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
pub(super) struct LaidDown {
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
    pub(super) fn without_the_track(self) -> Box<Feed> {
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
}
