//! What travels beside the samples, and what the output tells in return.

use std::time::Duration;

use super::format::{Abilities, CardFormat, SourceFormat};
use super::treatment::Treatment;
use crate::track::EntryId;

/// Where an entry's sound begins in the ring. The entry *begins when its mark is heard*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The queue entry.
    pub entry: EntryId,
    /// Which order of the player this belongs to; grows with each cut.
    pub generation: u64,
    /// Time within the source of the frame at the mark.
    pub position: Duration,
    /// The same as a frame number, at the source's own rate.
    pub source_frame: u64,
    /// The opening of the entry that the sound comes from; the sender's own number.
    pub opening: u64,
    /// Which part of the recording begins or goes on here, such as a station's title; the sender's own number.
    pub part: u64,
    /// What was done to its samples.
    pub treatment: Treatment,
}

/// Something that holds from one frame of the ring on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    /// Frame in the writer's count.
    pub at: u64,
    pub generation: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Mark(Mark),
    /// Another source in the format that runs already.
    Continue(SourceFormat),
    /// Another format: what is before it is heard to its end, then the device is set up anew.
    SetUp {
        request: u64,
        format: SourceFormat,
    },
    /// No more frames for now.
    End,
}

impl What {
    /// True where the sound stops when this is reached.
    pub fn stops(&self) -> bool {
        matches!(self, What::SetUp { .. } | What::End)
    }
}

/// The answer to `What::SetUp`: the ring for the new format.
pub(super) struct Prepared {
    pub request: u64,
    pub format: SourceFormat,
    pub card: CardFormat,
    pub abilities: Abilities,
    pub ring: rtrb::Producer<i32>,
}

/// Why there is no device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneReason {
    /// No such device.
    Missing,
    /// Another program holds it.
    Busy,
    /// It was there and went away.
    Unplugged,
    /// It takes no sound any more, or refuses every format.
    Failing,
}

/// What happened to the sound, in the order in which it happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The frame at this mark is being heard.
    Heard(Mark),
    /// The first frame after a start, an empty ring, a cut or a pause is being played.
    Sounding {
        /// Of the frames that are played.
        generation: u64,
    },
    /// The ring ran empty without an end: the card was stopped cleanly and starts again when frames arrive.
    Empty {
        /// Of the last frames that were played.
        generation: u64,
    },
    /// All frames before `end` have been heard.
    Finished {
        /// As it was given to `end`.
        generation: u64,
    },
    /// A device was opened or set up for another format.
    Opened {
        /// ALSA's name of it.
        device: String,
        /// What it runs at.
        card: CardFormat,
        /// Whether samples reach it untouched.
        bit_perfect: bool,
        /// What alters them, empty if nothing does.
        reason: String,
        /// Why a device that comes before this one is not used, empty if none does.
        instead_of: String,
    },
    /// The device cannot be used. Sent once; it is tried again until `DeviceBack`.
    DeviceGone {
        /// A sentence for a person.
        message: String,
        /// What kind of trouble.
        why: GoneReason,
    },
    /// The device can be used again; sound goes on where it was.
    DeviceBack,
    /// The device came back in another format than the frames that wait: decode again from the playhead.
    NeedsRestart {
        /// Of the frames that were thrown away.
        generation: u64,
    },
    /// The card ran out of frames although there were some.
    Xrun {
        /// How many so far.
        count: u64,
    },
    /// Idle for long enough: the device is closed, others may use it.
    Released,
}
