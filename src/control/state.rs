//! Everything that is visible from outside, as a value: the outward boundary.

use std::sync::Arc;
use std::time::Duration;

use crate::dsp;
use crate::track::{EntryId, TrackInfo};

/// What the player does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// Nothing plays.
    #[default]
    Stopped,
    /// Should play, and waits for bytes or for a card. MPRIS shows it as Playing.
    Buffering,
    /// Sound is heard.
    Playing,
    /// Held.
    Paused,
}

impl Status {
    /// The word on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Stopped => "stopped",
            Status::Buffering => "buffering",
            Status::Playing => "playing",
            Status::Paused => "paused",
        }
    }
}

/// Why the status is what it is, where that is not plain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// Nothing special.
    #[default]
    None,
    /// A person asked for it.
    User,
    /// The track is being resolved and opened.
    Opening,
    /// No host answers.
    Network,
    /// The server of this track does not deliver.
    Server,
    /// The URL ran out and a fresh one is awaited.
    Expired,
    /// The sound card is missing, busy or gone.
    Device,
    /// The queue has been played to its end.
    EndOfQueue,
    /// Playback gave up; `LastError` says why.
    Error,
}

impl Reason {
    /// The word on the bus; empty for [`Reason::None`].
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::None => "",
            Reason::User => "user",
            Reason::Opening => "opening",
            Reason::Network => "network",
            Reason::Server => "server",
            Reason::Expired => "expired",
            Reason::Device => "device",
            Reason::EndOfQueue => "end-of-queue",
            Reason::Error => "error",
        }
    }
}

/// Who controls the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VolumeControl {
    /// Samples are scaled.
    #[default]
    Software,
    /// The card's own control.
    Hardware,
    /// Nobody: it cannot be set.
    Fixed,
}

impl VolumeControl {
    /// The word on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            VolumeControl::Software => "software",
            VolumeControl::Hardware => "hardware",
            VolumeControl::Fixed => "fixed",
        }
    }
}

/// What happens at the end of an entry or of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    /// Stop after the last entry.
    #[default]
    Off,
    /// The same entry again.
    Track,
    /// From the last entry to the first.
    Queue,
}

impl Repeat {
    /// The word on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Repeat::Off => "off",
            Repeat::Track => "track",
            Repeat::Queue => "queue",
        }
    }
}

/// The entry that is heard, or that will be when play goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Current {
    /// Its number.
    pub entry: EntryId,
    /// Its URI, never a resolved URL.
    pub uri: String,
    /// What is known about it; `duration` is the decoder's once it is open.
    pub info: Arc<TrackInfo>,
}

/// The queue at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// How many entries.
    pub length: u32,
    /// Grows with each change.
    pub revision: u64,
    /// Mode.
    pub repeat: Repeat,
}

/// What would have an effect now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Can {
    /// There is an entry to go to.
    pub next: bool,
    /// There is an entry to go back to.
    pub previous: bool,
    /// There is something to play.
    pub play: bool,
    /// There is something to hold.
    pub pause: bool,
    /// The current entry can be sought in.
    pub seek: bool,
}

/// The sound card's side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// ALSA name of the device in use or wanted.
    pub device: String,
    /// What the card runs at, 0 while it is not open.
    pub rate: u32,
    /// Sample format, for example `S32_LE`; empty while not open.
    pub format: String,
    /// How many channels, 0 while not open.
    pub channels: u32,
    /// The card gets the source's samples untouched.
    pub bit_perfect: bool,
    /// Why not, where not.
    pub reason: String,
    /// Codec of what is heard, for example `FLAC`.
    pub codec: String,
    /// How often the card ran dry.
    pub xruns: u64,
}

/// How the bytes of the current track stand. Read on request: it changes all the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buffer {
    /// Bytes held ahead of the decoder.
    pub bytes: u64,
    /// The most that may be held.
    pub cap: u64,
    /// Fetched and decoded music that lies ahead of the ear.
    pub seconds_ahead: f64,
    /// Position up to which the track is fetched, in microseconds, as far as it can be told.
    pub fetched_micros: i64,
    /// How long a sample takes from the ring to the ear.
    pub delay: Duration,
    /// All of the track's bytes are here.
    pub complete: bool,
    /// Until the URL runs out; `None` where unknown.
    pub url_expires_in: Option<Duration>,
    /// How often the plugin was asked for a fresh URL of this track.
    pub re_resolved: u32,
}

/// The last thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// A stable word, for example `stream`, `decode`, `plugin`, `device`.
    pub code: String,
    /// A sentence that names the track or the plugin and says what to do.
    pub message: String,
}

/// Everything that the outside sees, but for what is read on request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// What the player does.
    pub status: Status,
    /// And why.
    pub reason: Reason,
    /// The entry that is heard.
    pub current: Option<Current>,
    /// From 0 to 1.
    pub volume: f64,
    /// Who controls it.
    pub volume_control: VolumeControl,
    /// Silenced.
    pub mute: bool,
    /// What is to be done to the samples.
    pub sound: dsp::Settings,
    /// The queue at a glance.
    pub queue: QueueState,
    /// What would have an effect.
    pub can: Can,
    /// The device that a person chose, if one did.
    pub selected_output: Option<String>,
    /// The sound card's side.
    pub output: Output,
    /// The last thing that went wrong, until it is cleared or the next track plays.
    pub last_error: Option<LastError>,
}

/// How the queue changed.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueChange {
    /// Entries came in before another, or at the end.
    Added {
        /// Their numbers.
        entries: Vec<EntryId>,
        /// What they stand before.
        before: Option<EntryId>,
    },
    /// Entries went.
    Removed(Vec<EntryId>),
    /// All went.
    Cleared,
    /// More became known about an entry.
    Info(EntryId),
}

/// What must not be lost or overtaken, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The position jumped; microseconds.
    Seeked(i64),
    /// Something went wrong.
    Error(LastError),
    /// The queue changed.
    Queue {
        /// The revision that it has now.
        revision: u64,
        /// What changed.
        change: QueueChange,
    },
    /// Something that a person who watches wants to see: `kind` is one of `resolved`, `fetching`, `fetched`,
    /// `renewed`, `trouble`, `playing`, `joined`, `station`, `title`, `expanded`, `device`, `finished`.
    Event {
        /// Which kind.
        kind: &'static str,
        /// The entry that it is about, if any.
        entry: Option<EntryId>,
        /// A short sentence.
        text: String,
    },
}
