//! What the player wants done, as values.

use std::time::Duration;

use super::album::Place;
use crate::control::Notice;
use crate::dsp;
use crate::track::{EntryId, TrackUri};

/// Names one opening of a track. Never used again, so that a late answer is known to be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What the player wants done. Effects are carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Resolve the track, open its stream and its decoder, and go to `start`. Answered by `Opened` or
    /// `OpenFailed` with the same ticket.
    Open {
        /// Names this opening.
        ticket: Ticket,
        /// For which entry.
        entry: EntryId,
        /// What to open.
        uri: TrackUri,
        /// Where to begin.
        start: Duration,
    },
    /// Whatever this ticket opened or is opening is not wanted any more.
    Abandon(Ticket),
    /// Where this opened track stands in the queue; before it is decoded.
    Place(Ticket, Place),
    /// Decode this opened track now, in place of what was decoded before.
    Feed {
        /// The opened track.
        ticket: Ticket,
        /// Marks its sound.
        generation: u64,
    },
    /// Decode this opened track when the one before it is at its end, without a break.
    FeedNext(Ticket),
    /// This track could not be decoded further, and it is decided by now what comes behind it: go on with that.
    GoOn(Ticket),
    /// Nothing comes after what is decoded: let the card play to the end.
    EndOfMusic {
        /// Of which sound.
        generation: u64,
    },
    /// Go on decoding at another position of this track, which is being decoded. Answered by `Lost` where the
    /// decoder has left it already.
    Seek {
        /// The track.
        ticket: Ticket,
        /// Marks the sound from there.
        generation: u64,
        /// Where to.
        position: Duration,
    },
    /// Silence at once; sound of older generations is never heard again.
    Cut {
        /// The first generation that may be heard.
        generation: u64,
    },
    /// What is in the ring of this entry, and behind it, is not to be heard.
    CutAfter {
        /// Its opening.
        ticket: Ticket,
        /// The entry that is taken back.
        entry: EntryId,
        /// The first generation that may be heard after what comes before that entry.
        generation: u64,
    },
    /// Nothing is under way any more: what is played next may begin on another device.
    Rest,
    /// Hold the sound.
    Pause,
    /// Let the sound go on.
    Resume,
    /// Volume and mute of the software, as an earlier run left them; nothing is done to the card's own control.
    RestoreVolume(f64, bool),
    /// From 0 to 1.
    SetVolume(f64),
    /// Silence without touching the volume.
    SetMute(bool),
    /// Let sound go to this device, or to those of the configuration.
    SelectOutput(Option<String>),
    /// What is to be done to the samples that are decoded from now on.
    SetSound(dsp::Settings),
    /// Ask the plugin what the track is called.
    FetchInfo(EntryId, TrackUri),
    /// The queue changed: keep it.
    SaveQueue,
    /// Entry, position, modes or volume changed: keep them.
    SaveState,
    /// Tell the outside.
    Notify(Notice),
}
