//! What happened, as values.

use std::time::Duration;

use super::effect::Ticket;
use crate::control::{Reason, VolumeControl};
use crate::track::{EntryId, TrackInfo, TrackUri};

/// A track that is open and can be decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenedTrack {
    /// From its container; `duration` is what the decoder counts.
    pub info: TrackInfo,
    /// For example `FLAC`.
    pub codec: String,
    /// Why it cannot be sought in, if it cannot.
    pub not_seekable: Option<String>,
    /// Where decoding begins; may differ from what was asked where the format allows a guess only.
    pub start: Duration,
    /// Where it is only about there.
    pub start_is_a_guess: bool,
    /// A station, which has no end.
    pub live: bool,
}

/// Why a track does not play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable word for the bus: `plugin`, `stream`, `decode`, `uri`.
    pub code: &'static str,
    /// A sentence that names the track.
    pub message: String,
    /// Trying again will not help.
    pub for_good: bool,
    /// Opened again, the track goes on where it broke off.
    pub again: bool,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An opening succeeded.
    Opened(Ticket, OpenedTrack),
    /// An opening failed.
    OpenFailed(Ticket, Failure),
    /// The decoder is at the end of `from` and went on with the next track without a break.
    TookNext {
        /// The track before.
        from: Ticket,
        /// The track that is decoded now.
        ticket: Ticket,
        /// Its entry.
        entry: EntryId,
    },
    /// Who controls the volume, and what the card stands at where it is the card: volume and mute.
    Volume(VolumeControl, Option<(f64, bool)>),
    /// The decoder is at the end of this track and has nothing to go on with.
    FedToEnd(Ticket),
    /// The decoder was asked to go on with a track that it has left.
    Lost(Ticket),
    /// A seek in this track ended here.
    Landed {
        /// The track.
        ticket: Ticket,
        /// Where sound goes on.
        position: Duration,
        /// False where the format tells only about where that is.
        exact: bool,
    },
    /// This track turned out to be so long.
    Measured(Ticket, Duration),
    /// The decoder had to give this track up; what it made is still heard.
    DecodeFailed {
        /// The track.
        ticket: Ticket,
        /// Why.
        failure: Failure,
        /// How far in the track its sound comes.
        reached: Duration,
    },
    /// All bytes of this track are here.
    Fetched(Ticket),
    /// This opening led to an album's playlist, of whose tracks it plays one.
    Listed {
        /// The opening.
        ticket: Ticket,
        /// The playlist's tracks, in order.
        listed: Vec<(TrackUri, TrackInfo)>,
        /// Which of them plays, from 0.
        playing: usize,
    },
    /// Bytes of this track are waited for, and why.
    Waiting(Ticket, Reason),
    /// Bytes flow again.
    Flowing(Ticket),
    /// An entry, or a new position in it, begins to be heard.
    Heard {
        /// Which entry.
        entry: EntryId,
        /// Of which sound.
        generation: u64,
        /// Where in the entry.
        position: Duration,
        /// The opening that the sound comes from.
        ticket: Ticket,
    },
    /// A station says that from what is heard now on it plays this; or a part of a chained recording does.
    NowPlaying {
        /// The entry that is heard.
        entry: EntryId,
        /// The opening.
        ticket: Ticket,
        /// What it is called, where that was told.
        info: Option<TrackInfo>,
        /// For example `Vorbis`.
        codec: String,
    },
    /// Sound begins, after silence of any kind.
    Sounding(u64),
    /// The card has nothing to play, though more is to come.
    Empty(u64),
    /// All has been heard.
    Finished(u64),
    /// The card is missing, busy or gone.
    DeviceGone(String),
    /// The card works again.
    DeviceBack(String),
    /// The card came back with another format: decode again from where the ear is.
    NeedsRestart,
    /// The plugin told more about an entry.
    Info(EntryId, TrackInfo),
    /// A station told what it is called. What a plugin said comes first.
    Introduced(EntryId, TrackInfo),
    /// Time passed.
    Tick,
}
